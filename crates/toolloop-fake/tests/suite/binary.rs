use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::{env, fs, process};

use serde_json::{Value, json};

use crate::client::{Client, streamed};

struct Running {
    child: Child,
    stdout: BufReader<process::ChildStdout>,
}

impl Running {
    fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_toolloop-fake"))
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self { child, stdout }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn connect(&mut self) -> Client {
        let line = self.line();
        let address = line.strip_prefix("listening on http://").and_then(|l| l.strip_suffix("/v1"));
        Client::connect_to(address.unwrap_or_else(|| panic!("{line}")).parse().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn it_serves_a_script_and_logs_each_request() {
    let script = env::temp_dir().join(format!("toolloop-fake-{}.jsonl", process::id()));
    fs::write(&script, "{\"text\": \"from a file\"}\n").unwrap();
    let arguments =
        ["--script", script.to_str().unwrap(), "--require-key", "sk-0123456789", "--log", "-"];
    let mut running = Running::start(&arguments);
    let mut client = running.connect();
    let key = [("authorization", "Bearer sk-0123456789")];
    client.send("POST", "/v1/chat/completions", &key, &streamed());
    let response = client.response();
    assert_eq!(response.text(), "from a file");

    let mut line: Value = serde_json::from_str(&running.line()).unwrap();
    assert_eq!(line["headers"].take()["authorization"], "Bearer ****6789");
    let expected = json!({
        "number": 1, "method": "POST", "path": "/v1/chat/completions", "headers": null,
        "body": streamed(), "request_bytes": streamed().to_string().len(),
        "status": 200, "events": response.events().len(), "bytes": response.body.len(),
        "reply": response.body, "end": "complete",
    });
    assert_eq!(line, expected);
    fs::remove_file(script).unwrap();
}

#[test]
fn it_serves_the_demo_model() {
    let mut running = Running::start(&["--word-delay", "0"]);
    let mut client = running.connect();
    client.send("GET", "/v1/models", &[], &Value::Null);
    assert_eq!(client.response().json()["data"][0]["id"], "demo");
}

#[test]
fn a_script_that_is_not_there_is_named() {
    let output = Command::new(env!("CARGO_BIN_EXE_toolloop-fake"))
        .args(["--script", "/no/such/file"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        "error: /no/such/file: the script cannot be read: No such file or directory (os error 2)\n"
    );
}
