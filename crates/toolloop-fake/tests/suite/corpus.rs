use serde_json::{Value, json};
use toolloop_fake::openai_chat::validate;
use toolloop_fake::{FakeServer, Script};

use crate::client::{Client, whole};
use crate::recordings::{Recordings, assert_accepted};

#[test]
fn requests_that_real_servers_accepted_are_accepted() {
    let Some(recordings) = Recordings::find() else { return };
    let mut requests = recordings.requests("openai-chat");
    // Mistral's own word for `required`; OpenAI refuses it.
    requests.retain(|recorded| recorded.request["tool_choice"] != "any");
    assert_accepted(&requests, 100, |recorded| validate(&recorded.request));
}

#[test]
fn refusals_are_worded_as_recorded() {
    let Some(recordings) = Recordings::find() else { return };
    let key_wanted = Script::new([]).require_key("sk-other");
    let servers = [FakeServer::start(Script::new([]).models(["m"])), FakeServer::start(key_wanted)];
    let [mut asks_for_models, mut asks_with_keys] = servers.each_ref().map(Client::connect);
    let mut compared = 0;
    for refusal in recordings.refusals() {
        let Ok(body) = serde_json::from_str::<Value>(refusal["body"].as_str().unwrap()) else {
            continue;
        };
        let error = &body["error"];
        let message = error["message"].as_str().unwrap_or_default();
        let response = if let Some(model) = between(message, "The model `", "` does not exist or") {
            let mut request = whole();
            request["model"] = json!(model);
            asks_for_models.ask(&request)
        } else if let Some(key) = between(
            message,
            "Incorrect API key provided: ",
            ". You can find your API key at https://platform.openai.com",
        ) {
            let key = format!("Bearer {}", key.replace('*', "x"));
            asks_with_keys.send(
                "POST",
                "/v1/chat/completions",
                &[("authorization", &key)],
                &whole(),
            );
            asks_with_keys.response()
        } else {
            continue;
        };
        assert_eq!(json!(response.status), refusal["status"], "{message}");
        let ours = &response.json()["error"];
        for member in ["message", "type", "code"] {
            assert_eq!(ours[member], error[member], "{member} of: {message}");
        }
        compared += 1;
    }
    println!("{compared} recorded refusals are worded alike");
    assert!(compared >= 4, "only {compared} refusals found");
}

fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    text.strip_prefix(before)?.split_once(after).map(|(between, _)| between)
}
