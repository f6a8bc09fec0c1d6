//! [`encode`]: the body of a request, written once, straight from the borrowed messages.

use std::borrow::Cow;

use bytes::Bytes;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::{Value, json};
use toolloop_core::{ChatParams, ContentBlock, LlmError, ToolChoice};

use super::API;
use super::blocks::{NAMES, System, write_messages};
use super::model::{Claude, Thinking};
use super::tools::{self, TOOLS, Tools};
use super::turns::{Settled, Turns, flatten};
use crate::codec::Reading;
use crate::codec::body;
use crate::codec::schema::{Form, Sent};

/// What a request may use besides what its `ChatParams` say.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Options {
    /// Whether the provider shall cache tools, instructions and the conversation so far.
    pub caching: bool,
    /// Tools that the provider runs itself, such as
    /// `{"type": "web_search_20250305", "name": "web_search"}`, sent as they are.
    pub server_tools: Vec<Value>,
    /// Above how many tokens of input the provider shall sum the conversation up; the API takes
    /// 50,000 and more. Its summary is part of the reply and goes back with it.
    pub compact_above: Option<u32>,
    /// Who serves the model.
    pub platform: Platform,
    /// Whose `ProviderData` goes back: what came from there, by the name of API and server.
    pub origin: Cow<'static, str>,
}

impl Default for Options {
    /// Anthropic, with caching, without tools of its own.
    fn default() -> Self {
        Self {
            caching: true,
            server_tools: Vec::new(),
            compact_above: None,
            platform: Platform::Anthropic,
            origin: Cow::Borrowed(API),
        }
    }
}

/// Who serves the model, where the form of a request depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Platform {
    /// The body names the model and asks for a stream.
    Anthropic,
    /// The address does; the body names the version of the API.
    Bedrock,
}

/// Writes the body of a streaming request.
///
/// - `max_tokens`, which the API demands, is 32,000 or what the model can, unless it is set.
/// - `reasoning_budget` turns thinking on, within `max_tokens`; `temperature` is then left out.
///   Models that measure their thought themselves get an effort in place of a number. Thinking
///   stays off where the API forbids it: with a forced tool, with less than 1,025 tokens, and
///   while calls are under way whose reply did not begin with a thought of this API.
/// - `structured_output` is sent as `output_config.format` where the model has that and the
///   schema fits it; else it is part of the instructions.
/// - A conversation that ends with the assistant is gone on with where the model can; else the
///   user asks it to.
/// - `metadata` has one place in this API: a string `user_id`.
///
/// # Errors
/// When a value cannot be written as JSON.
pub fn encode(model: &str, params: &ChatParams, options: &Options) -> Result<Bytes, LlmError> {
    encode_resumed(model, params, options, &[])
}

/// The same, to go on with a reply that has these blocks already.
pub(crate) fn encode_resumed(
    model: &str,
    params: &ChatParams,
    options: &Options,
    paused: &[ContentBlock],
) -> Result<Bytes, LlmError> {
    let claude = Claude::by_name(model);
    let turns = |settled| {
        let mut turns = flatten(&params.messages, paused, &options.origin, settled);
        let takes_prefill = claude.takes_prefill() && params.reasoning_budget.is_none();
        if turns.ends_with_assistant() && paused.is_empty() && !takes_prefill {
            turns.go_on();
        }
        turns.pair_results();
        turns
    };
    body::written(params, (API, &options.origin), |body| {
        let mut behind = turns(Settled::of(body));
        if !behind.join_on() {
            body.start_over();
            behind = turns(Settled::default());
        }
        let limits = Limits::choose(claude, params, &behind);
        behind.finish(limits.thinking.is_some());
        let turns = &behind;
        body.write_head(&Head { model, params, options, paused, turns, limits }, "messages")?;
        write_messages(turns, options.caching, body)
    })
}

/// What must be known of a request to read its reply.
pub(crate) fn reading(model: &str, params: &ChatParams, options: &Options) -> Reading {
    Reading::new(params, &TOOLS, answer(Claude::by_name(model), options))
        .with_origin(options.origin.clone())
        .with_names(params, NAMES)
}

/// The form of an answer to which the API can hold the model.
fn answer(claude: Claude, options: &Options) -> &'static [Form] {
    match options.platform == Platform::Anthropic && claude.has_output_format() {
        true => &[Form::AnthropicAnswer],
        false => &[],
    }
}

struct Head<'a> {
    model: &'a str,
    params: &'a ChatParams,
    options: &'a Options,
    paused: &'a [ContentBlock],
    turns: &'a Turns<'a>,
    limits: Limits,
}

