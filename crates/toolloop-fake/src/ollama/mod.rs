//! Ollama's own API: what may be asked ([`validate`]), and the form of what is answered
//! (`render.rs`).

mod render;
mod validate;

use serde_json::{Value, json};

pub use validate::validate;

use crate::log::Request;
use crate::playback::Answer;
use crate::refusal::Refusal;
use crate::script::Script;

/// The answer to a request below `/api/`.
pub(crate) fn route(script: &mut Script, request: &Request, authorization: Option<&str>) -> Answer {
    serve(script, request, authorization)
        .unwrap_or_else(|refusal| json_answer(refusal.status, &refusal.body))
}

fn serve(
    script: &mut Script,
    request: &Request,
    authorization: Option<&str>,
) -> Result<Answer, Refusal> {
    match (request.method.as_str(), request.route()) {
        ("POST", "/api/chat") | ("GET", "/api/tags") => {}
        (_, "/api/chat" | "/api/tags") => return Err(refusal(405, "405 method not allowed")),
        _ => return Err(refusal(404, "404 page not found")),
    }
    let given = authorization.and_then(|value| value.strip_prefix("Bearer "));
    if script.key.as_deref().is_some_and(|key| given != Some(key)) {
        return Err(refusal(401, "unauthorized"));
    }
    if request.method == "GET" {
        return Ok(models(&script.models));
    }
    validate(&request.body)?;
    let model = request.body["model"].as_str().unwrap_or_default();
    if !script.models.is_empty() && !script.models.iter().any(|known| known == model) {
        return Err(refusal(404, format!("model '{model}' not found")));
    }
    Ok(render::answer(request, (script.replies)(request)))
}

fn refusal(status: u16, message: impl Into<String>) -> Refusal {
    Refusal { status, body: json!({"error": message.into()}) }
}

fn models(known: &[String]) -> Answer {
    let models: Vec<_> = known
        .iter()
        .map(|name| {
            json!({
                "name": name, "model": name, "modified_at": CREATED, "size": 0, "digest": "fake",
                "details": {"format": "gguf", "family": "fake"},
            })
        })
        .collect();
    json_answer(200, &json!({ "models": models }))
}

fn json_answer(status: u16, body: &Value) -> Answer {
    Answer::whole(status, "application/json; charset=utf-8", body.to_string())
}

/// The time of every reply: what a fake says must not depend on the clock.
const CREATED: &str = "2023-11-14T22:13:20Z";
