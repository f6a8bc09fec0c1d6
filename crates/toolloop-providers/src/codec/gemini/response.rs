//! [`GeminiDecoder`]: the events of an answer in, stream events out.

use std::borrow::Cow;

use serde_json::Value;
use serde_json::value::RawValue;
use toolloop_core::{ProviderData, StopReason, StreamEvent, Usage, UsageSource};

use super::API;
use super::calls::Calls;
use super::wire::{Candidate, Chunk, Part, WireUsage};
use crate::codec::api_error::{ApiError, Fields};
use crate::codec::{DecodeError, Decoder, Events};

/// Reads one answer of the Gemini API.
///
/// The answer is over with a finish reason and the end of the body; there is no end mark. Where
/// code runs on the server, a finish reason may come in the middle, and the answer goes on.
#[derive(Default)]
pub struct GeminiDecoder {
    calls: Calls,
    model: String,
    response_id: String,
    usage: Option<Usage>,
    finish: Option<StopReason>,
    /// Whether code was sent to run on the server whose result has not come.
    running: bool,
}

impl Decoder for GeminiDecoder {
    fn handle_data(&mut self, data: &str, events: &mut Events) -> Result<(), DecodeError> {
        match data.trim() {
            "" => Ok(()),
            chunk => self.handle_chunk(chunk, events),
        }
    }

    fn handle_document(&mut self, body: &str, events: &mut Events) -> Result<(), DecodeError> {
        // What the API has in place of events where a gateway loses the wish for them.
        match body.trim_start().starts_with('[') {
            true => {
                let chunks: Vec<&RawValue> = serde_json::from_str(body)
                    .map_err(|error| DecodeError::malformed(&error, body))?;
                chunks.iter().try_for_each(|chunk| self.handle_chunk(chunk.get(), events))?;
            }
            false => self.handle_chunk(body, events)?,
        }
        self.handle_end(events);
        Ok(())
    }

    fn handle_end(&mut self, events: &mut Events) {
        let Some(finish) = self.finish else { return };
        let stop_reason = match finish {
            StopReason::EndTurn if !self.calls.is_empty() => StopReason::ToolUse,
            finish => finish,
        };
        // A call that the limit has cut stays open.
        if stop_reason != StopReason::MaxTokens {
            self.calls.complete(events);
        }
        events.push_back(StreamEvent::Done { stop_reason });
    }

    fn is_finished(&self) -> bool {
        self.finish.is_some() && !self.running
    }
}

impl GeminiDecoder {
    fn handle_chunk(&mut self, data: &str, events: &mut Events) -> Result<(), DecodeError> {
        let chunk: Chunk<'_> =
            serde_json::from_str(data).map_err(|error| DecodeError::malformed(&error, data))?;
        if let Some(error) = &chunk.error {
            return Err(DecodeError::Api(ApiError::from_value(error, Fields::default())));
        }
        if chunk.candidates.is_none() && chunk.prompt_feedback.is_none() {
            check(&chunk, data)?;
        }
        if self.model.is_empty() && !chunk.model_version.0.is_empty() {
            self.model = chunk.model_version.0.into_owned();
            events.push_back(StreamEvent::Model(self.model.clone()));
        }
        if self.response_id.is_empty() && !chunk.response_id.0.is_empty() {
            self.response_id = chunk.response_id.0.into_owned();
            events.push_back(StreamEvent::RequestId(self.response_id.clone()));
        }
        if chunk.prompt_feedback.is_some_and(|feedback| !feedback.block_reason.0.is_empty()) {
            self.finish = Some(StopReason::Refusal);
        }
        // Other candidates than the first were not asked for.
        let candidates = chunk.candidates.unwrap_or_default();
        let handled = match candidates.into_iter().find(|c| c.index.unwrap_or(0) == 0) {
            Some(candidate) => self.handle_candidate(candidate, events),
            None => Ok(()),
        };
        // Behind the content, which it counts.
        if let Some(usage) = chunk.usage_metadata.and_then(usage)
            && self.usage.replace(usage) != Some(usage)
        {
            events.push_back(StreamEvent::Usage(usage));
        }
        handled
    }

    fn handle_candidate(
        &mut self,
        candidate: Candidate<'_>,
        events: &mut Events,
    ) -> Result<(), DecodeError> {
        let parts = candidate.content.and_then(|content| content.parts);
        for part in parts.unwrap_or_default() {
            self.handle_part(part, events);
        }
        match &*candidate.finish_reason.0 {
            "" => {}
            reason => match stop_reason(reason) {
                Some(stop_reason) => self.finish = Some(stop_reason),
                None => return Err(failed(reason, &candidate.finish_message.0)),
            },
        }
        Ok(())
    }

