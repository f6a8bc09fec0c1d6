//! [`play`]: one random history, driven as a driver would, each request shown to a judge.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::json;
use toolloop::{ChatMessage, ChatParams, StopReason, StreamEvent, ToolChoice, ToolDefinition};
use toolloop_core::effect::{
    Action, ApprovalOutcome, Effect, EffectKey, LoopVerdict, Outcome, PipelineOutcome, ToolOutcome,
};
use toolloop_core::run::{Input, Output, RunConfig, ToolSpec};
use toolloop_core::transcript::{keeps_grammar, repair};
use toolloop_core::{
    CompactionConfig, CompactionMethod, DetectionAction, EffectClass, Failure, LoopAction,
    LoopDetectionConfig, LoopDetectorConfig, ObservationMaskingConfig, ReplyAssembler, Run,
    StopDecision,
};

use super::choices::Choices;
use super::messages::{edit, messages, tool_content};
use super::replies::{id, reply};

/// Plays a history of some runs, each with the messages that the one before has left.
///
/// # Errors
/// What `judge` says of a request, or what else must never be. It is told which model is asked.
pub(crate) fn play(
    choices: &mut Choices,
    judge: &mut impl FnMut(&ChatParams, usize) -> Result<(), String>,
) -> Result<(), String> {
    let mut model = choices.below(MODELS);
    let judge = &mut |params: &ChatParams, choices: &mut Choices| {
        if choices.one_in(10) {
            model = choices.below(MODELS);
        }
        judge(params, model)
    };
    let mut conversation = messages(choices);
    for _ in 0..=choices.below(3) {
        let config = config(choices);
        let params = params(choices, std::mem::take(&mut conversation));
        conversation = drive(Run::new(config, params), choices, Pace::Short, judge)?;
        if !keeps_grammar(&conversation) {
            return Err(format!("the conversation that was left is not valid: {conversation:#?}"));
        }
        // What a run leaves can be sent as it is.
        let next = ChatParams { messages: conversation.clone(), ..ChatParams::default() };
        judge(&next, choices)?;
        edit(choices, &mut conversation);
        conversation.extend(messages(choices));
    }
    Ok(())
}

/// Plays one long run that begins with many messages.
///
/// # Errors
/// What `judge` says of a request.
pub(crate) fn play_long(
    choices: &mut Choices,
    judge: &mut impl FnMut(&ChatParams, &mut Choices) -> Result<(), String>,
) -> Result<(), String> {
    let mut conversation = messages(choices);
    let words = ["Go on.", "Look again.", "And then?"];
    conversation.extend((0..8).flat_map(|_| {
        [ChatMessage::user(choices.pick(&words)), ChatMessage::assistant(choices.pick(&words))]
    }));
    conversation.extend(messages(choices));
    let config = RunConfig {
        max_iterations: 60,
        has_stop_when: false,
        loop_detection: None,
        loop_detector: None,
        ..config(choices)
    };
    let params = params(choices, conversation);
    drive(Run::new(config, params), choices, Pace::Long, judge).map(drop)
}

/// How soon a run ends.
#[derive(Clone, Copy, PartialEq)]
enum Pace {
    Short,
    Long,
}

struct AtWork {
    action: Action,
    assembler: Option<ReplyAssembler>,
    is_aborted: bool,
}

fn drive(
    mut run: Run,
    choices: &mut Choices,
    pace: Pace,
    judge: &mut impl FnMut(&ChatParams, &mut Choices) -> Result<(), String>,
) -> Result<Vec<ChatMessage>, String> {
    let inputs = if pace == Pace::Long { 400 } else { 100 };
    let mut at_work: BTreeMap<EffectKey, AtWork> = BTreeMap::new();
    for _ in 0..inputs {
        let is_yielded = loop {
            match run.poll_output() {
                Output::Event(_) => {}
                Output::Perform(effect) => {
                    if effect.action == Action::CallModel {
                        judge(run.params(), choices)?;
                    }
                    if effect.action == Action::Summarize {
                        judge(&run.summary_params().ok_or("no summary is asked for")?, choices)?;
                    }
                    at_work.insert(effect.key, begin(&run, effect));
                }
                Output::Abort(key) => {
                    // A reloaded run asks for the end of what was begun before.
                    let known = run.outstanding().into_iter().find(|effect| effect.key == key);
                    let begun = || begin(&run, known.expect("it is outstanding"));
                    at_work.entry(key).or_insert_with(begun).is_aborted = true;
                }
                Output::Wait { .. } => break false,
                Output::Yielded => break true,
                Output::Finished => return Ok(run.messages()),
                other => return Err(format!("unknown output {other:?}")),
            }
        };
        match choices.below(60) {
            58 | 59 if pace == Pace::Long && !choices.one_in(8) => {}
            // The process dies: another goes on from the stored run, or with its messages.
            58 => {
                let stored = serde_json::to_string(&run).map_err(|error| error.to_string())?;
                run = serde_json::from_str(&stored).map_err(|error| error.to_string())?;
                run.repeat_outstanding();
                at_work.clear();
                continue;
            }
            59 => return Ok(run.messages()),
            _ => {}
        }
        let input = match is_yielded {
            true => after_yield(choices, &run, pace),
            false => meanwhile(choices, &run, &mut at_work, pace),
        };
        let edited = match &input {
            Input::ReplaceMessages(messages) => Some(messages.clone()),
            _ => None,
        };
        run.handle_input(input).map_err(|misuse| misuse.to_string())?;
        if let Some(mut messages) = edited {
            repair(&mut messages);
            // Whatever of it is masked or left out in requests.
            if run.messages() != messages {
                return Err(format!("an edit was lost: {messages:#?}\n{:#?}", run.messages()));
            }
        }
    }
    Ok(run.messages())
}

