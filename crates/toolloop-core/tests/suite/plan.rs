//! Strategies: any world, any conversation, however damaged.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use toolloop_core::effect::{
    ApprovalOutcome, LoopVerdict, Outcome, PipelineOutcome, Reply, StageReport, ToolOutcome,
};
use toolloop_core::run::{Input, RunConfig};
use toolloop_core::{
    ChatMessage, ChatResponse, ChatRole, CompactionConfig, CompactionMethod, ContentBlock,
    DetectionAction, Failure, ImageSource, LoopAction, LoopDetectionConfig, LoopDetectorConfig,
    ObservationMaskingConfig, ProviderData, StopDecision, StopReason, StreamEvent, ToolCall,
    ToolContent, ToolImage, ToolResult, Usage,
};

use super::world::{
    Said, Script, When, World, call_events, definitions, failure, ms, output, usage,
};

/// So many cases, or as many as `PROPTEST_CASES` says. A failure prints the whole input, which is
/// a test of its own, so no seeds are kept in files.
pub(crate) fn cases(cases: u32) -> ProptestConfig {
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => config,
        None => ProptestConfig { cases, ..config },
    }
}

/// Any world in which every run ends.
pub(crate) fn worlds() -> impl Strategy<Value = World> {
    let decks = (
        vec(said(), 1..6),
        vec(tool_outcome(), 1..5),
        vec(approval(), 1..5),
        (vec(stop_decision(), 1..6), vec(verdict(), 1..4)),
        vec(pipeline(), 1..4),
        vec(vec(0..5u32, 0..3), 1..3),
        vec(option::weighted(0.9, (0..40u64).prop_map(ms)), 1..6),
    );
    let rest = (config(), conversations(), vec(caller(), 0..4), any::<[bool; 3]>());
    (decks, rest, any::<u64>(), any::<u64>()).prop_map(|(decks, rest, seed, order)| {
        let (model, tools, approvals, (stops, verdicts), pipelines, force_masks, mut takes) = decks;
        let (config, damaged, caller, [is_damaged, is_late, is_eager]) = rest;
        let mut world = World::new("go");
        let tools_known = std::mem::take(&mut world.config.tools);
        world.config = RunConfig { tools: tools_known, ..config };
        if world.config.timeout.is_none() {
            takes.iter_mut().for_each(|takes| *takes = takes.or(Some(ms(50))));
        }
        if is_damaged {
            world.params.messages = damaged;
        }
        World {
            model: deck(model),
            tools: deck(tools),
            approvals: deck(approvals),
            stops: deck(stops),
            verdicts: deck(verdicts),
            pipelines: deck(pipelines),
            force_masks: deck(force_masks),
            takes: deck(takes),
            too_late: deck(vec![false, is_late]),
            caller,
            is_eager,
            seed,
            order,
            ..world
        }
    })
}

fn deck<T>(deck: Vec<T>) -> Script<T> {
    Script { deck, ..Script::default() }
}

fn config() -> impl Strategy<Value = RunConfig> {
    let detection =
        (0..4u32, select(vec![LoopAction::Warn, LoopAction::Stop, LoopAction::InjectWarning]))
            .prop_map(|(threshold, action)| LoopDetectionConfig { threshold, action });
    let masking = (0..3u32, 0..12u32).prop_map(|(max_iterations_to_keep, min_tokens_to_mask)| {
        ObservationMaskingConfig { max_iterations_to_keep, min_tokens_to_mask }
    });
    use DetectionAction::{Continue, Terminate, Warn};
    let actions = || select(vec![Continue, Warn, Warn, Terminate]);
    let circles = (0..3usize, actions(), actions(), any::<bool>()).prop_map(
        |(max_exact_duplicates, first, second, result_aware)| LoopDetectorConfig {
            max_exact_duplicates,
            first_detection_action: first,
            second_detection_action: second,
            result_aware,
            ..LoopDetectorConfig::default()
        },
    );
    let options = (
        (option::of(detection), option::of(circles)),
        option::of(masking),
        option::of((1..200u64).prop_map(ms)),
        option::of(0..4u32),
        option::of(compaction()),
    );
    (0..7u32, any::<[bool; 9]>(), options).prop_map(|(max_iterations, flags, options)| {
        let [parallel, approval, stop_when, pipeline, force_mask, final_answer, yields, ..] = flags;
        let [.., decides, runs_any_tool] = flags;
        let ((loop_detection, loop_detector), masking, timeout, max_tool_turns, compaction) =
            options;
        RunConfig {
            max_iterations,
            parallel_tool_execution: parallel,
            has_approval: approval,
            has_stop_when: stop_when,
            has_pipeline: pipeline,
            has_force_mask: force_mask,
            loop_detection,
            loop_detector,
            has_loop_decision: decides,
            timeout,
            masking,
            max_tool_turns,
            compaction,
            final_answer,
            yield_turns: yields,
            tools: Vec::new(),
            runs_any_tool,
        }
    })
}

