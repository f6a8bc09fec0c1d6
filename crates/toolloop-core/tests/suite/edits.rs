//! What callers put into a conversation while it runs, and what becomes of it.

use serde_json::json;
use toolloop_core::run::Input;
use toolloop_core::{ChatMessage, ContentBlock, ObservationMaskingConfig};

use super::show::conversation;
use super::sim::Sim;
use super::world::{Said, When, World, ms, output};

/// Two results in one message are allowed, so the run leaves them; what is injected later needs
/// repair, but moves nothing that stands before it.
#[test]
fn repairing_what_is_injected_leaves_the_rest_in_place() {
    let call = |id: &str| {
        ContentBlock::ToolCall(toolloop_core::ToolCall {
            id: id.into(),
            name: "add".into(),
            arguments: json!({}),
        })
    };
    let calls = ChatMessage {
        role: toolloop_core::ChatRole::Assistant,
        content: vec![call("x"), call("y")],
    };
    let mut results = ChatMessage::tool_result("x", "1");
    results.content.extend(ChatMessage::tool_result("y", "2").content);

    let mut world = World::new("go")
        .says("m/1", Said::calls(&[("a", "add", json!({}))]))
        .hangs("m/2")
        .caller(When::At(ms(15)), Input::Inject(vec![ChatMessage::tool_result("y", "3")]))
        .caller(When::At(ms(50)), Input::Cancel);
    world.model.at.insert(super::world::key("m/2"), Said::default());
    world.params.messages.extend([calls, results]);
    insta::assert_snapshot!(Sim::new(world).into_end().transcript());
}

#[test]
fn empty_messages_are_not_injected() {
    let world = World::new("go")
        .says("m/1", Said::calls(&[("a", "add", json!({}))]))
        .caller(When::At(ms(15)), Input::Inject(vec![ChatMessage::user("")]));
    let sim = Sim::new(world).into_end();
    insta::assert_snapshot!(conversation(&sim.run.messages()), @r#"
    user "go"
    assistant a=add({})
    tool a: "add({}) gave t/1/0"
    assistant "Done."
    "#);
}

/// The conversation that the caller has edited had the injected messages in it.
#[test]
fn injected_messages_do_not_come_back_after_an_edit() {
    let world = World::new("go")
        .config(|config| config.yield_turns = true)
        .says("m/1", Said::calls(&[("a", "add", json!({}))]))
        .caller(When::At(ms(15)), Input::Inject(vec![ChatMessage::user("quickly")]))
        .caller(When::Yielded, Input::ReplaceMessages(vec![ChatMessage::user("all anew")]));
    let sim = Sim::new(world).into_end();
    insta::assert_snapshot!(conversation(&sim.run.messages()), @r#"
    user "all anew"
    assistant "Done."
    "#);
}

/// What is masked stays masked, but a result that the caller has rewritten is shown.
#[test]
fn an_edited_result_is_seen_though_it_was_masked() {
    let masking = ObservationMaskingConfig { max_iterations_to_keep: 0, min_tokens_to_mask: 1 };
    let result = |id: &str, text: &str| ChatMessage::tool_result(id, text);
    let call = |n: u32| Said::calls(&[(&format!("c{n}"), "add", json!({}))]);
    let world = World::new("go")
        .config(|config| {
            config.masking = Some(masking);
            config.yield_turns = true;
        })
        .says("m/1", call(1))
        .says("m/2", call(2))
        .says("m/3", call(3))
        .tool("t/1/0", output("the first output"))
        .tool("t/2/0", output("the second output"));
    let mut sim = Sim::new(world);
    while !(sim.run.is_yielded() && sim.run.iteration() == 3) {
        let next = sim.next_input().unwrap();
        sim.apply(next);
    }
    let mut edited = sim.run.messages();
    assert_eq!(edited[2], result("c1", "the first output"));
    edited[4] = result("c2", "a better output");
    sim.run.handle_input(Input::ReplaceMessages(edited.clone())).unwrap();
    assert_eq!(sim.run.messages(), edited);
    let request = conversation(&sim.run.params().messages);
    insta::assert_snapshot!(request, @r#"
    user "go"
    assistant c1=add({})
    tool c1: "[Masked — add result from iteration 1, 4 tokens. Use result_cache tool if available, or re-invoke tool.]"
    assistant c2=add({})
    tool c2: "a better output"
    assistant c3=add({})
    tool c3: "add({}) gave t/3/0"
    "#);
}
