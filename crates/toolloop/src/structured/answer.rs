//! [`Asking`]: what is asked for in which way, and what of an answer does not fit.

use jsonschema::Validator;
use serde_json::{Value, json};
use toolloop_core::{
    ChatMessage, ChatParams, ChatResponse, ChatRole, ContentBlock, JsonSchema, LlmError,
    StopReason, ToolChoice, ToolDefinition, ToolResult,
};

use super::ObjectMode;
use crate::tool::faults;

/// A schema and the way to ask for it.
pub(super) struct Asking {
    mode: ObjectMode,
    /// What the caller wants.
    schema: JsonSchema,
    validator: Validator,
    /// What the model is asked for: an object, since no API takes anything else at the top.
    asked: JsonSchema,
    is_wrapped: bool,
}

/// Why an answer does not fit.
pub(super) struct Fault {
    /// In words for the model and for the caller.
    pub(super) what: String,
    /// The answer, or the text that is not JSON.
    pub(super) actual: Value,
}

impl Asking {
    pub(super) fn new(schema: JsonSchema, mode: ObjectMode) -> Result<Self, LlmError> {
        let validator = jsonschema::validator_for(schema.as_value()).map_err(|error| {
            LlmError::InvalidRequest(format!("the JSON Schema is not usable: {error}").into())
        })?;
        let is_wrapped = schema.as_value()["type"] != "object";
        let asked = match is_wrapped {
            true => wrapped(schema.as_value()),
            false => schema.clone(),
        };
        Ok(Self { mode, schema, validator, asked, is_wrapped })
    }

    /// Asks for the schema in the way of this mode.
    pub(super) fn prepare(&self, params: &mut ChatParams) {
        (params.tools, params.tool_choice, params.structured_output) = (None, None, None);
        match self.mode {
            ObjectMode::Native => params.structured_output = Some(self.asked.clone()),
            ObjectMode::Tool => {
                params.tools = Some(vec![ToolDefinition {
                    name: TOOL.to_owned(),
                    description: "Takes the answer. Call it once, with the whole answer.".into(),
                    parameters: self.asked.clone(),
                    retry: None,
                }]);
                params.tool_choice = Some(ToolChoice::Specific(TOOL.to_owned()));
            }
            ObjectMode::Instruction => {
                let words = format!(
                    "Answer with one JSON object that fits this JSON Schema, and nothing else:\n{}",
                    self.asked.as_value()
                );
                params.system = Some(match params.system.take() {
                    Some(system) if !system.is_empty() => format!("{system}\n\n{words}"),
                    _ => words,
                });
            }
        }
    }

    /// The value of an answer, held against the schema and read into what the caller wants.
    pub(super) fn read<T>(
        &self,
        response: &ChatResponse,
        read: impl Fn(Value) -> Result<T, String>,
    ) -> Result<T, Fault> {
        let value = self.value(response)?;
        if let Some(what) = faults(&self.validator, &value) {
            // A strict mode makes every property required and fills those that are not with null.
            let lean = without_fillers(self.schema.as_value(), value.clone());
            return match faults(&self.validator, &lean) {
                None => read(lean).map_err(|what| Fault { what, actual: value }),
                Some(_) => Err(Fault { what, actual: value }),
            };
        }
        read(value.clone()).map_err(|what| Fault { what, actual: value })
    }

    /// Puts the answer into the conversation, and behind it what is wrong with it.
    pub(super) fn ask_again(&self, params: &mut ChatParams, response: ChatResponse, what: &str) {
        let words = format!("That answer does not fit: {what}. Give the whole answer again.");
        let calls: Vec<String> = response.tool_calls_iter().map(|call| call.id.clone()).collect();
        if !response.content.iter().all(is_empty) {
            let content = response.content;
            params.messages.push(ChatMessage { role: ChatRole::Assistant, content });
        }
        if calls.is_empty() {
            params.messages.push(ChatMessage::user(words.as_str()));
        }
        params.messages.extend(calls.into_iter().map(|tool_call_id| {
            ToolResult { tool_call_id, content: words.as_str().into(), is_error: true }.into()
        }));
    }

    pub(super) fn into_schema(self) -> Value {
        self.schema.as_value().clone()
    }

    fn value(&self, response: &ChatResponse) -> Result<Value, Fault> {
        let called = response.tool_calls_iter().find(|call| call.name == TOOL);
        let answer = match called {
            Some(call) => match &call.arguments {
                // Arguments that are no JSON arrive as their text.
                Value::String(text) => json_in(text),
                arguments => Ok(arguments.clone()),
            },
            None => json_in(&text_of(response)),
        };
        let mut answer = answer.map_err(|mut fault| {
            if response.stop_reason == StopReason::MaxTokens {
                fault.what.push_str("; it reached its limit of output tokens, so be brief");
            }
            fault
        })?;
        if self.is_wrapped
            && let Some(inner) = answer.get_mut("value")
        {
            answer = inner.take();
        }
        Ok(answer)
    }
}

/// The schema as that of the only member of an object.
fn wrapped(schema: &Value) -> JsonSchema {
    let mut schema = schema.clone();
    // References are to the root of the schema, wherever it stands.
    let definitions = schema.as_object_mut().and_then(|fields| fields.remove("$defs"));
    let mut object = json!({
        "type": "object",
        "properties": { "value": schema },
        "required": ["value"],
        "additionalProperties": false,
    });
    if let Some(definitions) = definitions {
        object["$defs"] = definitions;
    }
    JsonSchema::new(object)
}

fn text_of(response: &ChatResponse) -> String {
    let texts = response.content.iter().filter_map(|block| match block {
        ContentBlock::Text(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

fn is_empty(block: &ContentBlock) -> bool {
    matches!(block, ContentBlock::Text(text) if text.trim().is_empty())
}

/// The JSON of a text: all of it, or what stands in it between words or fences.
fn json_in(text: &str) -> Result<Value, Fault> {
    let whole = serde_json::from_str(text.trim());
    let error = match whole {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    for (open, close) in [('{', '}'), ('[', ']')] {
        let inner =
            text.find(open).zip(text.rfind(close)).and_then(|(from, to)| text.get(from..=to));
        if let Some(value) = inner.and_then(|inner| serde_json::from_str(inner).ok()) {
            return Ok(value);
        }
    }
    let what = match text.trim() {
        "" => "it is empty".to_owned(),
        _ => format!("it is not readable as JSON: {error}"),
    };
    Err(Fault { what, actual: Value::String(text.to_owned()) })
}

/// A value without the nulls of properties that need not be there.
fn without_fillers(schema: &Value, mut value: Value) -> Value {
    match &mut value {
        Value::Object(members) => {
            let is_required = |name: &str| {
                schema["required"].as_array().is_some_and(|names| names.iter().any(|n| n == name))
            };
            members.retain(|name, member| !member.is_null() || is_required(name));
            for (name, member) in members {
                *member = without_fillers(&schema["properties"][name.as_str()], member.take());
            }
        }
        Value::Array(items) => {
            for item in items {
                *item = without_fillers(&schema["items"], item.take());
            }
        }
        _ => {}
    }
    value
}

/// The tool whose arguments are the answer.
const TOOL: &str = "answer";
