//! The text of every error a model call can end with, whole.

use toolloop_core::{ErrorDetails, ErrorMessage};

use super::*;
use crate::origin::{Owner, Sourced};
use crate::providers::provider;

const KEY: &str = "sk-proj-0123456789ab9f3a";

fn openai() -> Target {
    let key = Sourced::new(KEY.to_owned().into(), Origin::Variable("OPENAI_API_KEY".into()));
    Target {
        provider: provider("openai").unwrap(),
        model: "gpt-5-mni".into(),
        base_url: Sourced::new("https://api.openai.com/v1".into(), Origin::Default),
        key: Some(key),
    }
}

fn ollama() -> Target {
    let origin =
        Origin::File { path: "/etc/toolloop/config.toml".into(), line: 4, owner: Owner::Person };
    Target {
        provider: provider("ollama").unwrap(),
        model: "qwen3".into(),
        base_url: Sourced::new("http://127.0.0.1:11434".into(), origin),
        key: None,
    }
}

fn custom() -> Target {
    Target {
        base_url: Sourced::new("http://10.0.0.7:8080".into(), Origin::Flag("--base-url")),
        key: None,
        ..openai()
    }
}

fn http(status: u16, message: impl Into<ErrorMessage>, retryable: bool) -> LlmError {
    let status = http_status(status);
    LlmError::Http { status, message: message.into(), retryable }
}

fn http_status(status: u16) -> Option<http::StatusCode> {
    (status > 0).then(|| http::StatusCode::from_u16(status).unwrap())
}

fn text(error: &LlmError, target: &Target) -> String {
    explain(error, target, &Environment(&|_| None)).to_string()
}

fn exit(error: &LlmError, target: &Target) -> Exit {
    explain(error, target, &Environment(&|_| None)).exit
}

#[test]
fn a_refused_key() {
    let error = LlmError::Auth(format!("Incorrect API key provided: {KEY}.").into());
    assert_eq!(
        text(&error, &openai()),
        "OpenAI refused the key (401)\n  \"Incorrect API key provided: sk-…9f3a.\"\n  \
         The key came from OPENAI_API_KEY in the environment.\n  \
         Set another one, or choose another model: toolloop models"
    );
    assert_eq!(exit(&error, &openai()), Exit::NoModel);
}

#[test]
fn a_key_that_is_refused_as_a_request() {
    let error = LlmError::InvalidRequest("API key not valid. Please pass another.".into());
    let others = |name: &str| (name == "GROQ_API_KEY").then(|| "k".to_owned());
    assert_eq!(
        explain(&error, &openai(), &Environment(&others)).to_string(),
        "OpenAI refused the key (400)\n  \"API key not valid. Please pass another.\"\n  \
         The key sk-…9f3a came from OPENAI_API_KEY in the environment.\n  \
         Set another one, or: toolloop run --model groq/…   (GROQ_API_KEY is set)"
    );
}

#[test]
fn a_refused_key_that_came_from_a_file() {
    let mut target = openai();
    let origin = Origin::File { path: "/home/x/config.toml".into(), line: 7, owner: Owner::Person };
    target.key.as_mut().unwrap().origin = origin;
    assert_eq!(
        text(&LlmError::Auth("no".into()), &target),
        "OpenAI refused the key (401)\n  \"no\"\n  \
         The key sk-…9f3a came from /home/x/config.toml, line 7.\n  \
         Put in another one, or choose another model: toolloop models"
    );
}

#[test]
fn a_server_that_wants_a_key() {
    assert_eq!(
        text(&LlmError::Auth("Unauthorized".into()), &custom()),
        "10.0.0.7:8080 wants a key (401)\n  \"Unauthorized\"\n  Set one: export OPENAI_API_KEY=…"
    );
}

#[test]
fn an_unknown_model_with_the_nearest_names() {
    let error = http(404, "The model `gpt-5-mni` does not exist.", false);
    let models = ["gpt-5", "gpt-5-mini", "gpt-5-nano", "whisper-1"].map(str::to_owned);
    let report = explain(&error, &openai(), &Environment(&|_| None));
    assert_eq!(report.exit, Exit::NoModel);
    assert_eq!(
        suggest_models(report, "gpt-5-mni", &models).to_string(),
        "OpenAI has no model gpt-5-mni\n  \"The model `gpt-5-mni` does not exist.\"\n  \
         All there are: toolloop models\n  Nearest: gpt-5-mini, gpt-5-nano, gpt-5"
    );
}

#[test]
fn an_unknown_model_in_the_words_of_anthropic() {
    let error = http(404, "model: claude-x", false);
    let models = ["demo".to_owned()];
    let report = explain(&error, &custom(), &Environment(&|_| None));
    assert_eq!(report.exit, Exit::NoModel);
    assert_eq!(
        suggest_models(report, "gpt-5-mni", &models).to_string(),
        "10.0.0.7:8080 has no model gpt-5-mni\n  \"model: claude-x\"\n  \
         All there are: toolloop models --base-url http://10.0.0.7:8080\n  It has: demo"
    );
}

