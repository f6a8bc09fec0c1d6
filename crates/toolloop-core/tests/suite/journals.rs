//! Journals of every released format, frozen in `tests/journals/v<format>`: they stay readable.
//!
//! Each `<name>.jsonl` is a journal, one record a line; `<name>.end.json` is what it leads to. A
//! released file is never changed and never deleted: where this test fails, the code is wrong.
//! The run's own sentences (why a call was not run, a mask) may be reworded; they stand in no
//! journal and are not compared.
//!
//! After a change of the format: raise `FORMAT_VERSION`, add worlds below that show what is new,
//! and let `cargo test -p toolloop-core --test all write_missing -- --ignored` write them to the
//! folder of the new version. It never touches a file that is there.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use toolloop_core::effect::{ApprovalOutcome, EffectKind, LoopVerdict};
use toolloop_core::journal::{FORMAT_VERSION, Record, ReplayError, replay};
use toolloop_core::run::{Input, Run, RunConfig};
use toolloop_core::{
    ChatMessage, ChatParams, CompactionConfig, CompactionMethod, ImageSource, LoopAction,
    LoopDetectionConfig, LoopDetectorConfig, ObservationMaskingConfig, ProviderData, StopDecision,
    StopReason, StreamEvent, ToolContent, ToolImage,
};

use super::show;
use super::sim::Sim;
use super::world::{Said, When, World, call_events, definitions, failure, key, ms, output, usage};

#[test]
fn journals_of_all_formats_lead_to_the_same_end() {
    let mut checked = 0;
    for version in 1..=FORMAT_VERSION {
        for path in journals_in(&folder(version)) {
            let lines = fs::read_to_string(&path).unwrap();
            let records = lines.lines().map(|line| serde_json::from_str(line).unwrap());
            let found = end(&replay(records).unwrap());
            let expected = fs::read_to_string(path.with_extension("end.json")).unwrap();
            let expected: Value = serde_json::from_str(&expected).unwrap();
            let recorded = texts_in(&lines);
            let name = path.display();
            assert_eq!(comparable(found, &recorded), comparable(expected, &recorded), "{name}");
            checked += 1;
        }
    }
    assert!(checked >= worlds().len(), "{checked} journals");
}

/// What is read today is written today: no field gets lost on the way.
#[test]
fn journals_of_this_format_are_written_as_they_are_read() {
    for path in journals_in(&folder(FORMAT_VERSION)) {
        for line in fs::read_to_string(&path).unwrap().lines() {
            let record: Record = serde_json::from_str(line).unwrap();
            assert_eq!(show::json(&record), line, "{}", path.display());
        }
    }
}

#[test]
fn a_journal_of_a_later_format_is_refused() {
    let (version, found) = (FORMAT_VERSION + 1, FORMAT_VERSION + 1);
    let (config, params) = (RunConfig::default(), ChatParams::default());
    let start = Record::Start { version, config, params };
    assert_eq!(replay([start]).unwrap_err(), ReplayError::Version { found });
}

#[test]
fn records_that_are_no_journal_are_refused() {
    let start = || Record::start(RunConfig::default(), ChatParams::default());
    assert_eq!(replay([]).unwrap_err(), ReplayError::NoStart);
    assert_eq!(replay([Record::Input(Input::Cancel)]).unwrap_err(), ReplayError::NoStart);
    assert_eq!(replay([start(), start()]).unwrap_err(), ReplayError::SecondStart { at: 1 });
    let error = replay([start(), Record::Input(Input::Continue)]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "record 1 does not fit those before it: \
         the run is not waiting for its caller: take outputs until Yielded first"
    );
}

