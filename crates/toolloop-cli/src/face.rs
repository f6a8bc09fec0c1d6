//! [`Face`]: who is told of a run while it goes: a person at a terminal, or a program.

use std::io;
use std::path::Path;
use std::time::Duration;

use toolloop_core::{LoopEvent, ToolCall};

use crate::model::Target;
use crate::report::Report;
use crate::run_id::RunId;
use crate::steering::Steering;
use crate::summary::Ending;
use crate::terminal::keys::Key;
use crate::terminal::question::Question;

/// Follows a run. An error means that nobody can be told any more; the run then ends.
///
/// `now` is the time since the run began.
pub(crate) trait Face {
    /// The run begins.
    fn begin(&mut self, header: &Header<'_>) -> io::Result<()>;

    /// Something happened in it.
    fn event(&mut self, event: &LoopEvent, now: Duration) -> io::Result<()>;

    /// Time has passed; called about twenty times a second.
    fn tick(&mut self, _now: Duration) -> io::Result<()> {
        Ok(())
    }

    /// A call needs an approval, and nobody can be asked.
    fn approval_needed(&mut self, _call: &ToolCall) -> io::Result<()> {
        Ok(())
    }

    /// Whether a person would see a question.
    fn can_ask(&self) -> bool {
        false
    }

    /// Whether a person sees what they type while the run works.
    fn can_steer(&self) -> bool {
        false
    }

    /// A person types, or has typed, a line for the model.
    fn typed(&mut self, _: &Steering, _now: Duration) -> io::Result<()> {
        Ok(())
    }

    /// Typed lines have entered the conversation.
    fn sent(&mut self, _lines: &[String], _now: Duration) -> io::Result<()> {
        Ok(())
    }

    /// The run is over before these typed lines could enter the conversation.
    fn unsent(&mut self, _lines: &[String], _now: Duration) -> io::Result<()> {
        Ok(())
    }

    /// A person is asked; with the key that was pressed, if the question goes on.
    fn ask(&mut self, _: &Question, _key: Option<Key>, _now: Duration) -> io::Result<()> {
        Ok(())
    }

    /// The question has its answer, or needs none any more.
    fn answered(&mut self, _now: Duration) -> io::Result<()> {
        Ok(())
    }

    /// Something is wrong that does not end the run.
    fn warn(&mut self, _: &Report, _now: Duration) -> io::Result<()> {
        Ok(())
    }

    /// MCP servers of these names are being started; an empty list: they are there.
    fn starting(&mut self, _servers: &[String], _now: Duration) -> io::Result<()> {
        Ok(())
    }

    /// The run is over.
    fn end(&mut self, ending: &Ending, now: Duration) -> io::Result<()>;
}

/// What is known of a run when it begins.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Header<'a> {
    pub(crate) run: RunId,
    /// `None`: no model could be chosen.
    pub(crate) target: Option<&'a Target>,
    pub(crate) folder: &'a Path,
    /// Whether the demo model was taken because there was nothing else.
    pub(crate) fell_back_to_demo: bool,
    /// What the sandbox of commands is, if it is not the usual one.
    pub(crate) sandbox: Option<&'static str>,
}
