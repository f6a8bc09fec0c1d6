use std::io::{BufRead, BufReader};
use std::process::Stdio;

use toolloop_fake::{FakeServer, Script};

use crate::support::{Project, Ran, Terminal, signal};

#[test]
fn a_pipe_gets_one_model_a_line() {
    let project = Project::new();
    let server = FakeServer::start(Script::new([]).models(["gpt-5", "gpt-5-mini"]));
    let mut command = project.command(&["models"]);
    command.env("OPENAI_API_KEY", "sk-1").env("OPENAI_BASE_URL", server.base_url());
    let ran = Ran::of(command.output().unwrap());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.stdout, "openai/gpt-5\nopenai/gpt-5-mini\ndemo\n");
    // An address is of one server, and only what that one has is listed.
    let ran = project.run(&["models", "--base-url", &server.base_url()]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "openai/gpt-5\nopenai/gpt-5-mini\n"));
}

#[test]
fn a_person_reads_what_is_there_and_what_a_run_takes() {
    let project = Project::new();
    let mut terminal = Terminal::open(&project, &["models"], &[("NO_COLOR", "1")]);
    assert_eq!(terminal.end(), 0);
    terminal.wait_for("How one is chosen");
    assert_eq!(
        terminal.text().replace("\r\n", "\n"),
        "Ollama   http://127.0.0.1:1\n  \
         nothing answers at http://127.0.0.1:1 (connection refused)\n\
         LM Studio   http://127.0.0.1:1/v1\n  \
         nothing answers at http://127.0.0.1:1 (connection refused)\n\
         llama.cpp   http://127.0.0.1:1/v1\n  \
         nothing answers at http://127.0.0.1:1 (connection refused)\n\
         Built in\n  demo\n\n\
         No key: OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY, AICORE_CLIENT_SECRET,\n\
         DEEPSEEK_API_KEY, MISTRAL_API_KEY, GROQ_API_KEY, OPENROUTER_API_KEY,\n\
         XAI_API_KEY, TOGETHER_API_KEY\n\
         Not running: vLLM\n\
         A run takes demo: there is no key and no local model.\n\
         Another one: toolloop run --model NAME   How one is chosen: toolloop help models\n"
    );
}

#[test]
fn an_address_that_does_not_answer_is_an_error() {
    let project = Project::new();
    let ran = project.run(&["models", "--base-url", "http://127.0.0.1:1/v1"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(75), ""), "{ran:?}");
    assert!(ran.stderr.starts_with("error: nothing answers at http://127.0.0.1:1"), "{ran:?}");
}

#[test]
fn a_local_ollama_is_found_and_taken() {
    let project = Project::new();
    let script = Script::new([toolloop_fake::Reply::text("I am local.")])
        .models(["nomic-embed-text", "qwen3:8b"]);
    let server = FakeServer::start(script);
    let mut command = project.command(&["run", "who are you?"]);
    command.env("OLLAMA_HOST", server.address().to_string());
    let ran = Ran::of(command.output().unwrap());
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "I am local.\n"), "{ran:?}");
    assert_eq!(server.requests().last().unwrap().body["model"], "qwen3:8b");
}

#[test]
fn the_fake_server_serves_until_it_is_ended() {
    let project = Project::new();
    let mut command = project.command(&["fake", "--require-key", "sk-fake"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut url = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
    let arguments = ["run", "what is here?", "--base-url", url.trim(), "--model", "demo"];
    assert_eq!(project.run(&arguments).code, Some(3));
    let mut with_key = project.command(&arguments);
    with_key.env("OPENAI_API_KEY", "sk-fake");
    let ran = Ran::of(with_key.output().unwrap());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("main.py"), "{ran:?}");
    signal("TERM", child.id());
    assert_eq!(child.wait().unwrap().code(), Some(143));
}

#[test]
fn other_local_servers_are_found_too() {
    let project = Project::new();
    let script = Script::new([toolloop_fake::Reply::text("I am local.")]).models(["qwen3"]);
    let server = FakeServer::start(script);
    let mut command = project.command(&["run", "--json=final", "who are you?"]);
    command.env("LMSTUDIO_BASE_URL", server.base_url());
    let ran = Ran::of(command.output().unwrap());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.json()[0]["cost_usd"], 0.0);
    assert_eq!(server.requests().last().unwrap().path, "/v1/chat/completions");
}

#[test]
fn a_cost_is_by_the_price_in_the_settings() {
    let project = Project::new();
    let server = FakeServer::start(Script::new([
        toolloop_fake::Reply::text("Hi").usage(1000, 100),
        toolloop_fake::Reply::text("Hi").without_usage(),
    ]));
    project.config("[prices.\"openai/gpt-test\"]\ninput = 2\noutput = 10.0\n");
    let ran = project.run_at(&server, &["--json=final", "x"]);
    assert_eq!(ran.json()[0]["cost_usd"], 0.003);
    let ran = project.run_at(&server, &["--json=final", "x"]);
    assert_eq!(ran.json()[0]["cost_usd"], serde_json::Value::Null);
}
