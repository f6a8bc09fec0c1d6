//! [`OpenCalls`]: the tool calls of one reply, put together from their deltas.
//!
//! The documented form is one index per call, id and name in its first delta. Servers in the
//! field leave the index out, leave gaps, use one index for all calls, repeat id and name in
//! every delta, send a fresh id with every delta, or send whole calls at once.

use toolloop_core::{ProviderData, StreamEvent, ToolCall, parse_arguments};

use super::API;
use super::wire::{CallDelta, FunctionDelta};
use crate::codec::Events;

/// The calls of one reply, in order of appearance; the position is the index in our events.
#[derive(Default)]
pub(super) struct OpenCalls(Vec<OpenCall>);

#[derive(Default)]
struct OpenCall {
    wire_index: Option<u32>,
    id: String,
    name: String,
    arguments: String,
    /// Whether the start was told; it waits for the name.
    started: bool,
}

impl OpenCalls {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Gives the position of the call.
    pub(super) fn handle(&mut self, delta: CallDelta<'_>, events: &mut Events) -> u32 {
        let CallDelta { index, id, function, extra_content } = delta;
        let FunctionDelta { name, arguments } = function.unwrap_or_default();
        let (id, name, arguments) = (&*id.0, &*name.0, &*arguments.text);
        let position = self.find(index, id, name, arguments).unwrap_or_else(|| {
            self.0.push(OpenCall { wire_index: index, ..OpenCall::default() });
            self.0.len() - 1
        });
        self.0[position].extend(position as u32, id, name, arguments, events);
        if let Some(extra) = extra_content {
            let data =
                ProviderData { api: API.into(), data: format!("{{\"extra_content\":{extra}}}") };
            events.push_back(StreamEvent::ProviderData { index: Some(position as u32), data });
        }
        position as u32
    }

    /// More argument text for the call at a position that [`handle`](Self::handle) has given out.
    pub(super) fn push_arguments(&mut self, position: u32, text: &str, events: &mut Events) {
        if let Some(call) = self.0.get_mut(position as usize) {
            call.extend(position, "", "", text, events);
        }
    }

    /// The reply is over. With `cut`, a call whose text is no complete JSON stays open.
    pub(super) fn complete(&mut self, cut: bool, events: &mut Events) {
        for (position, call) in self.0.drain(..).enumerate() {
            let index = position as u32;
            if !call.started {
                events.push_back(call.start(index));
                events.extend(call.delta_so_far(index));
            }
            if cut && !is_complete(&call.arguments) {
                continue;
            }
            let arguments = parse_arguments(&call.arguments);
            let call = ToolCall { id: call.id, name: call.name, arguments };
            events.push_back(StreamEvent::ToolCallComplete { index, call });
        }
    }

    /// The open call a delta goes on with; `None`: it begins another.
    fn find(&self, index: Option<u32>, id: &str, name: &str, arguments: &str) -> Option<usize> {
        let candidate = match index {
            Some(_) => self.0.iter().rposition(|call| call.wire_index == index),
            None if id.is_empty() => self.0.len().checked_sub(1),
            None => self.0.iter().rposition(|call| call.id == id).or_else(|| {
                // A fresh id without a name goes on with the last call.
                name.is_empty().then(|| self.0.len().checked_sub(1)).flatten()
            }),
        }?;
        let call = &self.0[candidate];
        // Only a name begins a call; a fresh id alone does not.
        let more = || !arguments.trim().is_empty() && is_complete(&call.arguments);
        let another = !name.is_empty()
            && match id.is_empty() || call.id.is_empty() {
                true => !call.name.is_empty() && (name != call.name || more()),
                false => id != call.id || index.is_none() && more(),
            };
        (!another).then_some(candidate)
    }
}

impl OpenCall {
    fn extend(&mut self, index: u32, id: &str, name: &str, arguments: &str, events: &mut Events) {
        if self.id.is_empty() {
            self.id.push_str(id);
        }
        if self.name.is_empty() {
            self.name.push_str(name);
        }
        self.arguments.push_str(arguments);
        if self.started {
            if !arguments.is_empty() {
                let json_chunk = arguments.to_owned();
                events.push_back(StreamEvent::ToolCallDelta { index, json_chunk });
            }
        } else if !self.name.is_empty() {
            self.started = true;
            events.push_back(self.start(index));
            events.extend(self.delta_so_far(index));
        }
    }

    fn start(&self, index: u32) -> StreamEvent {
        StreamEvent::ToolCallStart { index, id: self.id.clone(), name: self.name.clone() }
    }

    fn delta_so_far(&self, index: u32) -> Option<StreamEvent> {
        let json_chunk = self.arguments.clone();
        (!json_chunk.is_empty()).then_some(StreamEvent::ToolCallDelta { index, json_chunk })
    }
}

/// Whether the text is a whole JSON object. The look at its end spares most texts the parser.
fn is_complete(arguments: &str) -> bool {
    arguments.trim_end().ends_with('}')
        && serde_json::from_str::<serde::de::IgnoredAny>(arguments).is_ok()
}
