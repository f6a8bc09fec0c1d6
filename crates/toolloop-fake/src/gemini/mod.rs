//! The Gemini API: who may ask, what may be asked ([`validate`]), and the form of what is
//! answered (`render.rs`).

mod render;
mod validate;

use serde_json::{Value, json};

pub use validate::validate;

use crate::log::Request;
use crate::playback::Answer;
use crate::refusal::Refusal;
use crate::script::Script;

/// The answer to a request below `/v1beta/`. `key` is what came in `x-goog-api-key`.
pub(crate) fn route(script: &mut Script, request: &Request, key: Option<&str>) -> Answer {
    serve(script, request, key).unwrap_or_else(|refusal| json_answer(refusal.status, &refusal.body))
}

fn serve(script: &mut Script, request: &Request, key: Option<&str>) -> Result<Answer, Refusal> {
    let path = request.route().strip_prefix("/v1beta/").unwrap_or_default();
    if let Some(wanted) = &script.key {
        authorize(wanted, key)?;
    }
    if path == "models" && request.method == "GET" {
        return Ok(models(&script.models));
    }
    let asked = path.strip_prefix("models/").and_then(|path| path.split_once(':'));
    let (model, streamed) = match asked {
        Some((model, "streamGenerateContent")) if request.method == "POST" => (model, true),
        Some((model, "generateContent")) if request.method == "POST" => (model, false),
        _ => return Err(refusal(404, format!("Requested entity was not found: {path}"))),
    };
    if !script.models.is_empty() && !script.models.iter().any(|known| known == model) {
        let message = format!(
            "models/{model} is not found for API version v1beta, or is not supported for \
             generateContent. Call ModelService.ListModels to see the list of available models \
             and their supported methods."
        );
        return Err(refusal(404, message));
    }
    validate(model, &request.body)?;
    // Without it the API sends a list of JSON objects, which no client wants.
    let form = match streamed {
        true if !request.path.contains("alt=sse") => {
            return Err(refusal(400, "this fake streams with alt=sse only"));
        }
        true => render::Form::Stream,
        false => render::Form::Whole,
    };
    Ok(render::answer(request, model, form, (script.replies)(request)))
}

fn authorize(wanted: &str, key: Option<&str>) -> Result<(), Refusal> {
    match key {
        Some(key) if key == wanted => Ok(()),
        None | Some("") => Err(refusal(403, NO_KEY)),
        Some(_) => {
            let mut refusal = refusal(400, WRONG_KEY);
            refusal.body["error"]["details"] = json!([
                {
                    "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                    "reason": "API_KEY_INVALID",
                    "domain": "googleapis.com",
                    "metadata": {"service": "generativelanguage.googleapis.com"},
                },
                {
                    "@type": "type.googleapis.com/google.rpc.LocalizedMessage",
                    "locale": "en-US",
                    "message": WRONG_KEY,
                },
            ]);
            Err(refusal)
        }
    }
}

fn refusal(status: u16, message: impl Into<String>) -> Refusal {
    let error = json!({"code": status, "message": message.into(), "status": status_word(status)});
    Refusal { status, body: json!({ "error": error }) }
}

fn status_word(status: u16) -> &'static str {
    match status {
        400 => "INVALID_ARGUMENT",
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        500 => "INTERNAL",
        503 => "UNAVAILABLE",
        504 => "DEADLINE_EXCEEDED",
        _ => "UNKNOWN",
    }
}

fn models(known: &[String]) -> Answer {
    let models: Vec<_> = known
        .iter()
        .map(|name| {
            json!({
                "name": format!("models/{name}"), "version": "001", "displayName": name,
                "inputTokenLimit": 1_048_576, "outputTokenLimit": 65_536,
                "supportedGenerationMethods": ["generateContent", "countTokens"],
            })
        })
        .collect();
    json_answer(200, &json!({ "models": models }))
}

fn json_answer(status: u16, body: &Value) -> Answer {
    Answer::whole(status, "application/json; charset=UTF-8", format!("{body:#}\n"))
}

/// Whether the model refuses calls without the signatures of its thoughts.
fn wants_signatures(model: &str) -> bool {
    let version = model.strip_prefix("gemini-").and_then(|rest| rest.split(['.', '-']).next());
    version.is_some_and(|version| version.parse().is_ok_and(|version: u32| version >= 3))
}

const WRONG_KEY: &str = "API key not valid. Please pass a valid API key.";
const NO_KEY: &str = "Method doesn't allow unregistered callers (callers without established \
    identity). Please use API Key or other form of API consumer identity to call this API.";
