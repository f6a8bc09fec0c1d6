//! [`Counted`]: the estimated tokens of a request, kept from one model call to the next.

use crate::params::ChatParams;
use crate::policy::window::{frame_tokens, message_tokens};

/// Tokens of a request as far as they are counted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counted {
    /// Those of instructions and tools.
    frame: Option<u32>,
    /// Those of the first message, of the first two, and so on.
    sums: Vec<u64>,
}

impl Counted {
    /// What [`request_tokens`](crate::policy::window::request_tokens) says; counts what is new.
    pub(crate) fn tokens(&mut self, params: &ChatParams) -> u32 {
        let frame = *self.frame.get_or_insert_with(|| frame_tokens(params));
        let mut sum = self.sums.last().copied().unwrap_or_default();
        for message in params.messages.iter().skip(self.sums.len()) {
            sum += u64::from(message_tokens(message));
            self.sums.push(sum);
        }
        u32::try_from(u64::from(frame) + sum).unwrap_or(u32::MAX)
    }

    /// Forgets the message at `first` and those behind it.
    pub(crate) fn cut_back(&mut self, first: usize) {
        self.sums.truncate(first);
    }

    /// Forgets instructions and tools.
    pub(crate) fn forget_frame(&mut self) {
        self.frame = None;
    }
}

/// Always equal: it says nothing that the request does not.
impl PartialEq for Counted {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::chat::ChatMessage;
    use crate::conversation::Conversation;
    use crate::params::ToolDefinition;
    use crate::policy::window::request_tokens;

    #[test]
    fn it_is_what_counting_anew_gives() {
        let messages = vec![ChatMessage::user("x".repeat(40))];
        let params =
            ChatParams { messages, system: Some("Be brief.".into()), ..Default::default() };
        let (mut conversation, _) = Conversation::new(params);
        let mut seen = Vec::new();
        let mut look = |conversation: &mut Conversation| {
            let tokens = conversation.tokens();
            assert_eq!(tokens, request_tokens(conversation.params()));
            seen.push(tokens);
        };
        look(&mut conversation);
        for n in 0..4 {
            conversation.push(ChatMessage::assistant("y".repeat(80 + n)));
            look(&mut conversation);
        }
        conversation.hide(1..3, Some(ChatMessage::user("left out")));
        look(&mut conversation);
        conversation.replace(vec![ChatMessage::user("other")]);
        look(&mut conversation);
        let parameters = json!({"type": "object"}).into();
        let (name, description) = ("look".to_owned(), String::new());
        conversation.offer(vec![ToolDefinition { name, description, parameters, retry: None }]);
        look(&mut conversation);
        assert_eq!(seen, [13, 33, 54, 75, 96, 57, 5, 10]);
    }

    #[test]
    fn a_sum_stops_at_the_largest_number() {
        let mut counted = Counted { frame: Some(u32::MAX), sums: vec![7] };
        let messages = vec![ChatMessage::user("x")];
        assert_eq!(counted.tokens(&ChatParams { messages, ..Default::default() }), u32::MAX);
    }
}
