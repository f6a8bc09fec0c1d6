//! SAP AI Core: tokens for client credentials, and the invoke endpoints of a deployment.

use serde_json::{Value, json};

use super::{json_answer, render, validate};
use crate::log::Request;
use crate::playback::Answer;
use crate::refusal::Refusal;
use crate::script::Script;

/// The answer to a request for a token or to a deployment.
pub(crate) fn route(script: &mut Script, request: &Request, authorization: Option<&str>) -> Answer {
    let answer = match request.route() {
        "/oauth/token" => token(script, request),
        path => invoke(script, request, path, authorization),
    };
    answer.unwrap_or_else(|Refusal { status, body }| match body {
        // The gateway in front of the API speaks no JSON.
        Value::String(text) => plain(status, text),
        body => json_answer(status, &body),
    })
}

/// Any client gets a token; where a script wants a key, that is the secret.
fn token(script: &Script, request: &Request) -> Result<Answer, Refusal> {
    let form = request.body.as_str().unwrap_or_default();
    let field =
        |name: &str| form.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    let refused = |status, error: &str, description: &str| {
        let body = json!({"error": error, "error_description": description});
        Err(Refusal { status, body })
    };
    if request.method != "POST" {
        return refused(405, "method_not_allowed", "Request method not supported");
    }
    if field("grant_type") != Some("client_credentials") {
        return refused(400, "unsupported_grant_type", "Missing grant type");
    }
    let (id, secret) = (field("client_id"), field("client_secret"));
    let wrong = script.key.as_deref().is_some_and(|key| secret != Some(key));
    if id.is_none_or(str::is_empty) || secret.is_none_or(str::is_empty) || wrong {
        return refused(401, "invalid_client", "Bad credentials");
    }
    let body = json!({
        "access_token": TOKEN, "token_type": "bearer", "expires_in": 43_199, "scope": "fake",
    });
    Ok(json_answer(200, &body))
}

fn invoke(
    script: &mut Script,
    request: &Request,
    path: &str,
    authorization: Option<&str>,
) -> Result<Answer, Refusal> {
    let denied = |text: &str| Err(Refusal { status: 401, body: json!(text) });
    match authorization.map(|value| value.strip_prefix("Bearer ")) {
        Some(Some(TOKEN)) => {}
        None => return denied("Jwt is missing"),
        Some(_) => return denied("Jwt verification fails"),
    }
    let error = |status, message: &str| {
        let error = json!({"code": "00000000", "message": message, "target": path});
        Err(Refusal { status, body: json!({"error": error}) })
    };
    if request.header("ai-resource-group").is_none_or(str::is_empty) {
        return error(400, "Missing header 'AI-Resource-Group'");
    }
    let endpoint = path
        .strip_prefix("/v2/inference/deployments/")
        .and_then(|path| path.split_once('/'))
        .filter(|(deployment, _)| !deployment.is_empty());
    let form = match (request.method.as_str(), endpoint) {
        ("POST", Some((_, "invoke-with-response-stream"))) => render::Form::Stream,
        ("POST", Some((_, "invoke"))) => render::Form::Whole,
        _ => return error(404, "Not Found"),
    };
    let checked = validate::validate_bedrock(&request.body)
        .and_then(|()| validate::only_our_signatures(&request.body));
    if let Err(Refusal { status, body }) = checked {
        return Err(Refusal { status, body: json!({"message": body["error"]["message"]}) });
    }
    Ok(render::answer(request, form, (script.replies)(request)))
}

fn plain(status: u16, text: String) -> Answer {
    Answer::whole(status, "text/plain", text)
}

const TOKEN: &str = "fake-token-0123456789";