#[test]
#[ignore = "writes files: see above"]
fn write_missing() {
    let folder = folder(FORMAT_VERSION);
    fs::create_dir_all(&folder).unwrap();
    for (name, sim) in worlds() {
        let path = folder.join(name).with_extension("jsonl");
        if path.exists() {
            continue;
        }
        let lines: Vec<String> = sim.journal().iter().map(show::json).collect();
        let end = serde_json::to_string_pretty(&end(&sim.run)).unwrap();
        fs::write(path.with_extension("end.json"), end + "\n").unwrap();
        fs::write(path, lines.join("\n") + "\n").unwrap();
    }
}

fn folder(version: u32) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/journals").join(format!("v{version}"))
}

fn journals_in(folder: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut journals: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|e| e == "jsonl")).collect();
    journals.sort();
    journals
}

/// All that a journal decides.
fn end(run: &Run) -> Value {
    let ended = match run.result() {
        Ok(result) => json!(result.termination_reason),
        Err(error) => json!({"error": error.to_string()}),
    };
    let outstanding: Vec<String> = run.outstanding().iter().map(show::effect).collect();
    json!({
        "ended": ended,
        "iterations": run.iteration(),
        "total_usage": run.total_usage(),
        "response": run.last_response(),
        "outstanding": outstanding,
        "request": run.params().messages,
        "messages": run.messages(),
    })
}

/// Every text that stands in a journal.
fn texts_in(lines: &str) -> BTreeSet<String> {
    fn collect(value: &Value, texts: &mut BTreeSet<String>) {
        match value {
            Value::String(text) => drop(texts.insert(text.clone())),
            Value::Array(items) => items.iter().for_each(|item| collect(item, texts)),
            Value::Object(fields) => fields.values().for_each(|item| collect(item, texts)),
            _ => {}
        }
    }
    let mut texts = BTreeSet::new();
    lines.lines().for_each(|line| collect(&serde_json::from_str(line).unwrap(), &mut texts));
    texts
}

/// The same without the run's own sentences.
fn comparable(mut value: Value, recorded: &BTreeSet<String>) -> Value {
    match &mut value {
        Value::String(text) if text.contains(' ') && !recorded.contains(text) => {
            *text = "(a sentence of the run)".into();
        }
        Value::Array(items) => {
            items.iter_mut().for_each(|item| *item = comparable(item.take(), recorded));
        }
        Value::Object(fields) => {
            fields.values_mut().for_each(|item| *item = comparable(item.take(), recorded));
        }
        _ => {}
    }
    value
}

// ---- the worlds of format 1 ------------------------------------------------------------------

fn worlds() -> Vec<(&'static str, Sim)> {
    let sim = |world| Sim::new(world).into_end();
    vec![
        ("approvals", sim(approvals())),
        ("cancelled", sim(cancelled())),
        ("circles", sim(circles())),
        ("edited", sim(edited())),
        ("failed", sim(failed())),
        ("left-at-work", left_at_work()),
        ("masked", sim(masked())),
        ("offered", sim(offered())),
        ("pruned", sim(pruned())),
        ("repeated", sim(repeated())),
        ("shortened", sim(shortened())),
        ("stopped", sim(stopped())),
    ]
}

