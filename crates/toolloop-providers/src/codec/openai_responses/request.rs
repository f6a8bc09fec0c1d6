//! [`encode`]: the body of a request, written once, straight from the borrowed messages.

use std::borrow::Cow;

use bytes::Bytes;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Value, json};
use toolloop_core::{ChatParams, JsonSchema, LlmError, ToolChoice, ToolDefinition};

use super::API;
use super::items::{WORDS, write_items};
use crate::codec::Reading;
use crate::codec::body;
use crate::codec::schema::{self, Form, Sent};
use crate::models::KnownModel;

/// What a model and its server take.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Quirks {
    /// Whether the model reasons. Only then its thoughts may be asked for, or an effort named.
    pub reasons: bool,
    /// Whether to ask for summaries of the thoughts, for people to read. OpenAI gives them to
    /// organizations that it has verified, and refuses the request of any other.
    pub summaries: bool,
    /// Whose `ProviderData` this server takes back: its own, by the name of API and server.
    pub origin: Cow<'static, str>,
    /// Whether a schema that the strict mode of OpenAI does not take is cut to what it takes. Other
    /// servers may hold their model to the whole of it.
    pub strict_subset: bool,
    /// Whether the server takes back thoughts that lie open, as those of models with open weights.
    pub open_thoughts: bool,
    /// Whether the server pads its events against eavesdroppers unless it is asked not to. The
    /// padding costs more than the text to read.
    pub obfuscation: bool,
    /// Above how many tokens of input the server shall make the conversation shorter. What stands
    /// for it then is part of the reply and goes back with it.
    pub compact_above: Option<u32>,
}

impl Quirks {
    /// A model of OpenAI itself; whether it reasons is told from its name.
    pub fn openai(model: &str) -> Self {
        Self {
            open_thoughts: false,
            obfuscation: true,
            strict_subset: true,
            ..Self::compatible(model)
        }
    }

    /// A model of any other server.
    pub fn compatible(model: &str) -> Self {
        let reasons = KnownModel::by_name(model).reasons;
        Self {
            reasons,
            summaries: false,
            origin: Cow::Borrowed(API),
            strict_subset: false,
            open_thoughts: true,
            obfuscation: false,
            compact_above: None,
        }
    }
}

/// What must be known of a request to read its reply.
pub(crate) fn reading(params: &ChatParams, quirks: &Quirks) -> Reading {
    Reading::new(params, tools(quirks), answer(quirks))
        .with_origin(quirks.origin.clone())
        .with_names(params, WORDS)
}

/// Writes the body of a streaming request.
///
/// Members that are the same from call to call stand before the input, so that the bodies of a
/// run share a prefix as long as their conversation. `ChatParams::reasoning_budget` becomes the
/// effort `low` up to 2,048 tokens, `medium` up to 16,384 and `high` above, the three words that
/// every reasoning model takes; other models get none. `ChatParams::max_tokens` is at least the
/// 16 that the API wants. `ChatParams::metadata` is not sent.
///
/// # Errors
/// When a value cannot be written as JSON.
pub fn encode(model: &str, params: &ChatParams, quirks: &Quirks) -> Result<Bytes, LlmError> {
    body::written(params, (API, quirks), |body| {
        body.write_head(&Head { model, params, quirks }, "input")?;
        write_items(&params.messages, quirks, body)
    })
}

struct Head<'a> {
    model: &'a str,
    params: &'a ChatParams,
    quirks: &'a Quirks,
}

/// All but the input.
impl Serialize for Head<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { model, params, quirks } = self;
        let mut body = serializer.serialize_map(None)?;
        body.serialize_entry("model", model)?;
        body.serialize_entry("stream", &true)?;
        body.serialize_entry("store", &false)?;
        if quirks.obfuscation {
            body.serialize_entry("stream_options", &json!({"include_obfuscation": false}))?;
        }
        if quirks.reasons {
            // Refused for models that do not reason.
            body.serialize_entry("include", &["reasoning.encrypted_content"])?;
            let effort = params.reasoning_budget.map(effort);
            let summary = quirks.summaries.then_some("auto");
            if effort.is_some() || summary.is_some() {
                body.serialize_entry("reasoning", &Reasoning { effort, summary })?;
            }
        }
        if let Some(tokens) = quirks.compact_above {
            let edit = json!({"type": "compaction", "compact_threshold": tokens});
            body.serialize_entry("context_management", &[edit])?;
        }
        if let Some(temperature) = params.temperature {
            body.serialize_entry("temperature", &temperature)?;
        }
        if let Some(limit) = params.max_tokens {
            body.serialize_entry("max_output_tokens", &limit.max(LEAST_OUTPUT))?;
        }
        // A choice without tools is refused.
        let tools = params.tools.as_deref().unwrap_or_default();
        if !tools.is_empty() {
            body.serialize_entry("tools", &Tools { tools, quirks })?;
            if let Some(choice) = &params.tool_choice {
                body.serialize_entry("tool_choice", &tool_choice(choice))?;
            }
        }
        if let Some(schema) = &params.structured_output {
            body.serialize_entry("text", &text_format(schema, quirks))?;
        }
        if let Some(system) = params.system.as_deref().filter(|text| !text.is_empty()) {
            body.serialize_entry("instructions", system)?;
        }
        body.end()
    }
}

#[derive(serde::Serialize)]
struct Reasoning {
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<&'static str>,
}

fn effort(budget: u32) -> &'static str {
    match budget {
        0..=2_048 => "low",
        2_049..=16_384 => "medium",
        _ => "high",
    }
}

struct Tools<'a> {
    tools: &'a [ToolDefinition],
    quirks: &'a Quirks,
}

impl Serialize for Tools<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { tools, quirks } = self;
        serializer.collect_seq(tools.iter().map(|tool| Tool { tool, quirks }))
    }
}

struct Tool<'a> {
    tool: &'a ToolDefinition,
    quirks: &'a Quirks,
}

impl Serialize for Tool<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ToolDefinition { name, description, parameters, .. } = self.tool;
        let mut tool = serializer.serialize_map(None)?;
        tool.serialize_entry("type", "function")?;
        tool.serialize_entry("name", &WORDS.legal(name))?;
        if !description.is_empty() {
            tool.serialize_entry("description", description)?;
        }
        let sent = Sent::new(parameters, tools(self.quirks));
        tool.serialize_entry("parameters", sent.schema())?;
        // Said either way: where it is missing, the API takes a schema as strict and changes it.
        tool.serialize_entry("strict", &sent.is_strict())?;
        tool.end()
    }
}

fn tool_choice(choice: &ToolChoice) -> Value {
    match choice {
        ToolChoice::None => json!("none"),
        ToolChoice::Required => json!("required"),
        ToolChoice::Specific(name) => json!({"type": "function", "name": WORDS.legal(name)}),
        _ => json!("auto"),
    }
}

fn text_format(schema: &JsonSchema, quirks: &Quirks) -> Value {
    let sent = Sent::new(schema, answer(quirks));
    let (name, strict) = (schema::name(schema), sent.is_strict());
    let schema = sent.schema();
    json!({"format": {"type": "json_schema", "name": name, "strict": strict, "schema": schema}})
}

/// What the strict mode cannot say is sent whole.
fn tools(quirks: &Quirks) -> &'static [Form] {
    match quirks.strict_subset {
        true => &[Form::OpenAiStrict, Form::Object],
        false => &[Form::OpenAiStrictWhole, Form::Object],
    }
}

fn answer(quirks: &Quirks) -> &'static [Form] {
    &tools(quirks)[..1]
}

/// The API refuses a lower limit.
const LEAST_OUTPUT: u32 = 16;
