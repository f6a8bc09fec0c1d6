//! Whatever a conversation holds, the strict server takes the request that is made of it.

use proptest::prelude::*;
use serde_json::{Value, json};
use toolloop_core::{
    ChatMessage, ChatParams, ChatRole, ContentBlock, ImageSource, ProviderData, ToolCall,
    ToolContent, ToolImage,
};
use toolloop_fake::openai_responses::validate;
use toolloop_providers::codec::openai_responses::{API, Quirks, encode};

fn kept(data: String) -> ContentBlock {
    ContentBlock::ProviderData(ProviderData { api: API.into(), data })
}

/// What a reply may consist of; ids of items repeat at times.
fn block() -> impl Strategy<Value = ContentBlock> {
    let n = 0..6u32;
    prop_oneof![
        2 => "[a-zé \n]{0,4}".prop_map(ContentBlock::Text),
        1 => "[a-z]{0,4}".prop_map(|content| ContentBlock::Reasoning { content }),
        3 => (any::<u64>(), id(), name(), arguments()).prop_map(|(n, id, name, arguments)| {
            ContentBlock::ToolCall(ToolCall { id: format!("{id}{n}"), name, arguments })
        }),
        3 => (n.clone(), any::<bool>()).prop_map(|(n, encrypted)| {
            let mut thought = json!({"type": "reasoning", "id": format!("rs_fake_{n}"), "summary": []});
            if encrypted {
                thought["encrypted_content"] = json!("gAAA");
            }
            kept(thought.to_string())
        }),
        3 => n.clone().prop_map(|n| kept(json!({"id": n}).to_string())),
        1 => n.prop_map(|n| kept(json!({"type": "web_search_call", "id": format!("ws_{n}")}).to_string())),
        1 => Just(kept(json!({"type": "shell_call", "id": "sh_1", "call_id": "s"}).to_string())),
        1 => Just(ContentBlock::ProviderData(ProviderData {
            api: "anthropic-messages".into(),
            data: "no json".into(),
        })),
    ]
}

fn id() -> impl Strategy<Value = String> {
    prop_oneof![Just("call_".to_owned()), "[|/é:]{1,3}", "[a-z]{60,90}"]
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![Just("add".to_owned()), "[a-z. é]{0,5}", "[a-z]{65,70}"]
}

fn arguments() -> impl Strategy<Value = Value> {
    prop_oneof![Just(json!({"x": 1})), Just(json!("{oops")), Just(Value::Null), Just(json!([1]))]
}

fn message() -> impl Strategy<Value = Vec<ChatMessage>> {
    let replies = prop::collection::vec(block(), 0..7).prop_map(|content| {
        let reply = ChatMessage { role: ChatRole::Assistant, content: tied(content) };
        let results: Vec<_> = reply.tool_calls().map(|call| result(&call.id)).collect();
        std::iter::once(reply).chain(results).collect()
    });
    let said = prop::sample::select(vec![ChatRole::User, ChatRole::System]);
    let picture = ContentBlock::Image {
        media_type: "image/png".into(),
        data: ImageSource::Url("http://h/p".into()),
    };
    prop_oneof![
        3 => replies,
        1 => (said, "[a-z]{0,3}").prop_map(|(role, text)| vec![ChatMessage::text(role, text)]),
        1 => Just(vec![ChatMessage { role: ChatRole::User, content: vec![picture] }]),
    ]
}

/// Gives items ids that are tied to the thought before, as the server does. Where there is none,
/// somebody has taken it out. Ids without an item are left out.
fn tied(blocks: Vec<ContentBlock>) -> Vec<ContentBlock> {
    let mut content: Vec<ContentBlock> = Vec::new();
    let mut thought = "rs_fake_gone".to_owned();
    for mut block in blocks {
        if let ContentBlock::ProviderData(data) = &mut block
            && let Ok(item) = serde_json::from_str::<Value>(&data.data)
        {
            match (&item["type"], &item["id"], content.last()) {
                (Value::String(kind), Value::String(id), _) if kind == "reasoning" => {
                    thought.clone_from(id);
                }
                (Value::String(_), ..) => {}
                (_, n, Some(ContentBlock::Text(text))) if !text.is_empty() => {
                    data.data = json!({"id": format!("msg_{n}_{thought}")}).to_string();
                }
                (_, n, Some(ContentBlock::ToolCall(_))) => {
                    data.data = json!({"id": format!("fc_{n}_{thought}")}).to_string();
                }
                _ => continue,
            }
        }
        content.push(block);
    }
    content
}

fn result(id: &str) -> ChatMessage {
    let mut content = ToolContent::from("");
    if id.len().is_multiple_of(2) {
        let data = ImageSource::Base64("QUJD".into());
        content.images.push(ToolImage { media_type: "image/png".into(), data });
    }
    ChatMessage::tool_result(id, content)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_history_is_refused(
        messages in prop::collection::vec(message(), 1..6),
        reasons in any::<bool>(),
        max_tokens in prop::option::of(0..40u32),
    ) {
        let model = if reasons { "gpt-5" } else { "gpt-4o" };
        let params =
            ChatParams { messages: messages.concat(), max_tokens, ..ChatParams::default() };
        let body = encode(model, &params, &Quirks::openai(model)).unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap();
        prop_assert_eq!(validate(&body), Ok(()), "{}", body);
    }
}
