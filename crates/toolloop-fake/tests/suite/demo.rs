use std::path::Path;
use std::time::Duration;
use std::{env, fs, process};

use serde_json::{Value, json};
use toolloop_fake::{FakeServer, Script};

use crate::client::Client;

/// Runs the calls of the model on a real folder until it answers.
fn converse(server: &FakeServer, folder: &Path, task: &str) -> (Vec<String>, String) {
    let mut client = Client::connect(server);
    let mut messages = vec![json!({"role": "user", "content": task})];
    let mut made = Vec::new();
    for _ in 0..5 {
        let body = json!({
            "model": "demo", "messages": messages, "tools": [tool("list_dir"), tool("read_file")],
            "stream": true, "stream_options": {"include_usage": true},
        });
        let response = client.ask(&body);
        assert_eq!((response.status, response.whole), (200, true), "{}", response.body);
        assert!(response.body.contains("\"usage\":{\"prompt_tokens\""), "{}", response.body);
        let calls = assembled_calls(&response.events());
        if calls.is_empty() {
            return (made, response.text());
        }
        messages.push(json!({"role": "assistant", "content": null, "tool_calls": calls}));
        for call in &calls {
            let name = call["function"]["name"].as_str().unwrap();
            let text = call["function"]["arguments"].as_str().unwrap();
            let arguments: Value = serde_json::from_str(text).unwrap();
            made.push(format!("{name} {text}"));
            let path = folder.join(arguments["path"].as_str().unwrap());
            let content =
                if name == "list_dir" { list(&path) } else { fs::read_to_string(path).unwrap() };
            messages.push(json!({"role": "tool", "tool_call_id": call["id"], "content": content}));
        }
    }
    panic!("no answer after {made:?}")
}

fn tool(name: &str) -> Value {
    let parameters = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    json!({"type": "function", "function": {"name": name, "parameters": parameters}})
}

fn assembled_calls(events: &[&str]) -> Vec<Value> {
    let mut calls: Vec<Value> = Vec::new();
    for event in events {
        let Ok(chunk) = serde_json::from_str::<Value>(event) else { continue };
        let Some(delta) = chunk["choices"][0]["delta"]["tool_calls"].get(0) else { continue };
        match calls.get_mut(delta["index"].as_u64().unwrap() as usize) {
            None => {
                let mut call = delta.clone();
                call.as_object_mut().unwrap().remove("index");
                calls.push(call);
            }
            Some(call) => {
                let text = call["function"]["arguments"].as_str().unwrap().to_owned()
                    + delta["function"]["arguments"].as_str().unwrap();
                call["function"]["arguments"] = json!(text);
            }
        }
    }
    calls
}

fn list(path: &Path) -> String {
    let mut lines: Vec<String> = fs::read_dir(path)
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            let metadata = entry.metadata().unwrap();
            if metadata.is_dir() {
                format!("{name}/\n")
            } else {
                format!("{name}  {} B\n", metadata.len())
            }
        })
        .collect();
    lines.sort();
    lines.concat()
}

#[test]
fn the_demo_model_answers_from_what_it_saw() {
    let folder = env::temp_dir().join(format!("toolloop-fake-demo-{}", process::id()));
    fs::create_dir_all(folder.join("src")).unwrap();
    fs::write(folder.join("README.md"), "# Weather\n\nA forecast for every city.\n").unwrap();
    fs::write(folder.join("main.py"), "import sys\n").unwrap();
    let server = FakeServer::start(Script::demo(Duration::ZERO));
    let (calls, answer) = converse(&server, &folder, "What is in this folder?");
    let expected = [
        r#"list_dir {"path":"."}"#,
        r#"read_file {"path":"README.md"}"#,
        r#"read_file {"path":"main.py"}"#,
    ];
    assert_eq!(calls, expected);
    assert_eq!(
        answer,
        "The folder has 2 files, `README.md` and `main.py`, and 1 folder, `src/`.\n\n\
         - `README.md` has 3 lines; its heading is “Weather”.\n\
         - `main.py` has 1 line and begins with “import sys”."
    );
    assert_eq!((server.requests().len(), server.connections()), (3, 1));
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn words_come_one_by_one() {
    let server = FakeServer::start(Script::demo(Duration::from_millis(1)));
    let body = json!({
        "model": "demo", "messages": [{"role": "user", "content": "Hello"}], "stream": true,
    });
    let response = Client::connect(&server).ask(&body);
    // Role, the words, the reason to stop, the end marker.
    assert_eq!(response.events().len(), response.text().split_whitespace().count() + 3);
}