fn begin(run: &Run, effect: Effect) -> AtWork {
    let is_model_call = matches!(effect.action, Action::CallModel | Action::Summarize);
    let assembler = is_model_call.then(|| run.assembler());
    AtWork { action: effect.action, assembler, is_aborted: false }
}

fn after_yield(choices: &mut Choices, run: &Run, pace: Pace) -> Input {
    match choices.below(8) {
        4 | 7 if pace == Pace::Long && !choices.one_in(8) => Input::Continue,
        0..=2 => Input::Continue,
        3 => Input::Inject(messages(choices)),
        4 => Input::ReplaceMessages(messages(choices)),
        7 => end(choices),
        _ => {
            let mut all = run.messages();
            edit(choices, &mut all);
            Input::ReplaceMessages(all)
        }
    }
}

fn meanwhile(
    choices: &mut Choices,
    run: &Run,
    at_work: &mut BTreeMap<EffectKey, AtWork>,
    pace: Pace,
) -> Input {
    match choices.below(24) {
        23 if pace == Pace::Long && !choices.one_in(8) => {}
        20 => return Input::OfferTools(params(choices, Vec::new()).tools.unwrap_or_default()),
        21..=22 => return Input::Inject(messages(choices)),
        23 => return end(choices),
        _ => {}
    }
    let keys: Vec<EffectKey> = at_work.keys().copied().collect();
    let Some(work) =
        keys.first().map(|_| choices.pick(&keys)).and_then(|key| at_work.remove_entry(&key))
    else {
        return Input::Cancel;
    };
    let (key, work) = work;
    // What was over before it was cut says what it did.
    let outcome = match work.is_aborted && !choices.one_in(4) {
        true => cut(choices, work),
        false => outcome(choices, run, work, pace),
    };
    Input::Outcome { key, outcome }
}

fn end(choices: &mut Choices) -> Input {
    match choices.below(3) {
        0 => Input::Cancel,
        1 => Input::Stop { reason: choices.one_in(2).then(|| "enough".to_owned()) },
        _ => Input::Now(LIMIT),
    }
}

fn cut(choices: &mut Choices, work: AtWork) -> Outcome {
    let partial = work.assembler.map(|mut assembler| {
        for event in reply(choices) {
            let _ = assembler.push(event);
        }
        assembler.into_partial()
    });
    Outcome::Cut { partial, usage: None, duration: None }
}

fn outcome(choices: &mut Choices, run: &Run, work: AtWork, pace: Pace) -> Outcome {
    match work.action {
        Action::CallModel | Action::Summarize => {
            let assembler = work.assembler.unwrap_or_else(|| run.assembler());
            said(choices, assembler, pace)
        }
        Action::ReadForceMask => Outcome::ForceMask(BTreeSet::from_iter(
            choices.list(2, |choices| choices.below(4) as u32),
        )),
        Action::DecideStop => Outcome::Stop(match choices.one_in(12) {
            true => StopDecision::StopWithReason("budget".into()),
            false => StopDecision::Continue,
        }),
        Action::DecideLoop(_) => Outcome::Loop(match choices.one_in(4) {
            true => LoopVerdict::Terminate,
            false => LoopVerdict::GoOn,
        }),
        Action::Approve(_) => Outcome::Approval(match choices.below(7) {
            0..=2 => ApprovalOutcome::Approved,
            3 => ApprovalOutcome::Denied(choices.pick(&["no", ""]).into()),
            4 => ApprovalOutcome::Modified(json!({"x": 9})),
            5 => ApprovalOutcome::Answered(choices.pick(&["yes", ""]).into()),
            _ => ApprovalOutcome::ModifiedInvalid("'x' is no number.".into()),
        }),
        Action::ProcessResult { .. } => Outcome::Pipeline(PipelineOutcome {
            text: choices.one_in(2).then(|| choices.pick(&["short", "", " "]).into()),
            stages: Vec::new(),
            usage: None,
        }),
        _ => Outcome::Tool(ToolOutcome {
            content: tool_content(choices),
            is_error: choices.one_in(4),
            duration: Duration::ZERO,
            usage: None,
        }),
    }
}

