//! The grammar every conversation keeps, and [`repair`] for those that do not.
//!
//! Calls and results come in pairs: each call of an assistant message is answered, once, in the
//! tool messages directly behind it; no result stands alone, and tool messages hold nothing else;
//! ids are unique; no message and no text is empty.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};

use crate::chat::{ChatMessage, ChatRole, ContentBlock, ToolResult};

/// What a call is answered with whose outcome nobody recorded.
const UNRECORDED: &str = "No outcome of this call was recorded. It may have run; check before \
                          repeating it.";

/// Makes a conversation keep the grammar; gives a sentence for each repair.
pub fn repair(messages: &mut Vec<ChatMessage>) -> Vec<String> {
    repair_behind(&BTreeSet::new(), messages)
}

/// The same for messages behind a conversation that keeps the grammar and has calls of these ids.
pub(crate) fn repair_behind(
    taken: &BTreeSet<String>,
    messages: &mut Vec<ChatMessage>,
) -> Vec<String> {
    let mut repairs = Vec::new();
    if keeps_grammar_behind(|id| taken.contains(id), messages) {
        return repairs;
    }
    let mut seen = taken.clone();
    let mut fixed: Vec<ChatMessage> = Vec::with_capacity(messages.len());
    let parts = split(std::mem::take(messages), &mut repairs);
    let mut parts = parts.into_iter().peekable();
    while let Some(mut part) = parts.next() {
        if part.role == ChatRole::Tool {
            fixed.extend(results(part).map(|result| orphan_as_text(result, &mut repairs)));
            continue;
        }
        let mut open = unique_ids(&mut part, &mut seen, &mut repairs);
        let calls: Vec<String> = part.tool_calls().map(|call| call.id.clone()).collect();
        fixed.push(part);
        let mut answers = BTreeMap::new();
        let mut between = Vec::new();
        // Up to the next call, results may stand in any order, with other messages between.
        while answers.len() < calls.len() {
            let Some(next) = parts.next_if(|next| next.tool_calls().next().is_none()) else {
                break;
            };
            if next.role != ChatRole::Tool {
                between.push(next);
                continue;
            }
            for mut result in results(next) {
                let Some(id) = open.get_mut(&result.tool_call_id).and_then(VecDeque::pop_front)
                else {
                    between.push(orphan_as_text(result, &mut repairs));
                    continue;
                };
                if !between.is_empty() {
                    repairs.push(format!("moved the result of call {id} to its call"));
                }
                result.tool_call_id.clone_from(&id);
                answers.insert(id, result);
            }
        }
        for id in calls {
            let result = answers.remove(&id).unwrap_or_else(|| {
                repairs.push(format!("added a result for call {id}, which had none"));
                ToolResult { tool_call_id: id, content: UNRECORDED.into(), is_error: true }
            });
            fixed.push(result.into());
        }
        fixed.extend(between);
    }
    *messages = fixed;
    repairs
}

/// Whether a conversation keeps the grammar; no allocation for one without tools.
pub fn keeps_grammar(messages: &[ChatMessage]) -> bool {
    keeps_grammar_behind(|_| false, messages)
}

/// The same for messages behind a conversation that keeps the grammar and has calls of the ids
/// that are taken.
pub(crate) fn keeps_grammar_behind(
    is_taken: impl Fn(&str) -> bool,
    messages: &[ChatMessage],
) -> bool {
    let mut seen: HashSet<&str> = HashSet::new();
    let mut open: Vec<&str> = Vec::new();
    for message in messages {
        let is_tool = message.role == ChatRole::Tool;
        let has_results = message.tool_results().next().is_some();
        if message.content.is_empty() || is_tool != has_results || !is_tool && !open.is_empty() {
            return false;
        }
        for block in &message.content {
            match block {
                ContentBlock::ToolResult(result) => {
                    let Some(at) = open.iter().position(|id| *id == result.tool_call_id) else {
                        return false;
                    };
                    open.remove(at);
                }
                ContentBlock::ToolCall(call) => {
                    if seen.is_empty() {
                        // Growing in steps would hash every id twice.
                        seen.reserve(messages.len() / 2);
                    }
                    let is_new = !is_taken(&call.id) && seen.insert(&call.id);
                    if message.role != ChatRole::Assistant || !is_new {
                        return false;
                    }
                    open.push(&call.id);
                }
                ContentBlock::ProviderData(_) => {}
                block if is_tool || is_empty_text(block) => return false,
                _ => {}
            }
        }
    }
    open.is_empty()
}

