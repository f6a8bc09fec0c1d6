use std::borrow::Cow;

use bytes::Bytes;
use serde::Deserialize;
use toolloop_core::ChatParams;
use toolloop_providers::codec::ollama::{OllamaDecoder, encode};

use super::Api;

/// Ollama's own API, whose lines bear the time.
pub(crate) struct Ollama;

impl Api for Ollama {
    type Decoder = OllamaDecoder;

    fn text_event(number: usize, text: &str) -> String {
        format!(
            "{{\"model\":\"llama3.2\",\"created_at\":\"2025-10-08T08:52:{:02}.385406455Z\",\
             \"message\":{{\"role\":\"assistant\",\"content\":\"{text}\"}},\"done\":false}}",
            number % 60
        )
    }

    fn framed(data: &str) -> String {
        format!("{data}\n")
    }

    fn least_parse(data: &str) -> serde_json::Result<Cow<'_, str>> {
        let line: Line<'_> = serde_json::from_str(data)?;
        assert!(!line.done);
        Ok(line.message.content)
    }

    fn encode(params: &ChatParams) -> Bytes {
        encode("llama3.2", params, None).expect("messages are JSON")
    }
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    message: Message<'a>,
    done: bool,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    content: Cow<'a, str>,
}
