//! [`OpenCalls`]: the function calls of one reply, while their arguments arrive.

use toolloop_core::{StreamEvent, ToolCall, parse_arguments};

use super::wire::Item;
use crate::codec::Events;

/// The calls of one reply, in order of appearance; the position is the index in our events.
#[derive(Default)]
pub(super) struct OpenCalls(Vec<OpenCall>);

struct OpenCall {
    output_index: u32,
    id: String,
    name: String,
    arguments: String,
    /// Whether the call was given.
    closed: bool,
    /// Whether its item has come whole, though it be incomplete.
    said: bool,
}

impl OpenCalls {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a call has begun there whose item never came whole.
    pub(super) fn is_open(&self, output_index: u32) -> bool {
        self.position(output_index).is_some_and(|index| !self.0[index as usize].said)
    }

    /// A call begins; gives its index. Its arguments come later, whatever it has already.
    pub(super) fn start(&mut self, output_index: u32, item: &Item<'_>, events: &mut Events) -> u32 {
        // Some servers have one index for all items.
        let is_another = |known: &OpenCall| {
            !item.call_id.0.is_empty() && !known.id.is_empty() && known.id != item.call_id.0
        };
        let known =
            self.0.iter().rposition(|call| call.output_index == output_index && !is_another(call));
        if let Some(position) = known {
            return position as u32;
        }
        let (id, name) = (item.call_id.0.to_string(), item.name.0.to_string());
        let index = self.0.len() as u32;
        events.push_back(StreamEvent::ToolCallStart { index, id: id.clone(), name: name.clone() });
        let (arguments, closed, said) = (String::new(), false, false);
        self.0.push(OpenCall { output_index, id, name, arguments, closed, said });
        index
    }

    /// More argument text.
    pub(super) fn push(&mut self, output_index: u32, text: &str, events: &mut Events) {
        if let Some(index) = self.position(output_index) {
            self.0[index as usize].extend(index, text, events);
        }
    }

    /// The whole argument text: what of it did not come in pieces comes now.
    pub(super) fn push_rest(&mut self, output_index: u32, whole: &str, events: &mut Events) {
        if let Some(index) = self.position(output_index) {
            let call = &mut self.0[index as usize];
            if let Some(rest) = whole.strip_prefix(&*call.arguments) {
                call.extend(index, rest, events);
            }
        }
    }

    /// The item of a call is whole, and says itself whether the call is; gives its index.
    pub(super) fn close(&mut self, output_index: u32, item: &Item<'_>, events: &mut Events) -> u32 {
        let index = self.start(output_index, item, events);
        let call = &mut self.0[index as usize];
        call.said = true;
        if let Some(rest) = item.arguments.0.strip_prefix(&*call.arguments) {
            call.extend(index, rest, events);
        }
        if item.status.0 != "incomplete" {
            // What the item says counts, should the pieces say something else.
            if !item.arguments.0.is_empty() {
                (*item.arguments.0).clone_into(&mut call.arguments);
            }
            call.complete(index, events);
        }
        index
    }

    /// The reply is whole, and with it every call whose item said nothing else.
    pub(super) fn complete(&mut self, events: &mut Events) {
        for (index, call) in (0..).zip(&mut self.0) {
            call.complete(index, events);
        }
    }

    fn position(&self, output_index: u32) -> Option<u32> {
        self.0.iter().rposition(|call| call.output_index == output_index).map(|at| at as u32)
    }
}

impl OpenCall {
    fn extend(&mut self, index: u32, text: &str, events: &mut Events) {
        if !text.is_empty() {
            self.arguments.push_str(text);
            events.push_back(StreamEvent::ToolCallDelta { index, json_chunk: text.to_owned() });
        }
    }

    fn complete(&mut self, index: u32, events: &mut Events) {
        if !std::mem::replace(&mut self.closed, true) {
            let arguments = parse_arguments(&self.arguments);
            let call = ToolCall { id: self.id.clone(), name: self.name.clone(), arguments };
            events.push_back(StreamEvent::ToolCallComplete { index, call });
        }
    }
}
