use std::borrow::Cow;

use bytes::Bytes;
use serde::Deserialize;
use toolloop_core::ChatParams;
use toolloop_providers::codec::anthropic::{MessagesDecoder, Options, encode};

use super::Api;

/// Messages.
pub(crate) struct Anthropic;

impl Api for Anthropic {
    type Decoder = MessagesDecoder;

    fn opening() -> Vec<String> {
        let block =
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#;
        vec![block.to_owned()]
    }

    fn text_event(_: usize, text: &str) -> String {
        format!(
            "{{\"type\":\"content_block_delta\",\"index\":0,\
             \"delta\":{{\"type\":\"text_delta\",\"text\":\"{text}\"}}}}"
        )
    }

    fn framed(data: &str) -> String {
        format!("event: content_block_delta\ndata: {data}\n\n")
    }

    fn least_parse(data: &str) -> serde_json::Result<Cow<'_, str>> {
        let BlockDelta { kind, delta } = serde_json::from_str(data)?;
        assert_eq!((kind, delta.kind), ("content_block_delta", "text_delta"));
        Ok(delta.text)
    }

    fn encode(params: &ChatParams) -> Bytes {
        encode("claude-sonnet-4-5", params, &Options::default()).expect("messages are JSON")
    }
}

#[derive(Deserialize)]
struct BlockDelta<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(borrow)]
    delta: TextDelta<'a>,
}

#[derive(Deserialize)]
struct TextDelta<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(borrow)]
    text: Cow<'a, str>,
}
