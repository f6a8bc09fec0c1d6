use serde_json::{Value, json};
use toolloop_fake::openai_responses::validate;
use toolloop_fake::{Call, End, FakeServer, Fault, Reply, Script};

use crate::client::{Client, Response};
use crate::recordings::{Recordings, assert_accepted};

fn ask(client: &mut Client, body: &Value) -> Response {
    client.send("POST", "/v1/responses", &[], body);
    client.response()
}

fn streamed(input: Value) -> Value {
    json!({"model": "gpt-5", "stream": true, "store": false, "input": input,
        "include": ["reasoning.encrypted_content"]})
}

/// The data of the events.
fn data(response: &Response) -> Vec<Value> {
    let lines = response.body.lines().filter_map(|line| line.strip_prefix("data: "));
    lines.map(|data| serde_json::from_str(data).unwrap()).collect()
}

#[test]
fn a_whole_loop_is_accepted_and_a_shortened_one_refused() {
    let server = FakeServer::start(Script::new([
        Reply::calls([Call::new("t", json!({"n": 1}))]).reasoning("Hm."),
        Reply::text("Done."),
    ]));
    let mut client = Client::connect(&server);
    let user = json!({"role": "user", "content": "Go"});
    let first = ask(&mut client, &streamed(json!([user])));
    let end = data(&first).pop().unwrap();
    let [thought, call] = &end["response"]["output"].as_array().unwrap()[..] else { panic!() };
    let output = json!({"type": "function_call_output", "call_id": call["call_id"], "output": "1"});
    let mut refusal = |input: Value| {
        let response = ask(&mut client, &streamed(input));
        assert_eq!(response.status, 400);
        response.json()["error"]["message"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        refusal(json!([user, thought, call])),
        "No tool output found for function call call_1_0."
    );
    assert_eq!(
        refusal(json!([user, call, output])),
        "Item 'fc_1_rs_fake_1' of type 'function_call' was provided without its required \
         'reasoning' item: 'rs_fake_1'."
    );
    let second = ask(&mut client, &streamed(json!([user, thought, call, output])));
    assert_eq!(
        data(&second).pop().unwrap()["response"]["output"][0]["content"][0]["text"],
        "Done."
    );
}

#[test]
fn reasoning_that_another_server_has_encrypted_is_refused() {
    let ask_at = |name: &str, input: Value| {
        let replies = [Reply::text("Done.").reasoning("Hm.")];
        let server = FakeServer::start(Script::new(replies).sealed_by(name));
        ask(&mut Client::connect(&server), &streamed(input))
    };
    let user = json!({"role": "user", "content": "Go"});
    let end = data(&ask_at("a", json!([user]))).pop().unwrap();
    let [thought, said] = &end["response"]["output"].as_array().unwrap()[..] else { panic!() };
    let input = json!([user, thought, said, user]);
    assert_eq!(ask_at("a", input.clone()).status, 200);
    let refused = ask_at("b", input);
    let error = json!({
        "message": "The encrypted content gAAAA_a_1 could not be verified.",
        "type": "invalid_request_error", "param": null, "code": "invalid_encrypted_content",
    });
    assert_eq!((refused.status, &refused.json()["error"]), (400, &error));
}

#[test]
fn keys_models_paths_and_errors_are_as_in_the_other_api() {
    let script =
        Script::new([Reply::error(429, "Slow down")]).require_key("sk-right").models(["m"]);
    let server = FakeServer::start(script);
    let mut client = Client::connect(&server);
    let mut status = |method: &str, key: &str, model: &str| {
        let mut body = streamed(json!("Hi"));
        body["model"] = json!(model);
        client.send(method, "/v1/responses", &[("authorization", key)], &body);
        let response = client.response();
        (response.status, response.json()["error"]["code"].clone())
    };
    assert_eq!(status("POST", "Bearer wrong", "m"), (401, json!("invalid_api_key")));
    assert_eq!(status("POST", "Bearer sk-right", "n"), (404, json!("model_not_found")));
    assert_eq!(status("GET", "Bearer sk-right", "m"), (405, json!("method_not_supported")));
    assert_eq!(status("POST", "Bearer sk-right", "m"), (429, json!("rate_limit_exceeded")));
}

#[tokio::test]
async fn faults_fall_on_its_events() {
    let reply = || Reply::text("a b c");
    let server = FakeServer::start(Script::new([
        reply().fault(Fault::CutAtEvent(5)),
        reply().fault(Fault::NoEndMarker),
        reply().fault(Fault::ErrorAtEvent { event: 5, error: json!({"message": "Oops"}) }),
    ]));
    let ask = || ask(&mut Client::connect(&server), &streamed(json!("Hi")));
    let cut = ask();
    assert_eq!(data(&cut).last().unwrap()["delta"], "a");
    assert!(!cut.whole);
    let open = ask();
    assert_eq!(data(&open).last().unwrap()["type"], "response.output_item.done");
    assert_eq!(data(&ask())[5], json!({"error": {"message": "Oops"}}));
    server.idle().await;
    assert_eq!(server.log()[0].end, End::Cut);
}

#[test]
fn requests_that_real_servers_accepted_are_accepted() {
    let Some(recordings) = Recordings::find() else { return };
    let mut requests = recordings.requests("openai-responses");
    // DeepSeek's thoughts lie open and have ids of their own form; OpenAI refuses both.
    requests.retain(|recorded| recorded.provider != "deepseek");
    assert_accepted(&requests, 100, |recorded| validate(&recorded.request));
}

#[test]
fn refusals_are_worded_as_recorded() {
    let Some(recordings) = Recordings::find() else { return };
    let recorded = recordings.refusals();
    let key_wanted = FakeServer::start(Script::new([]).require_key("sk-other"));
    let mut asks_with_keys = Client::connect(&key_wanted);
    let mut compared = 0;
    for refusal in recorded.iter().filter(|refusal| refusal["api"] == "openai-responses") {
        let body: Value = serde_json::from_str(refusal["body"].as_str().unwrap()).unwrap();
        let message = body["error"]["message"].as_str().unwrap_or_default();
        let ours = if let Some(key) = message
            .strip_prefix("Incorrect API key provided: ")
            .and_then(|rest| rest.split_once(". "))
        {
            let key = format!("Bearer {}", key.0.replace('*', "x"));
            asks_with_keys.send(
                "POST",
                "/v1/responses",
                &[("authorization", &key)],
                &streamed(json!("Hi")),
            );
            let response = asks_with_keys.response();
            (json!(response.status), response.json())
        } else if message.starts_with("Invalid file data") {
            let refusal =
                validate(&with_file(body["error"]["param"].as_str().unwrap())).unwrap_err();
            (json!(refusal.status), refusal.body)
        } else {
            continue;
        };
        assert_eq!(ours.0, refusal["status"], "{message}");
        for member in ["message", "type", "param", "code"] {
            assert_eq!(ours.1["error"][member], body["error"][member], "{member} of: {message}");
        }
        compared += 1;
    }
    println!("{compared} recorded refusals are worded alike");
    assert!(compared >= 5, "only {compared} refusals found");
}

/// A request with a file of sound at `input[i].content[0].file_data` or `.output[0].file_data`.
fn with_file(param: &str) -> Value {
    let index: usize = param["input[".len()..].split(']').next().unwrap().parse().unwrap();
    let file = json!([{"type": "input_file", "file_data": "data:audio/mpeg;base64,AAAA"}]);
    let call = json!({"type": "function_call", "call_id": "c", "name": "t", "arguments": "{}"});
    let output =
        |output: Value| json!({"type": "function_call_output", "call_id": "c", "output": output});
    let user = |content: Value| json!({"role": "user", "content": content});
    let mut input = vec![user(json!("Hi")); index];
    if param.contains("output") {
        input[index - 1] = call;
        input.push(output(file));
    } else {
        input.push(user(file));
    }
    json!({"model": "gpt-5", "input": input})
}
