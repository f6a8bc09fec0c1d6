//! The grammar every conversation keeps, and [`repair`] for those that do not.
//!
//! Calls and results come in pairs: each call of an assistant message is answered, once, in the
//! tool messages directly behind it; no result stands alone; ids are unique; nothing is empty.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::chat::{ChatMessage, ChatRole, ContentBlock, ToolResult};

/// What a call is answered with whose outcome nobody recorded.
const UNRECORDED: &str = "No outcome of this call was recorded. It may have run; check before \
                          repeating it.";

/// Makes a conversation keep the grammar; gives a sentence for each repair.
pub fn repair(messages: &mut Vec<ChatMessage>) -> Vec<String> {
    let mut repairs = Vec::new();
    if keeps_grammar(messages) {
        return repairs;
    }
    let mut seen = BTreeSet::new();
    let mut fixed: Vec<ChatMessage> = Vec::with_capacity(messages.len());
    let mut rest = std::mem::take(messages).into_iter().peekable();
    while let Some(mut message) = rest.next() {
        if message.is_empty() {
            repairs.push("dropped an empty message".to_owned());
            continue;
        }
        if message.tool_calls().next().is_none() {
            split_orphans(message, &mut fixed, &mut repairs);
            continue;
        }
        let mut awaited = unique_ids(&mut message, &mut seen, &mut repairs);
        let mut answers = BTreeMap::new();
        let mut behind = Vec::new();
        // The messages directly behind may answer it, in any order and grouping.
        while let Some(next) = rest.next_if(|next| next.tool_results().next().is_some()) {
            let (results, others) = take_results(next);
            for mut result in results {
                match awaited.get_mut(&result.tool_call_id).and_then(VecDeque::pop_front) {
                    Some(id) => {
                        result.tool_call_id.clone_from(&id);
                        answers.insert(id, result);
                    }
                    None => behind.push(orphan_as_text(result, &mut repairs)),
                }
            }
            behind.extend(others);
        }
        let results: Vec<ToolResult> = message
            .tool_calls()
            .map(|call| {
                answers.remove(&call.id).unwrap_or_else(|| {
                    repairs.push(format!("added a result for call {}, which had none", call.id));
                    unrecorded(call.id.clone())
                })
            })
            .collect();
        fixed.push(message);
        fixed.extend(results.into_iter().map(ChatMessage::from));
        fixed.extend(behind);
    }
    *messages = fixed;
    repairs
}

/// Whether a conversation keeps the grammar; no allocation for one without tools.
pub fn keeps_grammar(messages: &[ChatMessage]) -> bool {
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let mut open: Vec<&str> = Vec::new();
    for message in messages {
        if message.is_empty() {
            return false;
        }
        let mut answers = false;
        for result in message.tool_results() {
            let Some(at) = open.iter().position(|id| *id == result.tool_call_id) else {
                return false;
            };
            open.remove(at);
            answers = true;
        }
        if answers && (message.role != ChatRole::Tool || message.tool_calls().next().is_some()) {
            return false;
        }
        if !answers && !open.is_empty() {
            return false;
        }
        for call in message.tool_calls() {
            if message.role != ChatRole::Assistant || !seen.insert(&call.id) {
                return false;
            }
            open.push(&call.id);
        }
    }
    open.is_empty()
}

fn unrecorded(tool_call_id: String) -> ToolResult {
    ToolResult { tool_call_id, content: UNRECORDED.into(), is_error: true }
}

/// Gives calls whose id was used before a new one; returns, for each id as it was, the ids of its
/// calls in order.
fn unique_ids(
    message: &mut ChatMessage,
    seen: &mut BTreeSet<String>,
    repairs: &mut Vec<String>,
) -> BTreeMap<String, VecDeque<String>> {
    let mut ids: BTreeMap<String, VecDeque<String>> = BTreeMap::new();
    if message.role != ChatRole::Assistant {
        repairs.push(format!("made a {:?} message with a call the assistant's", message.role));
        message.role = ChatRole::Assistant;
    }
    for block in &mut message.content {
        let ContentBlock::ToolCall(call) = block else { continue };
        let given = call.id.clone();
        let mut n = 2;
        while seen.contains(&call.id) {
            call.id = format!("{given}_{n}");
            n += 1;
        }
        if call.id != given {
            repairs.push(format!("renamed the call id {given}, which was used twice"));
        }
        seen.insert(call.id.clone());
        ids.entry(given).or_default().push_back(call.id.clone());
    }
    ids
}

