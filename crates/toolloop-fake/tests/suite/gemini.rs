use serde_json::{Value, json};
use toolloop_fake::gemini::validate;
use toolloop_fake::{Call, FakeServer, Fault, Reply, Script};

use crate::client::Client;
use crate::recordings::{Recordings, assert_accepted};

const STREAM: &str = "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse";

fn request() -> Value {
    json!({"contents": [{"role": "user", "parts": [{"text": "hi"}]}]})
}

#[test]
fn a_reply_is_streamed_with_carriage_returns() {
    let reply = Reply::text("Hi you").call(Call::new("t", json!({"a": 1}))).usage(1, 2);
    let server = FakeServer::start(Script::new([reply]));
    let mut client = Client::connect(&server);
    client.send("POST", STREAM, &[], &request());
    let response = client.response();
    assert_eq!(response.header("content-type"), Some("text/event-stream"));
    let events: Vec<Value> = response
        .body
        .split_terminator("\r\n\r\n")
        .map(|event| serde_json::from_str(event.strip_prefix("data: ").unwrap()).unwrap())
        .collect();
    let parts: Vec<_> =
        events.iter().map(|event| &event["candidates"][0]["content"]["parts"][0]).collect();
    let expected = [
        json!({"text": "Hi"}),
        json!({"text": " you"}),
        json!({"functionCall": {"name": "t", "args": {"a": 1}}}),
        json!({"text": ""}),
    ];
    assert_eq!(parts, expected.iter().collect::<Vec<_>>());
    assert_eq!(events[3]["candidates"][0]["finishReason"], "STOP");
    assert_eq!(events[3]["usageMetadata"]["totalTokenCount"], 3);
}

#[test]
fn one_object_and_the_models_can_be_asked_for() {
    let server = FakeServer::start(Script::new([Reply::text("Hi")]).models(["m"]));
    let mut client = Client::connect(&server);
    client.send("POST", "/v1beta/models/m:generateContent", &[], &request());
    let whole = client.response();
    assert_eq!(whole.json()["candidates"][0]["content"]["parts"], json!([{"text": "Hi"}]));
    client.send("GET", "/v1beta/models?pageSize=1000", &[], &Value::Null);
    assert_eq!(client.response().json()["models"][0]["name"], "models/m");
}

#[test]
fn faults_break_this_stream_too() {
    let faulty = |fault| Reply::text("a b").fault(fault);
    let server = FakeServer::start(Script::new([
        faulty(Fault::NoEndMarker),
        faulty(Fault::CutAtEvent(1)),
        Reply::error(429, "Slow down"),
    ]));
    let mut client = Client::connect(&server);
    client.send("POST", STREAM, &[], &request());
    let unended = client.response();
    assert!(unended.whole && !unended.body.contains("finishReason"), "{}", unended.body);
    client.send("POST", STREAM, &[], &request());
    assert!(!client.response().whole);
    let mut client = Client::connect(&server);
    client.send("POST", STREAM, &[], &request());
    let refused = client.response();
    let error = json!({"code": 429, "message": "Slow down", "status": "RESOURCE_EXHAUSTED"});
    assert_eq!((refused.status, refused.json()), (429, json!({ "error": error })));
}

#[test]
fn what_the_api_refuses_reaches_no_script() {
    let server = FakeServer::start(Script::new([Reply::text("the only one")]));
    let mut client = Client::connect(&server);
    client.send("POST", STREAM, &[], &json!({"contents": []}));
    let refused = client.response();
    let message = "* GenerateContentRequest.contents: contents is not specified\n";
    assert_eq!((refused.status, &refused.json()["error"]["message"]), (400, &json!(message)));
    client.send("POST", STREAM, &[], &request());
    assert_eq!(client.response().status, 200);
}

#[test]
fn requests_that_the_real_api_accepted_are_accepted() {
    let Some(recordings) = Recordings::find() else { return };
    assert_accepted(&recordings.requests("gemini"), 70, |recorded| {
        let path = recorded.path.as_deref().and_then(|path| path.rsplit_once("models/"));
        let model = path.and_then(|(_, rest)| rest.split(':').next());
        validate(model.unwrap_or(&recorded.model), &recorded.request)
    });
}

#[test]
fn refusals_are_worded_as_recorded() {
    let Some(recordings) = Recordings::find() else { return };
    let script = Script::new([]).require_key("right").models(["m"]);
    let server = FakeServer::start(script);
    let mut client = Client::connect(&server);
    let mut compared = 0;
    for refusal in recordings.refusals() {
        if refusal["api"] != "gemini" {
            continue;
        }
        let recorded: Value = serde_json::from_str(refusal["body"].as_str().unwrap()).unwrap();
        let message = recorded["error"]["message"].as_str().unwrap();
        let missing = message.strip_prefix("models/").and_then(|text| text.split(' ').next());
        let (model, key) = match missing {
            Some(model) => (model, "right"),
            None if message.starts_with("API key not valid") => ("m", "wrong"),
            // What a fake cannot find out: quotas and the length of prompts.
            None => continue,
        };
        let path = format!("/v1beta/models/{model}:streamGenerateContent?alt=sse");
        client.send("POST", &path, &[("x-goog-api-key", key)], &request());
        let response = client.response();
        assert_eq!(
            (json!(response.status), response.json()),
            (refusal["status"].clone(), recorded)
        );
        compared += 1;
    }
    println!("{compared} recorded refusals are worded alike");
    assert!(compared >= 3, "only {compared} refusals found");
}
