use serde_json::{Value, json};
use toolloop_fake::anthropic::validate;
use toolloop_fake::{Call, FakeServer, Fault, Reply, Script};

use crate::client::{Client, Response};
use crate::recordings::{Recordings, assert_accepted};

const VERSION: (&str, &str) = ("anthropic-version", "2023-06-01");

fn request() -> Value {
    json!({
        "model": "claude-sonnet-4-5", "max_tokens": 100, "stream": true,
        "messages": [{"role": "user", "content": "hi"}],
    })
}

fn ask(client: &mut Client, body: &Value) -> Response {
    client.send("POST", "/v1/messages", &[VERSION], body);
    client.response()
}

fn events(response: &Response) -> Vec<Value> {
    let data = response.body.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).unwrap()).collect()
}

fn error(kind: &str, message: &str, request: usize) -> Value {
    json!({
        "type": "error", "error": {"type": kind, "message": message},
        "request_id": format!("req_fake_{request}"),
    })
}

#[test]
fn a_reply_is_streamed() {
    let reply = Reply::text("Hi you").call(Call::new("t", json!({"a": 1}))).usage(1, 2);
    let server = FakeServer::start(Script::new([reply]));
    let response = ask(&mut Client::connect(&server), &request());
    assert_eq!(response.header("content-type"), Some("text/event-stream; charset=utf-8"));
    assert_eq!(response.header("request-id"), Some("req_fake_1"));
    let events = events(&response);
    let kinds: Vec<_> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    let expected = [
        "message_start",
        "content_block_start",
        "ping",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "content_block_start",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ];
    assert_eq!(kinds, expected);
    assert_eq!(events[10]["delta"]["stop_reason"], "tool_use");
}

#[test]
fn one_object_and_the_models_can_be_asked_for() {
    let server = FakeServer::start(Script::new([Reply::text("Hi")]).models(["claude-sonnet-4-5"]));
    let mut client = Client::connect(&server);
    let mut whole = request();
    whole["stream"] = json!(false);
    let response = ask(&mut client, &whole);
    assert_eq!(response.json()["content"], json!([{"type": "text", "text": "Hi"}]));
    client.send("GET", "/v1/models?limit=1000", &[VERSION], &Value::Null);
    assert_eq!(client.response().json()["data"][0]["id"], "claude-sonnet-4-5");
    // Without the header it is the list of another API.
    client.send("GET", "/v1/models", &[], &Value::Null);
    assert_eq!(client.response().json()["object"], "list");
}

#[test]
fn faults_break_this_stream_too() {
    let faulty = |fault| Reply::text("a b").fault(fault);
    let overloaded = json!({"type": "overloaded_error", "message": "Overloaded"});
    let server = FakeServer::start(Script::new([
        faulty(Fault::NoEndMarker),
        faulty(Fault::ErrorAtEvent { event: 3, error: overloaded.clone() }),
        faulty(Fault::CutAtEvent(1)),
        Reply::error(529, "Overloaded"),
    ]));
    let mut client = Client::connect(&server);
    let unended = ask(&mut client, &request());
    assert!(unended.whole && !unended.body.contains("message_stop"), "{}", unended.body);
    assert_eq!(events(&ask(&mut client, &request()))[3], json!({ "error": overloaded }));
    assert!(!ask(&mut client, &request()).whole);
    let refused = ask(&mut Client::connect(&server), &request());
    let expected = error("overloaded_error", "Overloaded", 4);
    assert_eq!((refused.status, refused.json()), (529, expected));
}

#[test]
fn what_the_api_refuses_reaches_no_script() {
    let server = FakeServer::start(Script::new([Reply::text("the only one")]).require_key("sk-a"));
    let mut client = Client::connect(&server);
    let mut asked = 0;
    let mut refused = |headers: &[(&str, &str)], body: &Value| {
        asked += 1;
        client.send("POST", "/v1/messages", headers, body);
        let response = client.response();
        let body = response.json();
        assert_eq!(body["request_id"], format!("req_fake_{asked}"));
        let message = body["error"]["message"].as_str().unwrap().to_owned();
        (response.status, message)
    };
    let key = ("x-api-key", "sk-a");
    let no_key = "x-api-key header is required".to_owned();
    assert_eq!(refused(&[VERSION], &request()), (401, no_key));
    let wrong = "API key is invalid.".to_owned();
    assert_eq!(refused(&[VERSION, ("x-api-key", "sk-b")], &request()), (401, wrong));
    let version = "anthropic-version: header is required".to_owned();
    assert_eq!(refused(&[key], &request()), (400, version));
    let foreign = json!({"model": "m", "max_tokens": 9, "messages": [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "x", "signature": "of-somebody-else"},
            {"type": "text", "text": "x"}]},
        {"role": "user", "content": "q"},
    ]});
    let signature = "messages.1.content.0: Invalid `signature` in `thinking` block".to_owned();
    assert_eq!(refused(&[VERSION, key], &foreign), (400, signature));
    client.send("POST", "/v1/messages", &[VERSION, key], &request());
    assert_eq!(client.response().status, 200);
}

