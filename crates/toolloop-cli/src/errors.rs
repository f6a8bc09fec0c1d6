//! [`explain`]: an error of a model call as a [`Report`]: what, whose setting, what to do.

use std::time::Duration;

use secrecy::ExposeSecret;
use toolloop_core::LlmError;

use crate::exit::Exit;
use crate::model::{Target, is_loopback};
use crate::nearest::nearest;
use crate::origin::Origin;
use crate::providers::PROVIDERS;
use crate::report::Report;
use crate::settings::Environment;
use crate::units::pause;

/// What `error`, met while asking `target`, means and what can be done about it.
pub(crate) fn explain(error: &LlmError, target: &Target, environment: &Environment<'_>) -> Report {
    let (attempts, cause) = match error {
        LlmError::RetryExhausted { attempts, last_error } => (*attempts, last_error.as_ref()),
        other => (1, other),
    };
    let mut report = case(cause, target, environment);
    if attempts > 1 {
        report.what += &format!(", tried {attempts} times");
    }
    report.status = error.status();
    report.request_id = error.request_id().map(str::to_owned);
    if let Some(id) = &report.request_id {
        report.advice.push(format!("The request's id, for the provider's support: {id}"));
    }
    report
}

/// Adds the names nearest to a model that the server does not have.
pub(crate) fn suggest_models(report: Report, wanted: &str, models: &[String]) -> Report {
    let near = nearest(wanted, models.iter().map(String::as_str), 3);
    match (near.as_slice(), models) {
        ([], []) => report,
        // So few that all of them are near.
        ([], models) if models.len() <= 3 => {
            report.advice(format!("It has: {}", models.join(", ")))
        }
        ([], _) => report,
        (near, _) => report.advice(format!("Nearest: {}", near.join(", "))),
    }
}

/// Whether the server says that it does not have the model.
pub(crate) fn is_unknown_model(error: &LlmError) -> bool {
    let text = error.to_string().to_lowercase();
    // Anthropic says nothing but `model: NAME`.
    let names_it = sentence_of(error).starts_with("model: ") && error.status() == Some(404);
    let says_so = text.contains("model")
        && ["not found", "not_found", "does not exist", "unknown", "not exist", "no such"]
            .iter()
            .any(|phrase| text.contains(phrase));
    match error {
        LlmError::Http { .. } | LlmError::InvalidRequest(_) | LlmError::Provider { .. } => {
            names_it || says_so && matches!(error.status(), None | Some(400 | 404))
        }
        _ => false,
    }
}

fn case(error: &LlmError, target: &Target, environment: &Environment<'_>) -> Report {
    let label = target.label();
    match error {
        LlmError::Auth(sentence) => {
            refused_key(error.status().unwrap_or(401), sentence, target, environment)
        }
        // Some refuse a key as they refuse a request.
        LlmError::InvalidRequest(sentence) if names_the_key(sentence) => {
            refused_key(error.status().unwrap_or(400), sentence, target, environment)
        }
        _ if is_unknown_model(error) => {
            Report::new(Exit::NoModel, "model", format!("{label} has no model {}", target.model))
                .quote(redact(&sentence_of(error), target))
                .advice(format!("All there are: {}", how_to_list(target)))
        }
        LlmError::Http { status: None, message, .. } => unreachable(message, target),
        LlmError::Http { status: Some(status), message, .. } => {
            let status = status.as_u16();
            answered(status, message, error, target)
        }
        LlmError::InvalidRequest(message) => {
            answered(error.status().unwrap_or(400), message, error, target)
        }
        LlmError::Provider { code, message, retryable } => {
            let exit = if *retryable { Exit::Temporary } else { Exit::Failed };
            Report::new(exit, "server", format!("{label} failed ({code})"))
                .quote(redact(message, target))
        }
        LlmError::ResponseFormat { message, raw } => unreadable(message, raw, target),
        LlmError::Timeout { elapsed_ms } => Report::new(
            Exit::Temporary,
            "timeout",
            format!("no answer from {label} within {}", pause(Duration::from_millis(*elapsed_ms))),
        )
        .advice("Try again, or choose another model: toolloop models"),
        LlmError::StreamInterrupted { message } => {
            Report::new(Exit::Temporary, "interrupted", format!("the reply of {label} broke off"))
                .quote(redact(message, target))
                .advice("Nothing of the broken reply was run. Try again.")
        }
        LlmError::EmptyReply => Report::new(
            Exit::Temporary,
            "empty_reply",
            format!("{label} gave an empty reply after the tool results, twice"),
        )
        .advice("Try again, or choose another model: toolloop models"),
        other => Report::new(Exit::Failed, "other", redact(&other.to_string(), target)),
    }
}

/// The command that lists the models of the server that was asked.
fn how_to_list(target: &Target) -> String {
    let url = &target.base_url;
    match &url.origin {
        Origin::Flag(flag) => format!("toolloop models {flag} {}", url.value),
        _ => "toolloop models".to_owned(),
    }
}

fn names_the_key(sentence: &str) -> bool {
    let sentence = sentence.to_lowercase();
    sentence.contains("api key")
        && ["incorrect", "invalid", "not valid"].iter().any(|word| sentence.contains(word))
}

