//! `generate_object`: answers as values of a type.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use insta::assert_snapshot;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolloop::mock::MockProvider;
use toolloop::structured::{
    GenerateObjectConfig, GenerateObjectResult, ObjectMode, generate_object, generate_value,
};
use toolloop::{
    Capability, ChatMessage, ChatParams, LlmError, ProviderMetadata, StopReason, StreamEvent,
    ToolChoice,
};
use toolloop_fake::{Call, FakeServer, Reply, Script};

use super::support::every_api::every_api;
use super::support::{call, reply, reply_ending, requests, says, text};

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct City {
    name: String,
    inhabitants: u32,
    #[serde(default)]
    rivers: Vec<String>,
}

#[tokio::test]
async fn the_surest_way_the_model_has_is_taken() {
    let answer = json!({"name": "Paris", "inhabitants": 2});
    let by_tool = || reply([call("c1", "answer", answer.clone())]);
    let in_words = || says(&format!("Here it is:\n```json\n{answer}\n```"));
    use Capability::{StructuredOutput, Tools};
    let cases = [
        (vec![Tools, StructuredOutput], says(&answer.to_string())),
        (vec![Tools], by_tool()),
        (vec![], in_words()),
    ];
    let mut asked = Vec::new();
    for (capabilities, answer) in cases {
        let model = able(capabilities, [answer]);
        let found = city(&model).await.unwrap();
        assert_eq!(found.value, City { name: "Paris".into(), inhabitants: 2, rivers: vec![] });
        assert_eq!((found.attempts, found.usage.total()), (1, 11));
        asked.push(model.recorded_calls().remove(0));
    }
    let [native, tool, words] = asked.as_slice() else { panic!() };
    assert!(native.structured_output.is_some() && native.tools.is_none());
    assert!(tool.structured_output.is_none());
    assert_eq!(tool.tool_choice, Some(ToolChoice::Specific("answer".into())));
    assert_eq!(tool.tools.as_ref().unwrap()[0].parameters.as_value()["type"], "object");
    assert!(words.system.as_ref().unwrap().contains(r#""inhabitants""#));
    assert!(words.tools.is_none() && words.structured_output.is_none());
}

#[tokio::test]
async fn what_does_not_fit_goes_back_with_its_faults() {
    let model = able(
        [Capability::StructuredOutput],
        [
            says("I think it is Paris."),
            says(r#"{"name": "Paris"}"#),
            says(r#"{"name": "Paris", "inhabitants": 2}"#),
        ],
    );
    let found = city(&model).await.unwrap();
    assert_eq!((found.attempts, found.usage.to_string()), (3, "30 in · 3 out".to_owned()));
    assert_snapshot!(requests(&model), @r#"
    -- request 1
    user: The capital of France?
    -- request 2
    user: The capital of France?
    assistant: I think it is Paris.
    user: That answer does not fit: it is not readable as JSON: expected value at line 1 column 1. Give the whole answer again.
    -- request 3
    user: The capital of France?
    assistant: I think it is Paris.
    user: That answer does not fit: it is not readable as JSON: expected value at line 1 column 1. Give the whole answer again.
    assistant: {"name": "Paris"}
    user: That answer does not fit: "inhabitants" is a required property. Give the whole answer again.
    "#);
}

#[tokio::test]
async fn an_answer_by_tool_gets_its_faults_as_a_result() {
    let model = able(
        [Capability::Tools],
        [
            reply([call("c1", "answer", json!({"name": 1, "inhabitants": 2}))]),
            reply([call("c2", "answer", json!({"name": "Paris", "inhabitants": 2}))]),
        ],
    );
    let found = city(&model).await.unwrap();
    assert_eq!(found.attempts, 2);
    assert_snapshot!(requests(&model), @r#"
    -- request 1
    user: The capital of France?
    -- request 2
    user: The capital of France?
    assistant: c1 answer({"name":1,"inhabitants":2})
    tool: c1 failed: That answer does not fit: /name: 1 is not of type "string". Give the whole answer again.
    "#);
}

#[tokio::test]
async fn when_nothing_fits_the_error_says_what_was_wrong() {
    let model = able([Capability::StructuredOutput], (0..3).map(|_| says(r#"{"name": "Paris"}"#)));
    let error = city(&model).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the value does not fit the schema: \"inhabitants\" is a required property \
         (the last of 3 answers)"
    );
    let LlmError::SchemaValidation { schema, actual, .. } = error else { panic!("{error}") };
    assert_eq!(*actual, json!({"name": "Paris"}));
    assert_eq!(schema["required"], json!(["name", "inhabitants"]));

    let model = able([], [says("no idea")]);
    let once = GenerateObjectConfig { max_repairs: 0, mode: Some(ObjectMode::Instruction) };
    let error = generate_object::<City>(&model, question(), once).await.unwrap_err();
    let LlmError::SchemaValidation { message, actual, .. } = error else { panic!("{error}") };
    assert_eq!(message, "it is not readable as JSON: expected ident at line 1 column 2");
    assert_eq!(*actual, json!("no idea"));
}

#[tokio::test]
async fn a_refusal_and_an_error_of_the_provider_end_it() {
    let refusal = reply_ending(StopReason::Refusal, [text("No.")]);
    let error = city(&able([], [refusal])).await.unwrap_err();
    assert_eq!(error.to_string(), "unreadable answer: the model declined to answer");
    let model = able([], []);
    model.queue_error(LlmError::Auth("bad key".into()));
    assert!(matches!(city(&model).await, Err(LlmError::Auth(_))));
}

#[tokio::test]
async fn the_limit_of_output_tokens_is_named() {
    let cut = reply_ending(StopReason::MaxTokens, [text(r#"{"name": "Par"#)]);
    let model = able([], [cut, says(r#"{"name": "Paris", "inhabitants": 2}"#)]);
    assert_eq!(city(&model).await.unwrap().attempts, 2);
    let again = format!("{:?}", model.recorded_calls()[1].messages);
    assert!(again.contains("reached its limit of output tokens, so be brief"), "{again}");
}

/// OpenAI's strict mode makes every property required, and fills what is not there with null.
#[tokio::test]
async fn nulls_of_properties_that_need_not_be_there_are_no_fault() {
    let filled = says(r#"{"name": "Paris", "inhabitants": 2, "rivers": null}"#);
    let found = city(&able([Capability::StructuredOutput], [filled])).await.unwrap();
    assert_eq!((found.attempts, found.value.rivers), (1, vec![]));
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Tree {
    name: String,
    #[serde(default)]
    branches: Vec<Tree>,
}

#[tokio::test]
async fn what_is_no_object_is_asked_for_as_the_member_of_one() {
    let answer = says(r#"{"value": [{"name": "a", "branches": [{"name": "b"}]}]}"#);
    let model = able([Capability::StructuredOutput], [answer]);
    let config = GenerateObjectConfig::default();
    let found = generate_object::<Vec<Tree>>(&model, question(), config).await.unwrap();
    let leaf = Tree { name: "b".into(), branches: vec![] };
    assert_eq!(found.value, [Tree { name: "a".into(), branches: vec![leaf] }]);
    let asked = model.recorded_calls().remove(0).structured_output.unwrap();
    let asked = asked.as_value();
    assert_eq!((&asked["type"], &asked["required"]), (&json!("object"), &json!(["value"])));
    // References in the wrapped schema still lead somewhere.
    assert!(jsonschema_is_usable(asked), "{asked}");
}

#[tokio::test]
async fn a_schema_may_come_at_run_time() {
    let schema =
        json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let model = able([], [says(r#"{"n": 3}"#)]);
    let config = GenerateObjectConfig::default();
    let found = generate_value(&model, schema.into(), question(), config).await.unwrap();
    assert_eq!(found.value, json!({"n": 3}));
    let bad = json!({"type": "nothing"});
    let error = generate_value(&model, bad.into(), question(), config).await.unwrap_err();
    assert!(matches!(error, LlmError::InvalidRequest(_)), "{error}");
}

/// Every API takes every way of asking, the first time and with the faults of an answer.
#[tokio::test]
async fn over_http_no_way_of_asking_is_refused() {
    let state = Arc::new((Mutex::new(ObjectMode::Native), AtomicUsize::new(0)));
    let shared = Arc::clone(&state);
    let server = FakeServer::start(Script::from_fn(move |_| {
        let (mode, asked) = &*shared;
        let answer = match asked.fetch_add(1, Ordering::Relaxed) % 2 {
            0 => json!({"name": "Paris"}),
            _ => json!({"name": "Paris", "inhabitants": 2, "rivers": ["Seine"]}),
        };
        match *mode.lock().unwrap() {
            ObjectMode::Tool => Reply::calls([Call::new("answer", answer)]),
            _ => Reply::text(answer.to_string()),
        }
    }));
    for mode in [ObjectMode::Native, ObjectMode::Tool, ObjectMode::Instruction] {
        *state.0.lock().unwrap() = mode;
        for (name, provider) in every_api(&server) {
            let config = GenerateObjectConfig { mode: Some(mode), ..Default::default() };
            let found = generate_object::<City>(&*provider, question(), config).await;
            let found = found.unwrap_or_else(|error| panic!("{name}, {mode:?}: {error}"));
            assert_eq!(
                (found.attempts, found.value.rivers),
                (2, vec!["Seine".to_owned()]),
                "{name}"
            );
        }
    }
}

fn jsonschema_is_usable(schema: &serde_json::Value) -> bool {
    let tool = toolloop::ToolDefinition {
        name: "t".into(),
        description: String::new(),
        parameters: schema.clone().into(),
        retry: None,
    };
    let mut tools = toolloop::ToolRegistry::<()>::new();
    tools.register(toolloop::tool_fn(tool, |_| async { Ok("ok") }));
    let arguments = json!({"value": []});
    let call = toolloop::ToolCall { id: "c".into(), name: "t".into(), arguments };
    !futures_util::future::FutureExt::now_or_never(tools.execute(&call, &())).unwrap().is_error
}

async fn city(model: &MockProvider) -> Result<GenerateObjectResult<City>, LlmError> {
    generate_object(model, question(), GenerateObjectConfig::default()).await
}

fn question() -> ChatParams {
    let messages = vec![ChatMessage::user("The capital of France?")];
    ChatParams { messages, ..ChatParams::default() }
}

fn able(
    capabilities: impl IntoIterator<Item = Capability>,
    replies: impl IntoIterator<Item = Vec<StreamEvent>>,
) -> MockProvider {
    let model = MockProvider::new(ProviderMetadata {
        name: "mock".into(),
        model: "mock".into(),
        context_window: 0,
        capabilities: HashSet::from_iter(capabilities),
    });
    for events in replies {
        model.queue_stream(events);
    }
    model
}
