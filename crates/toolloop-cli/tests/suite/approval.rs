use serde_json::json;
use toolloop_fake::{Call, FakeServer, Reply, Script};

use crate::support::{Project, Terminal, signal};

fn touch(name: &str) -> Call {
    Call::new("bash", json!({"command": format!("touch {name}")}))
}

#[test]
fn nobody_to_ask_runs_nothing_and_says_which_flag_allows_it() {
    let project = Project::new();
    // The harmless call beside it is not run either: the run ends before its first tool.
    let reply = Reply::calls([Call::new("list_dir", json!({"path": "."})), touch("made")]);
    let server = FakeServer::start(Script::new([reply]));
    let ran = project.run_at(&server, &["make a file"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(5), ""), "{ran:?}");
    assert_eq!(
        ran.stderr,
        "approval needed: bash  touch made\n  \
         Nobody could be asked here, so it was not run, and the run ended.\n  \
         To allow it: --yes=bash (or --yes for every tool)\n"
    );
    assert!(!project.folder().join("made").exists());
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn yes_allows_what_it_lists() {
    let project = Project::new();
    let server = FakeServer::start(Script::new([
        Reply::calls([touch("one")]),
        Reply::text("Made."),
        Reply::calls([touch("two")]),
        Reply::text("Made."),
        Reply::calls([touch("three")]),
    ]));
    assert_eq!(project.run_at(&server, &["x", "--yes=bash"]).code, Some(0));
    assert_eq!(project.run_at(&server, &["x", "--yes"]).code, Some(0));
    assert_eq!(project.run_at(&server, &["x", "--yes=read_file"]).code, Some(5));
    let made = ["one", "two", "three"].map(|name| project.folder().join(name).exists());
    assert_eq!(made, [true, true, false]);
}

/// The command in a terminal, asked about `first`.
fn asked(project: &Project, server: &FakeServer, variables: &[(&str, &str)]) -> Terminal {
    let url = server.base_url();
    let arguments = ["run", "x", "--base-url", &url, "--model", "m"];
    let terminal = Terminal::open(project, &arguments, variables);
    terminal.wait_for("y once · a always");
    terminal
}

/// What the model was told of the call in its second request.
fn told(server: &FakeServer) -> String {
    server.requests()[1].body["messages"].as_array().unwrap().last().unwrap()["content"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[test]
fn a_person_says_no_and_the_model_reads_why() {
    let project = Project::new();
    let server = FakeServer::start(Script::new([
        Reply::calls([touch("made")]),
        Reply::text("As you wish."),
    ]));
    let mut terminal = asked(&project, &server, &[]);
    terminal.type_keys("n");
    terminal.wait_for("no, because");
    terminal.type_keys("use another name\r");
    assert_eq!(terminal.end(), 0);
    assert!(told(&server).contains("the user said no: use another name"));
    assert!(!project.folder().join("made").exists());
    terminal.wait_for("As you wish.");
}

#[test]
fn a_person_edits_the_command() {
    let project = Project::new();
    let server =
        FakeServer::start(Script::new([Reply::calls([touch("made")]), Reply::text("Done.")]));
    let mut terminal = asked(&project, &server, &[]);
    terminal.type_keys("e");
    terminal.wait_for("edit: touch made");
    terminal.type_keys("\x17other\r");
    assert_eq!(terminal.end(), 0, "{}", terminal.text());
    assert!(project.folder().join("other").exists());
    assert!(!project.folder().join("made").exists());
}

#[test]
fn always_is_asked_once() {
    let project = Project::new();
    let server = FakeServer::start(Script::new([
        Reply::calls([touch("one"), touch("two")]),
        Reply::calls([touch("three")]),
        Reply::text("Done."),
    ]));
    let mut terminal = asked(&project, &server, &[]);
    assert!(terminal.text().contains("a always \"touch …\" in this folder"), "{}", terminal.text());
    terminal.type_keys("a");
    assert_eq!(terminal.end(), 0);
    let made = ["one", "two", "three"].map(|name| project.folder().join(name).exists());
    assert_eq!(made, [true, true, true]);
}

#[test]
fn always_is_remembered_for_the_folder() {
    let project = Project::new();
    let reply = |name| Reply::calls([touch(name)]);
    let server = FakeServer::start(Script::new([
        reply("one"),
        Reply::text("Done."),
        reply("two"),
        Reply::text("Done."),
        reply("three"),
    ]));
    let mut terminal = asked(&project, &server, &[]);
    terminal.type_keys("a");
    assert_eq!(terminal.end(), 0);
    assert_eq!(project.run_at(&server, &["x"]).code, Some(0));
    let elsewhere = project.folder().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    assert_eq!(project.run_at(&server, &["x", "--dir", "elsewhere"]).code, Some(5));
    let made = ["one", "two", "elsewhere/three"].map(|name| project.folder().join(name).exists());
    assert_eq!(made, [true, true, false]);
}

#[test]
fn rules_decide_before_anybody_is_asked() {
    let project = Project::new();
    project.config("[approvals]\nallow = [\"bash(command: touch *)\"]\n");
    project.write("toolloop.toml", "[approvals]\ndeny = [\"bash(command: touch .env*)\"]\n");
    let server = FakeServer::start(Script::new([
        Reply::calls([touch("one"), touch(".env")]),
        Reply::text("Done."),
        Reply::calls([touch("two; rm one")]),
    ]));
    assert_eq!(project.run_at(&server, &["x"]).code, Some(0));
    assert!(told(&server).contains("the rule `bash(command: touch .env*)` forbids this call"));
    assert_eq!(project.run_at(&server, &["x"]).code, Some(5));
    let there = ["one", ".env", "two"].map(|name| project.folder().join(name).exists());
    assert_eq!(there, [true, false, false]);
}

#[test]
fn keys_typed_before_the_question_do_not_answer_it() {
    let project = Project::new();
    let server = FakeServer::start(Script::new([
        Reply::text("one two three")
            .call(touch("made"))
            .fault(toolloop_fake::Fault::DelayEvents(std::time::Duration::from_millis(50))),
        Reply::text("Done."),
    ]));
    let url = server.base_url();
    let arguments = ["run", "x", "--base-url", &url, "--model", "m"];
    let mut terminal = Terminal::open(&project, &arguments, &[]);
    terminal.wait_for("one");
    terminal.type_keys("y");
    terminal.wait_for("y once · a always");
    // What was begun is a line for the model, and goes on as one.
    terminal.wait_for("first finish this line: Enter sends it, Esc drops it");
    terminal.type_keys("y\x1b");
    terminal.wait_for("› yy");
    terminal.type_keys("n");
    terminal.wait_for("no, because");
    terminal.type_keys("\r");
    assert_eq!(terminal.end(), 0);
    assert!(!project.folder().join("made").exists());
}

#[test]
fn without_colours_one_can_still_answer() {
    let project = Project::new();
    let server =
        FakeServer::start(Script::new([Reply::calls([touch("made")]), Reply::text("Fine.")]));
    let mut terminal = asked(&project, &server, &[("NO_COLOR", "1")]);
    terminal.type_keys("n");
    terminal.wait_for("no, because");
    terminal.type_keys("later\r");
    assert_eq!(terminal.end(), 0);
    assert!(told(&server).contains("the user said no: later"));
    assert!(!terminal.raw().contains('\x1b'), "{:?}", terminal.raw());
}

#[test]
fn a_question_that_nobody_would_see_is_not_asked() {
    let project = Project::new();
    let server = FakeServer::start(Script::new([Reply::calls([touch("made")])]));
    let url = server.base_url();
    let arguments = ["run", "x", "--base-url", &url, "--model", "m"];
    let mut terminal = Terminal::open_redirected(&project, &arguments, "> out 2> errors");
    assert_eq!(terminal.end(), 5);
    let errors = std::fs::read_to_string(project.folder().join("errors")).unwrap();
    assert!(errors.starts_with("approval needed: bash  touch made\n"), "{errors}");
    assert!(!project.folder().join("made").exists());
}

#[test]
fn a_change_of_a_file_is_shown_as_a_diff() {
    let project = Project::new();
    project.write("a.txt", "one\ntwo\nthree\n");
    let edit = json!({"path": "a.txt", "edits": [{"old_text": "two", "new_text": "2"}]});
    let server = FakeServer::start(Script::new([
        Reply::calls([Call::new("edit_file", edit)]),
        Reply::text("Done."),
    ]));
    let mut terminal = asked(&project, &server, &[]);
    let text = terminal.text();
    assert!(text.contains("│ -two") && text.contains("│ +2"), "{text}");
    assert!(text.contains("changes this file") && text.contains("a always edit_file"), "{text}");
    terminal.type_keys("y");
    assert_eq!(terminal.end(), 0);
    assert_eq!(std::fs::read_to_string(project.folder().join("a.txt")).unwrap(), "one\n2\nthree\n");
}

#[test]
fn a_command_taller_than_the_terminal_is_shown_from_its_beginning() {
    let project = Project::new();
    let steps: String = (0..35).map(|step| format!("echo step {step}\n")).collect();
    let call = Call::new("bash", json!({ "command": steps }));
    let server = FakeServer::start(Script::new([Reply::text("So:").call(call)]));
    let terminal = asked(&project, &server, &[]);
    let text = terminal.text();
    let shown: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("  │ ")).collect();
    let expected: Vec<String> = (0..35).map(|step| format!("echo step {step}")).collect();
    assert_eq!(shown, expected);
}

#[test]
fn a_command_cannot_hide_behind_an_escape_sequence() {
    let project = Project::new();
    let command = "echo hi \u{1b}]0; touch made ;\u{7}";
    for variables in [&[][..], &[("NO_COLOR", "1")]] {
        let call = Call::new("bash", json!({ "command": command }));
        let server = FakeServer::start(Script::new([Reply::calls([call])]));
        let text = asked(&project, &server, variables).text();
        assert!(text.contains("? bash  echo hi ␛]0; touch made ;␇ "), "{text}");
    }
}

#[test]
fn a_quiet_run_shows_what_it_asks_about() {
    let project = Project::new();
    let write = json!({"path": "new.txt", "content": "one\n"});
    let server = FakeServer::start(Script::new([Reply::calls([Call::new("write_file", write)])]));
    let url = server.base_url();
    let arguments = ["run", "x", "--quiet", "--base-url", &url, "--model", "m"];
    let terminal = Terminal::open(&project, &arguments, &[]);
    terminal.wait_for("y once · a always");
    let text = terminal.text();
    assert!(text.contains("│ +one") && text.contains("writes this file"), "{text}");
}

#[test]
fn a_run_that_was_stopped_and_continued_hears_keys_again() {
    let project = Project::new();
    let server =
        FakeServer::start(Script::new([Reply::calls([touch("made")]), Reply::text("Fine.")]));
    let mut terminal = asked(&project, &server, &[]);
    signal("STOP", terminal.pid);
    // As a shell does when it takes the terminal back.
    terminal.modes("sane");
    signal("CONT", terminal.pid);
    terminal.type_keys("n");
    terminal.wait_for("no, because");
    terminal.type_keys("\r");
    assert_eq!(terminal.end(), 0);
    assert!(terminal.is_as_a_shell_wants_it());
}