/// All but the messages.
impl Serialize for Head<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { model, params, options, paused, turns, limits } = self;
        let claude = Claude::by_name(model);
        let mut body = serializer.serialize_map(None)?;
        match options.platform {
            Platform::Anthropic => {
                body.serialize_entry("model", model)?;
                body.serialize_entry("stream", &true)?;
            }
            Platform::Bedrock => body.serialize_entry("anthropic_version", BEDROCK_VERSION)?,
        }
        body.serialize_entry("max_tokens", &limits.max_tokens)?;
        if let Some(thinking) = &limits.thinking {
            body.serialize_entry("thinking", thinking)?;
        } else if let Some(temperature) = params.temperature.filter(|_| claude.has_temperature()) {
            body.serialize_entry("temperature", &temperature)?;
        }
        if let Some(tokens) = options.compact_above {
            let trigger = json!({"type": "input_tokens", "value": tokens});
            let edit = json!({"type": "compact_20260112", "trigger": trigger});
            body.serialize_entry("context_management", &json!({"edits": [edit]}))?;
        }
        if let Some(user) = params.metadata.get("user_id").filter(|user| user.is_string()) {
            body.serialize_entry("metadata", &json!({"user_id": user}))?;
        }
        let schema = params.structured_output.as_ref();
        let sent = schema.map(|schema| Sent::new(schema, answer(claude, options)));
        let format = sent.as_ref().filter(|sent| sent.is_in(Form::AnthropicAnswer));
        let format = format.map(|sent| Format { kind: "json_schema", schema: sent.schema() });
        let wanted = schema.filter(|_| format.is_none()).map(|schema| schema.as_value());
        let output = Output { effort: limits.effort, format };
        if output.effort.is_some() || output.format.is_some() {
            body.serialize_entry("output_config", &output)?;
        }
        let list = Tools::new(params, options, paused);
        if !list.is_empty() {
            body.serialize_entry("tools", &list)?;
            if let Some(choice) = tools::choice(params, &list) {
                body.serialize_entry("tool_choice", &choice)?;
            }
        }
        let system = System::new(params, turns, wanted, options.caching);
        if !system.is_empty() {
            body.serialize_entry("system", &system)?;
        }
        body.end()
    }
}

#[derive(Serialize)]
struct Output<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<Format<'a>>,
}

#[derive(Serialize)]
struct Format<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    schema: &'a Value,
}

/// How much the model may write, and how much of it may be thought.
struct Limits {
    max_tokens: u32,
    thinking: Option<Value>,
    effort: Option<&'static str>,
}

impl Limits {
    fn choose(model: Claude, params: &ChatParams, turns: &Turns<'_>) -> Self {
        let max_output = model.max_output();
        let usual = max_output.min(USUAL_MAX_TOKENS);
        let max_tokens = params.max_tokens.unwrap_or(usual);
        let without = Self { max_tokens, thinking: None, effort: None };
        let is_forced = matches!(
            params.tool_choice,
            Some(ToolChoice::Required | ToolChoice::Specific(_)) if params.tools.is_some()
        );
        let Some(budget) = params.reasoning_budget.filter(|_| !is_forced && turns.may_think())
        else {
            return without;
        };
        match model.thinking() {
            Thinking::No => without,
            Thinking::Adaptive => {
                // Without `display`, these models keep their thought to themselves.
                let thinking = json!({"type": "adaptive", "display": "summarized"});
                let effort = match budget {
                    0..2_500 => Some("low"),
                    2_500..10_000 => Some("medium"),
                    _ => None,
                };
                Self { max_tokens, thinking: Some(thinking), effort }
            }
            Thinking::Budget => {
                // A limit that the caller set is kept; a default makes room for the thought.
                let room = params.max_tokens.unwrap_or(usual.saturating_add(budget));
                let max_tokens = room.min(max_output.max(max_tokens));
                let budget = budget.max(LEAST_BUDGET).min(max_tokens.saturating_sub(1));
                if budget < LEAST_BUDGET {
                    return without;
                }
                let thinking = json!({"type": "enabled", "budget_tokens": budget});
                Self { max_tokens, thinking: Some(thinking), effort: None }
            }
        }
    }
}

/// Enough for long files; a model that runs away is stopped in minutes.
const USUAL_MAX_TOKENS: u32 = 32_000;

/// What the API demands.
const LEAST_BUDGET: u32 = 1_024;

const BEDROCK_VERSION: &str = "bedrock-2023-05-31";
