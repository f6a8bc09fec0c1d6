//! What runs look like, from the first output to the last message.

use serde_json::json;
use toolloop_core::effect::{ApprovalOutcome, LoopVerdict};
use toolloop_core::run::Input;
use toolloop_core::{
    ChatMessage, LoopAction, LoopDetectionConfig, LoopDetectorConfig, ObservationMaskingConfig,
    StopDecision, StopReason, StreamEvent,
};

use super::sim::Sim;
use super::world::{Said, When, World, call_events, failure, key, ms, output, usage};

macro_rules! snapshot {
    ($world:expr) => {
        insta::assert_snapshot!(Sim::new($world).into_end().transcript())
    };
}

fn two_calls() -> Said {
    Said::calls(&[("a", "add", json!({"x": 1})), ("b", "search", json!({"q": "rust"}))])
}

#[test]
fn no_tool() {
    snapshot!(World::new("Hi").says("m/1", Said::text("Hello!")));
}

#[test]
fn one_tool() {
    let world = World::new("1 + 2?")
        .says("m/1", Said::calls(&[("a", "add", json!({"x": 1, "y": 2}))]))
        .tool("t/1/0", output("3"))
        .says("m/2", Said::text("It is 3."));
    snapshot!(world);
}

/// The later call finishes first; the results stand in call order all the same.
#[test]
fn parallel_tools() {
    let world = World::new("go")
        .says("m/1", two_calls())
        .takes("t/1/0", 30)
        .takes("t/1/1", 20)
        .tool("t/1/1", failure("the index is gone"));
    snapshot!(world);
}

#[test]
fn tools_in_turn() {
    let world = World::new("go")
        .config(|config| {
            config.parallel_tool_execution = false;
            config.has_pipeline = true;
        })
        .says("m/1", two_calls())
        .tool("t/1/0", output("a text that is long enough to be shortened by the pipeline"))
        .takes("p/1/0", 7);
    snapshot!(world);
}

