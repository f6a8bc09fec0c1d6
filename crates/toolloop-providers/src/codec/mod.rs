//! Codecs: request bytes out of [`ChatParams`](toolloop_core::ChatParams), stream events out of
//! response bytes. Pure: no socket, no clock, no key.
//!
//! There is one folder per API. [`Decoder`] is what the transport knows of an API: it feeds one
//! event of the stream after the other and takes the events that come of it. [`Frames`] cuts a
//! body into those events, however its bytes were cut on the way.

pub mod anthropic;
mod api_error;
mod arguments;
mod body;
mod forgiving;
mod frames;
pub mod gemini;
mod ids;
pub mod lines;
pub mod ollama;
pub mod openai_chat;
pub mod openai_responses;
mod outgoing;
mod picture;
mod reading;
pub mod schema;
pub mod sse;
mod template;

use std::collections::VecDeque;

use toolloop_core::StreamEvent;

pub use api_error::ApiError;
pub use frames::{Frames, Framing};
pub use outgoing::outgoing;
pub(crate) use reading::{Reading, is_below, origin};

/// Events that were decoded and not yet taken.
pub type Events = VecDeque<StreamEvent>;

/// Reads the answer of one model call; a new one is made for every try.
pub trait Decoder: Default + Send + Unpin + 'static {
    /// How the API cuts its stream into events.
    const FRAMING: Framing = Framing::Sse;

    /// Takes the data of one event of the stream.
    ///
    /// # Errors
    /// When the data is not what the API promises, or reports an error.
    fn handle_data(&mut self, data: &str, events: &mut Events) -> Result<(), DecodeError>;

    /// Takes an answer that came as one JSON document though a stream was asked for.
    ///
    /// # Errors
    /// As [`handle_data`](Self::handle_data).
    fn handle_document(&mut self, body: &str, events: &mut Events) -> Result<(), DecodeError>;

    /// The body is over. Gives `StreamEvent::Done` only if the answer had its proper end.
    fn handle_end(&mut self, events: &mut Events);

    /// Whether the model has finished, so that nothing but usage and the end mark can follow.
    fn is_finished(&self) -> bool;

    /// What cures an error of the API, where its own words do not say so.
    fn cure(_error: &ApiError) -> Option<String> {
        None
    }
}

/// Why an answer could not be decoded.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The provider reports an error in place of an answer.
    #[error("{0}")]
    Api(ApiError),
    /// The data is not in the form the API promises.
    #[error("{message}")]
    Malformed {
        /// What is wrong with it.
        message: String,
        /// What came.
        raw: String,
    },
}

impl DecodeError {
    fn malformed(error: &serde_json::Error, raw: &str) -> Self {
        Self::Malformed { message: error.to_string(), raw: raw.to_owned() }
    }
}
