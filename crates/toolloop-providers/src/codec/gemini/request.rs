//! [`encode`]: the body of a request, written once, from the borrowed messages.

use std::borrow::Cow;

use bytes::Bytes;
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::{Value, json};
use toolloop_core::{
    ChatMessage, ChatParams, ChatRole, ContentBlock, JsonSchema, LlmError, ToolChoice,
    ToolDefinition,
};

use super::API;
use super::contents::Contents;
use super::parts::NAMES;
use crate::codec::Reading;
use crate::codec::body;
use crate::codec::schema::{Form, Sent};

/// Writes the body of a request. Whether the answer is a stream, the address says.
///
/// Members that are the same from call to call stand before the conversation. Schemas are
/// rewritten to what the API takes, see [`gemini`](crate::codec::schema::gemini). `ChatParams::metadata` has no place
/// in this API and is not sent.
///
/// # Errors
/// When a value cannot be written as JSON.
pub fn encode(model: &str, params: &ChatParams) -> Result<Bytes, LlmError> {
    encode_for(API, model, params)
}

/// The same for the server that takes back what came from `origin`.
pub(crate) fn encode_for(
    origin: &str,
    model: &str,
    params: &ChatParams,
) -> Result<Bytes, LlmError> {
    let stand_in = is_gemini_3(model).then_some(NO_SIGNATURE);
    // What the program says before anybody else did belongs to the instruction.
    let is_system = |message: &&ChatMessage| message.role == ChatRole::System;
    let leading = params.messages.iter().take_while(is_system).count();
    body::written(params, (API, origin, stand_in), |body| {
        let contents = |first| Contents::new(&params.messages, first, origin, stand_in);
        let mut behind = contents(body.settled().max(leading));
        if body.settled() > 0 && !behind.begin_with_a_reply(body.settled()) {
            body.start_over();
            behind = contents(leading);
        }
        let leading = &params.messages[..leading];
        body.write_head(&Head { model, params, leading }, "contents")?;
        behind.write(body)
    })
}

/// What must be known of a request to read its reply.
pub(crate) fn reading(origin: Cow<'static, str>, model: &str, params: &ChatParams) -> Reading {
    let answer: &[Form] = if told(model, params).is_none() { &FORMS } else { &[] };
    Reading::new(params, &FORMS, answer).with_origin(origin).with_names(params, NAMES)
}

/// The schema of an answer that only the instruction tells of: models before Gemini 3 take tools
/// or such a schema, not both.
fn told<'a>(model: &str, params: &'a ChatParams) -> Option<&'a JsonSchema> {
    let has_tools = params.tools.as_ref().is_some_and(|tools| !tools.is_empty());
    params.structured_output.as_ref().filter(|_| has_tools && !is_gemini_3(model))
}

struct Head<'a> {
    model: &'a str,
    params: &'a ChatParams,
    leading: &'a [ChatMessage],
}

/// All but the contents.
impl Serialize for Head<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let params = self.params;
        let mut body = serializer.serialize_map(None)?;
        let tools = params.tools.as_deref().unwrap_or_default();
        let told = told(self.model, params);
        let schema = params.structured_output.as_ref().filter(|_| told.is_none());
        let parts = instruction(params.system.as_deref(), self.leading, told);
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
        declaration.serialize_entry("name", &NAMES.legal(name))?;
        declaration.serialize_entry("description", description)?;
        let sent = Sent::new(parameters, &FORMS);
        let parameters = sent.schema();
        // An object without properties was refused for long; no parameters say the same.
        if parameters.get("properties").and_then(Value::as_object).is_some_and(|p| !p.is_empty()) {
            declaration.serialize_entry("parameters", parameters)?;
        }
        declaration.end()
    }
}

fn tool_config(choice: &ToolChoice) -> Value {
    let config = match choice {
        ToolChoice::None => json!({"mode": "NONE"}),
        ToolChoice::Required => json!({"mode": "ANY"}),
        ToolChoice::Specific(name) => {
            json!({"mode": "ANY", "allowedFunctionNames": [NAMES.legal(name)]})
        }
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
        response_schema: answer_schema.map(|schema| Sent::new(schema, &FORMS).schema().clone()),
    }
}

const FORMS: [Form; 1] = [Form::Gemini];

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
