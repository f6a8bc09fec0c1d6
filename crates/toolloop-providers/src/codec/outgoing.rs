//! [`outgoing`]: the last look at a conversation before it is encoded.
//!
//! A run keeps its conversation valid. A provider may also be asked directly, with any messages;
//! what every API refuses, such as a call without result, is mended here for all of them.

use std::borrow::Cow;

use toolloop_core::ChatParams;
use toolloop_core::transcript::repair;

/// The request itself where its messages keep the grammar, else a copy that does.
pub fn outgoing(params: &ChatParams) -> Cow<'_, ChatParams> {
    if params.encoded.keep_grammar(&params.messages) {
        return Cow::Borrowed(params);
    }
    let mut repaired = params.clone();
    repair(&mut repaired.messages);
    Cow::Owned(repaired)
}

#[cfg(test)]
mod tests {
    use toolloop_core::ChatMessage;

    use super::*;

    fn asked(messages: Vec<ChatMessage>) -> ChatParams {
        ChatParams { messages, temperature: Some(0.5), ..ChatParams::default() }
    }

    #[test]
    fn a_valid_conversation_is_not_copied() {
        let params = asked(vec![ChatMessage::user("Hi")]);
        assert!(matches!(outgoing(&params), Cow::Borrowed(_)));
    }

    #[test]
    fn of_any_other_a_repaired_copy_is_sent() {
        let params = asked(vec![ChatMessage::user(""), ChatMessage::user("Hi")]);
        assert_eq!(*outgoing(&params), asked(vec![ChatMessage::user("Hi")]));
    }
}
