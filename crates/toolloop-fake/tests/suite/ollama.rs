use serde_json::{Value, json};
use toolloop_fake::ollama::validate;
use toolloop_fake::{FakeServer, Fault, Reply, Script};

use crate::client::{Client, Response};
use crate::recordings::{Recordings, assert_accepted};

fn hello() -> Value {
    json!({"model": "m", "messages": [{"role": "user", "content": "Hi"}]})
}

fn ask(script: Script, body: &Value) -> Response {
    let server = FakeServer::start(script);
    let mut client = Client::connect(&server);
    client.send("POST", "/api/chat", &[], body);
    client.response()
}

#[test]
fn a_reply_is_a_line_for_each_piece() {
    let response = ask(Script::new([Reply::text("Hi you").usage(3, 2)]), &hello());
    let lines: Vec<Value> =
        response.body.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let said: Vec<_> =
        lines.iter().map(|line| line["message"]["content"].as_str().unwrap()).collect();
    assert_eq!((response.status, response.whole, said), (200, true, vec!["Hi", " you", ""]));
    assert!(response.headers.contains(&("content-type".into(), "application/x-ndjson".into())));
    assert_eq!((&lines[2]["done_reason"], &lines[2]["eval_count"]), (&json!("stop"), &json!(2)));
}

#[test]
fn faults_are_lines_too() {
    let reply = Reply::text("a b c")
        .fault(Fault::ErrorAtEvent { event: 1, error: json!("model runner has stopped") })
        .fault(Fault::MalformedJsonAtEvent(2))
        .fault(Fault::NoEndMarker);
    let response = ask(Script::new([reply]), &hello());
    let lines: Vec<_> = response.body.lines().collect();
    assert_eq!((lines.len(), lines[1]), (5, r#"{"error":"model runner has stopped"}"#));
    assert!(serde_json::from_str::<Value>(lines[3]).is_err(), "{}", lines[3]);
    assert!(!response.body.contains(r#""done":true"#));
}

#[test]
fn refusals_are_sentences() {
    let known = || Script::new([]).models(["m"]);
    let mut other = hello();
    other["model"] = json!("n");
    let refused = |response: Response| (response.status, response.body);
    let sentence = |status, text: &str| (status, json!({ "error": text }).to_string());
    assert_eq!(refused(ask(known(), &other)), sentence(404, "model 'n' not found"));
    assert_eq!(refused(ask(known().require_key("k"), &hello())), sentence(401, "unauthorized"));
    assert_eq!(refused(ask(known(), &Value::Null)), sentence(400, "missing request body"));
    let failing = Script::new([Reply::error(503, "server busy")]);
    assert_eq!(refused(ask(failing, &hello())), sentence(503, "server busy"));
}

#[test]
fn the_models_are_listed() {
    let server = FakeServer::start(Script::new([]).models(["a:1b", "b:latest"]));
    let mut client = Client::connect(&server);
    client.send("GET", "/api/tags", &[], &Value::Null);
    let list: Value = serde_json::from_str(&client.response().body).unwrap();
    let names: Vec<_> =
        list["models"].as_array().unwrap().iter().map(|model| model["name"].clone()).collect();
    assert_eq!(names, ["a:1b", "b:latest"]);
}

#[test]
fn requests_that_the_real_server_accepted_are_accepted() {
    let Some(recordings) = Recordings::find() else { return };
    let requests = recordings.requests("ollama");
    assert_accepted(&requests, 14, |recorded| validate(&recorded.request));
}
