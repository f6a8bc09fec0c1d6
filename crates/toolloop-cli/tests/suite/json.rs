use serde_json::{Value, json};
use toolloop_fake::{Call, FakeServer, Reply, Script};

use crate::support::Project;

/// The types of the lines, each once where it repeats.
fn types(lines: &[Value]) -> Vec<&str> {
    let mut types: Vec<&str> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
    types.dedup();
    types
}

#[test]
fn every_line_parses_and_the_last_is_done() {
    let project = Project::new();
    let server = FakeServer::start(Script::new([
        Reply::text("Let me look.").call(Call::new("list_dir", json!({"path": "."}))),
        Reply::text("Two files."),
    ]));
    let ran = project.run_at(&server, &["what is here?", "--json"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    let lines = ran.json();
    assert_eq!(lines[0]["type"], "run");
    assert_eq!(lines[0]["model"], "openai/gpt-test");
    assert_eq!(lines[0]["cwd"], project.folder().to_str().unwrap());
    let types = types(&lines);
    for expected in ["text_delta", "tool_execution_start", "tool_execution_end", "usage"] {
        assert!(types.contains(&expected), "{types:?}");
    }
    let done = lines.last().unwrap();
    assert_eq!(
        (&done["type"], &done["reason"], &done["text"], &done["exit_code"], &done["iterations"]),
        (&json!("done"), &json!("complete"), &json!("Two files."), &json!(0), &json!(2))
    );
    assert_eq!(done["run"], lines[0]["run"]);
    assert_eq!((&done["cost_usd"], &done["usage"]["source"]), (&json!(null), &json!("reported")));
}

#[test]
fn a_refused_key_is_a_line_with_its_cure() {
    let project = Project::new();
    let server = FakeServer::start(Script::new([]).require_key("sk-right"));
    let ran = project.run_at(&server, &["hi", "--json"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(3), ""), "{ran:?}");
    let lines = ran.json();
    assert_eq!(lines[lines.len() - 2]["kind"], "auth");
    assert_eq!(lines[lines.len() - 2]["status"], 401);
    let done = lines.last().unwrap();
    assert_eq!((&done["reason"], &done["exit_code"]), (&json!("error"), &json!(3)));
}

#[test]
fn what_fails_before_the_run_is_said_in_the_same_form() {
    let project = Project::new();
    let ran = project.run(&["run", "hi", "--json", "--model", "openai/gpt-5"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(3), ""), "{ran:?}");
    let lines = ran.json();
    assert_eq!(types(&lines), ["run", "error", "done"]);
    assert_eq!(lines[0]["model"], json!(null));
}

#[test]
fn a_limit_has_its_reason() {
    let project = Project::new();
    let look = Reply::calls([Call::new("list_dir", json!({"path": "."}))]);
    let server = FakeServer::start(Script::new([look, Reply::text("So far two.")]));
    let ran = project.run_at(&server, &["hi", "--json", "--max-iterations", "1"]);
    let done = ran.json().pop().unwrap();
    assert_eq!(
        (&done["reason"], &done["text"], &done["exit_code"], ran.code),
        (&json!("max_iterations"), &json!("So far two."), &json!(4), Some(4))
    );
}

#[test]
fn an_approval_that_nobody_gives_is_a_line() {
    let project = Project::new();
    let call = Call::new("bash", json!({"command": "touch made"}));
    let server = FakeServer::start(Script::new([Reply::calls([call])]));
    let ran = project.run_at(&server, &["hi", "--json"]);
    assert_eq!(ran.code, Some(5), "{ran:?}");
    let lines = ran.json();
    let needed = lines.iter().find(|line| line["type"] == "approval_needed").unwrap();
    assert_eq!(needed["arguments"], json!({"command": "touch made"}));
    assert_eq!(lines.last().unwrap()["reason"], "approval");
    assert!(!project.folder().join("made").exists());
}

#[test]
fn final_prints_one_line() {
    let project = Project::new();
    let server = FakeServer::start(Script::new([Reply::text("Hello")]));
    let lines = project.run_at(&server, &["hi", "--json=final"]).json();
    assert_eq!(types(&lines), ["done"]);
    assert_eq!(lines[0]["text"], "Hello");
}

#[test]
fn the_bytes_grow_with_the_answer_and_not_with_its_square() {
    let project = Project::new();
    let size = |words: usize| {
        let server = FakeServer::start(Script::new([Reply::text("word ".repeat(words))]));
        project.run_at(&server, &["hi", "--json"]).stdout.len()
    };
    let (small, large) = (size(500), size(2000));
    assert!(large < small * 5, "{small} {large}");
}
