//! [`Script`]: what a server replies to each request, and how it is set up.

use std::collections::VecDeque;
use std::io::Write;
use std::path::Path;
use std::time::Duration;
use std::{fmt, fs, io};

use crate::demo::Demo;
use crate::log::Request;
use crate::reply::Reply;
use crate::script_file;

/// What a server replies to each request, and how it is set up.
///
/// Only requests that the API would accept reach the script; the others are refused before.
///
/// ```
/// use toolloop_fake::{Reply, Script};
///
/// let queue = Script::new([Reply::error(429, "Slow down"), Reply::text("Hello")]);
/// let echo = Script::from_fn(|request| Reply::text(request.body["model"].to_string()))
///     .require_key("sk-test")
///     .models(["gpt-4o"]);
/// ```
pub struct Script {
    pub(crate) replies: Box<dyn FnMut(&Request) -> Reply + Send>,
    pub(crate) key: Option<String>,
    pub(crate) models: Vec<String>,
    pub(crate) forget: bool,
    /// What its encrypted reasoning is known by.
    pub(crate) seal: String,
    pub(crate) sink: Option<Box<dyn Write + Send>>,
}

impl Script {
    /// A pause before every word with which a person sees the demo model write.
    pub const DEMO_WORD_DELAY: Duration = Duration::from_millis(15);

    /// These replies, one for each request. A request too many is refused.
    pub fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        let mut queue: VecDeque<Reply> = replies.into_iter().collect();
        Self::from_fn(move |request| queue.pop_front().unwrap_or_else(|| exhausted(request)))
    }

    /// What the function makes of each request. It runs on the server's thread.
    pub fn from_fn(replies: impl FnMut(&Request) -> Reply + Send + 'static) -> Self {
        Self {
            replies: Box::new(replies),
            key: None,
            models: Vec::new(),
            forget: false,
            seal: "fake".to_owned(),
            sink: None,
        }
    }

    /// The scripted model `demo`, with this pause before every word; see
    /// [`DEMO_WORD_DELAY`](Self::DEMO_WORD_DELAY).
    pub fn demo(word_delay: Duration) -> Self {
        let demo = Demo { word_delay };
        Self::from_fn(move |request| demo.reply(&request.body)).models([Demo::MODEL])
    }

    /// The replies in a file of JSON or JSON lines; the crate's documentation has the format.
    ///
    /// # Errors
    /// When the file cannot be read or is not in that format.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, ScriptError> {
        Self::parse(&fs::read_to_string(path)?)
    }

    /// The replies in this JSON or these JSON lines.
    ///
    /// # Errors
    /// When the text is not in that format.
    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        script_file::parse(text).map(Self::new)
    }

    /// Refuses requests without this key.
    pub fn require_key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Knows these models only; any model where it is given none.
    pub fn models(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.models = names.into_iter().map(Into::into).collect();
        self
    }

    /// Encrypts reasoning so that servers of another name cannot read it, nor this one theirs; all
    /// are `fake` unless named. The Responses API refuses what it cannot read.
    pub fn sealed_by(mut self, name: impl Into<String>) -> Self {
        self.seal = name.into();
        self
    }

    /// Writes one JSON line for each request once its reply has ended.
    pub fn log_to(mut self, sink: impl Write + Send + 'static) -> Self {
        self.sink = Some(Box::new(sink));
        self
    }

    /// Keeps nothing in memory of an exchange that has ended: for servers that run long.
    pub fn forget(mut self) -> Self {
        self.forget = true;
        self
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Script")
            .field("has_key", &self.key.is_some())
            .field("models", &self.models)
            .field("forget", &self.forget)
            .field("has_log", &self.sink.is_some())
            .finish()
    }
}

/// Why a script file is of no use.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScriptError {
    /// The file cannot be read.
    #[error("the script cannot be read: {0}")]
    Io(#[from] io::Error),
    /// A reply is not in the format.
    #[error("reply {reply} of the script is not in the format: {message}")]
    Format {
        /// Which reply, from 1.
        reply: usize,
        /// What is wrong with it.
        message: String,
    },
}

/// 400, because a client would try again after a status that says it may.
fn exhausted(request: &Request) -> Reply {
    let number = request.number;
    Reply::error(400, format!("the script has no reply left for request {number}"))
}
