//! [`StreamProcessor`]: the events of a provider in, the events of the reply out.

use std::collections::VecDeque;

use serde_json::Value;

use super::Dialect;
use super::limit::{StreamingError, ToolLimit};
use super::scan::{End, Scanner};
use crate::arguments::parse_arguments;
use crate::chat::{StopReason, ToolCall};
use crate::params::ToolDefinition;
use crate::stream::StreamEvent;

/// Reads a reply in a dialect: its text becomes text, thought and calls; what is native passes.
///
/// ```
/// use std::collections::VecDeque;
/// use toolloop_core::dialect::{Dialect, StreamProcessor, ToolLimit};
/// use toolloop_core::{StopReason, StreamEvent, ToolDefinition};
///
/// let tools = [ToolDefinition {
///     name: "now".into(),
///     description: "The time".into(),
///     parameters: serde_json::json!({"type": "object"}).into(),
///     retry: None,
/// }];
/// let mut processor = StreamProcessor::new(Dialect::Xml, &tools, ToolLimit::One);
/// let mut events = VecDeque::new();
/// for piece in ["Let me see.\n<to", "ol:now></tool:now>"] {
///     processor.handle(StreamEvent::TextDelta(piece.into()), &mut events).unwrap();
/// }
/// let end = StreamEvent::Done { stop_reason: StopReason::EndTurn };
/// processor.handle(end, &mut events).unwrap();
/// assert_eq!(events[0], StreamEvent::TextDelta("Let me see.".into()));
/// assert!(matches!(&events[1], StreamEvent::ToolCallStart { name, .. } if name == "now"));
/// assert_eq!(events.back(), Some(&StreamEvent::Done { stop_reason: StopReason::ToolUse }));
/// ```
#[derive(Debug, Clone)]
pub struct StreamProcessor {
    scanner: Scanner,
    native: Vec<Native>,
    /// Whether the argument text of open calls is kept, for a reply that may be ended early.
    may_end_early: bool,
}

/// A native call.
#[derive(Debug, Clone)]
struct Native {
    /// Its index in the events of the provider.
    theirs: u32,
    /// Its index in the reply. They differ behind a call that was found in the text.
    ours: u32,
    /// The call with its argument text so far, until it is complete.
    open: Option<(ToolCall, String)>,
}

impl StreamProcessor {
    /// For one reply to a request that offers these tools.
    pub fn new(dialect: Dialect, tools: &[ToolDefinition], limit: ToolLimit) -> Self {
        Self {
            scanner: Scanner::new(dialect, tools, limit),
            native: Vec::new(),
            may_end_early: limit != ToolLimit::Unlimited,
        }
    }

    /// Takes the next event of the provider.
    ///
    /// # Errors
    /// [`StreamingError::ToolLimitReached`] where one call more than allowed begins; the events up
    /// to there are given, and the processor wants no others.
    pub fn handle(
        &mut self,
        event: StreamEvent,
        events: &mut VecDeque<StreamEvent>,
    ) -> Result<(), StreamingError> {
        let event = match event {
            StreamEvent::TextDelta(text) => return self.scanner.push(text, events),
            StreamEvent::ToolCallStart { index, id, name } => {
                let may_end_early = self.may_end_early;
                let native = self.begin(index, events)?;
                if may_end_early {
                    let (id, name) = (id.clone(), name.clone());
                    let call = ToolCall { id, name, arguments: Value::Null };
                    native.open = Some((call, String::new()));
                }
                let index = native.ours;
                StreamEvent::ToolCallStart { index, id, name }
            }
            StreamEvent::ToolCallDelta { index, json_chunk } => {
                let index = match self.known(index) {
                    Some(native) => {
                        if let Some((_, raw)) = &mut native.open {
                            raw.push_str(&json_chunk);
                        }
                        native.ours
                    }
                    None => index,
                };
                StreamEvent::ToolCallDelta { index, json_chunk }
            }
            StreamEvent::ToolCallComplete { index, call } => {
                let index = match self.known(index) {
                    Some(native) => {
                        native.open = None;
                        native.ours
                    }
                    None => self.begin(index, events)?.ours,
                };
                StreamEvent::ToolCallComplete { index, call }
            }
            StreamEvent::ProviderData { index: Some(index), data } => {
                let index = self.known(index).map_or(index, |native| native.ours);
                StreamEvent::ProviderData { index: Some(index), data }
            }
            // They belong to, or come behind, the text so far.
            StreamEvent::ProviderData { index: None, .. } => {
                self.scanner.finish(End::Interrupted, events)?;
                event
            }
            StreamEvent::ReasoningDelta(text) if text.is_empty() => return Ok(()),
            StreamEvent::ReasoningDelta(_) => {
                self.scanner.finish(End::Interrupted, events)?;
                event
            }
            StreamEvent::AttemptDiscarded { .. } => {
                self.scanner.reset();
                self.native.clear();
                event
            }
            StreamEvent::Done { stop_reason } => {
                let end = match stop_reason {
                    StopReason::MaxTokens => End::Limit,
                    _ => End::Proper,
                };
                self.scanner.finish(end, events)?;
                StreamEvent::Done { stop_reason: self.stop_reason(stop_reason) }
            }
            event => event,
        };
        events.push_back(event);
        Ok(())
    }

    /// Whether nothing comes of this event but the event itself; it need not be handled then.
    pub fn lets_pass(&mut self, event: &StreamEvent) -> bool {
        matches!(event, StreamEvent::TextDelta(text) if self.scanner.lets_pass(text))
    }

    /// The reply broke off: gives what is held as text.
    pub fn interrupt(&mut self, events: &mut VecDeque<StreamEvent>) {
        // Whatever the limit: none of its calls will run.
        let _ = self.scanner.finish(End::Interrupted, events);
    }

    /// Calls that have begun.
    pub fn calls(&self) -> u32 {
        self.scanner.calls()
    }

    /// The reply is ended before its end: gives the calls that the provider had not closed.
    pub fn end_early(&mut self, events: &mut VecDeque<StreamEvent>) {
        for native in &mut self.native {
            let Some((mut call, raw)) = native.open.take() else { continue };
            call.arguments = parse_arguments(&raw);
            events.push_back(StreamEvent::ToolCallComplete { index: native.ours, call });
        }
    }

    /// A native call begins.
    fn begin(
        &mut self,
        theirs: u32,
        events: &mut VecDeque<StreamEvent>,
    ) -> Result<&mut Native, StreamingError> {
        self.scanner.finish(End::Interrupted, events)?;
        let ours = self.scanner.begin_native(theirs)?;
        self.native.push(Native { theirs, ours, open: None });
        let last = self.native.len() - 1;
        Ok(&mut self.native[last])
    }

    fn known(&mut self, index: u32) -> Option<&mut Native> {
        // From the back: some servers use an index twice.
        self.native.iter_mut().rev().find(|native| native.theirs == index)
    }

    /// A model that wrote its call as text thinks that it just ended.
    fn stop_reason(&self, said: StopReason) -> StopReason {
        match said {
            StopReason::EndTurn | StopReason::StopSequence if self.scanner.has_found() => {
                StopReason::ToolUse
            }
            said => said,
        }
    }
}
