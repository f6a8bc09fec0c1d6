//! [`Calls`]: the tool calls of one reply, whole or piece by piece.

use serde_json::value::RawValue;
use toolloop_core::{ProviderData, StreamEvent, ToolCall, parse_arguments};

use super::API;
use super::partial::PartialArguments;
use super::wire::FunctionCall;
use crate::codec::Events;

/// The calls of one reply. At most one is open: pieces of a call follow each other.
#[derive(Default)]
pub(super) struct Calls {
    count: u32,
    open: Option<OpenCall>,
}

struct OpenCall {
    index: u32,
    id: String,
    name: String,
    arguments: PartialArguments,
}

impl Calls {
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Takes a call or a piece of one. Where the API gives no id, one is made of the reply's.
    pub(super) fn handle(
        &mut self,
        call: FunctionCall<'_>,
        signature: &str,
        response_id: &str,
        events: &mut Events,
    ) {
        // Only the first piece of a call has a name; the others may be without any content.
        if !call.name.0.is_empty() {
            self.complete(events);
            self.start(&call, response_id, events);
        }
        let Some(mut open) = self.open.take() else { return };
        let index = open.index;
        if !signature.is_empty() {
            let data = serde_json::json!({ "thoughtSignature": signature }).to_string();
            let data = ProviderData { api: API.into(), data };
            events.push_back(StreamEvent::ProviderData { index: Some(index), data });
        }
        for piece in call.partial_args.unwrap_or_default() {
            push_delta(index, open.arguments.push(&piece), events);
        }
        if call.will_continue == Some(true) {
            self.open = Some(open);
            return;
        }
        match call.args.map(RawValue::get) {
            Some(whole) => {
                push_delta(index, whole, events);
                events.push_back(open.complete(whole));
            }
            None => open.end(events),
        }
    }

    /// The open call, if there is one, is whole.
    pub(super) fn complete(&mut self, events: &mut Events) {
        if let Some(open) = self.open.take() {
            open.end(events);
        }
    }

    fn start(&mut self, call: &FunctionCall<'_>, response_id: &str, events: &mut Events) {
        let index = self.count;
        self.count += 1;
        let id = match (&*call.id.0, response_id) {
            // The assembler of the reply makes one.
            ("", "") => String::new(),
            ("", response_id) => format!("{response_id}_{index}"),
            (id, _) => id.to_owned(),
        };
        let name = call.name.0.clone().into_owned();
        events.push_back(StreamEvent::ToolCallStart { index, id: id.clone(), name: name.clone() });
        self.open = Some(OpenCall { index, id, name, arguments: PartialArguments::default() });
    }
}

impl OpenCall {
    fn end(mut self, events: &mut Events) {
        push_delta(self.index, self.arguments.end(), events);
        let arguments = std::mem::take(&mut self.arguments);
        events.push_back(self.complete(arguments.text()));
    }

    fn complete(self, arguments: &str) -> StreamEvent {
        let Self { index, id, name, .. } = self;
        let call = ToolCall { id, name, arguments: parse_arguments(arguments) };
        StreamEvent::ToolCallComplete { index, call }
    }
}

fn push_delta(index: u32, text: &str, events: &mut Events) {
    if !text.is_empty() {
        let json_chunk = text.to_owned();
        events.push_back(StreamEvent::ToolCallDelta { index, json_chunk });
    }
}
