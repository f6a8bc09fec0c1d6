//! The detector of circles against `tests/traces/traces.jsonl`: calls as models make them, with a
//! label that says whether somebody who looks on would tell the model that it goes in circles.
//!
//! A trace has replies, each a list of texts and of calls `[tool, arguments, result, seconds]`;
//! `{"times": n, "replies": [..]}` stands for so many rounds, with their number in place of `$n`.
//! Labels are what people say. A trace that the detector gets wrong stays; the test names it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use toolloop_core::policy::detection::{CallEnd, LoopDetector, LoopDetectorConfig};
use toolloop_core::{ToolCall, ToolContent};

#[test]
fn precision_recall_and_false_alarms_of_polls() {
    let traces = traces();
    assert!(traces.len() >= 60, "{} traces", traces.len());
    let mut total = Tally::default();
    let mut kinds: BTreeMap<&str, Tally> = BTreeMap::new();
    let mut wrong = Vec::new();
    for (number, trace) in (0..).zip(&traces) {
        let plain = trace.replies(&mut Variation::none());
        if is_found(&plain) != trace.stuck {
            wrong.push(trace.name.as_str());
        }
        let mut dice = Dice(number);
        for _ in 0..VARIANTS {
            let replies = trace.replies(&mut Variation::any(&mut dice, trace.stuck));
            let found = is_found(&replies);
            total.count(trace.stuck, found);
            kinds.entry(&trace.kind).or_default().count(trace.stuck, found);
        }
    }
    let polls = kinds.get_mut("polling").unwrap();
    for seed in 0..5_000 {
        let found = is_found(&poll(&mut Dice(seed)));
        polls.count(false, found);
    }
    println!("{} traces, {VARIANTS} variants of each", traces.len());
    for (kind, tally) in &kinds {
        println!("  {kind}: {tally:?}");
    }
    let (precision, recall) = (total.precision(), total.recall());
    let polling = kinds["polling"].false_alarms();
    println!("precision {precision:.4}, recall {recall:.4}, false alarms of polls {polling:.4}");
    println!("wrong as they stand: {wrong:#?}");
    assert!(precision >= 0.95 && recall >= 0.95 && polling < 0.01);
    // What it is known to get wrong: equal calls with an equal result are no progress to it, and
    // a cycle of more than three calls without a word is none.
    assert_eq!(
        wrong,
        [
            "four calls round and round, without a word",
            "five calls round and round, without a word",
            "a slow job that says nothing of how far it is",
            "green after every step, in the same words",
        ]
    );
}

/// Without an eye on results every poll is a circle: the figures above mean something.
#[test]
fn results_are_what_tells_polls_from_circles() {
    let config = LoopDetectorConfig { result_aware: false, ..LoopDetectorConfig::default() };
    let polls = traces().into_iter().filter(|trace| trace.kind == "polling");
    let (found, polls): (Vec<_>, Vec<_>) = polls
        .map(|trace| (is_found_by(&config, &trace.replies(&mut Variation::none())), trace.name))
        .unzip();
    assert!(found.iter().filter(|found| **found).count() * 10 >= polls.len() * 8, "{polls:?}");
}

/// A run of any length is found again by a detector that was stored in between.
#[test]
fn a_stored_detector_finds_the_same() {
    let config = LoopDetectorConfig::default();
    for trace in traces() {
        let replies = trace.replies(&mut Variation::none());
        let mut stayed = LoopDetector::default();
        let mut stored = LoopDetector::default();
        for (number, reply) in (1..).zip(&replies) {
            assert_eq!(
                reply.show(&config, number, &mut stayed),
                reply.show(&config, number, &mut stored)
            );
            let line = serde_json::to_string(&stored).unwrap();
            stored = serde_json::from_str(&line).unwrap();
        }
    }
}

// ---- traces ------------------------------------------------------------------------------------

struct Trace {
    name: String,
    kind: String,
    stuck: bool,
    blocks: Vec<Value>,
}

struct Reply {
    text: String,
    calls: Vec<(ToolCall, ToolContent, bool, Duration)>,
}

fn traces() -> Vec<Trace> {
    let lines = include_str!("../traces/traces.jsonl").lines();
    lines
        .map(|line| {
            let trace: Value = serde_json::from_str(line).unwrap();
            let text = |name: &str| trace[name].as_str().unwrap().to_owned();
            Trace {
                name: text("name"),
                kind: text("kind"),
                stuck: trace["stuck"].as_bool().unwrap(),
                blocks: trace["replies"].as_array().unwrap().clone(),
            }
        })
        .collect()
}

impl Trace {
    fn replies(&self, variation: &mut Variation<'_>) -> Vec<Reply> {
        let mut replies: Vec<Reply> = (0..variation.before).map(unrelated).collect();
        for block in &self.blocks {
            let rounds = block["times"].as_u64().map(|times| times + variation.more_rounds);
            let once = vec![block.clone()];
            let in_round = block["replies"].as_array().unwrap_or(&once);
            for round in 1..=rounds.unwrap_or(1) {
                for reply in in_round {
                    variation.interrupt(&mut replies);
                    let mut reply = Reply::read(reply, round + variation.first);
                    variation.change(&mut reply, replies.len());
                    replies.push(reply);
                }
            }
        }
        replies
    }
}

impl Reply {
    fn read(reply: &Value, round: u64) -> Self {
        let reply = reply.to_string().replace("$n", &round.to_string());
        let reply: Value = serde_json::from_str(&reply).unwrap();
        let mut read = Self { text: String::new(), calls: Vec::new() };
        for item in reply.as_array().unwrap() {
            if let Some(text) = item.as_str() {
                read.text.push_str(text);
                continue;
            }
            let id = format!("c{}", read.calls.len());
            let name = item[0].as_str().unwrap().to_owned();
            let call = ToolCall { id, name, arguments: item[1].clone() };
            let error = item[2]["error"].as_str();
            let content = error.or(item[2].as_str()).unwrap().into();
            let took = Duration::from_secs(item[3].as_u64().unwrap_or(0));
            read.calls.push((call, content, error.is_some(), took));
        }
        read
    }

