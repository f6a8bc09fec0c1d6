//! [`validate`]: what the server refuses before any model sees it.
//!
//! The server reads a request into typed structs and refuses what does not fit, in the words of
//! Go's JSON decoder; members it does not know are ignored. It checks no order of messages.

use serde_json::{Map, Value};

use super::refusal;
use crate::refusal::Refusal;

type Check<T = ()> = Result<T, Refusal>;

/// Whether Ollama would serve this body of a request to `/api/chat`.
///
/// ```
/// use serde_json::json;
/// use toolloop_fake::ollama::validate;
///
/// let refusal = validate(&json!({"messages": []})).unwrap_err();
/// assert_eq!((refusal.status, &refusal.body["error"]), (400, &json!("model is required")));
/// ```
///
/// # Errors
/// The answer of the server to a request that it refuses.
pub fn validate(body: &Value) -> Check {
    let body = match body {
        Value::Null => return Err(refusal(400, "missing request body")),
        Value::Object(body) => Fields { fields: body, path: String::new() },
        Value::String(_) => {
            return Err(refusal(400, "invalid character looking for beginning of value"));
        }
        other => return Err(mismatch(other, "", "api.ChatRequest")),
    };
    let model = body.string("model")?;
    for message in body.objects("messages")? {
        check_message(&message)?;
    }
    for tool in body.objects("tools")? {
        check_tool(&tool)?;
    }
    body.boolean("stream")?;
    check_think(body.given("think"))?;
    check_options(&body)?;
    match body.given("format") {
        None | Some(Value::Object(_)) => {}
        Some(Value::String(word)) if word.is_empty() || word == "json" => {}
        Some(other) => {
            let text = "expected \"json\" or a valid JSON Schema object";
            return Err(refusal(400, format!("invalid format: {other}; {text}")));
        }
    }
    match model {
        "" => Err(refusal(400, "model is required")),
        _ => Ok(()),
    }
}

fn check_message(message: &Fields<'_>) -> Check {
    let role = message.string("role")?;
    if !["system", "user", "assistant", "tool"].contains(&role) {
        let allowed = r#"["system", "user", "assistant", "tool"]"#;
        return Err(refusal(400, format!("invalid role: {role:?}, role must be one of {allowed}")));
    }
    for name in ["content", "thinking", "tool_name", "tool_call_id"] {
        message.string(name)?;
    }
    for image in message.list("images")? {
        let Value::String(bytes) = image else {
            return Err(mismatch(image, &message.path_of("images"), "api.ImageData"));
        };
        if let Some(at) = base64_fault(bytes) {
            return Err(refusal(400, format!("illegal base64 data at input byte {at}")));
        }
    }
    for call in message.objects("tool_calls")? {
        call.string("id")?;
        let Some(function) = call.object("function", "api.ToolCallFunction")? else { continue };
        function.string("name")?;
        function.object("arguments", "api.ToolCallFunctionArguments")?;
    }
    Ok(())
}

fn check_tool(tool: &Fields<'_>) -> Check {
    tool.string("type")?;
    let Some(function) = tool.object("function", "api.ToolFunction")? else { return Ok(()) };
    function.string("name")?;
    function.string("description")?;
    match function.object("parameters", "api.ToolFunctionParameters")? {
        Some(parameters) => {
            parameters.string("type")?;
            check_schema(&parameters)
        }
        None => Ok(()),
    }
}

fn check_schema(schema: &Fields<'_>) -> Check {
    for required in schema.list("required")? {
        if !required.is_string() {
            return Err(mismatch(required, &schema.path_of("required"), "string"));
        }
    }
    let Some(properties) = schema.object("properties", "map[string]api.ToolProperty")? else {
        return Ok(());
    };
    for (name, property) in properties.fields {
        let path = properties.path_of(name);
        let Value::Object(fields) = property else {
            return Err(mismatch(property, &path, "api.ToolProperty"));
        };
        let property = Fields { fields, path };
        property.string("description")?;
        property.list("enum")?;
        match property.given("type") {
            None | Some(Value::String(_) | Value::Array(_)) => {}
            Some(other) => {
                return Err(mismatch(other, &property.path_of("type"), "api.PropertyType"));
            }
        }
        check_schema(&property)?;
    }
    Ok(())
}