/// Assembles a reply as a driver does, and notes calls that fit no schema.
fn said(choices: &mut Choices, mut assembler: ReplyAssembler, pace: Pace) -> Outcome {
    let mut events = reply(choices);
    let goes_on = pace == Pace::Long && !choices.one_in(16);
    if goes_on {
        events.retain(|event| !matches!(event, StreamEvent::Done { .. }));
        let (index, id, name) = (99, id(choices), choices.pick(&TOOLS).to_owned());
        let call = StreamEvent::ToolCallStart { index, id, name };
        events.extend([call, StreamEvent::Done { stop_reason: StopReason::ToolUse }]);
    }
    for event in events {
        if let Err(failure) = assembler.push(event) {
            return assembler.fail(failure);
        }
    }
    if !goes_on && choices.one_in(16) {
        return assembler.fail(Failure::StreamInterrupted { message: "reset".into() });
    }
    let mut outcome = assembler.finish();
    if let Outcome::Reply(reply) = &mut outcome {
        let calls = reply.response.tool_calls_iter().enumerate();
        let bad = calls.filter(|(_, call)| call.arguments.get("bad").is_some());
        let bad: Vec<usize> = bad.map(|(at, _)| at).collect();
        reply.invalid_calls = bad.into_iter().map(|at| (at, "wrong".to_owned())).collect();
    }
    outcome
}

fn config(choices: &mut Choices) -> RunConfig {
    let detection = LoopDetectionConfig {
        threshold: 1 + choices.below(3) as u32,
        action: choices.pick(&[LoopAction::Warn, LoopAction::InjectWarning, LoopAction::Stop]),
    };
    let masking = ObservationMaskingConfig {
        max_iterations_to_keep: choices.below(3) as u32,
        min_tokens_to_mask: choices.below(4) as u32,
    };
    let compaction = CompactionConfig {
        threshold: choices.pick(&[300, 400, 250, 100]),
        target: choices.below(300) as u32,
        method: choices.pick(&[CompactionMethod::Summary, CompactionMethod::Truncation]),
        max_summary_tokens: choices.below(20) as u32,
    };
    let circles = LoopDetectorConfig {
        max_exact_duplicates: choices.below(2),
        third_detection_action: choices.pick(&[DetectionAction::Warn, DetectionAction::Terminate]),
        ..LoopDetectorConfig::default()
    };
    let tool =
        |name: &&str| ToolSpec { name: (*name).to_owned(), effect_class: EffectClass::default() };
    RunConfig {
        max_iterations: 6 - choices.below(6) as u32,
        parallel_tool_execution: !choices.one_in(3),
        has_approval: choices.one_in(3),
        has_stop_when: choices.one_in(5),
        has_pipeline: choices.one_in(4),
        has_force_mask: choices.one_in(3),
        loop_detection: choices.one_in(3).then_some(detection),
        loop_detector: choices.one_in(3).then_some(circles),
        has_loop_decision: choices.one_in(4),
        timeout: Some(LIMIT),
        masking: choices.one_in(2).then_some(masking),
        max_tool_turns: choices.one_in(4).then(|| choices.below(3) as u32),
        compaction: choices.one_in(3).then_some(compaction),
        final_answer: choices.one_in(2),
        yield_turns: choices.one_in(3),
        tools: TOOLS.iter().map(tool).collect(),
        runs_any_tool: choices.one_in(8),
    }
}

fn params(choices: &mut Choices, messages: Vec<ChatMessage>) -> ChatParams {
    let tool = |name: &&str| ToolDefinition {
        name: (*name).to_owned(),
        description: String::new(),
        parameters: json!({"type": "object", "properties": {"x": {"type": "integer"}}}).into(),
        retry: None,
    };
    let choice = match choices.below(12) {
        9 => Some(ToolChoice::Required),
        10 => Some(ToolChoice::None),
        11 => Some(ToolChoice::Specific("add".into())),
        _ => None,
    };
    let system = choices.pick(&[None, Some("Be brief."), Some(""), Some(" ")]);
    ChatParams {
        messages,
        tools: (!choices.one_in(6)).then(|| TOOLS.iter().map(tool).collect()),
        tool_choice: choice,
        temperature: choices.one_in(6).then_some(0.5),
        max_tokens: choices.one_in(6).then_some(2_000),
        system: system.map(str::to_owned),
        reasoning_budget: choices.one_in(4).then_some(1_024),
        structured_output: choices.one_in(12).then(|| {
            json!({"type": "object", "properties":
            {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": false})
            .into()
        }),
        ..ChatParams::default()
    }
}

const TOOLS: [&str; 3] = ["add", "search", "write"];

/// Divisible by all numbers of variants that an API has.
const MODELS: usize = 60;

const LIMIT: Duration = Duration::from_secs(1);
