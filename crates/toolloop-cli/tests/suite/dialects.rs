//! `--dialect` and `--one-tool`: calls as text, leaked calls, one call in a message.

use serde_json::{Value, json};
use toolloop_fake::{Call, FakeServer, Reply, Script};

use crate::support::Project;

/// The tools that ran, and the answer.
fn tools_and_answer(server: &FakeServer, flags: &[&str]) -> (Vec<Value>, Value) {
    tools_and_answer_in(&Project::new(), server, flags)
}

fn tools_and_answer_in(
    project: &Project,
    server: &FakeServer,
    flags: &[&str],
) -> (Vec<Value>, Value) {
    let ran = project.run_at(server, &[&["look", "--yes", "--json"], flags].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let lines = ran.json();
    let started = lines.iter().filter(|line| line["type"] == "tool_execution_start");
    (started.map(|line| line["arguments"].clone()).collect(), lines.last().unwrap()["text"].clone())
}

#[test]
fn calls_in_text_are_run() {
    for (dialect, call) in [
        ("xml", "<tool:read_file>\n<param:path>README.md</param:path>\n</tool:read_file>"),
        ("caret", "^^^read_file\npath: README.md\n^^^"),
        (
            "auto",
            "<tool_call>\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"README.md\"}}\n</tool_call>",
        ),
        ("native", "<function=read_file>\n<parameter=path>README.md</parameter>\n</function>"),
    ] {
        let replies = [Reply::text(format!("Let me look.\n\n{call}\n")), Reply::text("Lamps.")];
        let server = FakeServer::start(Script::new(replies));
        let (tools, answer) = tools_and_answer(&server, &["--dialect", dialect]);
        assert_eq!((tools, answer), (vec![json!({"path": "README.md"})], json!("Lamps.")));
        let bodies: Vec<Value> = server.requests().into_iter().map(|r| r.body).collect();
        let is_native = matches!(dialect, "auto" | "native");
        assert!(bodies.iter().all(|body| body.get("tools").is_some() == is_native), "{dialect}");
        let sent = bodies[1].to_string();
        assert_eq!(sent.contains("tool_calls"), is_native, "{sent}");
    }
}

#[test]
fn a_file_says_how_a_model_calls() {
    let project = Project::new();
    project.write("toolloop.toml", "dialect = \"caret\"\n");
    let server = FakeServer::start(Script::new([Reply::text("Hello."), Reply::text("Hello.")]));
    assert_eq!(project.run_at(&server, &["hi"]).code, Some(0));
    assert_eq!(project.run_at(&server, &["hi", "--dialect", "native"]).code, Some(0));
    let bodies = server.requests().into_iter().map(|request| request.body);
    let natively: Vec<bool> = bodies.map(|body| body.get("tools").is_some()).collect();
    assert_eq!(natively, [false, true]);
}

#[test]
fn one_tool_stops_the_model_at_its_second_call() {
    let call = |path: &str| Call::new("read_file", json!({ "path": path }));
    let server = FakeServer::start(Script::new([
        Reply::text("Both.").call(call("README.md")).call(call("main.py")),
        Reply::text("Lamps."),
    ]));
    let (tools, answer) = tools_and_answer(&server, &["--one-tool"]);
    assert_eq!((tools, answer), (vec![json!({"path": "README.md"})], json!("Lamps.")));
}

/// A call is text where a settings file says so, and several are made where it allows them.
#[test]
fn settings_say_how_calls_are_written() {
    let call = |path: &str| format!("^^^read_file\npath: {path}\n^^^\n");
    let both = format!("Both.\n{}{}", call("README.md"), call("main.py"));
    let paths = |tools: Vec<Value>| -> Vec<String> {
        tools.iter().map(|tool| tool["path"].as_str().unwrap().to_owned()).collect()
    };
    let project = Project::new();
    for (settings, flags, read) in [
        ("dialect = \"caret\"\n", [].as_slice(), ["README.md"].as_slice()),
        ("dialect = \"caret\"\none_tool = false\n", &[], &["README.md", "main.py"]),
        ("dialect = \"caret\"\none_tool = false\n", &["--one-tool"], &["README.md"]),
        (
            "dialect = \"native\"\n",
            &["--dialect", "caret", "--one-tool=false"],
            &["README.md", "main.py"],
        ),
    ] {
        project.write("toolloop.toml", settings);
        let server = FakeServer::start(Script::new([Reply::text(&both), Reply::text("Lamps.")]));
        let (tools, answer) = tools_and_answer_in(&project, &server, flags);
        assert_eq!(
            (paths(tools), answer),
            (read.iter().map(|p| (*p).to_owned()).collect(), json!("Lamps."))
        );
    }
}
