//! [`validate`]: what the API refuses before any model sees it, in the API's own words.
//!
//! First the form is checked, field by field, as the parser of the protocol does; then what the
//! fields say, with all faults in one answer; the order of the turns comes last. Where the API's
//! own sentence is not known, the fake says what is wrong in its style: a choice of functions
//! that were not declared, and values out of their range.

mod form;
mod tools;
mod turns;

use serde_json::Value;

use self::form::{field, list};
use super::{refusal, wants_signatures};
use crate::refusal::Refusal;

/// Whether the Gemini API would serve this body of a request for `generateContent` or
/// `streamGenerateContent`; the model is named in the path.
///
/// ```
/// use serde_json::json;
/// use toolloop_fake::gemini::validate;
///
/// let refusal = validate("gemini-2.5-flash", &json!({})).unwrap_err();
/// let message = "* GenerateContentRequest.contents: contents is not specified\n";
/// assert_eq!((refusal.status, &refusal.body["error"]["message"]), (400, &json!(message)));
/// ```
///
/// # Errors
/// The answer of the API to a request that it refuses.
pub fn validate(model: &str, body: &Value) -> Result<(), Refusal> {
    if !body.is_object() {
        return Err(refusal(400, "Invalid JSON payload received. Unexpected token."));
    }
    form::check(body)?;
    let mut faults = Vec::new();
    turns::check_parts(body, &mut faults);
    tools::check(body, &mut faults);
    check_generation(body, &mut faults);
    if !faults.is_empty() {
        let lines = faults.into_iter().map(|fault| format!("* GenerateContentRequest.{fault}\n"));
        return Err(refusal(400, lines.collect::<String>()));
    }
    check_answer_form(model, body)?;
    tools::check_names(body)?;
    tools::check_choice(body)?;
    turns::check_order(body)?;
    if wants_signatures(model) { turns::check_signatures(body) } else { Ok(()) }
}

fn check_generation(body: &Value, faults: &mut Vec<String>) {
    let config = field(body, "generation_config");
    let number = |name: &str| field(config, name).as_f64();
    if number("temperature").is_some_and(|value| !(0.0..=2.0).contains(&value)) {
        faults.push(
            "generation_config.temperature: temperature must be in the range [0.0, 2.0].".into(),
        );
    }
    if number("max_output_tokens").is_some_and(|value| value < 1.0) {
        let text = "generation_config.max_output_tokens: max_output_tokens must be positive.";
        faults.push(text.into());
    }
    let schema = field(config, "response_schema");
    if !schema.is_null() {
        tools::check_schema(schema, "generation_config.response_schema", faults);
        if field(config, "response_mime_type") != "application/json" {
            let text = "generation_config.response_schema: only allowed for JSON responses";
            faults.push(text.into());
        }
    }
}

/// Models before Gemini 3 call functions or answer in JSON.
fn check_answer_form(model: &str, body: &Value) -> Result<(), Refusal> {
    let is_json =
        field(field(body, "generation_config"), "response_mime_type") == "application/json";
    if is_json && !wants_signatures(model) && tools::declarations(body).next().is_some() {
        let text = "Function calling with a response mime type: 'application/json' is unsupported";
        return Err(refusal(400, text));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