/// One call each that is approved, denied, changed, changed wrongly, unknown, invalid, unreadable.
#[test]
fn approvals() {
    let calls = ["add", "search", "write", "add", "nothing", "add"];
    let mut events = Vec::new();
    for (index, name) in (0..).zip(calls) {
        let arguments = if index == 5 { r#"{"bad": 1}"# } else { r#"{"x": 1}"# };
        events.extend(call_events(index, &format!("c{index}"), name, arguments));
    }
    events.extend(call_events(6, "c6", "add", "{\"x\""));
    let world = World::new("go")
        .says("m/1", Said::stream(events, StopReason::ToolUse))
        .approval("a/1/1", ApprovalOutcome::Denied("not today".into()))
        .approval("a/1/2", ApprovalOutcome::Modified(json!({"x": 2})))
        .approval("a/1/3", ApprovalOutcome::ModifiedInvalid("'y' is missing.".into()))
        .takes("a/1/0", 50);
    snapshot!(world);
}

#[test]
fn stop_condition() {
    let mut world = World::new("go")
        .config(|config| config.has_stop_when = true)
        .says("m/1", Said::calls(&[("c", "add", json!({}))]))
        .says("m/2", Said::calls(&[("d", "search", json!({})), ("e", "nothing", json!({}))]))
        .says("m/3", two_calls());
    world.stops.at.insert(key("s/3"), StopDecision::StopWithReason("enough".into()));
    snapshot!(world);
}

fn repeating(action: LoopAction) -> World {
    let detection = LoopDetectionConfig { threshold: 2, action };
    let mut world = World::new("go").config(|config| config.loop_detection = Some(detection));
    for n in 1..=4 {
        let id = format!("c{n}");
        world = world.says(&format!("m/{n}"), Said::calls(&[(&id, "add", json!({"x": 1}))]));
    }
    world
}

#[test]
fn repetition_warned_about() {
    snapshot!(repeating(LoopAction::InjectWarning));
}

#[test]
fn repetition_stopped() {
    snapshot!(repeating(LoopAction::Stop));
}

#[test]
fn masking() {
    let masking = ObservationMaskingConfig { max_iterations_to_keep: 1, min_tokens_to_mask: 2 };
    let mut world = World::new("go").config(|config| {
        config.masking = Some(masking);
        config.has_force_mask = true;
    });
    for n in 1..=4 {
        let id = format!("c{n}");
        world = world.says(&format!("m/{n}"), Said::calls(&[(&id, "add", json!({"n": n}))]));
    }
    world = world.tool("t/2/0", failure("a failure is never masked, however long it is"));
    world.force_masks.at.insert(key("f/5"), vec![4]);
    let sim = Sim::new(world).into_end();
    let (_, last_request) = sim.requests.last().unwrap();
    let requested: Vec<String> = last_request.iter().map(super::show::message).collect();
    insta::assert_snapshot!(format!(
        "{}\n\nlast request:\n{}",
        sim.transcript(),
        requested.join("\n")
    ));
}

#[test]
fn limit_of_iterations() {
    let world = World::new("go")
        .config(|config| config.max_iterations = 1)
        .says("m/1", Said::calls(&[("a", "add", json!({}))]));
    snapshot!(world);
}

/// Nothing more is asked, though the caller has said more.
#[test]
fn injected_during_the_last_answer() {
    let world = World::new("go")
        .config(|config| config.max_iterations = 1)
        .says("m/1", Said::text("First."))
        .caller(When::At(ms(5)), Input::Inject(vec![ChatMessage::user("wait")]));
    snapshot!(world);
}

/// The model calls a tool although tools are off.
#[test]
fn final_answer() {
    let mut events = vec![StreamEvent::TextDelta("So far: 3.".into())];
    events.extend(call_events(0, "b", "add", "{}"));
    let world = World::new("go")
        .config(|config| {
            config.max_iterations = 1;
            config.final_answer = true;
        })
        .says("m/1", Said::calls(&[("a", "add", json!({}))]))
        .says("m/1/2", Said::stream(events, StopReason::ToolUse));
    snapshot!(world);
}

/// The run was at its end anyway; what arrived is kept, and its tokens are counted.
#[test]
fn a_final_answer_that_breaks() {
    let events = vec![StreamEvent::TextDelta("So".into()), StreamEvent::Usage(usage(3, 1))];
    let world = World::new("go")
        .config(|config| {
            config.max_iterations = 1;
            config.final_answer = true;
        })
        .says("m/1", Said::calls(&[("a", "add", json!({}))]))
        .says("m/1/2", Said::broken(events));
    snapshot!(world);
}

#[test]
fn empty_replies() {
    let empty = || Said::stream(Vec::new(), StopReason::EndTurn);
    let world = World::new("go")
        .says("m/1", Said::calls(&[("a", "add", json!({}))]))
        .says("m/2", empty())
        .says("m/2/1", empty());
    snapshot!(world);
}

#[test]
fn a_reply_cut_by_its_limit() {
    let mut events = call_events(0, "a", "add", r#"{"x": 1}"#);
    events.extend(call_events(1, "b", "write", r#"{"text": "Once upon"#));
    let world = World::new("go").says("m/1", Said::stream(events, StopReason::MaxTokens));
    snapshot!(world);
}

#[test]
fn a_stream_that_breaks() {
    let mut events = vec![StreamEvent::TextDelta("I will".into())];
    events.extend(call_events(0, "b", "add", "{}"));
    let world = World::new("go")
        .says("m/1", Said::calls(&[("a", "add", json!({}))]))
        .says("m/2", Said::broken(events));
    snapshot!(world);
}

/// The caller edits the conversation at the first yield, and adds to it at the second.
#[test]
fn yield_and_inject() {
    let edited = vec![ChatMessage::user("other question"), ChatMessage::assistant("noted")];
    let world = World::new("go")
        .config(|config| config.yield_turns = true)
        .says("m/1", Said::calls(&[("a", "add", json!({}))]))
        .says("m/2", Said::calls(&[("b", "add", json!({}))]))
        .caller(When::Yielded, Input::ReplaceMessages(edited))
        .caller(When::Yielded, Input::Continue)
        .caller(When::Yielded, Input::Inject(vec![ChatMessage::user("one more thing")]));
    snapshot!(world);
}

/// What is said while the last answer comes is answered too.
#[test]
fn injected_during_the_answer() {
    let world = World::new("go")
        .says("m/1", Said::text("First."))
        .says("m/2", Said::text("Second."))
        .caller(When::At(ms(5)), Input::Inject(vec![ChatMessage::user("wait")]));
    snapshot!(world);
}

/// A call that was found twice over, in its own words and in its results.
#[test]
fn circles() {
    let circles = LoopDetectorConfig { max_exact_duplicates: 1, ..LoopDetectorConfig::default() };
    let mut world = World::new("go").config(|config| config.loop_detector = Some(circles));
    for n in 1..=4 {
        let (id, at) = (format!("c{n}"), format!("m/{n}"));
        let calls = [(id.as_str(), "add", json!({"x": 1})), ("d", "search", json!({"n": n}))];
        world = world
            .says(&at, Said::calls(&calls))
            .tool(&format!("t/{n}/0"), output("the same"))
            .tool(&format!("t/{n}/1"), failure("no index"));
    }
    snapshot!(world);
}

#[test]
fn circles_that_somebody_decides_about() {
    let circles = LoopDetectorConfig { max_exact_duplicates: 1, ..LoopDetectorConfig::default() };
    let mut world = World::new("go").config(|config| {
        config.loop_detector = Some(circles);
        config.has_loop_decision = true;
    });
    for n in 1..=3 {
        let (id, at) = (format!("c{n}"), format!("m/{n}"));
        world = world
            .says(&at, Said::calls(&[(&id, "search", json!({"n": n}))]))
            .tool(&format!("t/{n}/0"), failure("no index"));
    }
    world.verdicts.at.insert(key("l/3/1"), LoopVerdict::Terminate);
    snapshot!(world);
}
