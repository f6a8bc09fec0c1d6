//! [`OllamaDecoder`]: the lines of an answer in, stream events out.

use std::borrow::Cow;

use toolloop_core::{StopReason, StreamEvent, ToolCall, Usage, UsageSource, parse_arguments};

use super::wire::{Call, Function, Line};
use crate::codec::api_error::Fields;
use crate::codec::template::Template;
use crate::codec::{ApiError, DecodeError, Decoder, Events, Framing};

/// Reads one answer of Ollama's API; the line that says `done` is its end.
#[derive(Default)]
pub struct OllamaDecoder {
    model: String,
    calls: u32,
    done: bool,
    template: Option<Template<Lane>>,
}

/// What the text of a line is.
#[derive(Clone, Copy)]
enum Lane {
    Text,
    Thought,
}

impl Decoder for OllamaDecoder {
    const FRAMING: Framing = Framing::Lines;

    fn handle_data(&mut self, data: &str, events: &mut Events) -> Result<(), DecodeError> {
        if self.done {
            return Ok(());
        }
        if let Some(template) = &self.template
            && let Some(text) = template.read(data)
        {
            push(template.lane, text, events);
            return Ok(());
        }
        let line: Line<'_> = serde_json::from_str(data).map_err(|error| {
            // The sentence of an error without its wrapper stands where a message should.
            fault(data).unwrap_or_else(|| DecodeError::malformed(&error, data))
        })?;
        if let Some(error) = &line.error {
            return Err(DecodeError::Api(ApiError::from_value(error, Fields::default())));
        }
        if line.message.is_none() && !line.done {
            return Err(fault(data).unwrap_or_else(|| DecodeError::Malformed {
                message: "the answer is JSON, but no chat of Ollama".into(),
                raw: data.to_owned(),
            }));
        }
        // Every parsed line replaces the template, so none outlives a change of the model.
        self.template = piece(&line)
            .and_then(|(lane, text)| Template::learn(data, text, Some("created_at"), lane));
        self.handle_line(line, events);
        Ok(())
    }

    fn handle_document(&mut self, body: &str, events: &mut Events) -> Result<(), DecodeError> {
        // A proxy may give a stream another media type.
        let mut lines = body.lines().filter(|line| !line.trim().is_empty());
        match serde_json::from_str::<Line<'_>>(body) {
            Ok(_) => self.handle_data(body, events),
            Err(_) => lines.try_for_each(|line| self.handle_data(line, events)),
        }
    }

    fn handle_end(&mut self, _events: &mut Events) {}

    fn is_finished(&self) -> bool {
        self.done
    }

    fn cure(error: &ApiError) -> Option<String> {
        let text = error.message.as_str();
        if text.contains("not found") && text.contains("model") {
            let name = text.split(['"', '\'']).nth(1).unwrap_or("NAME");
            return Some(format!("get it with: ollama pull {name}"));
        }
        let lacks_tools = text.contains("does not support tools");
        lacks_tools.then(|| "choose a model that is made for tools, or offer none".to_owned())
    }
}

impl OllamaDecoder {
    fn handle_line(&mut self, line: Line<'_>, events: &mut Events) {
        if !line.model.0.is_empty() && self.model != line.model.0 {
            self.model = line.model.0.into_owned();
            events.push_back(StreamEvent::Model(self.model.clone()));
        }
        if let Some(message) = line.message {
            push(Lane::Thought, message.thinking.0, events);
            push(Lane::Text, message.content.0, events);
            for call in message.tool_calls.unwrap_or_default() {
                self.handle_call(call, events);
            }
        }
        if line.done {
            self.done = true;
            events.extend(usage(line.prompt_eval_count, line.eval_count).map(StreamEvent::Usage));
            events.push_back(StreamEvent::Done {
                stop_reason: self.stop_reason(&line.done_reason.0),
            });
        }
    }

    fn handle_call(&mut self, call: Call<'_>, events: &mut Events) {
        let Call { id, function: Function { name, arguments } } = call;
        let text = arguments.map_or("", |raw| raw.get());
        // Some proxies send the text of the object, as other APIs do.
        let quoted = text.starts_with('"').then(|| serde_json::from_str::<String>(text).ok());
        let arguments = quoted.flatten().unwrap_or_else(|| text.to_owned());
        let (index, id, name) = (self.calls, id.0.into_owned(), name.0.into_owned());
        self.calls += 1;
        events.push_back(StreamEvent::ToolCallStart { index, id: id.clone(), name: name.clone() });
        let call = ToolCall { id, name, arguments: parse_arguments(&arguments) };
        events.push_back(StreamEvent::ToolCallDelta { index, json_chunk: arguments });
        events.push_back(StreamEvent::ToolCallComplete { index, call });
    }

    /// The server says `stop` after calls, too.
    fn stop_reason(&self, word: &str) -> StopReason {
        match word {
            "stop" | "" if self.calls > 0 => StopReason::ToolUse,
            "stop" | "" => StopReason::EndTurn,
            "length" => StopReason::MaxTokens,
            _ => StopReason::Other,
        }
    }
}

/// The text of a line that brings nothing else.
fn piece<'a>(line: &'a Line<'_>) -> Option<(Lane, &'a str)> {
    let message = line.message.as_ref().filter(|message| message.tool_calls.is_none())?;
    match (&*message.thinking.0, &*message.content.0) {
        _ if line.done => None,
        ("", "") => None,
        ("", text) => Some((Lane::Text, text)),
        (thought, "") => Some((Lane::Thought, thought)),
        _ => None,
    }
}

fn push(lane: Lane, text: Cow<'_, str>, events: &mut Events) {
    if !text.is_empty() {
        events.push_back(match lane {
            Lane::Text => StreamEvent::TextDelta(text.into_owned()),
            Lane::Thought => StreamEvent::ReasoningDelta(text.into_owned()),
        });
    }
}

/// An error in place of a line, in the words of another server.
fn fault(data: &str) -> Option<DecodeError> {
    ApiError::parse(data).map(DecodeError::Api)
}

/// Older servers leave the input out when all of it was in their cache; it is not known then.
fn usage(input: Option<u64>, output: Option<u64>) -> Option<Usage> {
    let source = match (input, output) {
        (None, None) => return None,
        (Some(_), Some(_)) => UsageSource::Reported,
        _ => UsageSource::Unknown,
    };
    let (input_tokens, output_tokens) = (input.unwrap_or(0), output.unwrap_or(0));
    Some(Usage { input_tokens, output_tokens, source, ..Usage::default() })
}