/// Thresholds around what these small worlds hold, and around what asking for a summary takes.
fn compaction() -> impl Strategy<Value = CompactionConfig> {
    let threshold = prop_oneof![0..200u32, 200..600u32];
    let method = select(vec![CompactionMethod::Summary, CompactionMethod::Truncation]);
    (threshold, 0..300u32, method, 0..60u32).prop_map(
        |(threshold, target, method, max_summary_tokens)| CompactionConfig {
            threshold,
            target,
            method,
            max_summary_tokens,
        },
    )
}

fn caller() -> impl Strategy<Value = (When, Input)> {
    let at = (0..150u64).prop_map(|n| When::At(ms(n)));
    let inject = || conversations().prop_map(Input::Inject);
    let offer = || select(vec![vec!["add"], vec![], vec!["new", "add"]]);
    let offer = || offer().prop_map(|names| Input::OfferTools(definitions(&names)));
    let stop = option::of(Just("enough".to_owned())).prop_map(|reason| Input::Stop { reason });
    prop_oneof![
        (at.clone(), prop_oneof![3 => inject(), 1 => offer()]),
        (at, prop_oneof![3 => inject(), 1 => Just(Input::Cancel), 1 => stop.clone()]),
        (
            Just(When::Yielded),
            prop_oneof![
                3 => conversations().prop_map(Input::ReplaceMessages),
                2 => inject(),
                1 => offer(),
                3 => Just(Input::Continue),
                1 => Just(Input::Cancel),
                1 => stop,
            ]
        ),
    ]
}

// ---- what a model says ----------------------------------------------------------------------

/// A stream, mostly proper.
pub(crate) fn said() -> impl Strategy<Value = Said> {
    let whole = (vec(piece(), 0..5), stop_reason(), option::of(tokens()));
    let whole = whole.prop_map(|(pieces, stop_reason, usage)| {
        let mut events = numbered(pieces);
        events.extend(usage.map(StreamEvent::Usage));
        events.push(StreamEvent::Done { stop_reason });
        Said { events, failure: None }
    });
    let failure = Failure::Timeout { elapsed_ms: 3 };
    let broken = (vec(piece(), 0..4), option::of(tokens()), option::of(Just(failure)));
    let broken = broken.prop_map(|(pieces, usage, failure)| {
        let mut events = numbered(pieces);
        events.extend(usage.map(StreamEvent::Usage));
        Said { events, failure }
    });
    prop_oneof![8 => whole, 1 => broken]
}

/// Events that come together; calls get their index later.
fn piece() -> impl Strategy<Value = Vec<StreamEvent>> {
    let text = select(vec!["", " ", "Hm.", "Let me see: ü"]).prop_map(str::to_owned);
    let data = || ProviderData { api: "any".into(), data: "sig".into() };
    let call = || {
        (id(), select(vec!["add", "search", "write", "nothing", ""]), arguments())
            .prop_map(|(id, name, arguments)| call_events(0, &id, name, &arguments))
    };
    let complete = call().prop_map(|mut events| {
        let [StreamEvent::ToolCallStart { id, name, .. }, _] = events.as_slice() else {
            unreachable!("a call begins with its start")
        };
        let call = ToolCall { id: id.clone(), name: name.clone(), arguments: json!({"x": 1}) };
        events.push(StreamEvent::ToolCallComplete { index: 0, call });
        events
    });
    prop_oneof![
        4 => text.clone().prop_map(|text| vec![StreamEvent::TextDelta(text)]),
        1 => text.prop_map(|text| vec![StreamEvent::ReasoningDelta(text)]),
        4 => call(),
        2 => complete,
        1 => any::<bool>().prop_map(move |of_call| {
            vec![StreamEvent::ProviderData { index: of_call.then_some(0), data: data() }]
        }),
        1 => Just(vec![StreamEvent::AttemptDiscarded { attempt: 1 }]),
    ]
}

