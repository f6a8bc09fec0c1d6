//! OpenAI Chat Completions: who may ask (`authorize.rs`), what may be asked ([`validate`]), and
//! the form of what is answered (`render.rs`).

mod authorize;
mod render;
mod validate;

use serde_json::json;

pub(crate) use authorize::authorize;
pub(crate) use render::answer;
pub use validate::validate;

use crate::playback::Answer;
use crate::refusal::Refusal;

/// Refuses a model that is not among the known ones; any is known where none is named.
pub(crate) fn check_model(known: &[String], name: &str) -> Result<(), Refusal> {
    if known.is_empty() || known.iter().any(|known| known == name) {
        return Ok(());
    }
    let message = format!("The model `{name}` does not exist or you do not have access to it.");
    Err(Refusal::openai(404, message, None, Some("model_not_found")))
}

/// The list of models.
pub(crate) fn models(known: &[String]) -> Answer {
    let data: Vec<_> = known
        .iter()
        .map(|id| json!({"id": id, "object": "model", "created": CREATED, "owned_by": "fake"}))
        .collect();
    json_answer(200, &json!({"object": "list", "data": data}))
}

pub(crate) fn refuse(refusal: &Refusal) -> Answer {
    json_answer(refusal.status, &refusal.body)
}

/// A path that the API does not have.
pub(crate) fn unknown_path(method: &str, path: &str) -> Refusal {
    Refusal::openai(404, format!("Invalid URL ({method} {path})"), None, None)
}

/// A path that the API has, asked in the wrong way.
pub(crate) fn wrong_method(method: &str, path: &str) -> Refusal {
    let message = format!(
        "Not allowed to {method} on {path}. (HINT: Perhaps you meant to use a different HTTP method?)"
    );
    Refusal::openai(405, message, None, Some("method_not_supported"))
}

fn json_answer(status: u16, body: &serde_json::Value) -> Answer {
    Answer {
        status,
        headers: vec![("content-type".to_owned(), "application/json".to_owned())],
        streamed: false,
        events: vec![format!("{body:#}").into_bytes()],
        filler: render::json_filler(),
        faults: Vec::new(),
    }
}

/// The time of every reply: what a fake says must not depend on the clock.
const CREATED: u64 = 1_700_000_000;