/// Cuts messages where somebody else speaks: calls are the assistant's, results are a tool's.
/// Drops what is empty.
fn split(messages: Vec<ChatMessage>, repairs: &mut Vec<String>) -> Vec<ChatMessage> {
    let mut parts: Vec<ChatMessage> = Vec::with_capacity(messages.len());
    for ChatMessage { role, content } in messages {
        let (first, blocks) = (parts.len(), content.len());
        for block in content.into_iter().filter(|block| !is_empty_text(block)) {
            let part = parts[first..].last_mut();
            let speaker = match (&block, role) {
                (ContentBlock::ToolCall(_), _) => ChatRole::Assistant,
                (ContentBlock::ToolResult(_), _) => ChatRole::Tool,
                (_, ChatRole::Tool) => ChatRole::User,
                (_, role) => role,
            };
            match part {
                Some(part) if part.role == speaker || belongs_to_last(&block) => {
                    part.content.push(block);
                }
                _ => parts.push(ChatMessage { role: speaker, content: vec![block] }),
            }
        }
        match &parts[first..] {
            [] => repairs.push("dropped an empty message".to_owned()),
            [part] if part.role == role && part.content.len() == blocks => {}
            [part] if part.role == role => repairs.push("dropped an empty text".to_owned()),
            _ => repairs.push(format!("told calls, results and text of a {role:?} message apart")),
        }
    }
    parts
}

pub(crate) fn is_empty_text(block: &ContentBlock) -> bool {
    matches!(block, ContentBlock::Text(text) if text.is_empty())
}

fn belongs_to_last(block: &ContentBlock) -> bool {
    matches!(block, ContentBlock::ProviderData(_))
}

fn results(message: ChatMessage) -> impl Iterator<Item = ToolResult> {
    message.content.into_iter().filter_map(|block| match block {
        ContentBlock::ToolResult(result) => Some(result),
        _ => None,
    })
}

/// Gives calls whose id was used before a new one; returns, for each id as it was, the ids of its
/// calls in order.
fn unique_ids(
    message: &mut ChatMessage,
    seen: &mut BTreeSet<String>,
    repairs: &mut Vec<String>,
) -> BTreeMap<String, VecDeque<String>> {
    let mut ids: BTreeMap<String, VecDeque<String>> = BTreeMap::new();
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

/// A result without its call: kept as what the user says, because it may matter.
fn orphan_as_text(result: ToolResult, repairs: &mut Vec<String>) -> ChatMessage {
    repairs.push(format!("turned the result of the unknown call {} to text", result.tool_call_id));
    let mut message =
        ChatMessage::user(format!("Result of an earlier tool call:\n{}", result.content));
    let images = result.content.images.into_iter();
    message.content.extend(
        images.map(|image| ContentBlock::Image { media_type: image.media_type, data: image.data }),
    );
    message
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
        let unknown = ChatMessage::tool_error("a", UNRECORDED);
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

    #[test]
    fn a_message_that_mixes_speakers_is_taken_apart() {
        let mut mixed = calls(&["a"]);
        mixed.content.extend(result("a").content);
        mixed.content.extend(calls(&["b"]).content);
        let fixed = repaired(vec![mixed, result("b")]);
        assert_eq!(fixed, [calls(&["a"]), result("a"), calls(&["b"]), result("b")]);
    }

    #[test]
    fn a_late_result_finds_its_call() {
        let wait = ChatMessage::user("wait");
        let fixed = repaired(vec![calls(&["a"]), ChatMessage::user(""), wait.clone(), result("a")]);
        assert_eq!(fixed, [calls(&["a"]), result("a"), wait]);
    }

    #[test]
    fn text_of_a_tool_is_what_the_user_says() {
        let note = ChatMessage::text(ChatRole::Tool, "note");
        assert_eq!(repaired(vec![note]), [ChatMessage::user("note")]);
    }

    #[test]
    fn ids_of_the_conversation_before_are_taken() {
        let mut behind = vec![calls(&["a"]), result("a")];
        repair_behind(&BTreeSet::from(["a".to_owned()]), &mut behind);
        let answer = ChatMessage::tool_result("a_2", "out a");
        assert_eq!(behind, [calls(&["a_2"]), answer]);
    }
}
