//! [`encode`]: the body of a request, written once, straight from the borrowed messages.

use std::borrow::Cow;

use bytes::Bytes;
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::{Value, json};
use toolloop_core::{ChatParams, JsonSchema, LlmError, ToolChoice, ToolDefinition};

use super::API;
use super::messages::{NAMES, write_messages};
use crate::codec::Reading;
use crate::codec::body;
use crate::codec::ids::IdRule;
use crate::codec::schema::{self, Form, Sent};

/// Where servers of this API differ in what they take.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Quirks {
    /// What the limit of output tokens is called.
    pub max_tokens_field: MaxTokensField,
    /// Whether usage may be asked for with `stream_options`.
    pub stream_usage: bool,
    /// Whether the server pads its chunks against eavesdroppers unless it is asked not to. The
    /// padding makes every chunk different, and costs more than the text to read.
    pub obfuscation: bool,
    /// Whether the server wants the thoughts of its model back, as `reasoning_content`.
    pub reasoning_back: bool,
    /// Whose `ProviderData` this server takes back: its own, by the name of API and server.
    pub origin: Cow<'static, str>,
    /// Members of messages and calls that this server gave for safe-keeping and takes back. Others
    /// refuse members that they do not know.
    pub members_back: &'static [&'static str],
    /// Whether a schema that the strict mode of OpenAI does not take is cut to what it takes. Other
    /// servers may hold their model to the whole of it.
    pub strict_subset: bool,
    /// The word for a choice of tools that demands one.
    pub required_word: &'static str,
    /// Which ids of calls the server takes.
    pub call_ids: CallIds,
}

/// Which ids of calls a server takes. Any other, from another provider, is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CallIds {
    /// Up to 40 printable characters.
    Short,
    /// Nine letters or digits.
    Nine,
}

impl CallIds {
    pub(super) fn legal(self, id: &str) -> Cow<'_, str> {
        match self {
            Self::Short => IdRule::new(40, |byte| byte.is_ascii_graphic()).legal(id),
            Self::Nine if id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()) => {
                Cow::Borrowed(id)
            }
            // Nothing is allowed, so what is legal is all hash.
            Self::Nine => IdRule::new(9, |_| false).legal(id),
        }
    }
}

/// What a server calls the limit of output tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MaxTokensField {
    /// `max_tokens`, which nearly every server takes.
    MaxTokens,
    /// `max_completion_tokens`, which OpenAI wants.
    MaxCompletionTokens,
}

impl Quirks {
    /// OpenAI itself.
    pub fn openai() -> Self {
        Self {
            max_tokens_field: MaxTokensField::MaxCompletionTokens,
            obfuscation: true,
            strict_subset: true,
            members_back: &[],
            ..Self::compatible()
        }
    }

    /// Any other server.
    pub fn compatible() -> Self {
        Self {
            max_tokens_field: MaxTokensField::MaxTokens,
            stream_usage: true,
            obfuscation: false,
            reasoning_back: false,
            origin: Cow::Borrowed(API),
            members_back: &["extra_content", "reasoning_details"],
            strict_subset: false,
            required_word: "required",
            call_ids: CallIds::Short,
        }
    }
}

/// What must be known of a request to read its reply.
pub(crate) fn reading(params: &ChatParams, quirks: &Quirks) -> Reading {
    Reading::new(params, &TOOLS, answer(quirks))
        .with_origin(quirks.origin.clone())
        .with_names(params, NAMES)
}

/// Writes the body of a streaming request.
///
/// Members that are the same from call to call stand before the messages, so that the bodies of
/// a run share a prefix as long as their conversation. `ChatParams::reasoning_budget` and
/// `ChatParams::metadata` have no place in this API and are not sent.
///
/// # Errors
/// When a value cannot be written as JSON.
pub fn encode(model: &str, params: &ChatParams, quirks: &Quirks) -> Result<Bytes, LlmError> {
    body::written(params, (API, quirks), |body| {
        body.write_head(&Head { model, params, quirks }, "messages")?;
        write_messages(params, quirks, body)
    })
}

struct Head<'a> {
    model: &'a str,
    params: &'a ChatParams,
    quirks: &'a Quirks,
}

/// All but the messages.
impl Serialize for Head<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { model, params, quirks } = self;
        let mut body = serializer.serialize_map(None)?;
        body.serialize_entry("model", model)?;
        body.serialize_entry("stream", &true)?;
        match (quirks.stream_usage, quirks.obfuscation) {
            (false, false) => {}
            (usage, false) => {
                body.serialize_entry("stream_options", &json!({"include_usage": usage}))?;
            }
            (usage, true) => body.serialize_entry(
                "stream_options",
                &json!({"include_usage": usage, "include_obfuscation": false}),
            )?,
        }
        if let Some(temperature) = params.temperature {
            body.serialize_entry("temperature", &temperature)?;
        }
        if let Some(limit) = params.max_tokens {
            let field = match quirks.max_tokens_field {
                MaxTokensField::MaxTokens => "max_tokens",
                MaxTokensField::MaxCompletionTokens => "max_completion_tokens",
            };
            body.serialize_entry(field, &limit)?;
        }
        // An empty list of tools is refused, and so is a choice without tools.
        let tools = params.tools.as_deref().unwrap_or_default();
        if !tools.is_empty() {
            body.serialize_entry("tools", &Tools(tools))?;
            if let Some(choice) = &params.tool_choice {
                body.serialize_entry("tool_choice", &tool_choice(choice, quirks))?;
            }
        }
        if let Some(schema) = &params.structured_output {
            body.serialize_entry("response_format", &response_format(schema, quirks))?;
        }
        body.end()
    }
}

struct Tools<'a>(&'a [ToolDefinition]);

impl Serialize for Tools<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.0.len()))?;
        for tool in self.0 {
            list.serialize_element(&Tool { kind: "function", function: Function(tool) })?;
        }
        list.end()
    }
}

#[derive(serde::Serialize)]
struct Tool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    function: Function<'a>,
}

struct Function<'a>(&'a ToolDefinition);

impl Serialize for Function<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ToolDefinition { name, description, parameters, .. } = self.0;
        let mut function = serializer.serialize_map(None)?;
        function.serialize_entry("name", &NAMES.legal(name))?;
        if !description.is_empty() {
            function.serialize_entry("description", description)?;
        }
        function.serialize_entry("parameters", Sent::new(parameters, &TOOLS).schema())?;
        function.end()
    }
}

fn tool_choice(choice: &ToolChoice, quirks: &Quirks) -> Value {
    match choice {
        ToolChoice::None => json!("none"),
        ToolChoice::Required => json!(quirks.required_word),
        ToolChoice::Specific(name) => {
            json!({"type": "function", "function": {"name": NAMES.legal(name)}})
        }
        _ => json!("auto"),
    }
}

fn response_format(schema: &JsonSchema, quirks: &Quirks) -> Value {
    let sent = Sent::new(schema, answer(quirks));
    let (name, strict) = (schema::name(schema), sent.is_strict());
    json!({
        "type": "json_schema",
        "json_schema": {"name": name, "strict": strict, "schema": sent.schema()},
    })
}

/// Not strict: few of the servers know the word.
const TOOLS: [Form; 1] = [Form::Object];

fn answer(quirks: &Quirks) -> &'static [Form] {
    match quirks.strict_subset {
        true => &[Form::OpenAiStrict],
        false => &[Form::OpenAiStrictWhole],
    }
}
