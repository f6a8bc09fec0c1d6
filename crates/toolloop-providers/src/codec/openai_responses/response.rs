//! [`ResponsesDecoder`]: the events of an answer in, stream events out.

use serde_json::value::RawValue;
use toolloop_core::{StopReason, StreamEvent, Usage, UsageSource};

use super::calls::OpenCalls;
use super::kept::{Members, keep};
use super::wire::{Event, Item, Lane, Part, Response, Said, WireUsage};
use crate::codec::api_error::{ApiError, Fields};
use crate::codec::template::Template;
use crate::codec::{DecodeError, Decoder, Events};

/// Reads one answer of the Responses API.
///
/// The answer is over with `response.completed` or `response.incomplete`. Text comes in deltas;
/// an item of which none came says it all when it is done, and items that were never announced
/// are taken from the answer as a whole.
#[derive(Default)]
pub struct ResponsesDecoder {
    calls: OpenCalls,
    /// The items of which text has come.
    heard: Vec<u32>,
    /// The part of a summary that came last: item and part.
    summary: Option<(u32, u32)>,
    /// The id of the last thought, to which the items behind it are tied by theirs.
    thought: Option<String>,
    has_items: bool,
    model: String,
    refused: bool,
    done: bool,
    /// Of an event with a piece of text for the item of this index.
    template: Option<Template<(u32, Lane)>>,
}

impl Decoder for ResponsesDecoder {
    fn handle_data(&mut self, data: &str, events: &mut Events) -> Result<(), DecodeError> {
        if self.done {
            return Ok(());
        }
        if let Some(template) = &self.template
            && let Some(text) = template.read(data)
        {
            let (index, lane) = template.lane;
            self.handle_piece(index, lane, &text, events);
            return Ok(());
        }
        match data.trim() {
            // A gateway may close with the end mark of the other API.
            "" | "[DONE]" => Ok(()),
            data => self.handle_event(data, events),
        }
    }

    fn handle_document(&mut self, body: &str, events: &mut Events) -> Result<(), DecodeError> {
        let response: Response<'_> = read(body)?;
        if response.status.0.is_empty() && response.output.is_none() {
            return Err(unknown(body));
        }
        self.conclude(response, events)
    }

    fn handle_end(&mut self, _: &mut Events) {}

    fn is_finished(&self) -> bool {
        self.done
    }
}

impl ResponsesDecoder {
    fn handle_event(&mut self, data: &str, events: &mut Events) -> Result<(), DecodeError> {
        let event: Event<'_> = read(data)?;
        let index = event.output_index.unwrap_or(0);
        if let Some(lane) = event.lane() {
            let learned =
                Template::learn(data, &event.delta.0, Some("sequence_number"), (index, lane));
            self.template = learned.or(self.template.take());
            self.handle_piece(index, lane, &event.delta.0, events);
            return Ok(());
        }
        match &*event.kind.0 {
            "response.function_call_arguments.done" => {
                self.calls.push_rest(index, &event.arguments.0, events);
            }
            "response.output_item.added" => {
                self.has_items = true;
                if let Some(item) = event.item {
                    let item: Item<'_> = read(item.get())?;
                    if item.kind.0 == "function_call" {
                        self.calls.start(index, &item, events);
                    }
                }
            }
            "response.output_item.done" => {
                self.has_items = true;
                if let Some(item) = event.item {
                    self.handle_item(index, item, events)?;
                }
            }
            "response.created" | "response.queued" | "response.in_progress" => {
                if let Some(response) = event.response {
                    let response: Response<'_> = read(response.get())?;
                    self.handle_model(&response.model.0, events);
                }
            }
            "response.completed"
            | "response.incomplete"
            | "response.failed"
            | "response.cancelled" => match event.response {
                Some(response) => self.conclude(read(response.get())?, events)?,
                None => return Err(unknown(data)),
            },
            // An error may also stand alone, without a name.
            "" | "error" => return Err(unknown(data)),
            // Steps of tools that the provider runs, and doubles of what came in deltas.
            _ => {}
        }
        Ok(())
    }

    fn handle_piece(&mut self, index: u32, lane: Lane, text: &str, events: &mut Events) {
        match lane {
            Lane::Text => self.handle_text(index, text, events),
            Lane::Refusal => self.handle_refusal(index, text, events),
            Lane::Thought => self.handle_thought(index, text, events),
            Lane::Summary(part) => self.handle_summary((index, part), text, events),
            Lane::Arguments => self.calls.push(index, text, events),
        }
    }

