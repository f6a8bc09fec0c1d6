//! [`Steering`]: lines that a person types while the run works, on their way to the model.

use toolloop::tool::Inbox;
use toolloop_core::ChatMessage;

use crate::terminal::keys::Key;
use crate::terminal::line_editor::{Edit, LineEditor};
use crate::terminal::paint::Paint;
use crate::terminal::text::{clean, truncate};

/// The line that is typed, and those that wait for the next model call.
pub(crate) struct Steering {
    inbox: Inbox,
    draft: LineEditor,
    queued: Vec<String>,
}

impl Steering {
    /// Sends to the loop that has this inbox.
    pub(crate) fn new(inbox: Inbox) -> Self {
        Self { inbox, draft: LineEditor::new(""), queued: Vec::new() }
    }

    pub(crate) fn handle(&mut self, key: Key) {
        match self.draft.handle(key) {
            Edit::Open => return,
            Edit::Accepted(line) if !line.trim().is_empty() => {
                self.inbox.send(ChatMessage::user(line.as_str()));
                self.queued.push(line);
            }
            Edit::Accepted(_) | Edit::Cancelled => {}
        }
        self.draft = LineEditor::new("");
    }

    /// Whether a line is begun.
    pub(crate) fn is_typing(&self) -> bool {
        !self.draft.is_empty()
    }

    /// So many of the oldest lines have entered the conversation.
    pub(crate) fn sent(&mut self, count: usize) -> Vec<String> {
        self.queued.drain(..count.min(self.queued.len())).collect()
    }

    /// The lines that came too late.
    pub(crate) fn into_unsent(self) -> Vec<String> {
        self.queued
    }

    /// What is shown of it.
    pub(crate) fn lines(&self, columns: usize, paint: Paint) -> Vec<String> {
        let queued = self
            .queued
            .iter()
            .map(|line| paint.dim(&truncate(&format!("queued: {}", clean(line)), columns)));
        let draft = self.is_typing().then(|| {
            let line = self.draft.render(columns.saturating_sub(2));
            format!("{} {line}", paint.dim("›"))
        });
        queued.chain(draft).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(steering: &mut Steering, keys: &str) {
        for c in keys.chars() {
            steering.handle(match c {
                '\n' => Key::Enter,
                '\x1b' => Key::Escape,
                c => Key::Char(c),
            });
        }
    }

    #[test]
    fn a_line_waits_until_it_has_entered_the_conversation() {
        let inbox = Inbox::new();
        let mut steering = Steering::new(inbox.clone());
        typed(&mut steering, "only Rust\n \nno\x1band");
        let lines = steering.lines(80, Paint::new(false));
        assert_eq!(lines, ["queued: only Rust", "› and▏"]);
        assert_eq!(inbox.take(), [ChatMessage::user("only Rust")]);
        assert_eq!(steering.sent(1), ["only Rust"]);
        typed(&mut steering, " tests\n");
        assert!(!steering.is_typing());
        assert_eq!(steering.into_unsent(), ["and tests"]);
    }
}