#[test]
fn a_dead_server() {
    let error = http(0, "nothing answers at http://127.0.0.1:11434 (connection refused)", true);
    assert_eq!(
        text(&error, &ollama()),
        "nothing answers at http://127.0.0.1:11434 (connection refused)\n  \
         The address came from /etc/toolloop/config.toml, line 4.\n  \
         Start the server (ollama serve), or choose a model: toolloop models"
    );
    assert_eq!(exit(&error, &ollama()), Exit::Temporary);
    let error = http(0, "cannot connect to http://10.0.0.7:8080: no route to host", true);
    let error = LlmError::RetryExhausted { attempts: 3, last_error: Box::new(error) };
    assert_eq!(
        text(&error, &custom()),
        "cannot connect to http://10.0.0.7:8080: no route to host, tried 3 times\n  \
         The address came from --base-url.\n  \
         Check the address and the network, or choose a model: toolloop models"
    );
}

#[test]
fn html_instead_of_json() {
    let error = LlmError::ResponseFormat {
        message: "expected value".into(),
        raw: "<!DOCTYPE html>\n<html>".into(),
    };
    assert_eq!(
        text(&error, &custom()),
        "10.0.0.7:8080 sent a web page (HTML) instead of JSON\n  \"<!DOCTYPE html> <html>\"\n  \
         The address is http://10.0.0.7:8080; it came from --base-url.\n  \
         Is it a server of this API? Its addresses usually end in /v1."
    );
    assert_eq!(exit(&error, &custom()), Exit::Failed);
}

#[test]
fn an_empty_body() {
    let error =
        LlmError::ResponseFormat { message: "the body is empty".into(), raw: String::new() };
    assert_eq!(
        text(&error, &openai()),
        "OpenAI sent an empty body\n  The address is https://api.openai.com/v1.\n  \
         Is it a server of this API? Its addresses usually end in /v1."
    );
}

#[test]
fn a_rate_limit_that_did_not_end() {
    let details = ErrorDetails {
        status: Some(429),
        request_id: Some("req_1".into()),
        retry_after: Some(Duration::from_secs(20)),
    };
    let last = http(429, ErrorMessage::with_details("Rate limit reached", details), true);
    let error = LlmError::RetryExhausted { attempts: 5, last_error: Box::new(last) };
    assert_eq!(
        text(&error, &openai()),
        "OpenAI limits the rate (429), tried 5 times\n  \"Rate limit reached\"\n  \
         It asks to wait 20 s.\n  The request's id, for the provider's support: req_1"
    );
    assert_eq!(exit(&error, &openai()), Exit::Temporary);
}

#[test]
fn a_balance_that_is_used_up_is_not_temporary() {
    let error = http(429, "You exceeded your current quota", false);
    assert_eq!(
        text(&error, &openai()),
        "OpenAI gives no more (429)\n  \"You exceeded your current quota\"\n  \
         Look at the plan and the balance, or choose a model: toolloop models"
    );
    assert_eq!(exit(&error, &openai()), Exit::Failed);
}

#[test]
fn a_failing_server_and_a_wrong_path() {
    assert_eq!(
        text(&http(503, "overloaded", true), &openai()),
        "OpenAI failed (503)\n  \"overloaded\"\n  \
         Try again later, or choose another model: toolloop models"
    );
    assert_eq!(
        text(&http(404, "Not Found", false), &custom()),
        "10.0.0.7:8080 does not know the address (404)\n  \"Not Found\"\n  \
         The address is http://10.0.0.7:8080; it came from --base-url.\n  \
         Addresses of this API usually end in /v1."
    );
}

#[test]
fn replies_that_break_off_or_never_come() {
    assert_eq!(
        text(&LlmError::StreamInterrupted { message: "no end".into() }, &openai()),
        "the reply of OpenAI broke off\n  \"no end\"\n  \
         Nothing of the broken reply was run. Try again."
    );
    assert_eq!(
        text(&LlmError::Timeout { elapsed_ms: 60_000 }, &openai()),
        "no answer from OpenAI within 60 s\n  \
         Try again, or choose another model: toolloop models"
    );
    assert_eq!(
        text(&LlmError::EmptyReply, &openai()),
        "OpenAI gave an empty reply after the tool results, twice\n  \
         Try again, or choose another model: toolloop models"
    );
}

#[test]
fn no_key_survives_a_providers_sentence() {
    let target = openai();
    assert_eq!(redact(&format!("key={KEY}!"), &target), "key=sk-…9f3a!");
    assert_eq!(redact("not sk-other0123456789wxyz, sorry", &target), "not sk-…wxyz, sorry");
    assert_eq!(redact("provided: wrong-01****6789.", &target), "provided: …6789.");
    assert_eq!(redact("a **bold** claim", &target), "a **bold** claim");
    assert_eq!(redact("a task-based plan", &target), "a task-based plan");
    assert_eq!(last_four("short"), "…");
}