    /// An item is whole.
    fn handle_item(
        &mut self,
        index: u32,
        raw: &RawValue,
        events: &mut Events,
    ) -> Result<(), DecodeError> {
        let item: Item<'_> = read(raw.get())?;
        match &*item.kind.0 {
            "message" => {
                if !self.heard.contains(&index) {
                    for part in read::<Said<'_>>(raw.get())?.content.unwrap_or_default() {
                        self.handle_text(index, &part.text.0, events);
                        self.handle_refusal(index, &part.refusal.0, events);
                    }
                }
                let members = Members::of_item(raw, self.thought.as_deref());
                // Behind no text, they would belong to something else.
                if self.heard.contains(&index) {
                    events.extend(members.map(|members| keep(None, members)));
                }
            }
            "function_call" => {
                let call = self.calls.close(index, &item, events);
                let members = Members::of_item(raw, self.thought.as_deref());
                events.extend(members.map(|members| keep(Some(call), members)));
            }
            "reasoning" => {
                if !self.heard.contains(&index) {
                    self.handle_whole_thought(index, &read(raw.get())?, events);
                }
                self.thought = Some(item.id.0.into_owned());
                events.push_back(keep(None, raw.get()));
            }
            "" => {}
            _ => events.push_back(keep(None, raw.get())),
        }
        Ok(())
    }

    fn handle_whole_thought(&mut self, index: u32, thought: &Said<'_>, events: &mut Events) {
        let parts = |parts: &Option<Vec<Part<'_>>>| -> Vec<String> {
            parts.iter().flatten().map(|part| part.text.0.to_string()).collect()
        };
        for (part, text) in (0..).zip(parts(&thought.summary)) {
            self.handle_summary((index, part), &text, events);
        }
        if !self.heard.contains(&index) {
            self.handle_thought(index, &parts(&thought.content).concat(), events);
        }
    }

    fn handle_text(&mut self, index: u32, text: &str, events: &mut Events) {
        if !text.is_empty() {
            self.hear(index);
            events.push_back(StreamEvent::TextDelta(text.to_owned()));
        }
    }

    fn handle_refusal(&mut self, index: u32, text: &str, events: &mut Events) {
        self.refused |= !text.is_empty();
        self.handle_text(index, text, events);
    }

    fn handle_thought(&mut self, index: u32, text: &str, events: &mut Events) {
        if !text.is_empty() {
            self.hear(index);
            events.push_back(StreamEvent::ReasoningDelta(text.to_owned()));
        }
    }

    /// The parts of a summary are paragraphs with a title each.
    fn handle_summary(&mut self, part: (u32, u32), text: &str, events: &mut Events) {
        let before = self.summary.replace(part);
        if before.is_some_and(|before| before.0 == part.0 && before.1 != part.1) {
            self.handle_thought(part.0, "\n\n", events);
        }
        self.handle_thought(part.0, text, events);
    }

    fn hear(&mut self, index: u32) {
        if self.heard.last() != Some(&index) {
            self.heard.push(index);
        }
    }

    fn handle_model(&mut self, model: &str, events: &mut Events) {
        if !model.is_empty() && self.model != model {
            model.clone_into(&mut self.model);
            events.push_back(StreamEvent::Model(self.model.clone()));
        }
    }

    /// The answer is over, well or not.
    fn conclude(&mut self, response: Response<'_>, events: &mut Events) -> Result<(), DecodeError> {
        let status = &*response.status.0;
        let is_whole = matches!(status, "completed" | "incomplete");
        if let Some(error) = response.error.as_ref().filter(|_| !is_whole) {
            return Err(DecodeError::Api(ApiError::from_value(error, Fields::default())));
        }
        if !is_whole && !status.is_empty() {
            let message = format!("the response ended as {status:?}, without a reason");
            return Err(DecodeError::Api(ApiError { message, ..ApiError::default() }));
        }
        self.handle_model(&response.model.0, events);
        for (index, item) in (0..).zip(response.output.unwrap_or_default()) {
            // A call that was announced and never finished says here what it is.
            if !self.has_items || self.calls.is_open(index) {
                self.handle_item(index, item, events)?;
            }
        }
        events.extend(response.usage.and_then(usage).map(StreamEvent::Usage));
        let stop_reason = match response.incomplete_details {
            Some(details) => match &*details.reason.0 {
                "max_output_tokens" | "max_tokens" => StopReason::MaxTokens,
                "content_filter" => StopReason::Refusal,
                _ => StopReason::Other,
            },
            None if status == "incomplete" => StopReason::Other,
            None => {
                self.calls.complete(events);
                match (self.calls.is_empty(), self.refused) {
                    (false, _) => StopReason::ToolUse,
                    (true, true) => StopReason::Refusal,
                    (true, false) => StopReason::EndTurn,
                }
            }
        };
        self.done = true;
        events.push_back(StreamEvent::Done { stop_reason });
        Ok(())
    }
}

fn read<'a, T: serde::Deserialize<'a>>(json: &'a str) -> Result<T, DecodeError> {
    serde_json::from_str(json).map_err(|error| DecodeError::malformed(&error, json))
}

/// What is no event of this API: an error, or something of another API.
fn unknown(data: &str) -> DecodeError {
    match ApiError::parse(data) {
        Some(error) => DecodeError::Api(error),
        None => DecodeError::Malformed {
            message: "the answer is JSON, but not of the Responses API".into(),
            raw: data.to_owned(),
        },
    }
}

/// `None` where the provider names no figure.
fn usage(wire: WireUsage) -> Option<Usage> {
    let (input, output) = (wire.input_tokens, wire.output_tokens);
    let source = match (input, output) {
        (None, None) => return None,
        (Some(_), Some(_)) => UsageSource::Reported,
        _ => UsageSource::Unknown,
    };
    let details = wire.input_tokens_details;
    Some(Usage {
        input_tokens: input.unwrap_or(0),
        output_tokens: output.unwrap_or(0),
        reasoning_tokens: wire.output_tokens_details.and_then(|details| details.reasoning_tokens),
        cache_read_tokens: details.as_ref().and_then(|details| details.cached_tokens),
        cache_write_tokens: details.and_then(|details| details.cache_write_tokens),
        source,
    })
}
