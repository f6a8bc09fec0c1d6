//! [`ChatDecoder`]: the chunks of an answer in, stream events out.

use std::borrow::Cow;

use toolloop_core::{StopReason, StreamEvent, Usage, UsageSource};

use super::calls::OpenCalls;
use super::details::Details;
use super::wire::{CallDelta, Choice, Chunk, Content, Delta, WireUsage};
use crate::codec::api_error::{ApiError, Fields};
use crate::codec::template::Template;
use crate::codec::{DecodeError, Decoder, Events};

/// Reads one answer of the Chat Completions API.
///
/// The answer is over with `[DONE]`, or with a finish reason and the end of the body. Calls are
/// completed there: some servers send deltas after the finish reason.
#[derive(Default)]
pub struct ChatDecoder {
    calls: OpenCalls,
    model: String,
    usage: Option<Usage>,
    finish: Option<StopReason>,
    details: Details,
    /// Whether text or a call has come.
    spoken: bool,
    refused: bool,
    done: bool,
    template: Option<Template<Lane>>,
}

/// What the text of a chunk is.
#[derive(Clone, Copy)]
enum Lane {
    Text,
    Reasoning,
    /// Arguments of the call at this position.
    Arguments(u32),
}

impl Decoder for ChatDecoder {
    fn handle_data(&mut self, data: &str, events: &mut Events) -> Result<(), DecodeError> {
        if self.done {
            return Ok(());
        }
        if let Some(template) = &self.template
            && let Some(text) = template.read(data)
        {
            match template.lane {
                Lane::Text => push_text(&text, events),
                Lane::Reasoning => push_reasoning(&text, events),
                Lane::Arguments(position) => self.calls.push_arguments(position, &text, events),
            }
            return Ok(());
        }
        match data.trim() {
            "" => {}
            "[DONE]" => self.finish(events),
            chunk => self.handle_chunk(chunk, events)?,
        }
        Ok(())
    }

    fn handle_document(&mut self, body: &str, events: &mut Events) -> Result<(), DecodeError> {
        self.handle_chunk(body, events)?;
        self.finish(events);
        Ok(())
    }

    fn handle_end(&mut self, events: &mut Events) {
        if self.is_finished() {
            self.finish(events);
        }
    }

    fn is_finished(&self) -> bool {
        self.finish.is_some()
    }
}

impl ChatDecoder {
    fn handle_chunk(&mut self, data: &str, events: &mut Events) -> Result<(), DecodeError> {
        let chunk: Chunk<'_> =
            serde_json::from_str(data).map_err(|error| DecodeError::malformed(&error, data))?;
        fault(&chunk, data)?;
        let candidate = borrowed_text(&chunk);
        let known = events.len();

        if !chunk.model.0.is_empty() && self.model != chunk.model.0 {
            self.model = chunk.model.0.into_owned();
            events.push_back(StreamEvent::Model(self.model.clone()));
        }
        // Other choices than the first were not asked for.
        let choices = chunk.choices.unwrap_or_default();
        let handled = match choices.into_iter().find(|choice| choice.index.unwrap_or(0) == 0) {
            Some(choice) => self.handle_choice(choice, events),
            None => Ok(()),
        };
        if let Some(usage) = chunk.usage.and_then(|wire| usage(*wire))
            && self.usage.replace(usage) != Some(usage)
        {
            events.push_back(StreamEvent::Usage(usage));
        }
        handled?;

        // Every parsed chunk replaces the template, so none outlives a change of state.
        let only = events.back().filter(|_| events.len() == known + 1);
        self.template = candidate.zip(only).and_then(|((lane, text), event)| {
            let lane = match (lane, event) {
                (Lane::Arguments(_), StreamEvent::ToolCallDelta { index, .. }) => {
                    Lane::Arguments(*index)
                }
                (Lane::Text, StreamEvent::TextDelta(_))
                | (Lane::Reasoning, StreamEvent::ReasoningDelta(_)) => lane,
                _ => return None,
            };
            Template::learn(data, text, Some("created"), lane)
        });
        Ok(())
    }

