use std::io::Write;
use std::process::Stdio;

use serde_json::json;
use toolloop_fake::{Call, FakeServer, Reply, Script};

use crate::support::{Project, Ran, Terminal};

/// Runs with this on standard input; gives what the model was asked.
fn asked(arguments: &[&str], input: &str) -> (Ran, Vec<String>) {
    let project = Project::new();
    let server = FakeServer::start(Script::new([Reply::text("ok")]));
    let url = server.base_url();
    let mut all = vec!["run", "--base-url", &url, "--model", "m"];
    all.extend(arguments);
    let mut command = project.command(&all);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let ran = Ran::of(child.wait_with_output().unwrap());
    let task = |request: toolloop_fake::Request| {
        request.body["messages"][1]["content"].as_str().unwrap().to_owned()
    };
    (ran, server.requests().into_iter().map(task).collect())
}

#[test]
fn standard_input_is_the_task_or_is_added_to_it() {
    assert_eq!(asked(&["-"], "the task\n").1, ["the task"]);
    assert_eq!(asked(&["explain"], "a log\nof lines\n").1, ["explain\n\na log\nof lines"]);
    assert_eq!(asked(&["explain"], "").1, ["explain"]);
    let (ran, messages) = asked(&["-"], " \n");
    assert_eq!((ran.code, messages.len()), (Some(2), 0));
}

#[test]
fn a_pipe_gets_the_final_answer_and_no_escape_byte() {
    let project = Project::new();
    let server = FakeServer::start(Script::new([
        Reply::text("Let me *look*.").call(Call::new("list_dir", json!({}))),
        Reply::text("# Files\n\n- **two** \x1b[31mred\x1b[0m\n"),
    ]));
    let ran = project.run_at(&server, &["what is here?"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "# Files\n\n- **two** red\n"), "{ran:?}");
    assert_eq!(ran.stderr, "");
}

#[test]
fn terminals_that_want_no_escape_bytes_get_none() {
    for variable in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        let project = Project::new();
        let server = FakeServer::start(Script::new([
            Reply::text("Let me *look*.\n").call(Call::new("list_dir", json!({}))),
            Reply::text("**Two** files: \x1b[2Jx."),
        ]));
        let url = server.base_url();
        let arguments = ["run", "x", "--base-url", &url, "--model", "m"];
        let mut terminal = Terminal::open(&project, &arguments, &[variable]);
        assert_eq!(terminal.end(), 0);
        terminal.wait_for("cost unknown");
        let raw = terminal.raw();
        assert!(!raw.contains('\x1b'), "{raw:?}");
        assert!(raw.contains("Let me *look*.\r\n"), "{raw:?}");
        assert!(raw.contains("✓ list  ."), "{raw:?}");
        assert!(raw.contains("\r\n**Two** files: x.\r\n"), "{raw:?}");
    }
}

#[test]
fn quiet_prints_the_answer_alone() {
    let project = Project::new();
    let ran = project.run(&["run", "what is in this folder?", "--quiet"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    assert!(ran.stdout.contains("main.py"));
}

#[test]
fn a_full_disk_is_an_error() {
    if !std::path::Path::new("/dev/full").exists() {
        return;
    }
    let project = Project::new();
    let mut command = project.command(&["run", "what is in this folder?", "--quiet"]);
    command.stdout(std::fs::File::options().write(true).open("/dev/full").unwrap());
    let ran = Ran::of(command.output().unwrap());
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.starts_with("error: the output cannot be written:"), "{ran:?}");
}

#[test]
fn help_into_a_closed_pipe_is_no_panic() {
    let project = Project::new();
    for arguments in [&["--help"][..], &["run", "--help"], &["models"], &["run", "what is here?"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = project.command(arguments);
        command.stdout(writer).stderr(Stdio::piped());
        let ran = Ran::of(command.spawn().unwrap().wait_with_output().unwrap());
        assert_eq!(ran.code, Some(0), "{arguments:?} {ran:?}");
        assert!(!ran.stderr.contains("panicked"), "{ran:?}");
    }
}
