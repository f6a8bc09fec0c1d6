//! OpenAI Chat Completions, and the way to its other API: who may ask (`authorize.rs`), what may be asked ([`validate`]), and
//! the form of what is answered (`render.rs`).

mod authorize;
mod render;
pub(crate) mod validate;

use serde_json::json;

pub use validate::validate;

use authorize::authorize;
use render::answer;
pub(crate) use render::error_body;

use crate::log::Request;
use crate::openai_responses;
use crate::playback::Answer;
use crate::refusal::Refusal;
use crate::script::Script;

/// The answer to a request, whatever its path.
pub(crate) fn route(script: &mut Script, request: &Request, authorization: Option<&str>) -> Answer {
    serve(script, request, authorization)
        .unwrap_or_else(|refusal| json_answer(refusal.status, &refusal.body))
}

fn serve(
    script: &mut Script,
    request: &Request,
    authorization: Option<&str>,
) -> Result<Answer, Refusal> {
    let (method, path) = (request.method.as_str(), request.route());
    match (method, path) {
        ("POST", "/v1/chat/completions" | "/v1/responses") | ("GET", "/v1/models") => {}
        (_, "/v1/chat/completions" | "/v1/responses" | "/v1/models") => {
            return Err(wrong_method(method, path));
        }
        _ => return Err(unknown_path(method, path)),
    }
    if let Some(key) = &script.key {
        authorize(key, authorization)?;
    }
    if method == "GET" {
        return Ok(models(&script.models));
    }
    let model = request.body["model"].as_str().unwrap_or_default();
    if path == "/v1/responses" {
        openai_responses::validate(&request.body)?;
        openai_responses::only_our_seals(&request.body, &script.seal)?;
        check_model(&script.models, model)?;
        let reply = (script.replies)(request);
        return Ok(openai_responses::answer(request, &script.seal, reply));
    }
    validate(&request.body)?;
    check_model(&script.models, model)?;
    Ok(answer(request, (script.replies)(request)))
}

/// Refuses a model that is not among the known ones; any is known where none is named.
fn check_model(known: &[String], name: &str) -> Result<(), Refusal> {
    if known.is_empty() || known.iter().any(|known| known == name) {
        return Ok(());
    }
    let message = format!("The model `{name}` does not exist or you do not have access to it.");
    Err(Refusal::openai(404, message, None, Some("model_not_found")))
}

/// The list of models.
fn models(known: &[String]) -> Answer {
    let data: Vec<_> = known
        .iter()
        .map(|id| json!({"id": id, "object": "model", "created": CREATED, "owned_by": "fake"}))
        .collect();
    json_answer(200, &json!({"object": "list", "data": data}))
}

/// A path that the API does not have.
fn unknown_path(method: &str, path: &str) -> Refusal {
    Refusal::openai(404, format!("Invalid URL ({method} {path})"), None, None)
}

/// A path that the API has, asked in the wrong way.
fn wrong_method(method: &str, path: &str) -> Refusal {
    let message = format!(
        "Not allowed to {method} on {path}. (HINT: Perhaps you meant to use a different HTTP method?)"
    );
    Refusal::openai(405, message, None, Some("method_not_supported"))
}

pub(crate) fn json_answer(status: u16, body: &serde_json::Value) -> Answer {
    Answer::whole(status, "application/json", format!("{body:#}"))
}

/// The time of every reply: what a fake says must not depend on the clock.
pub(crate) const CREATED: u64 = 1_700_000_000;
