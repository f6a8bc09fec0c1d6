//! The messages of the API and their fields. Names are those of the protocol; a request may also
//! write them in camelCase.

use serde_json::{Value, json};

use super::super::refusal;
use crate::refusal::Refusal;

/// What a field holds.
#[derive(Clone, Copy)]
enum Kind {
    Text,
    Bytes,
    Flag,
    Number,
    /// One of these words, in any case.
    Word(&'static str, &'static [&'static str]),
    /// Any JSON; what it means, nobody checks here.
    Data,
    /// Any JSON object.
    Struct,
    Texts,
    Message(Fields),
    Messages(Fields),
    /// Messages by name.
    Map(Fields),
}

/// The fields of a message, called so that messages can contain themselves.
type Fields = fn() -> &'static [(&'static str, Kind)];

/// Refuses what is no request of the API; says all that is wrong, as the API does.
pub(super) fn check(body: &Value) -> Result<(), Refusal> {
    let mut violations = Vec::new();
    check_message(body, "", request, &mut violations);
    if violations.is_empty() {
        return Ok(());
    }
    let messages: Vec<_> = violations.iter().map(|(_, message)| message.as_str()).collect();
    let mut refusal = refusal(400, messages.join("\n"));
    let fields: Vec<_> = violations
        .iter()
        .map(|(field, message)| json!({"field": field, "description": message}))
        .collect();
    refusal.body["error"]["details"] = json!([
        {"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": fields},
    ]);
    Err(refusal)
}

/// A field of a message, written in either way.
pub(super) fn field<'a>(message: &'a Value, name: &str) -> &'a Value {
    const NOTHING: &Value = &Value::Null;
    let Value::Object(members) = message else { return NOTHING };
    let found = members.iter().find(|(key, _)| snake_case(key) == name);
    found.map_or(NOTHING, |(_, value)| value)
}

/// The elements of a repeated field; one alone counts as a list of it.
pub(super) fn list<'a>(message: &'a Value, name: &str) -> &'a [Value] {
    match field(message, name) {
        Value::Null => &[],
        Value::Array(list) => list,
        one => std::slice::from_ref(one),
    }
}

fn check_message(
    value: &Value,
    path: &str,
    fields: Fields,
    violations: &mut Vec<(String, String)>,
) {
    let Value::Object(members) = value else {
        violations.push(invalid(path, "MESSAGE", value));
        return;
    };
    for (key, value) in members {
        let name = snake_case(key);
        let Some((_, kind)) = fields().iter().find(|(known, _)| *known == name) else {
            let at = if path.is_empty() { String::new() } else { format!(" at '{path}'") };
            let message = format!(
                "Invalid JSON payload received. Unknown name \"{key}\"{at}: Cannot find field."
            );
            violations.push((path.to_owned(), message));
            continue;
        };
        let within = if path.is_empty() { name } else { format!("{path}.{name}") };
        check_value(value, &within, key, path, *kind, violations);
    }
}

fn check_value(
    value: &Value,
    within: &str,
    key: &str,
    path: &str,
    kind: Kind,
    violations: &mut Vec<(String, String)>,
) {
    let single = !matches!(kind, Kind::Data | Kind::Texts | Kind::Messages(_));
    match (kind, value) {
        // Null is the same as nothing.
        (_, Value::Null) | (Kind::Data, _) => {}
        (_, Value::Array(_)) if single => {
            let message = format!(
                "Invalid JSON payload received. Unknown name \"{key}\" at '{path}': Proto field is \
                 not repeating, cannot start list."
            );
            violations.push((path.to_owned(), message));
        }
        (Kind::Text, Value::String(_))
        | (Kind::Flag, Value::Bool(_))
        | (Kind::Struct, Value::Object(_)) => {}
        (Kind::Number, Value::Number(_)) => {}
        (Kind::Number, Value::String(text)) if text.parse::<f64>().is_ok() => {}
        (Kind::Bytes, Value::String(text)) if is_base64(text) => {}
        (Kind::Bytes, Value::String(text)) => {
            let message = format!(
                "Invalid value at '{within}' (TYPE_BYTES), Base64 decoding failed for \"{text}\""
            );
            violations.push((within.to_owned(), message));
        }
        (Kind::Word(_, words), Value::String(word))
            if words.iter().any(|known| known.eq_ignore_ascii_case(word)) => {}
        (Kind::Texts, Value::Array(texts)) => {
            for (at, text) in texts.iter().enumerate().filter(|(_, text)| !text.is_string()) {
                violations.push(invalid(&format!("{within}[{at}]"), "TYPE_STRING", text));
            }
        }
        (Kind::Message(fields), value) => check_message(value, within, fields, violations),
        (Kind::Messages(fields), Value::Array(list)) => {
            for (at, value) in list.iter().enumerate() {
                check_message(value, &format!("{within}[{at}]"), fields, violations);
            }
        }
        (Kind::Messages(fields), one) => check_message(one, within, fields, violations),
        (Kind::Map(fields), Value::Object(map)) => {
            for (at, value) in map.values().enumerate() {
                check_message(value, &format!("{within}[{at}].value"), fields, violations);
            }
        }
        (kind, value) => violations.push(invalid(within, type_of(kind), value)),
    }
}