    fn handle_choice(
        &mut self,
        choice: Choice<'_>,
        events: &mut Events,
    ) -> Result<(), DecodeError> {
        let delta = choice.delta.or(choice.message.map(|message| *message)).unwrap_or_default();
        let Delta { content, reasoning_content, reasoning, refusal, tool_calls, .. } = delta;
        match reasoning_content.0.is_empty() {
            false => push_reasoning(&reasoning_content.0, events),
            true => push_reasoning(&reasoning.0, events),
        }
        delta.reasoning_details.into_iter().for_each(|details| self.details.handle(*details));
        let calls = tool_calls.unwrap_or_default().into_iter();
        let old_form = delta
            .function_call
            .map(|function| CallDelta { function: Some(*function), ..CallDelta::default() });
        let mut calls = calls.chain(old_form).peekable();
        let speaks = calls.peek().is_some() || !content.is_empty() || !refusal.0.is_empty();
        if speaks && !std::mem::replace(&mut self.spoken, true) {
            self.hand_on_details(None, events);
        }
        self.handle_content(content, events);
        self.handle_refusal(&refusal.0, events);
        for call in calls {
            let position = self.calls.handle(call, events);
            self.hand_on_details(Some(position), events);
        }
        if self.finish.is_none() {
            self.finish = stop_reason(&choice.finish_reason.0)?;
        }
        Ok(())
    }

    /// Text must not be parted by details that come in its midst: they wait for a call or the end.
    fn hand_on_details(&mut self, index: Option<u32>, events: &mut Events) {
        let data = self.details.take();
        events.extend(data.map(|data| StreamEvent::ProviderData { index, data }));
    }

    fn handle_content(&mut self, content: Content<'_>, events: &mut Events) {
        match content {
            Content::Text(text) => push_text(&text, events),
            Content::Parts(parts) => {
                for part in parts {
                    push_reasoning(&thought(part.thinking), events);
                    push_text(&part.text.0, events);
                    self.handle_refusal(&part.refusal.0, events);
                }
            }
        }
    }

    fn handle_refusal(&mut self, text: &str, events: &mut Events) {
        self.refused |= !text.is_empty();
        push_text(text, events);
    }

    fn finish(&mut self, events: &mut Events) {
        if std::mem::replace(&mut self.done, true) {
            return;
        }
        let default = match self.calls.is_empty() {
            true => StopReason::EndTurn,
            false => StopReason::ToolUse,
        };
        let stop_reason = match self.finish.unwrap_or(default) {
            StopReason::EndTurn if self.refused => StopReason::Refusal,
            reason => reason,
        };
        self.hand_on_details(None, events);
        self.calls.complete(stop_reason == StopReason::MaxTokens, events);
        events.push_back(StreamEvent::Done { stop_reason });
    }
}

fn push_text(text: &str, events: &mut Events) {
    if !text.is_empty() {
        events.push_back(StreamEvent::TextDelta(text.to_owned()));
    }
}

fn push_reasoning(text: &str, events: &mut Events) {
    if !text.is_empty() {
        events.push_back(StreamEvent::ReasoningDelta(text.to_owned()));
    }
}

