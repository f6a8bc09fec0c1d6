use std::borrow::Cow;

use bytes::Bytes;
use serde::Deserialize;
use toolloop_core::ChatParams;
use toolloop_providers::codec::gemini::{GeminiDecoder, encode};

use super::Api;

/// Gemini, whose events all report the usage so far, which the decoder hands on.
pub(crate) struct Gemini;

impl Api for Gemini {
    type Decoder = GeminiDecoder;

    fn text_event(number: usize, text: &str) -> String {
        format!(
            "{{\"candidates\":[{{\"content\":{{\"parts\":[{{\"text\":\"{text}\"}}],\
             \"role\":\"model\"}},\"index\":0}}],\"usageMetadata\":{{\"promptTokenCount\":11,\
             \"candidatesTokenCount\":{number},\"totalTokenCount\":{},\"promptTokensDetails\":\
             [{{\"modality\":\"TEXT\",\"tokenCount\":11}}]}},\"modelVersion\":\
             \"gemini-2.5-flash\",\"responseId\":\"bench0000bench0000bench\"}}",
            number + 11
        )
    }

    fn framed(data: &str) -> String {
        format!("data: {data}\r\n\r\n")
    }

    fn least_parse(data: &str) -> serde_json::Result<Cow<'_, str>> {
        let Chunk { candidates: [candidate] } = serde_json::from_str(data)?;
        let [part] = candidate.content.parts;
        Ok(part.text)
    }

    fn encode(params: &ChatParams) -> Bytes {
        encode("gemini-2.5-flash", params).expect("messages are JSON")
    }
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow)]
    candidates: [Candidate<'a>; 1],
}

#[derive(Deserialize)]
struct Candidate<'a> {
    #[serde(borrow)]
    content: Content<'a>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow)]
    parts: [Part<'a>; 1],
}

#[derive(Deserialize)]
struct Part<'a> {
    #[serde(borrow)]
    text: Cow<'a, str>,
}