fn invalid(path: &str, kind: &str, value: &Value) -> (String, String) {
    (path.to_owned(), format!("Invalid value at '{path}' ({kind}), {value}"))
}

fn type_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Text | Kind::Texts => "TYPE_STRING",
        Kind::Bytes => "TYPE_BYTES",
        Kind::Flag => "TYPE_BOOL",
        Kind::Number => "TYPE_DOUBLE",
        Kind::Word(name, _) => name,
        Kind::Struct => "type.googleapis.com/google.protobuf.Struct",
        Kind::Data | Kind::Message(_) | Kind::Messages(_) | Kind::Map(_) => "MESSAGE",
    }
}

fn is_base64(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/-_=".contains(&byte))
}

fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.push(c.to_ascii_lowercase());
    }
    snake
}

fn request() -> &'static [(&'static str, Kind)] {
    &[
        ("model", Kind::Text),
        ("contents", Kind::Messages(content)),
        ("system_instruction", Kind::Message(content)),
        ("tools", Kind::Messages(tool)),
        ("tool_config", Kind::Message(tool_config)),
        ("safety_settings", Kind::Data),
        ("generation_config", Kind::Message(generation_config)),
        ("cached_content", Kind::Text),
        ("service_tier", Kind::Text),
        ("store", Kind::Flag),
    ]
}

fn content() -> &'static [(&'static str, Kind)] {
    &[("role", Kind::Text), ("parts", Kind::Messages(part))]
}

fn part() -> &'static [(&'static str, Kind)] {
    &[
        ("text", Kind::Text),
        ("thought", Kind::Flag),
        ("thought_signature", Kind::Bytes),
        ("inline_data", Kind::Message(blob)),
        ("file_data", Kind::Message(file)),
        ("function_call", Kind::Message(function_call)),
        ("function_response", Kind::Message(function_response)),
        ("executable_code", Kind::Data),
        ("code_execution_result", Kind::Data),
        ("tool_call", Kind::Data),
        ("tool_response", Kind::Data),
        ("video_metadata", Kind::Data),
        ("media_resolution", Kind::Data),
        ("part_metadata", Kind::Data),
    ]
}

/// The fields of a part that say what it is; it has one of them.
pub(super) const PART_DATA: [&str; 9] = [
    "text",
    "inline_data",
    "file_data",
    "function_call",
    "function_response",
    "executable_code",
    "code_execution_result",
    "tool_call",
    "tool_response",
];

fn blob() -> &'static [(&'static str, Kind)] {
    &[("mime_type", Kind::Text), ("data", Kind::Bytes), ("display_name", Kind::Text)]
}

fn file() -> &'static [(&'static str, Kind)] {
    &[("mime_type", Kind::Text), ("file_uri", Kind::Text), ("display_name", Kind::Text)]
}

fn function_call() -> &'static [(&'static str, Kind)] {
    &[("id", Kind::Text), ("name", Kind::Text), ("args", Kind::Struct)]
}

