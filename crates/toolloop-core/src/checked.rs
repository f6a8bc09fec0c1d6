//! [`Checked`]: how far a conversation is known to keep the grammar.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::chat::ChatMessage;
use crate::transcript::keeps_grammar_behind;

/// The beginning of a conversation that was found to keep the grammar.
#[derive(Default)]
pub(crate) struct Checked {
    /// Hashes of the ids of its calls. Two ids with one hash would seem to be one id used twice;
    /// then the conversation is looked at whole, and found to need no repair.
    ids: Vec<u64>,
    /// How many messages, with how many calls, were found so each time. All are answered there.
    marks: Vec<(usize, usize)>,
}

impl Checked {
    /// Looks at the messages that are new.
    pub(crate) fn keeps_grammar(&mut self, messages: &[ChatMessage]) -> bool {
        let known = self.last().0;
        let Some(new) = messages.get(known..) else { return false };
        let is_taken = |id: &str| self.ids.contains(&hash(id));
        if !keeps_grammar_behind(is_taken, new) {
            return false;
        }
        if !new.is_empty() {
            let calls = new.iter().flat_map(ChatMessage::tool_calls);
            self.ids.extend(calls.map(|call| hash(&call.id)));
            self.marks.push((messages.len(), self.ids.len()));
        }
        true
    }

    /// Forgets what was found of the message at `first` and of those behind it.
    pub(crate) fn cut_back(&mut self, first: usize) {
        while self.marks.last().is_some_and(|(messages, _)| *messages > first) {
            self.marks.pop();
        }
        self.ids.truncate(self.last().1);
    }

    fn last(&self) -> (usize, usize) {
        self.marks.last().copied().unwrap_or_default()
    }
}

fn hash(id: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::chat::{ChatRole, ContentBlock, ToolCall};

    fn call(id: &str) -> ChatMessage {
        let call = ToolCall { id: id.into(), name: "t".into(), arguments: json!({}) };
        ChatMessage { role: ChatRole::Assistant, content: vec![ContentBlock::ToolCall(call)] }
    }

    fn result(id: &str) -> ChatMessage {
        ChatMessage::tool_result(id, "out")
    }

    #[test]
    fn what_is_new_is_held_against_what_was_there() {
        let mut checked = Checked::default();
        let mut messages = vec![ChatMessage::user("q"), call("a"), result("a")];
        assert!(checked.keeps_grammar(&messages));
        messages.extend([call("b"), result("b")]);
        assert!(checked.keeps_grammar(&messages));
        for wrong in [vec![call("a"), result("a")], vec![call("c")], vec![result("b")]] {
            let whole = [messages.clone(), wrong].concat();
            assert!(!checked.keeps_grammar(&whole), "{whole:?}");
        }
        messages.extend([call("c"), result("c")]);
        assert!(checked.keeps_grammar(&messages));
    }

    #[test]
    fn what_was_edited_is_looked_at_again() {
        let mut checked = Checked::default();
        let mut messages = vec![ChatMessage::user("q"), call("a"), result("a")];
        assert!(checked.keeps_grammar(&messages));
        messages.extend([call("b"), result("b")]);
        assert!(checked.keeps_grammar(&messages));
        // Not told of, it is not seen: whoever edits tells.
        messages[4] = result("x");
        assert!(checked.keeps_grammar(&messages));
        checked.cut_back(4);
        assert!(!checked.keeps_grammar(&messages));
        // The id of a call that is gone is free.
        messages.truncate(3);
        assert!(checked.keeps_grammar(&messages));
        messages.extend([call("b"), result("b")]);
        assert!(checked.keeps_grammar(&messages));
    }

    #[test]
    fn a_conversation_that_lost_messages_unseen_does_not_pass() {
        let mut checked = Checked::default();
        assert!(checked.keeps_grammar(&[ChatMessage::user("q")]));
        assert!(!checked.keeps_grammar(&[]));
    }
}
