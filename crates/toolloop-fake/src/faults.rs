//! [`Fault`]: what goes wrong with a reply on its way. Faults compose.

use std::time::Duration;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Something that goes wrong with a reply.
///
/// Events count from 0, and a fault "at event N" happens after N events have been written. One
/// that lies beyond the end of the reply happens at its end. Bytes are those of the body, without
/// the framing of HTTP. In script files the names are in snake_case, durations in milliseconds.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// Waits before the status line.
    #[serde(rename = "delay_head_ms", deserialize_with = "millis")]
    DelayHead(Duration),
    /// Waits before every event.
    #[serde(rename = "delay_events_ms", deserialize_with = "millis")]
    DelayEvents(Duration),
    /// Closes the connection after so many bytes of the body.
    CutAtByte(u64),
    /// Closes the connection at this event.
    CutAtEvent(usize),
    /// Ends the stream in good order at this event, as if that was all.
    EndAtEvent(usize),
    /// Sends nothing more from this event on and keeps the connection open.
    StallAtEvent {
        /// The event.
        event: usize,
        /// Sends a ping at this interval, in server-sent events only: the event `ping` where the
        /// reply has one, else the comment `: ping`.
        #[serde(default, rename = "ping_every_ms", deserialize_with = "optional_millis")]
        ping_every: Option<Duration>,
    },
    /// Puts these bytes before this event: rubbish, or an event in another shape.
    GarbageAtEvent {
        /// The event.
        event: usize,
        /// The bytes; text in script files.
        #[serde(rename = "text", deserialize_with = "text_bytes")]
        bytes: Vec<u8>,
    },
    /// Puts an event whose JSON breaks off before this event.
    MalformedJsonAtEvent(usize),
    /// Puts an event with bytes that are not UTF-8 before this event.
    InvalidUtf8AtEvent(usize),
    /// Puts the event `{"error": ...}` before this event.
    ErrorAtEvent {
        /// The event.
        event: usize,
        /// The value of `error`.
        error: Value,
    },
    /// Puts one event of so many bytes before this event; it takes no memory.
    HugeEvent {
        /// The event.
        event: usize,
        /// Size of the whole event.
        bytes: u64,
    },
    /// Ends the stream in good order but without the API's end marker.
    NoEndMarker,
    /// Reads the request and never answers.
    Mute,
    /// Resets the connection instead of answering.
    Reset,
}

impl Fault {
    /// The event at which the fault happens, if it belongs to one.
    pub(crate) fn event(&self) -> Option<usize> {
        match self {
            Self::CutAtEvent(event)
            | Self::EndAtEvent(event)
            | Self::StallAtEvent { event, .. }
            | Self::GarbageAtEvent { event, .. }
            | Self::MalformedJsonAtEvent(event)
            | Self::InvalidUtf8AtEvent(event)
            | Self::ErrorAtEvent { event, .. }
            | Self::HugeEvent { event, .. } => Some(*event),
            _ => None,
        }
    }
}

fn millis<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    u64::deserialize(deserializer).map(Duration::from_millis)
}

fn optional_millis<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Duration>, D::Error> {
    Ok(Option::<u64>::deserialize(deserializer)?.map(Duration::from_millis))
}

fn text_bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    String::deserialize(deserializer).map(String::into_bytes)
}
