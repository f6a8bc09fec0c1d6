//! [`encode`]: the body of a request, written once, from the borrowed messages.

use std::borrow::Cow;

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::{Value, json};
use toolloop_core::{
    ChatMessage, ChatParams, ChatRole, ContentBlock, JsonSchema, LlmError, ToolChoice,
    ToolDefinition,
};

use super::contents::Contents;
use crate::codec::schema;
use crate::codec::size::estimated_size;

/// Writes the body of a request. Whether the answer is a stream, the address says.
///
/// Members that are the same from call to call stand before the conversation. Schemas are
/// rewritten to what the API takes, see [`schema::gemini`]. `ChatParams::metadata` has no place
/// in this API and is not sent.
///
/// # Errors
/// When a value cannot be written as JSON.
pub fn encode(model: &str, params: &ChatParams) -> Result<Vec<u8>, LlmError> {
    let mut body = Vec::with_capacity(estimated_size(params));
    serde_json::to_writer(&mut body, &Body { model, params })
        .map_err(|error| LlmError::InvalidRequest(error.to_string().into()))?;
    Ok(body)
}

struct Body<'a> {
    model: &'a str,
    params: &'a ChatParams,
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let params = self.params;
        let mut body = serializer.serialize_map(None)?;
        // What the program says before anybody else did belongs to the instruction.
        let is_system = |message: &&ChatMessage| message.role == ChatRole::System;
        let leading = params.messages.iter().take_while(is_system).count();
        let (leading, messages) = params.messages.split_at(leading);
        let tools = params.tools.as_deref().unwrap_or_default();
        let is_gemini_3 = is_gemini_3(self.model);
        // Models before Gemini 3 take tools or a schema of the answer, not both.
        let (schema, told) = match &params.structured_output {
            Some(schema) if !tools.is_empty() && !is_gemini_3 => (None, Some(schema)),
            schema => (schema.as_ref(), None),
        };
        let parts = instruction(params.system.as_deref(), leading, told);
        if !parts.is_empty() {
            body.serialize_entry("systemInstruction", &Instruction { parts })?;
        }
        if !tools.is_empty() {
            body.serialize_entry("tools", &[Tools { function_declarations: Declarations(tools) }])?;
            if let Some(choice) = &params.tool_choice {
                body.serialize_entry("toolConfig", &tool_config(choice))?;
            }
        }
        let config = generation_config(params, schema);
        if config != GenerationConfig::default() {
            body.serialize_entry("generationConfig", &config)?;
        }
        let stand_in = is_gemini_3.then_some(NO_SIGNATURE);
        body.serialize_entry("contents", &Contents::new(messages, stand_in))?;
        body.end()
    }
}

#[derive(serde::Serialize)]
struct Instruction<'a> {
    parts: Vec<TextPart<'a>>,
}

#[derive(serde::Serialize)]
struct TextPart<'a> {
    text: Cow<'a, str>,
}

fn instruction<'a>(
    system: Option<&'a str>,
    leading: &'a [ChatMessage],
    told: Option<&JsonSchema>,
) -> Vec<TextPart<'a>> {
    let blocks = leading.iter().flat_map(|message| &message.content);
    let texts = blocks.filter_map(|block| match block {
        ContentBlock::Text(text) => Some(text.as_str()),
        _ => None,
    });
    let texts = system.into_iter().chain(texts).filter(|text| !text.is_empty()).map(Cow::Borrowed);
    let told = told.map(|schema| {
        let schema = schema.as_value();
        Cow::Owned(format!("Your final answer is one JSON value and fits this schema: {schema}"))
    });
    texts.chain(told).map(|text| TextPart { text }).collect()
}

#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct Tools<'a> {
    function_declarations: Declarations<'a>,
}

struct Declarations<'a>(&'a [ToolDefinition]);

impl Serialize for Declarations<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.0.len()))?;
        for tool in self.0 {
            list.serialize_element(&Declaration(tool))?;
        }
        list.end()
    }
}

struct Declaration<'a>(&'a ToolDefinition);

impl Serialize for Declaration<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ToolDefinition { name, description, parameters, .. } = self.0;
        let mut declaration = serializer.serialize_map(None)?;
        declaration.serialize_entry("name", name)?;
        declaration.serialize_entry("description", description)?;
        let parameters = schema::gemini(parameters.as_value()).schema;
        // An object without properties was refused for long; no parameters say the same.
        if parameters.get("properties").and_then(Value::as_object).is_some_and(|p| !p.is_empty()) {
            declaration.serialize_entry("parameters", &parameters)?;
        }
        declaration.end()
    }
}

fn tool_config(choice: &ToolChoice) -> Value {
    let config = match choice {
        ToolChoice::None => json!({"mode": "NONE"}),
        ToolChoice::Required => json!({"mode": "ANY"}),
        ToolChoice::Specific(name) => json!({"mode": "ANY", "allowedFunctionNames": [name]}),
        _ => json!({"mode": "AUTO"}),
    };
    json!({ "functionCallingConfig": config })
}

#[derive(serde::Serialize, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
struct GenerationConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_config: Option<ThinkingConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_mime_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_schema: Option<Value>,
}

#[derive(serde::Serialize, PartialEq)]
#[serde(rename_all = "camelCase")]
struct ThinkingConfig {
    thinking_budget: u32,
    include_thoughts: bool,
}

fn generation_config(params: &ChatParams, answer_schema: Option<&JsonSchema>) -> GenerationConfig {
    let thinking =
        |budget| ThinkingConfig { thinking_budget: budget, include_thoughts: budget > 0 };
    GenerationConfig {
        temperature: params.temperature,
        max_output_tokens: params.max_tokens,
        thinking_config: params.reasoning_budget.map(thinking),
        response_mime_type: answer_schema.map(|_| "application/json"),
        response_schema: answer_schema.map(|schema| schema::gemini(schema.as_value()).schema),
    }
}

/// Whether the model is Gemini 3 or later. A name without a number means the latest one.
fn is_gemini_3(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    let version = name.strip_prefix("gemini-").and_then(|rest| rest.split(['.', '-']).next());
    version.is_some_and(|version| version.parse().map_or(true, |version: u32| version >= 3))
}

/// What the API documents for calls that it did not make: from Gemini 3 on it refuses the first
/// call of a turn without a signature.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_told_apart_by_their_names() {
        for model in
            ["gemini-3-pro-preview", "gemini-3.1-pro", "gemini-flash-latest", "models/gemini-10"]
        {
            assert!(is_gemini_3(model), "{model}");
        }
        for model in ["gemini-2.5-flash", "gemini-1.5-pro", "gemma-3-27b-it", "other"] {
            assert!(!is_gemini_3(model), "{model}");
        }
    }
}