/// All fates of a call side by side, thought and provider data, a reply that was asked for twice.
fn approvals() -> World {
    let data = |data: &str| ProviderData { api: "some-api".into(), data: data.into() };
    let mut events = vec![
        StreamEvent::Model("model-1".into()),
        StreamEvent::RequestId("req-1".into()),
        StreamEvent::ReasoningDelta("Four calls should do.".into()),
        StreamEvent::ProviderData { index: None, data: data("signature") },
        StreamEvent::TextDelta("On it.".into()),
    ];
    for (index, name) in (0..).zip(["add", "search", "write", "add", "nothing"]) {
        events.extend(call_events(index, "same-id", name, r#"{"x":1.25,"deep":{"list":[null]}}"#));
    }
    events.extend(call_events(5, "", "add", r#"{"bad":true}"#));
    events.extend(call_events(6, "cut", "add", r#"{"x"#));
    events.push(StreamEvent::ProviderData { index: Some(0), data: data("of the call") });
    let nested = usage(100, 50);
    World::new("go")
        .config(|config| config.has_pipeline = true)
        .says("m/1", Said::stream(events, StopReason::MaxTokens))
        .says("m/2", Said::stream(Vec::new(), StopReason::EndTurn))
        .says("m/2/1", Said::text("All done."))
        .approval("a/1/1", ApprovalOutcome::Denied("not today".into()))
        .approval("a/1/2", ApprovalOutcome::Modified(json!({"x": 2})))
        .approval("a/1/3", ApprovalOutcome::ModifiedInvalid("'y' is missing.".into()))
        .tool("t/1/0", output("a text that is long enough to be shortened by the pipeline"))
        .tool("t/1/2", toolloop_core::effect::ToolOutcome { usage: Some(nested), ..picture() })
        .takes("t/1/0", 30)
}

fn picture() -> toolloop_core::effect::ToolOutcome {
    output(ToolContent {
        text: "a picture".into(),
        images: vec![ToolImage {
            media_type: "image/png".into(),
            data: ImageSource::Base64("iVBORw0KGgo=".into()),
        }],
        structured: Some(json!({"width": 1, "ratio": 0.1})),
    })
}

/// Of three tools one has finished, one finishes too late to be cut, one is cut.
fn cancelled() -> World {
    let call = |id: &'static str| (id, "add", json!({"id": id}));
    let mut world = World::new("go")
        .says("m/1", Said::calls(&[call("a"), call("b"), call("c")]))
        .takes("t/1/0", 5)
        .takes("t/1/1", 20)
        .hangs("t/1/2")
        .caller(When::At(ms(16)), Input::Inject(vec![ChatMessage::user("never mind")]))
        .caller(When::At(ms(17)), Input::Cancel);
    world.too_late.at.insert(key("t/1/1"), true);
    world
}

/// The same call with the same result, until somebody is asked once too often.
fn circles() -> World {
    let mut world = World::new("go").config(|config| {
        config.loop_detector =
            Some(LoopDetectorConfig { max_exact_duplicates: 1, ..LoopDetectorConfig::default() });
        config.has_loop_decision = true;
    });
    for n in 1..=4 {
        let (id, at) = (format!("c{n}"), format!("m/{n}"));
        world = world
            .says(&at, Said::calls(&[(&id, "add", json!({"x": 1}))]))
            .tool(&format!("t/{n}/0"), output("the same"));
    }
    world.verdicts.at.insert(key("l/4"), LoopVerdict::Terminate);
    world
}

/// Other tools from the second model call on, and names that nobody knows.
fn offered() -> World {
    let offer = |names: &[&str]| Input::OfferTools(definitions(names));
    World::new("go")
        .config(|config| {
            config.runs_any_tool = true;
            config.yield_turns = true;
        })
        .says("m/1", Said::calls(&[("a", "nobody", json!({}))]))
        .says("m/2", Said::calls(&[("b", "new", json!({}))]))
        .caller(When::At(ms(15)), offer(&["new"]))
        .caller(When::Yielded, Input::Continue)
        .caller(When::Yielded, offer(&[]))
}

/// A damaged conversation to begin with, edits between turns, more said while a tool runs.
fn edited() -> World {
    let mut world = World::new("go")
        .config(|config| {
            config.yield_turns = true;
            config.max_iterations = 3;
            config.final_answer = true;
        })
        .says("m/1", Said::calls(&[("a", "add", json!({}))]))
        .says("m/2", Said::calls(&[("a", "search", json!({"q": "ü"}))]))
        .says("m/3", Said::calls(&[("b", "write", json!({}))]))
        .says("m/3/2", Said::text("As far as I came."))
        .caller(When::At(ms(15)), Input::Inject(vec![ChatMessage::user("quickly")]))
        .caller(When::Yielded, Input::Continue)
        .caller(When::Yielded, Input::ReplaceMessages(vec![ChatMessage::user("all anew")]))
        .caller(When::Yielded, Input::Inject(vec![ChatMessage::system("be brief")]));
    world.params.messages.push(ChatMessage::tool_result("lost", "of a call nobody knows"));
    world.params.system = Some("You help.".into());
    world.params.temperature = Some(0.7);
    world.params.max_tokens = Some(500);
    world.params.metadata.insert("user".into(), json!("u-1"));
    world
}

fn failed() -> World {
    let events = vec![StreamEvent::TextDelta("I will".into())];
    World::new("go")
        .says("m/1", Said::calls(&[("a", "add", json!({}))]))
        .says("m/2", Said::broken(events))
}

/// The process ended while two tools ran.
fn left_at_work() -> Sim {
    let world = World::new("go").says(
        "m/1",
        Said::calls(&[
            ("a", "add", json!({})),
            ("b", "search", json!({})),
            ("c", "add", json!({})),
        ]),
    );
    let mut sim = Sim::new(world.takes("t/1/1", 1));
    while sim.started.len() < 3 || sim.entries.len() < 2 {
        let next = sim.next_input().unwrap();
        sim.apply(next);
    }
    assert!(sim.run.outstanding().iter().all(|effect| effect.key.kind == EffectKind::Tool));
    sim
}

fn masked() -> World {
    let masking = ObservationMaskingConfig { max_iterations_to_keep: 1, min_tokens_to_mask: 5 };
    let mut world = World::new("go").config(|config| {
        config.masking = Some(masking);
        config.has_force_mask = true;
    });
    for n in 1..=4 {
        let id = format!("c{n}");
        world = world.says(&format!("m/{n}"), Said::calls(&[(&id, "add", json!({"n": n}))]));
    }
    world.force_masks.at.insert(key("f/5"), vec![4]);
    world.tool("t/2/0", failure("a failure is never masked, however long it is"))
}

fn pruned() -> World {
    let mut world = World::new("go").config(|config| config.max_tool_turns = Some(1));
    for n in 1..=3 {
        let id = format!("c{n}");
        world = world.says(&format!("m/{n}"), Said::calls(&[(&id, "add", json!({"n": n}))]));
    }
    world
}

/// A summary, a summary that fails and is replaced by a line, more said while one is made.
fn shortened() -> World {
    let mut world = World::new("go").config(|config| {
        let (threshold, target) = (300, 200);
        let method = CompactionMethod::Summary;
        config.compaction =
            Some(CompactionConfig { threshold, target, method, max_summary_tokens: 30 });
    });
    for n in 1..=4 {
        let id = format!("c{n}");
        world = world
            .says(&format!("m/{n}"), Said::calls(&[(&id, "add", json!({"n": n}))]))
            .tool(&format!("t/{n}/0"), output(format!("long {n} ").repeat(100)));
    }
    world
        .says("c/3", Said::text("1 was added."))
        .says("c/4", Said::broken(vec![StreamEvent::TextDelta("2 was".into())]))
        .says("c/5", Said::text("3 was added."))
        .caller(When::At(ms(45)), Input::Inject(vec![ChatMessage::user("quickly")]))
}

fn repeated() -> World {
    let detection = LoopDetectionConfig { threshold: 2, action: LoopAction::InjectWarning };
    let mut world = World::new("go").config(|config| {
        config.loop_detection = Some(detection);
        config.parallel_tool_execution = false;
        config.timeout = Some(ms(58));
    });
    for n in 1..=4 {
        let id = format!("c{n}");
        world = world.says(&format!("m/{n}"), Said::calls(&[(&id, "add", json!({"x": 1}))]));
    }
    world
}

fn stopped() -> World {
    let mut world = World::new("go")
        .config(|config| config.has_stop_when = true)
        .says("m/1", Said::calls(&[("a", "add", json!({}))]))
        .says("m/2", Said::calls(&[("b", "add", json!({}))]));
    world.stops.at.insert(key("s/2"), StopDecision::StopWithReason("enough".into()));
    world
}
