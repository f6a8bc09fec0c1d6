use std::borrow::Cow;

use bytes::Bytes;
use serde::Deserialize;
use toolloop_core::ChatParams;
use toolloop_providers::codec::openai_responses::{Quirks, ResponsesDecoder, encode};

use super::Api;

/// Responses, whose events are numbered.
pub(crate) struct OpenAiResponses;

impl Api for OpenAiResponses {
    type Decoder = ResponsesDecoder;

    fn opening() -> Vec<String> {
        let item = r#"{"type":"response.output_item.added","sequence_number":2,"output_index":0,"item":{"id":"msg_bench0000","type":"message","status":"in_progress","content":[],"role":"assistant"}}"#;
        vec![item.to_owned()]
    }

    fn text_event(number: usize, text: &str) -> String {
        format!(
            "{{\"type\":\"response.output_text.delta\",\"sequence_number\":{},\"item_id\":\
             \"msg_68e5b2c1a3f481909d4c7e20b6f3a9d10c5e8b7a42f1d603\",\"output_index\":0,\
             \"content_index\":0,\"delta\":\"{text}\",\"logprobs\":[]}}",
            number + 4
        )
    }

    fn framed(data: &str) -> String {
        format!("event: response.output_text.delta\ndata: {data}\n\n")
    }

    fn least_parse(data: &str) -> serde_json::Result<Cow<'_, str>> {
        let TextDelta { kind, delta } = serde_json::from_str(data)?;
        assert_eq!(kind, "response.output_text.delta");
        Ok(delta)
    }

    fn encode(params: &ChatParams) -> Bytes {
        encode("gpt-5", params, &Quirks::openai("gpt-5")).expect("messages are JSON")
    }
}

#[derive(Deserialize)]
struct TextDelta<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(borrow)]
    delta: Cow<'a, str>,
}