#[test]
fn a_thought_is_signed_and_its_signature_known_again() {
    let server =
        FakeServer::start(Script::new([Reply::text("Yes.").reasoning("Hm."), Reply::text("ok")]));
    let mut client = Client::connect(&server);
    let mut asked = request();
    asked["stream"] = json!(false);
    let said = ask(&mut client, &asked).json()["content"].take();
    assert_eq!(said[0]["thinking"], "Hm.");
    let messages = asked["messages"].as_array_mut().unwrap();
    messages.push(json!({"role": "assistant", "content": said}));
    messages.push(json!({"role": "user", "content": "And?"}));
    assert_eq!(ask(&mut client, &asked).status, 200);
    asked["messages"][1]["content"][0]["thinking"] = json!("Hm!");
    assert_eq!(ask(&mut client, &asked).status, 400);
}

#[test]
fn ai_core_gives_a_token_and_asks_for_it() {
    let script = Script::new([Reply::text("Hi"), Reply::text("Hi")]).require_key("secret");
    let server = FakeServer::start(script);
    let mut client = Client::connect(&server);
    let mut token = |form: &str| {
        // A body that is no JSON reaches the server as the text it is.
        client.send_text("POST", "/oauth/token", &[], form);
        let response = client.response();
        (response.status, response.json())
    };
    let form = "grant_type=client_credentials&client_id=a&client_secret=";
    let (status, refused) = token(&format!("{form}wrong"));
    assert_eq!((status, &refused["error"]), (401, &json!("invalid_client")));
    let (status, granted) = token(&format!("{form}secret"));
    assert_eq!((status, &granted["expires_in"]), (200, &json!(43_199)));

    let bearer = format!("Bearer {}", granted["access_token"].as_str().unwrap());
    let authorization = ("authorization", bearer.as_str());
    let group = ("ai-resource-group", "default");
    let body = json!({
        "anthropic_version": "bedrock-2023-05-31", "max_tokens": 9,
        "messages": [{"role": "user", "content": "q"}],
    });
    let mut invoke = |endpoint: &str, headers: &[(&str, &str)], body: &Value| {
        client.send("POST", &format!("/v2/inference/deployments/d1/{endpoint}"), headers, body);
        client.response()
    };
    let stream = "invoke-with-response-stream";
    let denied = invoke(stream, &[group], &body);
    assert_eq!((denied.status, denied.body.as_str()), (401, "Jwt is missing"));
    assert_eq!(invoke(stream, &[authorization], &body).status, 400);
    assert_eq!(invoke("converse", &[authorization, group], &body).status, 404);
    let refused = invoke(
        stream,
        &[authorization, group],
        &json!({"anthropic_version": "bedrock-2023-05-31"}),
    );
    assert_eq!(
        (refused.status, refused.json()),
        (400, json!({"message": "max_tokens: Field required"}))
    );
    let streamed = invoke(stream, &[authorization, group], &body);
    assert_eq!(events(&streamed)[0]["type"], "message_start");
    let whole = invoke("invoke", &[authorization, group], &body);
    assert_eq!(whole.json()["content"], json!([{"type": "text", "text": "Hi"}]));
}

#[test]
fn requests_that_the_real_api_accepted_are_accepted() {
    let Some(recordings) = Recordings::find() else { return };
    let requests = recordings.requests("anthropic-messages");
    assert_accepted(&requests, 50, |recorded| validate(&recorded.request));
}

#[test]
fn refusals_are_worded_as_recorded() {
    let Some(recordings) = Recordings::find() else { return };
    let scripts = [Script::new([]).models(["m"]).require_key("sk-a"), Script::new([])];
    let servers = scripts.map(FakeServer::start);
    let [mut known, mut any] = servers.each_ref().map(Client::connect);
    let mut compared = 0;
    for recorded in recordings.refusals() {
        if recorded["api"] != "anthropic-messages" {
            continue;
        }
        let body: Value = serde_json::from_str(recorded["body"].as_str().unwrap()).unwrap();
        let message = body["error"]["message"].as_str().unwrap();
        let mut asked = request();
        let response = if let Some(model) = message.strip_prefix("model: ") {
            asked["model"] = json!(model);
            known.send("POST", "/v1/messages", &[VERSION, ("x-api-key", "sk-a")], &asked);
            known.response()
        } else if message == "API key is invalid." {
            known.send("POST", "/v1/messages", &[VERSION, ("x-api-key", "sk-b")], &asked);
            known.response()
        } else if message.starts_with("This model does not support effort level 'xhigh'") {
            asked["model"] = json!("claude-sonnet-4-6");
            asked["output_config"] = json!({"effort": "xhigh"});
            ask(&mut any, &asked)
        } else if message == "prompt is too long: 3333404 tokens > 200000 maximum" {
            // The rest of the request counts as well.
            let others = "claude-sonnet-4-5".len() + "userhi".len();
            asked["system"] = json!("x".repeat(3_333_404 * 4 - others));
            ask(&mut any, &asked)
        } else {
            panic!("a refusal nobody recorded before: {message}");
        };
        assert_eq!(json!(response.status), recorded["status"], "{message}");
        assert_eq!(response.json()["error"], body["error"]);
        compared += 1;
    }
    assert_eq!(compared, 4);
}
