//! A run keeps the encoded bytes of its messages; a clone of its request is encoded whole. Both
//! must give the same body, whatever was masked, injected or edited before.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use serde_json::json;
use toolloop::mock::MockProvider;
use toolloop::provider::codec::openai_chat::{Quirks, encode};
use toolloop::tool::{ToolLoopHandle, TurnResult};
use toolloop::{
    ChatMessage, ChatParams, ChatResponse, ChatStream, ContentBlock, JsonSchema, LlmError,
    Provider, ProviderMetadata, ToolCall, ToolContent, ToolDefinition, ToolLoopConfig,
    ToolRegistry, tool_fn,
};
use toolloop_core::{ImageSource, ObservationMaskingConfig, ToolImage};

/// Encodes each request as the run sends it and as a clone of it would be sent.
struct Twice {
    model: MockProvider,
    bodies: Mutex<Vec<(String, String)>>,
}

impl Provider for Twice {
    async fn generate(&self, params: &ChatParams) -> Result<ChatResponse, LlmError> {
        self.model.generate(params).await
    }

    async fn stream(&self, params: &ChatParams) -> Result<ChatStream, LlmError> {
        let text = |params| {
            let body = encode("m", params, &Quirks::openai()).unwrap();
            String::from_utf8(body.into()).unwrap()
        };
        let kept = text(params);
        self.bodies.lock().unwrap().push((kept, text(&params.clone())));
        self.model.stream(params).await
    }

    fn metadata(&self) -> ProviderMetadata {
        Provider::metadata(&self.model)
    }
}

/// What happens between two turns.
#[derive(Debug, Clone, Copy)]
enum Between {
    Nothing,
    Inject,
    DropFirst,
    EditLast,
    Force(u32),
}

fn between() -> impl Strategy<Value = Between> {
    prop_oneof![
        4 => Just(Between::Nothing),
        1 => Just(Between::Inject),
        1 => Just(Between::DropFirst),
        1 => Just(Between::EditLast),
        1 => (1..6u32).prop_map(Between::Force),
    ]
}

async fn bodies(turns: Vec<(usize, Between)>, system: Option<String>) -> Vec<(String, String)> {
    let model = MockProvider::default();
    for (turn, (calls, _)) in turns.iter().enumerate() {
        let call = |n| {
            let arguments = json!({ "n": n });
            let id = format!("c{turn}_{n}");
            ContentBlock::ToolCall(ToolCall { id, name: "look".into(), arguments })
        };
        let mut content = vec![ContentBlock::Text(format!("turn \"{turn}\""))];
        content.extend((0..*calls).map(call));
        model.queue_response(ChatResponse { content, ..ChatResponse::default() });
    }
    let definition = ToolDefinition {
        name: "look".into(),
        description: "Looks.".into(),
        parameters: JsonSchema::new(json!({ "type": "object" })),
        retry: None,
    };
    let mut registry = ToolRegistry::<()>::new();
    registry.register(tool_fn(definition, |arguments| async move {
        let data = ImageSource::Base64("AAAA".into());
        let image = ToolImage { media_type: "image/png".into(), data };
        // Every second result has a picture, which this API takes only behind the results.
        let images = if arguments["n"] == 1 { vec![image] } else { Vec::new() };
        Ok(ToolContent { images, ..ToolContent::from("seen ".repeat(4).as_str()) })
    }));
    let forced = Arc::new(Mutex::new(HashSet::new()));
    let config = ToolLoopConfig {
        masking: Some(ObservationMaskingConfig {
            max_iterations_to_keep: 2,
            min_tokens_to_mask: 1,
        }),
        force_mask_iterations: Some(forced.clone()),
        max_iterations: 100,
        ..ToolLoopConfig::default()
    };
    let provider = Arc::new(Twice { model, bodies: Mutex::default() });
    let messages = vec![ChatMessage::user("start"), ChatMessage::user("now")];
    let params = ChatParams { messages, system, ..ChatParams::default() };
    let registry = Arc::new(registry);
    let mut handle =
        ToolLoopHandle::new(provider.clone(), registry, params, config, Arc::new(())).unwrap();
    for (_, between) in turns {
        let TurnResult::Yielded(mut turn) = handle.next_turn().await else { break };
        match between {
            Between::Nothing => {}
            Between::Inject => {
                turn.inject_and_continue(vec![ChatMessage::user("by the way")]);
                continue;
            }
            Between::DropFirst => drop(turn.messages_mut().remove(0)),
            Between::EditLast => turn.messages_mut().push(ChatMessage::system("edited")),
            Between::Force(iteration) => drop(forced.lock().unwrap().insert(iteration)),
        }
        turn.continue_loop();
    }
    let bodies = provider.bodies.lock().unwrap();
    bodies.clone()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn kept_bytes_and_fresh_bytes_are_the_same(
        turns in prop::collection::vec((1..3usize, between()), 1..20),
        system in prop::option::of(Just("be \"brief\"".to_owned())),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let bodies = runtime.block_on(bodies(turns.clone(), system));
        prop_assert!(bodies.len() >= turns.len());
        for (kept, fresh) in bodies {
            prop_assert_eq!(&kept, &fresh);
            let body: serde_json::Value = serde_json::from_str(&kept).unwrap();
            prop_assert!(body["messages"].as_array().is_some_and(|list| list.len() > 1));
        }
    }
}