fn check_think(think: Option<&Value>) -> Check {
    match think {
        None | Some(Value::Bool(_)) => Ok(()),
        Some(Value::String(level)) if ["high", "medium", "low"].contains(&level.as_str()) => Ok(()),
        Some(other) => {
            let allowed = r#"(must be "high", "medium", "low", true, or false)"#;
            Err(refusal(400, format!("invalid think value: {other} {allowed}")))
        }
    }
}

fn check_options(body: &Fields<'_>) -> Check {
    let Some(options) = body.object("options", "map[string]interface {}")? else { return Ok(()) };
    for (name, value) in options.fields {
        let kind = match name.as_str() {
            "num_predict" | "num_ctx" | "num_keep" | "seed" | "top_k" => "integer",
            "temperature" | "top_p" | "min_p" | "repeat_penalty" => "float32",
            _ => continue,
        };
        if !value.is_number() && !value.is_null() {
            return Err(refusal(400, format!("option {name:?} must be of type {kind}")));
        }
    }
    Ok(())
}

/// An object with where it stands.
struct Fields<'a> {
    fields: &'a Map<String, Value>,
    /// Empty for the whole request.
    path: String,
}

impl<'a> Fields<'a> {
    fn given(&self, name: &str) -> Option<&'a Value> {
        self.fields.get(name).filter(|value| !value.is_null())
    }

    fn path_of(&self, name: &str) -> String {
        format!("{}.{name}", self.path)
    }

    /// Empty where it is absent.
    fn string(&self, name: &str) -> Check<&'a str> {
        match self.given(name) {
            None => Ok(""),
            Some(Value::String(text)) => Ok(text),
            Some(other) => Err(mismatch(other, &self.path_of(name), "string")),
        }
    }

    fn boolean(&self, name: &str) -> Check {
        match self.given(name) {
            None | Some(Value::Bool(_)) => Ok(()),
            Some(other) => Err(mismatch(other, &self.path_of(name), "bool")),
        }
    }

    fn object(&self, name: &str, kind: &str) -> Check<Option<Self>> {
        match self.given(name) {
            None => Ok(None),
            Some(Value::Object(fields)) => Ok(Some(Self { fields, path: self.path_of(name) })),
            Some(other) => Err(mismatch(other, &self.path_of(name), kind)),
        }
    }

    fn list(&self, name: &str) -> Check<&'a [Value]> {
        match self.given(name) {
            None => Ok(&[]),
            Some(Value::Array(list)) => Ok(list),
            Some(other) => Err(mismatch(other, &self.path_of(name), "[]interface {}")),
        }
    }

    fn objects(&self, name: &str) -> Check<Vec<Self>> {
        let path = self.path_of(name);
        let object = |value: &'a Value| match value {
            Value::Object(fields) => Ok(Self { fields, path: path.clone() }),
            other => Err(mismatch(other, &path, "api.Message")),
        };
        self.list(name)?.iter().map(object).collect()
    }
}

