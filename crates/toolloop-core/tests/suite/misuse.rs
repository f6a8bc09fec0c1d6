//! A driver that breaks the rule gets an [`ApiMisuse`], then and ever after; never a panic, and
//! the conversation stays valid.

use proptest::prelude::*;
use serde_json::json;
use toolloop_core::effect::{EffectKey, EffectKind, Outcome, Reply};
use toolloop_core::run::{ApiMisuse, Input, Output, Run};
use toolloop_core::transcript::keeps_grammar;
use toolloop_core::{
    ChatMessage, ChatResponse, ContentBlock, LlmError, LoopEvent, StopDecision, ToolCall,
    ToolResult, Usage,
};

use super::plan::{cases, conversations, outcome, worlds};
use super::show::conversation;
use super::sim::Sim;
use super::world::{World, key, output};

/// A run that waits for the tool `t/1/0`, whose call has the id `a`.
fn at_first_tool() -> Run {
    let world = World::new("go");
    let mut run = Run::new(world.config, world.params);
    drain(&mut run);
    run.handle_input(answer("m/1", reply(vec![call("a")]))).unwrap();
    drain(&mut run);
    run
}

fn drain(run: &mut Run) {
    while !matches!(run.poll_output(), Output::Wait { .. } | Output::Yielded | Output::Finished) {}
}

fn answer(at: &str, outcome: Outcome) -> Input {
    Input::Outcome { key: key(at), outcome }
}

fn call(id: &str) -> ContentBlock {
    ContentBlock::ToolCall(ToolCall { id: id.into(), name: "add".into(), arguments: json!({}) })
}

fn response(content: Vec<ContentBlock>) -> ChatResponse {
    ChatResponse { content, ..ChatResponse::default() }
}

fn reply(content: Vec<ContentBlock>) -> Outcome {
    Outcome::Reply(Reply { response: response(content), ..Reply::default() })
}

/// The run refuses the input, and the same way whatever comes after.
fn refuses(mut run: Run, wrong: Input, misuse: ApiMisuse) {
    let messages = run.messages();
    assert_eq!(run.handle_input(wrong), Err(misuse.clone()));
    assert_eq!(run.handle_input(answer("t/1/0", Outcome::Tool(output("ok")))), Err(misuse.clone()));
    assert_eq!(run.handle_input(Input::Cancel), Err(misuse.clone()));
    assert_eq!(run.messages(), messages);
    assert!(matches!(run.into_result(), Err(LlmError::Misuse(found)) if found == misuse));
}

#[test]
fn an_answer_that_nobody_awaits() {
    for at in ["m/1", "t/1/1", "t/2/0", "p/1/0", "m/0"] {
        let wrong = answer(at, Outcome::Tool(output("ok")));
        refuses(at_first_tool(), wrong, ApiMisuse::NotOutstanding(key(at)));
    }
}

#[test]
fn a_second_answer() {
    let mut run = at_first_tool();
    run.handle_input(answer("t/1/0", Outcome::Tool(output("ok")))).unwrap();
    drain(&mut run);
    let again = answer("t/1/0", Outcome::Tool(output("ok")));
    refuses(run, again, ApiMisuse::NotOutstanding(key("t/1/0")));
}

#[test]
fn an_answer_of_another_kind() {
    let cut = Outcome::Cut { partial: None, usage: None, duration: None };
    let stop = Outcome::Stop(StopDecision::Continue);
    for wrong in [stop, reply(Vec::new()), cut, Outcome::NotBegun] {
        refuses(at_first_tool(), answer("t/1/0", wrong), ApiMisuse::WrongOutcome(key("t/1/0")));
    }
}

#[test]
fn a_reply_that_no_assembler_made() {
    let result = ToolResult { tool_call_id: "a".into(), content: "ok".into(), is_error: false };
    let contents =
        [vec![call("a")], vec![call("b"), call("b")], vec![ContentBlock::ToolResult(result)]];
    for content in contents {
        let mut run = at_first_tool();
        run.handle_input(answer("t/1/0", Outcome::Tool(output("ok")))).unwrap();
        drain(&mut run);
        refuses(run, answer("m/2", reply(content)), ApiMisuse::MalformedReply(key("m/2")));
    }
}

#[test]
fn a_cut_reply_with_a_call() {
    let world = World::new("go");
    let mut run = Run::new(world.config, world.params);
    drain(&mut run);
    run.handle_input(Input::Cancel).unwrap();
    drain(&mut run);
    let partial = Some(response(vec![call("a")]));
    let cut = Outcome::Cut { partial, usage: None, duration: None };
    refuses(run, answer("m/1", cut), ApiMisuse::MalformedReply(key("m/1")));
}

#[test]
fn going_on_without_having_yielded() {
    refuses(at_first_tool(), Input::Continue, ApiMisuse::NotYielded);
    refuses(at_first_tool(), Input::ReplaceMessages(Vec::new()), ApiMisuse::NotYielded);
}

