//! The Anthropic Messages API, at Anthropic and behind SAP AI Core: who may ask, what may be asked
//! ([`validate`]), and the form of what is answered (`render.rs`).

mod aicore;
mod render;
mod validate;

use serde_json::{Value, json};

pub(crate) use aicore::route as route_aicore;
pub use validate::validate;

use crate::log::Request;
use crate::playback::Answer;
use crate::refusal::Refusal;
use crate::script::Script;

/// Whether a request is one of this API; `GET /v1/models` is one of OpenAI's as well.
pub(crate) fn is_meant(request: &Request) -> bool {
    request.route().starts_with("/v1/messages")
        || request.route().starts_with("/v1/models")
            && request.header("anthropic-version").is_some()
}

/// The answer to a request of this API. `key` is what came in `x-api-key`.
pub(crate) fn route(script: &mut Script, request: &Request, key: Option<&str>) -> Answer {
    let mut answer = serve(script, request, key).unwrap_or_else(|refusal| {
        let mut body = refusal.body;
        body["request_id"] = json!(request_id(request));
        json_answer(refusal.status, &body)
    });
    answer.headers.push(("request-id".to_owned(), request_id(request)));
    answer
}

fn serve(script: &mut Script, request: &Request, key: Option<&str>) -> Result<Answer, Refusal> {
    match (request.method.as_str(), request.route()) {
        ("POST", "/v1/messages") | ("GET", "/v1/models") => {}
        (_, "/v1/messages" | "/v1/models") => {
            return Err(refusal(405, "invalid_request_error", "Method Not Allowed"));
        }
        _ => return Err(refusal(404, "not_found_error", "Not Found")),
    }
    if let Some(wanted) = &script.key {
        match key {
            Some(key) if key == wanted => {}
            None | Some("") => {
                return Err(refusal(401, "authentication_error", "x-api-key header is required"));
            }
            Some(_) => return Err(refusal(401, "authentication_error", "API key is invalid.")),
        }
    }
    if request.header("anthropic-version").is_none() {
        let message = "anthropic-version: header is required";
        return Err(refusal(400, "invalid_request_error", message));
    }
    if request.method == "GET" {
        return Ok(models(&script.models));
    }
    validate(&request.body)?;
    let betas = request.header("anthropic-beta").unwrap_or_default();
    if request.body.get("context_management").is_some() && betas.is_empty() {
        let message = "context_management: Extra inputs are not permitted";
        return Err(refusal(400, "invalid_request_error", message));
    }
    validate::only_our_signatures(&request.body)?;
    let model = request.body["model"].as_str().unwrap_or_default();
    if !script.models.is_empty() && !script.models.iter().any(|known| known == model) {
        return Err(refusal(404, "not_found_error", format!("model: {model}")));
    }
    let form = match request.body["stream"].as_bool() {
        Some(true) => render::Form::Stream,
        _ => render::Form::Whole,
    };
    Ok(render::answer(request, form, (script.replies)(request)))
}

/// A refusal in the form of this API.
fn refusal(status: u16, kind: &str, message: impl Into<String>) -> Refusal {
    let error = json!({"type": kind, "message": message.into()});
    Refusal { status, body: json!({"type": "error", "error": error}) }
}

fn models(known: &[String]) -> Answer {
    let data: Vec<_> = known
        .iter()
        .map(|id| json!({"type": "model", "id": id, "display_name": id, "created_at": CREATED}))
        .collect();
    let (first, last) = (known.first(), known.last());
    json_answer(200, &json!({"data": data, "has_more": false, "first_id": first, "last_id": last}))
}

fn json_answer(status: u16, body: &Value) -> Answer {
    Answer::whole(status, "application/json", body.to_string())
}

fn request_id(request: &Request) -> String {
    format!("req_fake_{}", request.number)
}

/// The signature of a thought: the fake knows its own again, and which thought it vouches for.
fn signature(thought: &str) -> String {
    let hash = thought.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{SIGNATURE}{hash:016x}")
}

/// What every signature of the fake begins with.
const SIGNATURE: &str = "ZmFrZS1zaWduYXR1cmU";

/// The time of every model: what a fake says must not depend on the clock.
const CREATED: &str = "2023-11-14T22:13:20Z";