/// Takes a message's results out; what else it says stays a message.
fn take_results(message: ChatMessage) -> (Vec<ToolResult>, Option<ChatMessage>) {
    let mut results = Vec::new();
    let mut content = Vec::new();
    for block in message.content {
        match block {
            ContentBlock::ToolResult(result) => results.push(result),
            other => content.push(other),
        }
    }
    let role = match message.role {
        ChatRole::Tool => ChatRole::User,
        role => role,
    };
    let rest = ChatMessage { role, content };
    (results, (!rest.is_empty()).then_some(rest))
}

fn split_orphans(message: ChatMessage, fixed: &mut Vec<ChatMessage>, repairs: &mut Vec<String>) {
    if message.tool_results().next().is_none() {
        fixed.push(message);
        return;
    }
    let (orphans, rest) = take_results(message);
    fixed.extend(orphans.into_iter().map(|result| orphan_as_text(result, repairs)));
    fixed.extend(rest);
}

/// A result without its call: kept as text, because it may matter.
fn orphan_as_text(result: ToolResult, repairs: &mut Vec<String>) -> ChatMessage {
    repairs.push(format!("turned the result of the unknown call {} to text", result.tool_call_id));
    ChatMessage::user(format!("Result of an earlier tool call:\n{}", result.content))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::chat::ToolCall;

    fn calls(ids: &[&str]) -> ChatMessage {
        let call = |id: &&str| {
            let id = (*id).to_owned();
            ContentBlock::ToolCall(ToolCall { id, name: "t".into(), arguments: json!({}) })
        };
        ChatMessage { role: ChatRole::Assistant, content: ids.iter().map(call).collect() }
    }

    fn result(id: &str) -> ChatMessage {
        ChatMessage::tool_result(id, format!("out {id}"))
    }

    fn repaired(mut messages: Vec<ChatMessage>) -> Vec<ChatMessage> {
        repair(&mut messages);
        assert!(keeps_grammar(&messages), "{messages:#?}");
        let again = messages.clone();
        assert_eq!(repair(&mut messages), Vec::<String>::new());
        assert_eq!(messages, again);
        messages
    }

    #[test]
    fn a_valid_conversation_is_left_alone() {
        let messages = vec![
            ChatMessage::user("q"),
            calls(&["a", "b"]),
            result("b"),
            result("a"),
            calls(&["c"]),
        ];
        let mut whole = messages.clone();
        whole.push(result("c"));
        assert!(keeps_grammar(&whole));
        assert_eq!(repaired(whole.clone()), whole);
        assert!(!keeps_grammar(&messages));
    }

    #[test]
    fn a_call_without_result_gets_one_that_admits_it() {
        let fixed = repaired(vec![calls(&["a", "b"]), result("b"), ChatMessage::user("go on")]);
        let unknown = ChatMessage::from(unrecorded("a".into()));
        let expected = [calls(&["a", "b"]), unknown, result("b"), ChatMessage::user("go on")];
        assert_eq!(fixed, expected);
    }

    #[test]
    fn an_orphan_result_is_kept_as_text() {
        let fixed = repaired(vec![ChatMessage::user("q"), result("x")]);
        assert_eq!(fixed[1], ChatMessage::user("Result of an earlier tool call:\nout x"));
    }

    #[test]
    fn an_id_used_twice_is_renamed_with_its_result() {
        let fixed = repaired(vec![calls(&["a"]), result("a"), calls(&["a"]), result("a")]);
        let ids: Vec<_> = fixed.iter().flat_map(ChatMessage::tool_calls).map(|c| &c.id).collect();
        assert_eq!(ids, ["a", "a_2"]);
        let answered: Vec<_> =
            fixed.iter().flat_map(ChatMessage::tool_results).map(|r| &r.tool_call_id).collect();
        assert_eq!(answered, ["a", "a_2"]);
    }

    #[test]
    fn results_of_an_id_used_twice_in_one_reply_keep_their_order() {
        let second = ChatMessage::tool_result("a", "second");
        let fixed = repaired(vec![calls(&["a", "a"]), result("a"), second]);
        let expected =
            [calls(&["a", "a_2"]), result("a"), ChatMessage::tool_result("a_2", "second")];
        assert_eq!(fixed, expected);
    }

    #[test]
    fn results_grouped_with_user_text_are_told_apart() {
        let mut grouped = result("a");
        grouped.role = ChatRole::User;
        grouped.content.push(ContentBlock::Text("and now?".into()));
        let fixed = repaired(vec![calls(&["a"]), grouped]);
        assert_eq!(fixed, [calls(&["a"]), result("a"), ChatMessage::user("and now?")]);
    }

    #[test]
    fn empty_messages_are_dropped() {
        let fixed = repaired(vec![ChatMessage::user(""), ChatMessage::user("q")]);
        assert_eq!(fixed, [ChatMessage::user("q")]);
    }
}