fn numbered(pieces: Vec<Vec<StreamEvent>>) -> Vec<StreamEvent> {
    let mut events = Vec::new();
    let mut next = 0;
    for mut event in pieces.into_iter().flatten() {
        match &mut event {
            StreamEvent::ToolCallStart { index, .. } => {
                *index = next;
                next += 1;
            }
            StreamEvent::ToolCallDelta { index, .. }
            | StreamEvent::ToolCallComplete { index, .. } => {
                *index = next - 1;
            }
            _ => {}
        }
        events.push(event);
    }
    events
}

/// Ids that meet again and again.
pub(crate) fn id() -> impl Strategy<Value = String> {
    select(vec!["a", "b", "a_2", "call_1_0", ""]).prop_map(str::to_owned)
}

/// Argument texts, readable and not.
pub(crate) fn arguments() -> impl Strategy<Value = String> {
    let number = any::<f64>().prop_filter("JSON has no such number", |n| n.is_finite());
    prop_oneof![
        select(vec!["{}", r#"{"x":1}"#, r#"{"y":[1,{"z":null}],"x":2}"#, "", "null"])
            .prop_map(str::to_owned),
        select(vec!["{\"x\"", "[1]", "\"text\"", "7", r#"{"bad":1}"#]).prop_map(str::to_owned),
        number.prop_map(|n| json!({"n": n}).to_string()),
    ]
}

pub(crate) fn stop_reason() -> impl Strategy<Value = StopReason> {
    use StopReason::{EndTurn, MaxTokens, Refusal, StopSequence, ToolUse};
    select(vec![EndTurn, ToolUse, ToolUse, MaxTokens, StopSequence, Refusal])
}

pub(crate) fn tokens() -> impl Strategy<Value = Usage> {
    let cached = option::of(0..9u64);
    prop_oneof![
        (0..99u64, 0..99u64, cached).prop_map(|(input, output, cache_read_tokens)| Usage {
            cache_read_tokens,
            ..usage(input, output)
        }),
        Just(Usage::unknown()),
    ]
}

// ---- what tools and callbacks say -----------------------------------------------------------

/// Any answer to any effect, also such as no driver would give.
pub(crate) fn outcome() -> impl Strategy<Value = Outcome> {
    let response = || {
        (vec(block(), 0..4), stop_reason(), tokens()).prop_map(|(content, stop_reason, usage)| {
            ChatResponse { content, stop_reason, usage, ..ChatResponse::default() }
        })
    };
    let calls = || proptest::collection::btree_set(0..4usize, 0..3);
    let reply = (response(), calls(), calls()).prop_map(|(response, cut_calls, invalid)| {
        let invalid_calls = invalid.into_iter().map(|at| (at, "wrong".to_owned())).collect();
        Outcome::Reply(Reply { response, cut_calls, invalid_calls, ..Reply::default() })
    });
    let failed = response()
        .prop_map(|partial| Outcome::ReplyFailed { failure: Failure::EmptyReply, partial });
    let cut = (option::of(response()), option::of(tokens()))
        .prop_map(|(partial, usage)| Outcome::Cut { partial, usage, duration: None });
    prop_oneof![
        3 => reply,
        1 => failed,
        1 => Just(Outcome::ForceMask([1].into())),
        1 => stop_decision().prop_map(Outcome::Stop),
        1 => verdict().prop_map(Outcome::Loop),
        1 => approval().prop_map(Outcome::Approval),
        1 => tool_outcome().prop_map(Outcome::Tool),
        1 => pipeline().prop_map(Outcome::Pipeline),
        2 => cut,
        1 => Just(Outcome::NotBegun),
    ]
}

fn tool_outcome() -> impl Strategy<Value = ToolOutcome> {
    let content = prop_oneof![
        select(vec!["", "ok", "a longer text, which masking finds worth its while"])
            .prop_map(ToolContent::from),
        tool_content(),
    ];
    let failed = select(vec!["", "it broke", "it broke, and it takes a long text to say how"]);
    let nested = |outcome, usage| ToolOutcome { usage, ..outcome };
    let outcome = prop_oneof![3 => content.prop_map(output), 1 => failed.prop_map(failure)];
    (outcome, option::of(tokens())).prop_map(move |(outcome, usage)| nested(outcome, usage))
}

fn tool_content() -> impl Strategy<Value = ToolContent> {
    let image =
        ToolImage { media_type: "image/png".into(), data: ImageSource::Base64("AA".into()) };
    let data = option::of(any::<f32>().prop_map(|n| json!({"n": n})));
    ("[a-z]{0,60}", vec(Just(image), 0..2), data)
        .prop_map(|(text, images, structured)| ToolContent { text, images, structured })
}

/// What a person says in the place of a tool.
pub(crate) const ANSWER: &str = "a person knows it";

fn approval() -> impl Strategy<Value = ApprovalOutcome> {
    prop_oneof![
        3 => Just(ApprovalOutcome::Approved),
        1 => Just(ApprovalOutcome::Denied("no".into())),
        1 => Just(ApprovalOutcome::Modified(json!({"x": 9}))),
        1 => Just(ApprovalOutcome::Answered(ANSWER.into())),
        1 => Just(ApprovalOutcome::ModifiedInvalid("'x' is no number.".into())),
    ]
}

fn stop_decision() -> impl Strategy<Value = StopDecision> {
    prop_oneof![
        9 => Just(StopDecision::Continue),
        1 => Just(StopDecision::Stop),
        1 => Just(StopDecision::StopWithReason("budget".into())),
    ]
}

fn verdict() -> impl Strategy<Value = LoopVerdict> {
    select(vec![LoopVerdict::GoOn, LoopVerdict::GoOn, LoopVerdict::Terminate])
}

fn pipeline() -> impl Strategy<Value = PipelineOutcome> {
    let stages = vec(
        select(vec![
            StageReport::Processed { original: 9, now: 4 },
            StageReport::Extracted { original: 4, now: 3 },
            StageReport::Cached { original: 3, now: 1 },
        ]),
        0..3,
    );
    (option::of("[a-z]{0,9}"), stages).prop_map(|(text, stages)| PipelineOutcome {
        text,
        stages,
        usage: None,
    })
}

// ---- conversations --------------------------------------------------------------------------

/// Any messages in any order, most of them damaged.
pub(crate) fn conversations() -> impl Strategy<Value = Vec<ChatMessage>> {
    vec(message(), 0..6)
}

pub(crate) fn message() -> impl Strategy<Value = ChatMessage> {
    use ChatRole::{Assistant, System, Tool, User};
    let role = select(vec![System, User, Assistant, Assistant, Tool, Tool]);
    (role, vec(block(), 0..4)).prop_map(|(role, content)| ChatMessage { role, content })
}

fn block() -> impl Strategy<Value = ContentBlock> {
    let text = || select(vec!["", " ", "text"]).prop_map(str::to_owned);
    let call = (id(), arguments()).prop_map(|(id, arguments)| {
        let arguments = serde_json::from_str(&arguments).unwrap_or(Value::String(arguments));
        ContentBlock::ToolCall(ToolCall { id, name: "add".into(), arguments })
    });
    let result = (id(), tool_content(), any::<bool>()).prop_map(|(id, content, is_error)| {
        ContentBlock::ToolResult(ToolResult { tool_call_id: id, content, is_error })
    });
    let image = ImageSource::Url("https://example.com/a.png".into());
    prop_oneof![
        3 => text().prop_map(ContentBlock::Text),
        4 => call,
        4 => result,
        1 => text().prop_map(|content| ContentBlock::Reasoning { content }),
        1 => Just(ContentBlock::Image { media_type: "image/png".into(), data: image }),
        1 => Just(ContentBlock::ProviderData(ProviderData { api: "any".into(), data: "x".into() })),
    ]
}
