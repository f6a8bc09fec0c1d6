use std::cell::RefCell;
use std::time::Duration;

use serde_json::json;
use toolloop_fake::{Call, FakeServer, Fault, Reply, Script};

use crate::support::{Project, Terminal, fastest};

fn open(project: &Project, server: &FakeServer) -> Terminal {
    let url = server.base_url();
    let arguments = ["run", "what is here?", "--yes", "--base-url", &url, "--model", "m"];
    Terminal::open(project, &arguments, &[])
}

#[test]
fn the_first_line_comes_at_once() {
    let project = Project::new();
    let server = FakeServer::start(Script::from_fn(|_| Reply::text("ok")));
    let ended = RefCell::new(Vec::new());
    // It waits for nothing: what it takes is a matter of the processor, as for the version.
    let [first_line, version] = fastest([
        &|| {
            let terminal = open(&project, &server);
            terminal.wait_for("run ");
            ended.borrow_mut().push(terminal);
        },
        &|| {
            let terminal = Terminal::open(&project, &["--version"], &[]);
            terminal.wait_for("toolloop ");
            ended.borrow_mut().push(terminal);
        },
    ]);
    for mut terminal in ended.into_inner() {
        assert_eq!(terminal.end(), 0);
    }
    assert!(first_line < version * 20, "{first_line:?} beside {version:?}");
}

#[test]
fn a_run_reads_from_its_header_to_its_summary() {
    let project = Project::new();
    let server = FakeServer::start(Script::new([
        Reply::text("I'll look.").call(Call::new("list_dir", json!({"path": "."}))),
        Reply::calls([Call::new("bash", json!({"command": "exit 3"}))]),
        Reply::text("Two **files**:\n\n- `main.py`\n- `README.md`\n"),
    ]));
    let mut terminal = open(&project, &server);
    assert_eq!(terminal.end(), 0);
    terminal.wait_for("cost unknown");
    let text = terminal.text();
    let mut rest = text.as_str();
    for part in [
        "openai/m · 127.0.0.1:",
        "I'll look.",
        "list  .",
        "2 files",
        "bash  exit 3",
        "exit 3",
        "Two files:",
        "• main.py",
        "• README.md",
        "done · 3 steps · 2 tools · ",
    ] {
        let at = rest.find(part).unwrap_or_else(|| panic!("no {part:?} in {text}"));
        rest = &rest[at + part.len()..];
    }
    assert!(terminal.raw().contains("\x1b[1mfiles\x1b[0m"), "bold is painted");
}

#[test]
fn a_running_tool_shows_its_output_and_a_silent_model_thinks() {
    let project = Project::new();
    // The tool ends when the test has seen its output.
    let command = "echo halfway; while [ ! -e go ]; do sleep 0.02; done";
    let server = FakeServer::start(Script::new([
        Reply::calls([Call::new("bash", json!({"command": command}))]),
        Reply::text("Done.").fault(Fault::DelayHead(Duration::from_millis(1500))),
    ]));
    let mut terminal = open(&project, &server);
    terminal.wait_for("│ halfway");
    terminal.resize(50);
    project.write("go", "");
    terminal.wait_for("thinking 1 s");
    assert_eq!(terminal.end(), 0);
    terminal.wait_for("Done.");
}

#[test]
fn a_retry_is_announced() {
    let project = Project::new();
    let limited = Reply::error(429, "Slow down").header("retry-after", "1");
    let server = FakeServer::start(Script::new([limited, Reply::text("Hello")]));
    let mut terminal = open(&project, &server);
    terminal.wait_for("limits the rate (429), next try in 1 s (2 of 5). \"Slow");
    assert_eq!(terminal.end(), 0);
    terminal.wait_for("Hello");
}

#[test]
fn errors_that_go_elsewhere_take_no_colours_with_them() {
    let project = Project::new();
    let look = Reply::calls([Call::new("list_dir", json!({"path": "."}))]);
    let server = FakeServer::start(Script::new([look, Reply::text("**Two**.")]));
    let url = server.base_url();
    let arguments = ["run", "x", "--max-iterations", "1", "--base-url", &url, "--model", "m"];
    let mut terminal = Terminal::open_redirected(&project, &arguments, "2> errors");
    assert_eq!(terminal.end(), 4);
    terminal.wait_for("Two.");
    let text = terminal.text();
    assert!(!text.contains("list") && !text.contains("stopped"), "{text}");
    let errors = std::fs::read_to_string(project.folder().join("errors")).unwrap();
    assert!(errors.starts_with("limit: 1 model call made"), "{errors:?}");
    assert!(!errors.contains('\x1b'), "{errors:?}");
}

#[test]
fn a_line_typed_meanwhile_goes_in_before_the_next_model_call() {
    let project = Project::new();
    let command = "echo at work; while [ ! -e go ]; do sleep 0.02; done";
    let server = FakeServer::start(Script::new([
        Reply::calls([Call::new("bash", json!({"command": command}))]),
        Reply::text("Only the Rust files, then."),
    ]));
    let mut terminal = open(&project, &server);
    terminal.wait_for("│ at work");
    terminal.type_keys("only Rusr\x7ft");
    terminal.wait_for("› only Rust▏");
    terminal.type_keys("\r");
    terminal.wait_for("queued: only Rust");
    project.write("go", "");
    assert_eq!(terminal.end(), 0);
    terminal.wait_for("› only Rust\r\n");
    terminal.wait_for("Only the Rust files, then.");
    let messages = server.requests().remove(1).body["messages"].take();
    let last = messages.as_array().unwrap().last().unwrap();
    assert_eq!(*last, json!({"role": "user", "content": "only Rust"}));
    assert!(terminal.is_as_a_shell_wants_it());
}

#[test]
fn a_run_that_was_over_goes_on_for_a_typed_line() {
    let project = Project::new();
    let server = FakeServer::start(Script::new([
        Reply::text("one two three four").fault(Fault::DelayEvents(Duration::from_millis(100))),
        Reply::text("And five."),
    ]));
    let mut terminal = open(&project, &server);
    terminal.wait_for("one");
    terminal.type_keys("and then?\r");
    assert_eq!(terminal.end(), 0);
    terminal.wait_for("And five.");
    assert_eq!(server.requests().len(), 2);
}
