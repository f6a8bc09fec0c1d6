//! [`validate`]: what the API refuses before any model sees it, in the API's own words.
//!
//! First the form is checked, parameter by parameter; the order of the items comes last, as in
//! the API. What the API knows of items it made itself, this knows of those that this server
//! made, because their ids tell.

mod items;
mod order;
mod params;
mod tools;

use serde_json::{Map, Value};

use crate::openai_chat::validate::form::{Check, missing, refused, string, wrong_type};
use crate::refusal::Refusal;

/// Whether the OpenAI Responses API would serve this request body.
///
/// ```
/// use serde_json::json;
/// use toolloop_fake::openai_responses::validate;
///
/// let output = json!({"type": "function_call_output", "call_id": "c", "output": "x"});
/// let refusal = validate(&json!({"model": "gpt-5", "input": [output]})).unwrap_err();
/// assert_eq!(
///     refusal.body["error"]["message"],
///     "No tool call found for function call output with call_id c."
/// );
/// ```
///
/// # Errors
/// The answer of the API to a request that it refuses.
pub fn validate(body: &Value) -> Result<(), Refusal> {
    let Value::Object(body) = body else {
        return Err(Refusal::openai(400, UNREADABLE, None, None));
    };
    params::check_names(body)?;
    let model = string(given(body, "model").ok_or_else(|| missing("model"))?, "model")?;
    let continues = ["previous_response_id", "conversation", "prompt"];
    let continues = continues.iter().any(|name| given(body, name).is_some());
    let input = match given(body, "input") {
        None if continues => &[],
        None => return Err(missing("input")),
        Some(Value::String(_)) => &[],
        Some(Value::Array(items)) => items.as_slice(),
        Some(other) => {
            return Err(wrong_type("input", "one of a string or array of objects", other));
        }
    };
    items::check(input)?;
    let tools = tools::check(given(body, "tools"))?;
    tools::check_choice(given(body, "tool_choice"), &tools)?;
    params::check(body, model)?;
    order::check(input, body.get("store") != Some(&Value::Bool(false)), continues)
}

/// Whether all encrypted reasoning is such as this server has sealed: no other can read it.
pub(crate) fn only_our_seals(body: &Value, seal: &str) -> Result<(), Refusal> {
    let items = body["input"].as_array().map_or(&[][..], Vec::as_slice);
    let ours = format!("gAAAA_{seal}_");
    let mut sealed = items.iter().filter_map(|item| item["encrypted_content"].as_str());
    match sealed.find(|sealed| !sealed.starts_with(&ours)) {
        Some(foreign) => {
            let message = format!("The encrypted content {foreign} could not be verified.");
            Err(Refusal::openai(400, message, None, Some("invalid_encrypted_content")))
        }
        None => Ok(()),
    }
}

/// A parameter, unless it is absent or null.
fn given<'a>(body: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    body.get(name).filter(|value| !value.is_null())
}

/// A refusal of the conversation as a whole.
fn refused_input(message: String) -> Check {
    Err(refused(message, "input", None))
}

const UNREADABLE: &str = "We could not parse the JSON body of your request. (HINT: This likely \
    means you aren't using your HTTP library correctly. The OpenAI API expects a JSON payload, \
    but what was sent was not valid JSON. If you have trouble figuring out how to fix this, \
    please contact us through our help center at help.openai.com.)";

#[cfg(test)]
mod tests;