fn mismatch(found: &Value, path: &str, wanted: &str) -> Refusal {
    let found = match found {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let place = match path {
        "" => "value".to_owned(),
        path => format!("struct field ChatRequest{path}"),
    };
    refusal(400, format!("json: cannot unmarshal {found} into Go {place} of type {wanted}"))
}

/// Where a text stops being Base64 with its padding.
fn base64_fault(text: &str) -> Option<usize> {
    let data = text.trim_end_matches('=');
    let alphabet = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
    if let Some(at) = data.bytes().position(|byte| !alphabet(byte)) {
        return Some(at);
    }
    let whole = text.len().is_multiple_of(4) && text.len() - data.len() <= 2;
    (!whole).then_some(data.len())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What is said of a request with these members.
    fn said(members: Value) -> String {
        let mut body = json!({"model": "m", "messages": [{"role": "user", "content": "Hi"}]});
        body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        match validate(&body) {
            Ok(()) => "fine".to_owned(),
            Err(Refusal { status: 400, body }) => body["error"].as_str().unwrap().to_owned(),
            Err(other) => panic!("{other:?}"),
        }
    }

    fn message(message: Value) -> String {
        said(json!({"messages": [message]}))
    }

    #[test]
    fn what_fits_is_served() {
        let call = json!({"function": {"name": "t", "arguments": {"n": 1}}});
        let all = json!({
            "stream": true, "think": "low", "options": {"temperature": 1, "num_ctx": 9},
            "format": {"type": "object"}, "unknown": [],
            "messages": [
                {"role": "user", "content": "Hi", "images": ["QUI="]},
                {"role": "assistant", "thinking": "Hm", "tool_calls": [call]},
                {"role": "tool", "content": "", "tool_name": "t"},
            ],
            "tools": [{"type": "function", "function": {"name": "t", "parameters": {
                "type": "object", "required": ["n"],
                "properties": {"n": {"type": ["integer", "null"], "properties": {"x": {}}}},
            }}}],
        });
        assert_eq!(said(all), "fine");
    }

    #[test]
    fn a_model_is_named() {
        assert_eq!(said(json!({"model": null})), "model is required");
        assert_eq!(
            said(json!({"model": 3})),
            "json: cannot unmarshal number into Go struct field ChatRequest.model of type string"
        );
        assert_eq!(validate(&Value::Null).unwrap_err().body["error"], "missing request body");
    }

    #[test]
    fn messages_have_their_types() {
        let calls = |arguments: Value| {
            let call = json!({"function": {"name": "t", "arguments": arguments}});
            message(json!({"role": "assistant", "tool_calls": [call]}))
        };
        let sentence = |found: &str, path: &str, wanted: &str| {
            format!(
                "json: cannot unmarshal {found} into Go struct field \
                 ChatRequest.messages.{path} of type {wanted}"
            )
        };
        assert_eq!(
            calls(json!("{}")),
            sentence("string", "tool_calls.function.arguments", "api.ToolCallFunctionArguments")
        );
        assert_eq!(
            message(json!({"role": "user", "content": [{"type": "text", "text": "x"}]})),
            sentence("array", "content", "string")
        );
        assert_eq!(
            message(json!({"role": "developer", "content": ""})),
            r#"invalid role: "developer", role must be one of ["system", "user", "assistant", "tool"]"#
        );
        let picture = |data: &str| message(json!({"role": "user", "images": [data]}));
        assert_eq!(picture("http://h"), "illegal base64 data at input byte 4");
        assert_eq!(picture("QUJDR"), "illegal base64 data at input byte 5");
    }

    #[test]
    fn schemas_are_read_into_structs() {
        let tool = |parameters: Value| {
            let function = json!({"name": "t", "parameters": parameters});
            said(json!({"tools": [{"type": "function", "function": function}]}))
        };
        let sentence = |found: &str, path: &str, wanted: &str| {
            format!(
                "json: cannot unmarshal {found} into Go struct field \
                 ChatRequest.tools.function.parameters{path} of type {wanted}"
            )
        };
        assert_eq!(
            tool(json!({"type": "object", "properties": {"any": true}})),
            sentence("bool", ".properties.any", "api.ToolProperty")
        );
        assert_eq!(tool(json!({"type": ["object", "null"]})), sentence("array", ".type", "string"));
        assert_eq!(tool(json!(true)), sentence("bool", "", "api.ToolFunctionParameters"));
    }

    #[test]
    fn settings_have_their_words() {
        assert_eq!(
            said(json!({"options": {"num_predict": "9"}})),
            r#"option "num_predict" must be of type integer"#
        );
        assert_eq!(
            said(json!({"think": "hard"})),
            r#"invalid think value: "hard" (must be "high", "medium", "low", true, or false)"#
        );
        assert_eq!(
            said(json!({"format": "xml"})),
            r#"invalid format: "xml"; expected "json" or a valid JSON Schema object"#
        );
    }
}