#[test]
fn speaking_to_a_run_that_is_over() {
    let over = || Sim::new(World::new("go")).into_end().run;
    // Whoever speaks to a run may come too late; that spoils no result.
    let mut run = over();
    let result = run.result().unwrap();
    for late in [Input::Continue, Input::Inject(Vec::new()), Input::Stop { reason: None }] {
        assert_eq!(run.handle_input(late), Err(ApiMisuse::Finished));
        assert_eq!(run.result().unwrap(), result);
    }
    // A cancel or a clock may always come late.
    run.handle_input(Input::Cancel).unwrap();
    run.handle_input(Input::Now(std::time::Duration::MAX)).unwrap();
    assert_eq!(run.poll_output(), Output::Finished);
}

#[test]
fn a_result_before_the_end() {
    let error = at_first_tool().into_result().unwrap_err();
    assert!(matches!(error, LlmError::Misuse(ApiMisuse::NotFinished)));
}

/// Empty texts, which no assembler makes either, do no harm.
#[test]
fn an_empty_text_in_a_reply_is_dropped() {
    let mut run = at_first_tool();
    run.handle_input(answer("t/1/0", Outcome::Tool(output("ok")))).unwrap();
    let empty = ContentBlock::Text(String::new());
    run.handle_input(answer("m/2", reply(vec![empty.clone(), call("b"), empty]))).unwrap();
    assert!(keeps_grammar(&run.messages()), "{}", conversation(&run.messages()));
}

/// Against the rule, but harmless: what was not handed out has not begun, and nobody hears of it.
#[test]
fn a_cancel_before_the_outputs_are_taken() {
    let world = World::new("go");
    let mut run = Run::new(world.config, world.params);
    drain(&mut run);
    run.handle_input(answer("m/1", reply(vec![call("a")]))).unwrap();
    run.handle_input(Input::Cancel).unwrap();
    let usage = Output::Event(LoopEvent::Usage(Usage::default()));
    assert_eq!([run.poll_output(), run.poll_output()], [usage, Output::Finished]);
    let not_run = ChatMessage::tool_error("a", "This call was not run: the run was cancelled.");
    assert_eq!(run.messages()[2], not_run);
}

proptest! {
    #![proptest_config(cases(600))]

    /// Any input at any point of any run.
    #[test]
    fn any_input_is_taken_or_refused_for_good(
        world in worlds(),
        point in 0..20usize,
        mut any in inputs(),
        awaited: Option<prop::sample::Index>,
    ) {
        let mut sim = Sim::new(world);
        for _ in 0..point {
            let Some(next) = sim.next_input() else { break };
            sim.apply(next);
        }
        let mut run = sim.run;
        drain(&mut run);
        if let (Input::Outcome { key, .. }, Some(awaited)) = (&mut any, awaited)
            && !run.outstanding().is_empty()
        {
            *key = awaited.get(&run.outstanding()).key;
        }
        let is_awaited = |key: &EffectKey| run.outstanding().iter().any(|e| e.key == *key);
        let is_right = match &any {
            Input::Outcome { key, .. } => is_awaited(key),
            Input::Continue | Input::ReplaceMessages(_) => run.is_yielded(),
            Input::Cancel | Input::Now(_) => true,
            _ => !run.is_finished(),
        };
        let is_outcome = matches!(any, Input::Outcome { .. });
        let taken = run.handle_input(any);
        // An awaited outcome may still be of the wrong kind.
        prop_assert!(taken.is_ok() == is_right || is_outcome && is_right, "{taken:?}");
        drain(&mut run);
        prop_assert!(keeps_grammar(&run.messages()), "{}", conversation(&run.messages()));
        if let Err(misuse) = taken
            && misuse != ApiMisuse::Finished
        {
            prop_assert_eq!(run.handle_input(Input::Cancel), Err(misuse));
        }
    }
}

/// Inputs for keys that may well be awaited.
fn inputs() -> impl Strategy<Value = Input> {
    use EffectKind::{Approval, ForceMask, Model, Pipeline, Stop, Tool};
    let kind = prop::sample::select(vec![ForceMask, Model, Stop, Approval, Tool, Pipeline]);
    let key = (1..4u32, kind, 0..3u32).prop_map(|(iteration, kind, index)| EffectKey {
        iteration,
        kind,
        index,
    });
    prop_oneof![
        8 => (key, outcome()).prop_map(|(key, outcome)| Input::Outcome { key, outcome }),
        1 => conversations().prop_map(Input::Inject),
        1 => conversations().prop_map(Input::ReplaceMessages),
        1 => Just(Input::Continue),
        1 => Just(Input::Stop { reason: None }),
        1 => Just(Input::Cancel),
        1 => any::<std::time::Duration>().prop_map(Input::Now),
    ]
}
