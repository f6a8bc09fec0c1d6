use std::path::{Path, PathBuf};
use std::{env, fs};

use serde_json::{Value, json};
use toolloop_fake::openai_chat::validate;
use toolloop_fake::{FakeServer, Script};

use crate::client::{Client, whole};

/// The folder of recordings, where one is named.
fn corpus() -> Option<PathBuf> {
    let path = env::var_os("TOOLLOOP_CORPUS").map(PathBuf::from);
    if path.is_none() {
        println!("skipped: TOOLLOOP_CORPUS names no folder of recorded streams");
    }
    path
}

fn read(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn requests_that_real_servers_accepted_are_accepted() {
    let Some(corpus) = corpus() else { return };
    let manifest = read(&corpus.join("manifest.json"));
    let mut requests = Vec::new();
    for stream in manifest["streams"].as_array().unwrap() {
        if stream["api"] == "openai-chat"
            && let Some(path) = stream["request"].as_str()
        {
            requests.push((path.to_owned(), read(&corpus.join(path))));
        }
    }
    for entry in fs::read_dir(corpus.join("_dialogues")).unwrap() {
        let path = entry.unwrap().path();
        let dialogue = read(&path);
        if dialogue["api"] != "openai-chat" {
            continue;
        }
        for (at, step) in dialogue["steps"].as_array().unwrap().iter().enumerate() {
            if step["status"] == 200 {
                requests.push((format!("{}, step {at}", path.display()), step["request"].clone()));
            }
        }
    }
    // Mistral's own word for `required`; OpenAI refuses it.
    requests.retain(|(_, request)| request["tool_choice"] != "any");
    let refused: Vec<_> = requests
        .iter()
        .filter_map(|(name, request)| Some((name, validate(request).err()?)))
        .collect();
    assert_eq!(refused, []);
    println!("{} recorded requests are accepted", requests.len());
    assert!(requests.len() > 100, "only {} requests found", requests.len());
}

#[test]
fn refusals_are_worded_as_recorded() {
    let Some(corpus) = corpus() else { return };
    let key_wanted = Script::new([]).require_key("sk-other");
    let servers = [FakeServer::start(Script::new([]).models(["m"])), FakeServer::start(key_wanted)];
    let [mut asks_for_models, mut asks_with_keys] = servers.each_ref().map(Client::connect);
    let mut compared = 0;
    for refusal in read(&corpus.join("errors.json")).as_array().unwrap() {
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