    /// Shows a detector this reply; gives what was found.
    fn show(
        &self,
        config: &LoopDetectorConfig,
        number: u32,
        detector: &mut LoopDetector,
    ) -> Vec<toolloop_core::LoopDetection> {
        let calls = self.calls.iter().map(|(call, ..)| call);
        let mut found = detector.observe_calls(config, number, &self.text, calls);
        let ends = self.calls.iter().map(|(call, content, is_error, took)| CallEnd {
            call,
            content,
            is_error: *is_error,
            took: *took,
        });
        if detector.has_suspects() {
            found.clear();
        }
        found.extend(detector.observe_results(config, number, ends));
        found
    }
}

fn is_found(replies: &[Reply]) -> bool {
    is_found_by(&LoopDetectorConfig::default(), replies)
}

fn is_found_by(config: &LoopDetectorConfig, replies: &[Reply]) -> bool {
    let mut detector = LoopDetector::default();
    (1..).zip(replies).any(|(number, reply)| !reply.show(config, number, &mut detector).is_empty())
}

/// A step of some other work.
fn unrelated(number: usize) -> Reply {
    let reply = json!([["look_up", {"word": format!("w{number}")}, format!("meaning {number}")]]);
    Reply::read(&reply, 0)
}

/// A poll of one job or of two at once, with or without a pause between looks. Each job brings
/// news at every third look or sooner; of two, one does at every second look. (The same pair of
/// calls three times without any news is a cycle, whoever makes it.)
fn poll(dice: &mut Dice) -> Vec<Reply> {
    let (is_paced, jobs, looks) = (dice.one_in(2), 1 + dice.below(2), 5 + dice.below(20));
    let mut parts = [0; 2];
    let mut looks_without_news = [0; 2];
    let mut replies = Vec::new();
    for _ in 0..looks {
        let mut calls = Vec::new();
        let is_due = jobs == 2 && looks_without_news.iter().all(|looks| *looks > 0);
        for job in 0..jobs as usize {
            looks_without_news[job] += 1;
            if is_due || looks_without_news[job] == 3 || dice.one_in(2) {
                parts[job] += 1;
                looks_without_news[job] = 0;
            }
            calls.push(json!(["job_status", {"id": job}, format!("{} parts", parts[job])]));
        }
        replies.push(Reply::read(&Value::Array(calls), 0));
        if is_paced {
            let seconds = 5 + dice.below(60);
            replies.push(Reply::read(&json!([["sleep", {}, "slept", seconds]]), 0));
        }
    }
    replies
}

// ---- variants ----------------------------------------------------------------------------------

const VARIANTS: u32 = 40;

/// What may be otherwise in a trace without a change of its label.
struct Variation<'d> {
    dice: Option<&'d mut Dice>,
    /// Steps of other work before it.
    before: usize,
    /// The number of the first round, less one.
    first: u64,
    /// Rounds more than the trace has, where it is stuck.
    more_rounds: u64,
    /// Whether replies without text get one, each another.
    speaks: bool,
    /// Whether tools have other names.
    renames: bool,
    /// Whether other work comes in between, where it is not stuck.
    interrupts: bool,
}

impl<'d> Variation<'d> {
    fn none() -> Self {
        Self {
            dice: None,
            before: 0,
            first: 0,
            more_rounds: 0,
            speaks: false,
            renames: false,
            interrupts: false,
        }
    }

    fn any(dice: &'d mut Dice, stuck: bool) -> Self {
        Self {
            before: dice.below(13) as usize,
            first: dice.below(30),
            more_rounds: if stuck { dice.below(4) } else { 0 },
            speaks: dice.one_in(2),
            renames: dice.one_in(2),
            interrupts: !stuck && dice.one_in(2),
            dice: Some(dice),
        }
    }

    fn interrupt(&mut self, replies: &mut Vec<Reply>) {
        if let Some(dice) = &mut self.dice
            && self.interrupts
            && dice.one_in(6)
        {
            replies.push(unrelated(replies.len()));
        }
    }

    fn change(&mut self, reply: &mut Reply, number: usize) {
        if self.speaks && reply.text.is_empty() {
            reply.text = format!("Step {number}.");
        }
        for (call, ..) in &mut reply.calls {
            if self.renames {
                call.name.push_str("_tool");
            }
            if let Some(dice) = &mut self.dice
                && dice.one_in(2)
                && let Value::Object(fields) = &call.arguments
            {
                call.arguments =
                    fields.iter().rev().map(|(key, value)| (key.clone(), value.clone())).collect();
            }
        }
    }
}

/// The same numbers for ever (splitmix64).
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

#[derive(Debug, Default)]
struct Tally {
    found: u32,
    missed: u32,
    false_alarms: u32,
    quiet: u32,
}

impl Tally {
    fn count(&mut self, stuck: bool, found: bool) {
        *match (stuck, found) {
            (true, true) => &mut self.found,
            (true, false) => &mut self.missed,
            (false, true) => &mut self.false_alarms,
            (false, false) => &mut self.quiet,
        } += 1;
    }

    fn precision(&self) -> f64 {
        f64::from(self.found) / f64::from(self.found + self.false_alarms)
    }

    fn recall(&self) -> f64 {
        f64::from(self.found) / f64::from(self.found + self.missed)
    }

    fn false_alarms(&self) -> f64 {
        f64::from(self.false_alarms) / f64::from(self.false_alarms + self.quiet)
    }
}
