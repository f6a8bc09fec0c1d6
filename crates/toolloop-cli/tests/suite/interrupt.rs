use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::json;
use toolloop_fake::{Call, FakeServer, Fault, Reply, Script};

use crate::support::{Project, Ran, Terminal, is_alive, next, signal, wait_for_end};

/// A model that runs a command which never ends and writes its process id.
fn sleeper() -> FakeServer {
    let command = "sh -c 'echo $$ > pid; exec sleep 300'";
    FakeServer::start(Script::new([Reply::calls([Call::new("bash", json!({"command": command}))])]))
}

#[test]
fn ctrl_c_ends_the_tool_within_a_second() {
    let project = Project::new();
    let server = sleeper();
    let url = server.base_url();
    let arguments = ["run", "x", "--yes", "--base-url", &url, "--model", "m"];
    let pid = project.pipe("pid");
    let mut terminal = Terminal::open(&project, &arguments, &[]);
    let child = next("the tool", &pid);
    assert!(is_alive(&child));

    let started = Instant::now();
    terminal.type_keys("\x03");
    wait_for_end(&child);
    assert!(started.elapsed() < Duration::from_secs(1), "{:?}", started.elapsed());
    assert_eq!(terminal.end(), 130);
    terminal.wait_for("stopped · 1 step · 1 tool");
    assert!(terminal.text().contains("■ bash"), "{}", terminal.text());
}

#[test]
fn ctrl_c_at_a_question_ends_the_run_and_gives_the_terminal_back() {
    let project = Project::new();
    let server = sleeper();
    let url = server.base_url();
    let arguments = ["run", "x", "--base-url", &url, "--model", "m"];
    let mut terminal = Terminal::open(&project, &arguments, &[]);
    terminal.wait_for("y once · a always");
    assert!(!terminal.is_as_a_shell_wants_it());
    terminal.type_keys("\x03");
    assert_eq!(terminal.end(), 130);
    assert!(terminal.is_as_a_shell_wants_it());
    assert!(!project.folder().join("pid").exists());
    terminal.wait_for("stopped · 1 step · 0 tools");
}

#[test]
fn a_request_to_end_is_heard() {
    let project = Project::new();
    let server = sleeper();
    let url = server.base_url();
    for (name, code, number) in [("INT", 130, 130), ("TERM", 143, 143), ("HUP", 129, 129)] {
        let server = if name == "INT" { None } else { Some(sleeper()) };
        let url = server.as_ref().map_or(url.clone(), FakeServer::base_url);
        let _ = std::fs::remove_file(project.folder().join("pid"));
        let pid = project.pipe("pid");
        let mut command =
            project.command(&["run", "x", "--yes", "--json", "--base-url", &url, "--model", "m"]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let tool = next("the tool", &pid);
        signal(name, child.id());
        let ran = Ran::of(child.wait_with_output().unwrap());
        assert_eq!(ran.code, Some(code), "{name} {ran:?}");
        wait_for_end(&tool);
        let done = ran.json().pop().unwrap();
        assert_eq!(
            (&done["type"], &done["reason"], &done["exit_code"]),
            (&json!("done"), &json!("cancelled"), &json!(number)),
            "{name}"
        );
    }
}

#[test]
fn twice_is_at_once() {
    let project = Project::new();
    let reply =
        Reply::text("one two three").fault(Fault::StallAtEvent { event: 2, ping_every: None });
    let server = FakeServer::start(Script::new([reply]));
    let url = server.base_url();
    let arguments = ["run", "x", "--base-url", &url, "--model", "m"];
    let mut terminal = Terminal::open(&project, &arguments, &[]);
    terminal.wait_for("one");
    terminal.type_keys("\x03\x03");
    assert_eq!(terminal.end(), 130);
}

#[test]
fn half_an_answer_is_no_output() {
    let project = Project::new();
    let reply =
        Reply::text("one two three").fault(Fault::StallAtEvent { event: 3, ping_every: None });
    let (sender, requests) = mpsc::channel();
    let server = FakeServer::start(Script::from_fn(move |_| {
        sender.send(()).unwrap();
        reply.clone()
    }));
    let url = server.base_url();
    let mut command = project.command(&["run", "x", "--base-url", &url, "--model", "m"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    next("the request", &requests);
    signal("INT", child.id());
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (Some(130), "", ""));
}

#[test]
fn a_reader_that_goes_ends_the_run_quietly() {
    let project = Project::new();
    let reply =
        Reply::text("word ".repeat(2000)).fault(Fault::DelayEvents(Duration::from_millis(1)));
    let server = FakeServer::start(Script::new([reply]));
    let url = server.base_url();
    let mut command = project.command(&["run", "x", "--json", "--base-url", &url, "--model", "m"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert!(line.contains("\"type\":\"run\""), "{line}");
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(141), ""));
}
