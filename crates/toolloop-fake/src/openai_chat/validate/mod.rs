//! [`validate`]: what the API refuses before any model sees it, in the API's own words.
//!
//! First the form is checked, parameter by parameter; the order of the messages comes last, as
//! in the API. Three refusals are words of other servers of this API, because OpenAI itself is
//! silent there and those are not: arguments that are not JSON, a tool name given twice, an id
//! given twice in one message.

pub(crate) mod form;
mod messages;
mod order;
mod tools;

use serde_json::{Map, Value};

use self::form::{Check, boolean, missing, range, refused, string, wrong_type};
use crate::refusal::Refusal;

/// Whether OpenAI Chat Completions would serve this request body.
///
/// ```
/// use serde_json::json;
/// use toolloop_fake::openai_chat::validate;
///
/// let refusal = validate(&json!({"model": "gpt-4o", "messages": []})).unwrap_err();
/// assert_eq!((refusal.status, &refusal.body["error"]["code"]), (400, &json!("empty_array")));
/// ```
///
/// # Errors
/// The answer of the API to a request that it refuses.
pub fn validate(body: &Value) -> Result<(), Refusal> {
    let Value::Object(body) = body else {
        return Err(Refusal::openai(400, UNREADABLE, None, None));
    };
    match body.get("model") {
        None => return Err(Refusal::openai(400, "you must provide a model parameter", None, None)),
        Some(model) => string(model, "model")?,
    };
    let messages = match given(body, "messages") {
        None => return Err(missing("messages")),
        Some(Value::Array(messages)) => messages,
        Some(other) => return Err(wrong_type("messages", "an array of objects", other)),
    };
    form::not_empty(messages, "messages")?;
    messages::check(messages)?;
    let tools = tools::check(given(body, "tools"))?;
    tools::check_choice(given(body, "tool_choice"), tools.as_ref())?;
    check_parallel(given(body, "parallel_tool_calls"), tools.is_some())?;
    check_numbers(body)?;
    check_stream(body)?;
    order::check(messages)
}

fn check_parallel(parallel: Option<&Value>, has_tools: bool) -> Check {
    let Some(parallel) = parallel else { return Ok(()) };
    boolean(parallel, "parallel_tool_calls")?;
    if has_tools { Ok(()) } else { Err(form::needs_tools("parallel_tool_calls")) }
}

fn check_numbers(body: &Map<String, Value>) -> Check {
    for (name, least, most) in [("temperature", 0.0, 2.0), ("top_p", 0.0, 1.0)] {
        if let Some(value) = given(body, name) {
            let Some(number) = value.as_f64() else {
                return Err(wrong_type(name, "a decimal", value));
            };
            range(name, "decimal", value, number, least, most)?;
        }
    }
    for name in ["max_tokens", "max_completion_tokens", "n"] {
        if let Some(value) = given(body, name) {
            let Some(number) = value.as_i64() else {
                return Err(wrong_type(name, "an integer", value));
            };
            range(name, "integer", value, number as f64, 1.0, f64::INFINITY)?;
        }
    }
    Ok(())
}

fn check_stream(body: &Map<String, Value>) -> Check {
    if let Some(stream) = given(body, "stream") {
        boolean(stream, "stream")?;
    }
    let Some(options) = given(body, "stream_options") else { return Ok(()) };
    if !options.is_object() {
        return Err(wrong_type("stream_options", "an object", options));
    }
    if body.get("stream") == Some(&Value::Bool(true)) {
        return Ok(());
    }
    let message = "The 'stream_options' parameter is only allowed when 'stream' is enabled.";
    Err(refused(message, "stream_options", None))
}

/// A parameter, unless it is absent or null.
fn given<'a>(body: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    body.get(name).filter(|value| !value.is_null())
}

const UNREADABLE: &str = "We could not parse the JSON body of your request. (HINT: This likely \
    means you aren't using your HTTP library correctly. The OpenAI API expects a JSON payload, \
    but what was sent was not valid JSON. If you have trouble figuring out how to fix this, \
    please contact us through our help center at help.openai.com.)";

#[cfg(test)]
mod tests;
