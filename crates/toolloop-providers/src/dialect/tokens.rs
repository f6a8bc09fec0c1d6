//! [`Tokens`]: what a reply has cost that was ended before the provider said so.

use std::io;

use serde::Serialize;
use toolloop_core::{ChatParams, StreamEvent, Usage, UsageSource};

/// Counts a reply, for the case that it is ended early.
#[derive(Debug, Default)]
pub(super) struct Tokens {
    /// What the provider has said so far.
    reported: Option<Usage>,
    /// Bytes of the request.
    asked: u64,
    /// Bytes of the reply, markup and thoughts included.
    said: u64,
    max_output: Option<u32>,
}

impl Tokens {
    pub(super) fn of(params: &ChatParams) -> Self {
        Self { asked: bytes_of(params), max_output: params.max_tokens, ..Self::default() }
    }

    pub(super) fn note(&mut self, event: &StreamEvent) {
        match event {
            StreamEvent::TextDelta(text) | StreamEvent::ReasoningDelta(text) => {
                self.said += text.len() as u64;
            }
            StreamEvent::ToolCallStart { name, .. } => self.said += name.len() as u64,
            StreamEvent::ToolCallDelta { json_chunk, .. } => self.said += json_chunk.len() as u64,
            StreamEvent::Usage(usage) => self.reported = Some(*usage),
            StreamEvent::AttemptDiscarded { .. } => {
                self.reported = None;
                self.said = 0;
            }
            _ => {}
        }
    }

    /// Input as reported, or else by the size of the request; output by what has come, but no less
    /// than reported and no more than allowed.
    pub(super) fn estimate(&self) -> Usage {
        let reported = self.reported.unwrap_or_default();
        let input = match reported.input_tokens {
            0 => self.asked.div_ceil(4),
            known => known,
        };
        let most = self.max_output.map_or(u64::MAX, u64::from);
        let output = self.said.div_ceil(4).min(most).max(reported.output_tokens);
        Usage {
            input_tokens: input,
            output_tokens: output,
            source: reported.source.max(UsageSource::Estimated),
            ..reported
        }
    }
}

/// The size of what the model reads of a request.
fn bytes_of(params: &ChatParams) -> u64 {
    let mut bytes = Bytes(0);
    let read = (&params.system, &params.messages, &params.tools);
    // The sink takes everything, and what cannot be written as JSON is no text.
    let _ = read.serialize(&mut serde_json::Serializer::new(&mut bytes));
    bytes.0
}

struct Bytes(u64);

impl io::Write for Bytes {
    fn write(&mut self, written: &[u8]) -> io::Result<usize> {
        self.0 += written.len() as u64;
        Ok(written.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use toolloop_core::ChatMessage;

    use super::*;

    fn usage(input_tokens: u64, output_tokens: u64) -> Usage {
        Usage { input_tokens, output_tokens, source: UsageSource::Estimated, ..Usage::default() }
    }

    #[test]
    fn what_is_reported_bounds_what_is_estimated() {
        let params = ChatParams {
            messages: vec![ChatMessage::user("x".repeat(400))],
            max_tokens: Some(30),
            ..ChatParams::default()
        };
        let mut tokens = Tokens::of(&params);
        tokens.note(&StreamEvent::TextDelta("12345".into()));
        let asked = tokens.estimate().input_tokens;
        assert!((100..120).contains(&asked), "{asked}");
        assert_eq!(tokens.estimate(), usage(asked, 2));
        let reported = Usage { input_tokens: 90, output_tokens: 7, ..Usage::default() };
        tokens.note(&StreamEvent::Usage(reported));
        assert_eq!(tokens.estimate(), usage(90, 7));
        tokens.note(&StreamEvent::ReasoningDelta("x".repeat(400)));
        assert_eq!(tokens.estimate(), usage(90, 30));
    }
}
