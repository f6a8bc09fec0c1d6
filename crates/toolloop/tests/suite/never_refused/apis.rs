//! [`Api`]: every codec, and the strict judge of what it writes.

use serde_json::Value;
use toolloop::provider::codec::{gemini, ollama, openai_chat, openai_responses};
use toolloop::provider::server;
use toolloop::{ChatParams, LlmError};
use toolloop_fake::Refusal;

/// A codec with one set of quirks.
pub(crate) struct Api {
    pub(crate) name: &'static str,
    pub(crate) encode: fn(&ChatParams) -> Result<Vec<u8>, LlmError>,
    judge: fn(&Value) -> Result<(), Refusal>,
}

impl Api {
    /// Encodes a request and has it judged; gives its bytes.
    pub(crate) fn ask(&self, params: &ChatParams) -> Result<Vec<u8>, String> {
        let said = |what: String| format!("{}: {what}", self.name);
        let body = (self.encode)(params).map_err(|error| said(error.to_string()))?;
        let value: Value =
            serde_json::from_slice(&body).map_err(|error| said(error.to_string()))?;
        match (self.judge)(&value) {
            Ok(()) => Ok(body),
            Err(Refusal { status, body }) => Err(said(format!("{status} {body}\n{value}"))),
        }
    }
}

pub(crate) const APIS: [Api; 10] = [
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
        encode: |params| openai_chat::encode("m", params, &quirks_of("deepseek")),
        judge: toolloop_fake::openai_chat::validate,
    },
    Api {
        name: "chat: mistral",
        encode: |params| openai_chat::encode("m", params, &quirks_of("mistral")),
        judge: |body| toolloop_fake::openai_chat::validate(&with_openai_words(body)),
    },
    Api {
        name: "ollama",
        encode: |params| ollama::encode("m", params, Some(4096)),
        judge: toolloop_fake::ollama::validate,
    },
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

fn quirks_of(name: &str) -> openai_chat::Quirks {
    (server(name).expect("it is in the table").quirks)()
}

/// This server has a word of its own for a forced tool.
fn with_openai_words(body: &Value) -> Value {
    let mut body = body.clone();
    if body["tool_choice"] == "any" {
        body["tool_choice"] = "required".into();
    }
    body
}