/// The text of a thought that came in parts.
fn thought(thinking: Content<'_>) -> Cow<'_, str> {
    match thinking {
        Content::Text(text) => text,
        Content::Parts(parts) => Cow::Owned(parts.iter().map(|part| &*part.text.0).collect()),
    }
}

/// An error in place of a chunk.
fn fault(chunk: &Chunk<'_>, data: &str) -> Result<(), DecodeError> {
    let choices = chunk.choices.as_deref().unwrap_or_default();
    let mut errors = chunk.error.iter().chain(choices.iter().filter_map(|c| c.error.as_ref()));
    let error = match errors.next() {
        Some(error) => match ApiError::from_value(error, Fields::default()) {
            // Gateways that know the member only: nothing is said in it, beside an answer.
            error if error.message.is_empty() && !choices.is_empty() => return Ok(()),
            error => error,
        },
        // An error may also stand alone, without a name.
        None if chunk.choices.is_none() && chunk.usage.is_none() => ApiError::parse(data)
            .ok_or_else(|| DecodeError::Malformed {
                message: "the answer is JSON, but no chat completion".into(),
                raw: data.to_owned(),
            })?,
        None => return Ok(()),
    };
    Err(DecodeError::Api(error))
}

/// The text of a chunk that may bring nothing else, where it stands there. The position of a call
/// is not known here.
fn borrowed_text<'a>(chunk: &Chunk<'a>) -> Option<(Lane, &'a str)> {
    let [Choice { delta: Some(delta), .. }] = chunk.choices.as_deref()? else { return None };
    if delta.reasoning_details.is_some() {
        return None;
    }
    let (lane, text) = match (&delta.content, delta.tool_calls.as_deref()) {
        (_, Some([CallDelta { id, function: Some(function), .. }])) => {
            // What an id or a name means depends on the calls so far.
            let plain = id.0.is_empty() && function.name.0.is_empty();
            let text = function.arguments.escaped;
            return (plain && !text.is_empty()).then_some((Lane::Arguments(0), text));
        }
        (Content::Text(text), _) if !text.is_empty() => (Lane::Text, text),
        _ if !delta.reasoning_content.0.is_empty() => (Lane::Reasoning, &delta.reasoning_content.0),
        _ => (Lane::Reasoning, &delta.reasoning.0),
    };
    match text {
        Cow::Borrowed(text) if !text.is_empty() => Some((lane, text)),
        _ => None,
    }
}

/// `None` for an empty word: some servers send one in every chunk.
fn stop_reason(word: &str) -> Result<Option<StopReason>, DecodeError> {
    Ok(Some(match word {
        "" => return Ok(None),
        "stop" => StopReason::EndTurn,
        "length" | "model_length" => StopReason::MaxTokens,
        "tool_calls" | "function_call" => StopReason::ToolUse,
        "content_filter" => StopReason::Refusal,
        // Words of Mistral and OpenRouter, DeepSeek, and vLLM for a reply that is not whole.
        "error" | "insufficient_system_resource" | "abort" => {
            let message = format!("the server broke the reply off (finish_reason {word:?})");
            let code = Some("server_error".to_owned());
            return Err(DecodeError::Api(ApiError { message, code, ..ApiError::default() }));
        }
        _ => StopReason::Other,
    }))
}

/// `None` where the provider names no figure.
fn usage(wire: WireUsage) -> Option<Usage> {
    let (input, output) = (wire.prompt_tokens, wire.completion_tokens);
    let source = match (input, output) {
        (None, None) => return None,
        (Some(_), Some(_)) => UsageSource::Reported,
        _ => UsageSource::Unknown,
    };
    let (input_tokens, mut output_tokens) = (input.unwrap_or(0), output.unwrap_or(0));
    let reasoning_tokens = wire.completion_tokens_details.and_then(|d| d.reasoning_tokens);
    let apart = reasoning_tokens.unwrap_or(0);
    let together = output_tokens.saturating_add(apart);
    if apart > 0 && wire.total_tokens == Some(input_tokens.saturating_add(together)) {
        // xAI counts reasoning beside the completion.
        output_tokens = together;
    }
    let details = wire.prompt_tokens_details;
    let cached = details.as_ref().and_then(|d| d.cached_tokens).or(wire.prompt_cache_hit_tokens);
    Some(Usage {
        input_tokens,
        output_tokens,
        reasoning_tokens,
        cache_read_tokens: cached,
        cache_write_tokens: details.and_then(|d| d.cache_write_tokens),
        source,
    })
}
