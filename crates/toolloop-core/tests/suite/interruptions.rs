//! Cancel, stop and timeout in every state: the conversation says truthfully how far it came.

use std::time::Duration;

use serde_json::json;
use toolloop_core::run::{Input, RunConfig};
use toolloop_core::{
    ChatMessage, ImageSource, LoopEvent, ObservationMaskingConfig, StopReason, StreamEvent,
    ToolContent, ToolImage,
};

use super::sim::Sim;
use super::world::{Said, When, World, call_events, key, ms, output};

/// Worlds in which a run hangs, each in another state.
fn hanging() -> Vec<(&'static str, World)> {
    let mut events = vec![StreamEvent::TextDelta("On it.".into())];
    events.extend(call_events(0, "a", "add", r#"{"x": 1}"#));
    events.extend(call_events(1, "b", "search", r#"{"q": "rust"}"#));
    let world = |change: fn(&mut RunConfig)| {
        World::new("go")
            .config(change)
            .says("m/1", Said::stream(events.clone(), StopReason::ToolUse))
            .says("m/2", Said::text("The answer is long"))
    };
    let in_turn: fn(&mut RunConfig) = |config| config.parallel_tool_execution = false;
    let force_mask: fn(&mut RunConfig) = |config| {
        config.masking = Some(ObservationMaskingConfig::default());
        config.has_force_mask = true;
    };
    let final_answer: fn(&mut RunConfig) = |config| {
        config.max_iterations = 1;
        config.final_answer = true;
    };
    vec![
        ("the force-mask set is read", world(force_mask).hangs("f/2")),
        ("the first reply arrives", world(|_| {}).hangs("m/1")),
        ("a later reply arrives", world(|_| {}).hangs("m/2")),
        ("the stop condition is asked", world(|c| c.has_stop_when = true).hangs("s/1")),
        ("an approval is asked", world(|c| c.has_approval = true).hangs("a/1/1")),
        ("one of two tools has finished", world(|_| {}).hangs("t/1/1")),
        ("the first of two tools in turn runs", world(in_turn).hangs("t/1/0")),
        ("a pipeline works", world(|c| c.has_pipeline = true).hangs("p/1/0")),
        ("the final answer arrives", world(final_answer).hangs("m/1/2")),
    ]
}

/// The end of each run, from the interruption on.
fn endings(interrupt: impl Fn(World) -> World, first_line: &str) -> String {
    let ending = |(name, world): (&str, World)| {
        let transcript = Sim::new(interrupt(world)).into_end().transcript();
        let at = transcript.find(first_line).expect("the interruption comes");
        format!("# {name}\n{}", &transcript[at..])
    };
    hanging().into_iter().map(ending).collect::<Vec<_>>().join("\n\n")
}

#[test]
fn cancelled_in_each_state() {
    let cancel = |world: World| world.caller(When::At(ms(100)), Input::Cancel);
    insta::assert_snapshot!(endings(cancel, " 100 <- cancel"));
}

#[test]
fn timed_out_in_each_state() {
    let time_out = |world: World| world.config(|c| c.timeout = Some(Duration::from_millis(100)));
    insta::assert_snapshot!(endings(time_out, " 100 <- now"));
}

/// Nothing is lost of what was over by the time it was to be cut.
#[test]
fn cut_too_late() {
    let mut world = World::new("go")
        .says("m/1", Said::calls(&[("a", "add", json!({})), ("b", "search", json!({}))]))
        .takes("t/1/0", 20)
        .hangs("t/1/1")
        .caller(When::At(ms(15)), Input::Stop { reason: Some("lunch".into()) });
    world.too_late.at.insert(key("t/1/0"), true);
    insta::assert_snapshot!(Sim::new(world).into_end().transcript());
}

/// A tool that was asked for and has not begun by then is said not to have run.
#[test]
fn cut_before_it_began() {
    let world = World::new("go")
        .config(|config| {
            config.parallel_tool_execution = false;
            config.timeout = Some(Duration::from_millis(30));
        })
        .says("m/1", Said::calls(&[("a", "add", json!({})), ("b", "search", json!({}))]))
        .takes("t/1/0", 20);
    insta::assert_snapshot!(Sim::new(world).into_end().transcript());
}

#[test]
fn a_reply_cut_too_late_is_whole() {
    let mut world = World::new("go")
        .says("m/1", Said::calls(&[("a", "add", json!({}))]))
        .caller(When::At(ms(5)), Input::Cancel);
    world.too_late.at.insert(key("m/1"), true);
    insta::assert_snapshot!(Sim::new(world).into_end().transcript());
}

#[test]
fn a_reply_that_broke_before_it_was_cut_is_kept() {
    let mut world = World::new("go")
        .says("m/1", Said::broken(vec![StreamEvent::TextDelta("half".into())]))
        .caller(When::At(ms(5)), Input::Cancel);
    world.too_late.at.insert(key("m/1"), true);
    insta::assert_snapshot!(Sim::new(world).into_end().transcript());
}

/// A yielded run has nothing at work; what was injected stays.
#[test]
fn stopped_while_yielded() {
    let world = World::new("go")
        .config(|config| config.yield_turns = true)
        .says("m/1", Said::calls(&[("a", "add", json!({}))]))
        .caller(When::At(ms(15)), Input::Inject(vec![ChatMessage::user("later")]))
        .caller(When::Yielded, Input::Stop { reason: None });
    insta::assert_snapshot!(Sim::new(world).into_end().transcript());
}

/// A pipeline that is done by then has its say, and pictures stay.
#[test]
fn a_pipeline_cut_too_late_is_heard() {
    let image =
        ToolImage { media_type: "image/png".into(), data: ImageSource::Base64("AA".into()) };
    let long = "a text that is long enough to be shortened by the pipeline";
    let content = ToolContent { images: vec![image], ..ToolContent::from(long) };
    let mut world = World::new("go")
        .config(|config| config.has_pipeline = true)
        .says("m/1", Said::calls(&[("a", "add", json!({}))]))
        .tool("t/1/0", output(content.clone()))
        .takes("p/1/0", 20)
        .caller(When::At(ms(25)), Input::Cancel);
    world.too_late.at.insert(key("p/1/0"), true);
    let sim = Sim::new(world).into_end();
    let shortened = ToolContent { text: "a text that is long ".into(), ..content };
    assert_eq!(sim.run.messages()[2], ChatMessage::tool_result("a", shortened));
    let events: Vec<&LoopEvent> = sim.seen.iter().map(|seen| &seen.event).collect();
    assert!(matches!(events.last(), Some(LoopEvent::ToolResultProcessed { .. })), "{events:?}");
}
