//! [`encode`]: the body of a request, written once, straight from the borrowed messages.

use bytes::Bytes;
use serde::ser::{Serialize, SerializeMap, Serializer};
use toolloop_core::{ChatParams, LlmError, ToolChoice, ToolDefinition};

use super::messages::write_messages;
use crate::codec::Reading;
use crate::codec::body;
use crate::codec::schema::{Form, Sent};

/// Writes the body of a streaming request.
///
/// The API has no choice of tools: for `ToolChoice::None` none is offered, for
/// `ToolChoice::Specific` only that one, and `ToolChoice::Required` is not enforced. A
/// `reasoning_budget` is only a yes or no here: 0 asks for no thought. `context_window` is the
/// number of tokens the server makes room for; it cuts older messages off beyond that.
///
/// # Errors
/// When a value cannot be written as JSON.
pub fn encode(
    model: &str,
    params: &ChatParams,
    context_window: Option<u32>,
) -> Result<Bytes, LlmError> {
    body::written(params, "ollama", |body| {
        body.write_head(&Head { model, params, context_window }, "messages")?;
        write_messages(params, body)
    })
}

/// What must be known of a request to read its reply. The server takes any name.
pub(crate) fn reading(params: &ChatParams) -> Reading {
    Reading::new(params, &TOOLS, &[])
}

struct Head<'a> {
    model: &'a str,
    params: &'a ChatParams,
    context_window: Option<u32>,
}

/// All but the messages.
impl Serialize for Head<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { model, params, context_window } = self;
        let mut body = serializer.serialize_map(None)?;
        body.serialize_entry("model", model)?;
        body.serialize_entry("stream", &true)?;
        if let Some(budget) = params.reasoning_budget {
            body.serialize_entry("think", &(budget > 0))?;
        }
        let options = Options {
            temperature: params.temperature,
            num_predict: params.max_tokens,
            num_ctx: *context_window,
        };
        if options != Options::default() {
            body.serialize_entry("options", &options)?;
        }
        let tools = offered(params);
        if !tools.is_empty() {
            body.serialize_entry("tools", &tools)?;
        }
        if let Some(schema) = &params.structured_output {
            body.serialize_entry("format", schema)?;
        }
        body.end()
    }
}

#[derive(serde::Serialize, PartialEq, Default)]
struct Options {
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    num_predict: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    num_ctx: Option<u32>,
}

fn offered(params: &ChatParams) -> Vec<Tool<'_>> {
    let tools = params.tools.as_deref().unwrap_or_default().iter();
    let chosen = |tool: &&ToolDefinition| match &params.tool_choice {
        Some(ToolChoice::None) => false,
        Some(ToolChoice::Specific(name)) => tool.name == *name,
        _ => true,
    };
    tools.filter(chosen).map(|tool| Tool { kind: "function", function: Function(tool) }).collect()
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
        function.serialize_entry("name", name)?;
        if !description.is_empty() {
            function.serialize_entry("description", description)?;
        }
        function.serialize_entry("parameters", Sent::new(parameters, &TOOLS).schema())?;
        function.end()
    }
}

const TOOLS: [Form; 1] = [Form::Object];