    fn handle_part(&mut self, part: Part<'_>, events: &mut Events) {
        let Part { text, thought, signature, call, others } = part;
        let text = text.unwrap_or_default();
        let (text, signature) = (&*text.0, &*signature.0);
        if let Some(call) = call {
            self.calls.handle(*call, signature, &self.response_id, events);
            return;
        }
        if !text.is_empty() {
            events.push_back(match thought {
                true => StreamEvent::ReasoningDelta(text.to_owned()),
                false => StreamEvent::TextDelta(text.to_owned()),
            });
        }
        // What stands beside a text only describes it.
        let opaque = if text.is_empty() { &*others } else { &[] };
        for (kind, _) in opaque {
            match &**kind {
                "executableCode" | "toolCall" => self.running = true,
                "codeExecutionResult" | "toolResponse" => self.running = false,
                _ => {}
            }
        }
        if !opaque.is_empty() || !signature.is_empty() {
            let data = whole_part(text, thought, signature, opaque);
            let data = ProviderData { api: API.into(), data };
            events.push_back(StreamEvent::ProviderData { index: None, data });
        }
    }
}

/// The part as it came, as the API takes it back.
fn whole_part(
    text: &str,
    thought: bool,
    signature: &str,
    others: &[(Cow<'_, str>, &RawValue)],
) -> String {
    let mut members: Vec<String> =
        others.iter().map(|(kind, value)| format!("{}:{value}", Value::from(&**kind))).collect();
    if others.is_empty() {
        members.push(format!("\"text\":{}", Value::from(text)));
    }
    if thought {
        members.push("\"thought\":true".to_owned());
    }
    if !signature.is_empty() {
        members.push(format!("\"thoughtSignature\":{}", Value::from(signature)));
    }
    format!("{{{}}}", members.join(","))
}

/// An event without an answer may still be one of this API: usage alone, or nothing.
fn check(chunk: &Chunk<'_>, data: &str) -> Result<(), DecodeError> {
    if chunk.usage_metadata.is_some() || !chunk.response_id.0.is_empty() {
        return Ok(());
    }
    Err(match ApiError::parse(data) {
        Some(error) => DecodeError::Api(error),
        None => DecodeError::Malformed {
            message: "the answer is JSON, but not one of the Gemini API".into(),
            raw: data.to_owned(),
        },
    })
}

/// `None`: the model failed, and the answer is none.
fn stop_reason(word: &str) -> Option<StopReason> {
    Some(match word {
        "STOP" => StopReason::EndTurn,
        "MAX_TOKENS" => StopReason::MaxTokens,
        "SAFETY"
        | "RECITATION"
        | "LANGUAGE"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "MODEL_ARMOR"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION" => StopReason::Refusal,
        "MALFORMED_FUNCTION_CALL"
        | "UNEXPECTED_TOOL_CALL"
        | "TOO_MANY_TOOL_CALLS"
        | "MISSING_THOUGHT_SIGNATURE"
        | "MALFORMED_RESPONSE" => return None,
        _ => StopReason::Other,
    })
}

fn failed(reason: &str, message: &str) -> DecodeError {
    let what = match reason {
        "MALFORMED_FUNCTION_CALL" => "the model wrote a function call that cannot be read",
        "UNEXPECTED_TOOL_CALL" => "the model called a tool although it was offered none",
        "TOO_MANY_TOOL_CALLS" => "the model called too many tools in a row",
        "MISSING_THOUGHT_SIGNATURE" => "the signature of a thought is missing in the request",
        _ => "the model wrote an answer that cannot be read",
    };
    let message = match message {
        "" => format!("{what} ({reason})"),
        message => format!("{what} ({reason}): {message}"),
    };
    let code = Some(reason.to_ascii_lowercase());
    DecodeError::Api(ApiError { message, code, ..ApiError::default() })
}

/// `None` where the provider names no figure.
fn usage(wire: WireUsage) -> Option<Usage> {
    let prompt = wire.prompt_token_count?;
    let candidates = wire.candidates_token_count.unwrap_or(0);
    let thoughts = wire.thoughts_token_count;
    Some(Usage {
        input_tokens: prompt.saturating_add(wire.tool_use_prompt_token_count.unwrap_or(0)),
        output_tokens: candidates.saturating_add(thoughts.unwrap_or(0)),
        reasoning_tokens: thoughts,
        cache_read_tokens: wire.cached_content_token_count,
        cache_write_tokens: None,
        source: UsageSource::Reported,
    })
}
