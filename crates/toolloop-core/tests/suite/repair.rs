//! Repair of conversations that no provider would take.

use proptest::prelude::*;
use toolloop_core::transcript::{keeps_grammar, repair};
use toolloop_core::{ChatMessage, ContentBlock};

use super::plan::{cases, message};
use super::show::conversation;

proptest! {
    #![proptest_config(cases(800))]

    #[test]
    fn repaired_conversations_keep_the_grammar(
        messages in proptest::collection::vec(message(), 0..10),
    ) {
        let messages = marked(messages);
        let mut fixed = messages.clone();
        let repairs = repair(&mut fixed);
        prop_assert!(keeps_grammar(&fixed), "{}", conversation(&fixed));
        prop_assert_eq!(repairs.is_empty(), fixed == messages, "{:?}", repairs);

        let mut again = fixed.clone();
        prop_assert_eq!(repair(&mut again), Vec::<String>::new());
        prop_assert_eq!(&again, &fixed);

        let before = said(&messages);
        let after = said(&fixed);
        for text in before {
            let times = after.iter().filter(|kept| kept.contains(&text)).count();
            prop_assert_eq!(times, 1, "{} in {}", text, conversation(&fixed));
        }
    }
}

/// Makes every text one of its own, so that a lost or doubled one is seen.
fn marked(mut messages: Vec<ChatMessage>) -> Vec<ChatMessage> {
    let blocks = messages.iter_mut().flat_map(|message| &mut message.content);
    for (n, block) in blocks.enumerate() {
        let mark = format!("<{n}>");
        match block {
            ContentBlock::Text(text) if !text.is_empty() => text.push_str(&mark),
            ContentBlock::Reasoning { content } => content.push_str(&mark),
            ContentBlock::ToolResult(result) => result.content.text.push_str(&mark),
            ContentBlock::ToolCall(call) => call.name.push_str(&mark),
            _ => {}
        }
    }
    messages
}

fn said(messages: &[ChatMessage]) -> Vec<String> {
    let blocks = messages.iter().flat_map(|message| &message.content);
    let texts = blocks.filter_map(|block| match block {
        ContentBlock::Text(text) => Some(text),
        ContentBlock::Reasoning { content } => Some(content),
        ContentBlock::ToolResult(result) => Some(&result.content.text),
        ContentBlock::ToolCall(call) => Some(&call.name),
        _ => None,
    });
    texts.filter(|text| !text.is_empty()).cloned().collect()
}