fn refused_key(
    status: u16,
    sentence: &str,
    target: &Target,
    environment: &Environment<'_>,
) -> Report {
    let label = target.label();
    let Some(key) = &target.key else {
        let report = Report::new(Exit::NoModel, "auth", format!("{label} wants a key ({status})"))
            .quote(sentence.to_owned());
        return match target.provider.key_variable() {
            Some(variable) => report.advice(format!("Set one: export {variable}=…")),
            None => report,
        };
    };
    let end = last_four(key.value.expose_secret());
    let verb = if matches!(key.origin, Origin::Variable(_)) { "Set" } else { "Put in" };
    let quote = redact(sentence, target);
    let key_name =
        if quote.contains(&end) { "The key".to_owned() } else { format!("The key {end}") };
    let report = Report::new(Exit::NoModel, "auth", format!("{label} refused the key ({status})"))
        .quote(quote)
        .advice(format!("{key_name} came from {}.", key.origin));
    let other = PROVIDERS.iter().find_map(|other| {
        let mut variables = other.key_variables.iter();
        let variable = variables.find(|variable| environment.get(variable).is_some())?;
        let is_same = target.provider.key_variables.contains(variable);
        (!is_same).then_some((other.name, variable))
    });
    match other {
        Some((name, variable)) => report.advice(format!(
            "{verb} another one, or: toolloop run --model {name}/…   ({variable} is set)"
        )),
        None => {
            report.advice(format!("{verb} another one, or choose another model: toolloop models"))
        }
    }
}

/// No server answered; the transport's sentence says how.
fn unreachable(sentence: &str, target: &Target) -> Report {
    let url = &target.base_url;
    let report = Report::new(Exit::Temporary, "network", redact(sentence, target));
    let report = match url.origin {
        Origin::Default => report,
        _ => report.advice(format!("The address came from {}.", url.origin)),
    };
    report.advice(match (target.provider.name, is_loopback(&url.value)) {
        ("ollama", _) => "Start the server (ollama serve), or choose a model: toolloop models",
        (_, true) => "Start the server, or choose a model: toolloop models",
        _ => "Check the address and the network, or choose a model: toolloop models",
    })
}

/// The server answered, with this status.
fn answered(status: u16, sentence: &str, error: &LlmError, target: &Target) -> Report {
    let label = target.label();
    let retryable = error.is_retryable();
    let in_v1 = target.provider.ends_in_v1();
    let report = match status {
        429 if retryable => {
            let report = Report::new(
                Exit::Temporary,
                "rate_limit",
                format!("{label} limits the rate (429)"),
            );
            match error.retry_after() {
                Some(delay) => report.advice(format!("It asks to wait {}.", pause(delay))),
                None => report.advice("Wait a little and try again."),
            }
        }
        429 => Report::new(Exit::Failed, "quota", format!("{label} gives no more (429)"))
            .advice("Look at the plan and the balance, or choose a model: toolloop models"),
        404 | 405 => Report::new(
            Exit::Failed,
            "address",
            format!("{label} does not know the address ({status})"),
        )
        .advice(address(target))
        .maybe_advice(in_v1.then_some("Addresses of this API usually end in /v1.")),
        500.. => Report::new(Exit::Temporary, "server", format!("{label} failed ({status})"))
            .advice("Try again later, or choose another model: toolloop models"),
        _ => Report::new(
            if retryable { Exit::Temporary } else { Exit::Failed },
            "request",
            format!("{label} refused the request ({status})"),
        ),
    };
    report.quote(redact(sentence, target))
}

fn unreadable(message: &str, raw: &str, target: &Target) -> Report {
    let label = target.label();
    let what = match raw.trim_start() {
        "" if message.contains("empty") => "an empty body".to_owned(),
        page if page.starts_with('<') => "a web page (HTML) instead of JSON".to_owned(),
        _ => format!("what cannot be read: {}", redact(message, target)),
    };
    let quote: String = raw.split_whitespace().collect::<Vec<_>>().join(" ");
    let quote: String = quote.chars().take(80).collect();
    Report::new(Exit::Failed, "format", format!("{label} sent {what}"))
        .quote(redact(&quote, target))
        .advice(address(target))
        .advice(match target.provider.ends_in_v1() {
            true => "Is it a server of this API? Its addresses usually end in /v1.",
            false => "Is it a server of this API?",
        })
}

fn address(target: &Target) -> String {
    let url = &target.base_url;
    match url.origin {
        Origin::Default => format!("The address is {}.", url.value),
        _ => format!("The address is {}; it came from {}.", url.value, url.origin),
    }
}

/// The provider's sentence without what our own `Display` puts before it.
fn sentence_of(error: &LlmError) -> String {
    match error {
        LlmError::Http { message, .. }
        | LlmError::InvalidRequest(message)
        | LlmError::Provider { message, .. } => message.to_string(),
        other => other.to_string(),
    }
}

/// `text` without the key, and without what looks like one: providers quote keys back.
pub(crate) fn redact(text: &str, target: &Target) -> String {
    let text = match &target.key {
        Some(key) if !key.value.expose_secret().is_empty() => {
            let key = key.value.expose_secret();
            text.replace(key, &last_four(key))
        }
        _ => text.to_owned(),
    };
    text.split(' ').map(redact_word).collect::<Vec<_>>().join(" ")
}

fn redact_word(word: &str) -> String {
    if word.contains("***") {
        // A key that its provider has masked, but less than we do.
        let key = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        return word.replace(key, &last_four(key));
    }
    let Some(start) = word.find("sk-") else { return word.to_owned() };
    let body = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '*');
    let key = &word[start..];
    let end = key.find(|c| !body(c)).unwrap_or(key.len());
    if end < 12 {
        return word.to_owned();
    }
    format!("{}{}{}", &word[..start], last_four(&key[..end]), &key[end..])
}

/// The end of a key, enough to tell which one it is; nothing of one that is short.
fn last_four(key: &str) -> String {
    let prefix = if key.starts_with("sk-") { "sk-" } else { "" };
    let count = key.chars().count();
    match count {
        0..12 => format!("{prefix}…"),
        _ => format!("{prefix}…{}", key.chars().skip(count - 4).collect::<String>()),
    }
}

#[cfg(test)]
#[path = "errors_tests.rs"]
mod tests;
