use std::time::{Duration, Instant};

use toolloop_fake::{FakeServer, Reply, Script};

use crate::support::{Project, Ran};

const KEY: &str = "sk-proj-0123456789ab9f3a";

fn with_key(project: &Project, server: &FakeServer) -> Ran {
    let arguments = ["run", "hi", "--model", "openai/gpt-5"];
    let mut command = project.command(&arguments);
    command.env("OPENAI_API_KEY", KEY).env("OPENAI_BASE_URL", server.base_url());
    Ran::of(command.output().unwrap())
}

/// The text of an error without the port, which is another one each time.
fn told(ran: &Ran, server: &FakeServer) -> String {
    ran.stderr.replace(&server.address().to_string(), "HOST")
}

#[test]
fn a_wrong_key_is_refused_once_and_traced_to_its_variable() {
    let project = Project::new();
    let server = FakeServer::start(Script::new([]).require_key("sk-another-key"));
    let ran = with_key(&project, &server);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(3), ""), "{ran:?}");
    assert_eq!(server.requests().len(), 1);
    let told = told(&ran, &server);
    assert!(told.starts_with("error: HOST refused the key (401)\n  \""), "{told}");
    assert!(told.contains("9f3a"), "{told}");
    assert!(told.contains(" came from OPENAI_API_KEY in the environment.\n"), "{told}");
    assert!(!told.contains("0123456789"), "{told}");
}

#[test]
fn a_key_from_a_file_is_traced_to_its_line() {
    let project = Project::new();
    let server = FakeServer::start(Script::new([]).require_key("sk-another-key"));
    project.config(&format!(
        "model = \"openai/gpt-5\"\n\n[openai]\nbase_url = \"{}\"\napi_key = \"{KEY}\"\n",
        server.base_url()
    ));
    let ran = project.run(&["run", "hi"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.stderr.contains("came from ~/.config/toolloop/config.toml, line 5."), "{ran:?}");
}

#[test]
fn no_key_is_said_before_anything_is_asked() {
    let project = Project::new();
    let ran = project.run(&["run", "hi", "--model", "openai/gpt-5"]);
    assert_eq!(ran.code, Some(3));
    assert_eq!(
        ran.stderr,
        "error: no key for OpenAI\n  Set one: export OPENAI_API_KEY=…\n  \
         or in ~/.config/toolloop/config.toml: [openai] api_key = \"…\"\n  \
         Without a key: toolloop run --model demo, or start Ollama.\n"
    );
}

#[test]
fn a_dead_server_is_named_at_once() {
    let project = Project::new();
    let started = Instant::now();
    let ran = project.run(&["run", "hi", "--base-url", "http://127.0.0.1:1/v1", "--model", "m"]);
    assert!(started.elapsed() < Duration::from_secs(1), "{:?}", started.elapsed());
    assert_eq!(ran.code, Some(75));
    assert_eq!(
        ran.stderr,
        "error: nothing answers at http://127.0.0.1:1 (connection refused)\n  \
         The address came from --base-url.\n  \
         Start the server, or choose a model: toolloop models\n"
    );
}

#[test]
fn an_unknown_model_comes_with_the_nearest_names() {
    let project = Project::new();
    let script = Script::new([]).models(["gpt-5", "gpt-5-mini", "gpt-5-nano", "whisper-1"]);
    let server = FakeServer::start(script);
    let url = server.base_url();
    let ran = project.run(&["run", "hi", "--base-url", &url, "--model", "gpt-5-mni"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let told = told(&ran, &server);
    assert!(told.starts_with("error: HOST has no model gpt-5-mni\n  \"The model"), "{told}");
    assert!(told.contains("  All there are: toolloop models"), "{told}");
    assert!(told.contains("Nearest: gpt-5-mini, gpt-5-nano, gpt-5\n"), "{told}");
}

#[test]
fn what_is_no_api_is_called_what_it_is() {
    let project = Project::new();
    let page = Reply::raw(200, "text/html", "<!DOCTYPE html><html><body>Hello</body></html>");
    let empty = Reply::empty();
    let server = FakeServer::start(Script::new([page, empty]));
    let html = project.run_at(&server, &["hi"]);
    assert_eq!(html.code, Some(1), "{html:?}");
    let told_of_html = told(&html, &server);
    let start = "error: HOST sent a web page (HTML) instead of JSON\n  \"<!DOCTYPE html>";
    assert!(told_of_html.starts_with(start), "{told_of_html}");
    assert!(told_of_html.contains("The address is http://HOST/v1; it came from --base-url."));
    let empty = project.run_at(&server, &["hi"]);
    assert_eq!(empty.code, Some(1), "{empty:?}");
    assert!(told(&empty, &server).starts_with("error: HOST sent an empty body\n"), "{empty:?}");
}

#[test]
fn a_used_up_balance_is_not_tried_again() {
    let project = Project::new();
    let body = r#"{"error":{"message":"You exceeded your quota","code":"insufficient_quota"}}"#;
    let server = FakeServer::start(Script::new([Reply::raw(429, "application/json", body)]));
    let ran = project.run_at(&server, &["hi"]);
    assert_eq!((ran.code, server.requests().len()), (Some(1), 1), "{ran:?}");
    assert!(told(&ran, &server).starts_with("error: HOST gives no more (429)\n"), "{ran:?}");
}

#[test]
fn wrong_usage_is_said_with_its_cure() {
    let project = Project::new();
    for (arguments, expected) in [
        (
            &["run", "  "][..],
            "error: the task is empty\n  \
             Say what to do: toolloop run \"what is in this folder?\"\n",
        ),
        (
            &["run", "hi", "--dir", "/no/such/folder"],
            "error: the folder /no/such/folder does not exist\n  \
             Give the folder to work in: --dir DIR\n",
        ),
        (
            &["run", "hi", "--tools", "bsh"],
            "error: there is no tool bsh\n  It was named by --tools.\n  Did you mean bash?\n",
        ),
        (
            &["run", "hi", "--yes=basch"],
            "error: there is no tool basch\n  It was named by --yes.\n  Did you mean bash?\n",
        ),
    ] {
        let ran = project.run(arguments);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(2), expected), "{arguments:?}");
    }
    for arguments in [&["run", "--nonsense"][..], &["run", "x", "--timeout", "soon"], &[]] {
        assert_eq!(project.run(arguments).code, Some(2), "{arguments:?}");
    }
}
