//! [`Api`]: every codec, and the strict judge of what it writes.

use bytes::Bytes;
use serde_json::Value;
use toolloop::provider::codec::{anthropic, gemini, ollama, openai_chat, openai_responses};
use toolloop::{ChatParams, LlmError};
use toolloop_fake::Refusal;

/// A codec with one set of quirks.
pub(crate) struct Api {
    pub(crate) name: &'static str,
    pub(crate) encode: fn(&ChatParams) -> Result<Bytes, LlmError>,
    judge: fn(&Value) -> Result<(), Refusal>,
}

impl Api {
    /// Encodes a request and has it judged; gives its bytes.
    pub(crate) fn ask(&self, params: &ChatParams) -> Result<Bytes, String> {
        let said = |what: String| format!("{}: {what}", self.name);
        let body = (self.encode)(params).map_err(|error| said(error.to_string()))?;
        let text = str::from_utf8(&body).map_err(|error| said(error.to_string()))?;
        let value: Value =
            text.parse().map_err(|error: serde_json::Error| said(error.to_string()))?;
        match (self.judge)(&value) {
            Ok(()) => Ok(body),
            Err(Refusal { status, body }) => Err(said(format!("{status} {body}\n{value}"))),
        }
    }
}

/// The APIs, each with all that its codec makes differences between.
pub(crate) const APIS: [&[Api]; 5] = [CHAT, OLLAMA, RESPONSES, ANTHROPIC, GEMINI];

const CHAT: &[Api] = &[
    Api {
        name: "chat: openai",
        encode: |params| openai_chat::encode("m", params, &openai_chat::Quirks::openai()),
        judge: toolloop_fake::openai_chat::validate,
    },
    Api {
        name: "chat: others",
        encode: |params| openai_chat::encode("m", params, &openai_chat::Quirks::compatible()),
        judge: toolloop_fake::openai_chat::validate,
    },
    Api {
        name: "chat: deepseek",
        encode: |params| openai_chat::encode("m", params, &deepseek()),
        judge: toolloop_fake::openai_chat::validate,
    },
    Api {
        name: "chat: mistral",
        encode: |params| openai_chat::encode("m", params, &mistral()),
        judge: |body| toolloop_fake::openai_chat::validate(&with_openai_words(body)),
    },
];

const OLLAMA: &[Api] = &[Api {
    name: "ollama",
    encode: |params| ollama::encode("m", params, Some(4096)),
    judge: toolloop_fake::ollama::validate,
}];

const RESPONSES: &[Api] = &[
    Api {
        name: "responses: openai, reasoning",
        encode: |params| {
            let quirks = openai_responses::Quirks::openai("gpt-5");
            openai_responses::encode("gpt-5", params, &quirks)
        },
        judge: toolloop_fake::openai_responses::validate,
    },
    Api {
        name: "responses: openai",
        encode: |params| {
            let quirks = openai_responses::Quirks::openai("gpt-4.1");
            openai_responses::encode("gpt-4.1", params, &quirks)
        },
        judge: toolloop_fake::openai_responses::validate,
    },
    Api {
        name: "responses: others",
        encode: |params| {
            let quirks = openai_responses::Quirks::compatible("qwen3");
            openai_responses::encode("qwen3", params, &quirks)
        },
        judge: toolloop_fake::openai_responses::validate,
    },
];

const ANTHROPIC: &[Api] = &[
    Api {
        name: "anthropic: 4.5",
        encode: |params| {
            anthropic::encode("claude-sonnet-4-5", params, &anthropic::Options::default())
        },
        judge: toolloop_fake::anthropic::validate,
    },
    Api {
        name: "anthropic: 3.5",
        encode: |params| {
            anthropic::encode("claude-3-5-haiku-latest", params, &anthropic::Options::default())
        },
        judge: toolloop_fake::anthropic::validate,
    },
    Api {
        name: "anthropic: 5",
        encode: |params| {
            anthropic::encode("claude-sonnet-5", params, &anthropic::Options::default())
        },
        judge: toolloop_fake::anthropic::validate,
    },
    Api {
        name: "anthropic: SAP AI Core",
        encode: |params| {
            let mut options = anthropic::Options::default();
            (options.caching, options.platform) = (false, anthropic::Platform::Bedrock);
            anthropic::encode("anthropic--claude-3.7-sonnet", params, &options)
        },
        judge: |body| toolloop_fake::anthropic::validate(&as_at_anthropic(body)),
    },
];

const GEMINI: &[Api] = &[
    Api {
        name: "gemini 2.5",
        encode: |params| gemini::encode("gemini-2.5-flash", params),
        judge: |body| toolloop_fake::gemini::validate("gemini-2.5-flash", body),
    },
    Api {
        name: "gemini 3",
        encode: |params| gemini::encode("gemini-3-pro-preview", params),
        judge: |body| toolloop_fake::gemini::validate("gemini-3-pro-preview", body),
    },
];

fn deepseek() -> openai_chat::Quirks {
    let mut quirks = openai_chat::Quirks::compatible();
    (quirks.reasoning_back, quirks.members_back) = (true, &[]);
    quirks
}

fn mistral() -> openai_chat::Quirks {
    let mut quirks = openai_chat::Quirks::compatible();
    (quirks.stream_usage, quirks.members_back) = (false, &[]);
    (quirks.required_word, quirks.call_ids) = ("any", openai_chat::CallIds::Nine);
    quirks
}

/// This server has a word of its own for a forced tool.
fn with_openai_words(body: &Value) -> Value {
    let mut body = body.clone();
    if body["tool_choice"] == "any" {
        body["tool_choice"] = "required".into();
    }
    body
}

/// There the address names the model, not the body.
fn as_at_anthropic(body: &Value) -> Value {
    let mut body = body.clone();
    if let Some(members) = body.as_object_mut() {
        assert_eq!(members.remove("anthropic_version"), Some("bedrock-2023-05-31".into()));
        members.insert("model".into(), "claude-3-7-sonnet-latest".into());
    }
    body
}