fn function_response() -> &'static [(&'static str, Kind)] {
    &[
        ("id", Kind::Text),
        ("name", Kind::Text),
        ("response", Kind::Struct),
        ("parts", Kind::Data),
        ("will_continue", Kind::Flag),
        ("scheduling", Kind::Text),
    ]
}

fn tool() -> &'static [(&'static str, Kind)] {
    &[
        ("function_declarations", Kind::Messages(declaration)),
        ("google_search", Kind::Data),
        ("google_search_retrieval", Kind::Data),
        ("google_maps", Kind::Data),
        ("code_execution", Kind::Data),
        ("url_context", Kind::Data),
        ("file_search", Kind::Data),
        ("computer_use", Kind::Data),
    ]
}

fn declaration() -> &'static [(&'static str, Kind)] {
    &[
        ("name", Kind::Text),
        ("description", Kind::Text),
        ("behavior", Kind::Text),
        ("parameters", Kind::Message(schema)),
        ("parameters_json_schema", Kind::Data),
        ("response", Kind::Message(schema)),
        ("response_json_schema", Kind::Data),
    ]
}

fn schema() -> &'static [(&'static str, Kind)] {
    &[
        ("type", Kind::Word("type.googleapis.com/google.ai.generativelanguage.v1beta.Type", TYPES)),
        ("format", Kind::Text),
        ("title", Kind::Text),
        ("description", Kind::Text),
        ("nullable", Kind::Flag),
        ("enum", Kind::Texts),
        ("items", Kind::Message(schema)),
        ("min_items", Kind::Number),
        ("max_items", Kind::Number),
        ("properties", Kind::Map(schema)),
        ("required", Kind::Texts),
        ("property_ordering", Kind::Texts),
        ("min_properties", Kind::Number),
        ("max_properties", Kind::Number),
        ("min_length", Kind::Number),
        ("max_length", Kind::Number),
        ("pattern", Kind::Text),
        ("minimum", Kind::Number),
        ("maximum", Kind::Number),
        ("any_of", Kind::Messages(schema)),
        ("default", Kind::Data),
        ("example", Kind::Data),
    ]
}

const TYPES: &[&str] =
    &["TYPE_UNSPECIFIED", "STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"];

fn tool_config() -> &'static [(&'static str, Kind)] {
    &[
        ("function_calling_config", Kind::Message(function_calling_config)),
        ("retrieval_config", Kind::Data),
        ("include_server_side_tool_invocations", Kind::Flag),
    ]
}

fn function_calling_config() -> &'static [(&'static str, Kind)] {
    &[
        (
            "mode",
            Kind::Word(
                "type.googleapis.com/google.ai.generativelanguage.v1beta.FunctionCallingConfig.Mode",
                MODES,
            ),
        ),
        ("allowed_function_names", Kind::Texts),
        // Only on Vertex AI, which has the same form.
        ("stream_function_call_arguments", Kind::Flag),
    ]
}

const MODES: &[&str] = &["MODE_UNSPECIFIED", "AUTO", "ANY", "NONE", "VALIDATED"];

fn generation_config() -> &'static [(&'static str, Kind)] {
    &[
        ("temperature", Kind::Number),
        ("top_p", Kind::Number),
        ("top_k", Kind::Number),
        ("candidate_count", Kind::Number),
        ("max_output_tokens", Kind::Number),
        ("stop_sequences", Kind::Texts),
        ("seed", Kind::Number),
        ("presence_penalty", Kind::Number),
        ("frequency_penalty", Kind::Number),
        ("response_logprobs", Kind::Flag),
        ("logprobs", Kind::Number),
        ("response_mime_type", Kind::Text),
        ("response_schema", Kind::Message(schema)),
        ("response_json_schema", Kind::Data),
        ("response_modalities", Kind::Texts),
        ("thinking_config", Kind::Message(thinking_config)),
        ("speech_config", Kind::Data),
        ("image_config", Kind::Data),
        ("media_resolution", Kind::Text),
        ("enable_enhanced_civic_answers", Kind::Flag),
    ]
}

fn thinking_config() -> &'static [(&'static str, Kind)] {
    &[
        ("include_thoughts", Kind::Flag),
        ("thinking_budget", Kind::Number),
        ("thinking_level", Kind::Text),
    ]
}
