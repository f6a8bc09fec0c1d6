//! [`Sim`]: drives a [`Run`] by its rule through a [`World`], in virtual time.
//!
//! It keeps what a driver would have stored (the inputs) and what a reader would have seen (the
//! events), writes a transcript, and checks after every input what must always hold.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use toolloop_core::effect::{Action, Effect, EffectKey, EffectKind, Outcome};
use toolloop_core::journal::{Record, replay};
use toolloop_core::policy::window::request_tokens;
use toolloop_core::run::{Input, Output, Run};
use toolloop_core::transcript::keeps_grammar;
use toolloop_core::{ChatMessage, LoopEvent, ReplyAssembler};

use super::show;
use super::world::{When, World, mix};

pub(crate) struct Sim {
    pub(crate) run: Run,
    world: World,
    clock: Duration,
    at_work: BTreeMap<EffectKey, AtWork>,
    /// When each effect is done: a reloaded run keeps the same hours.
    due: BTreeMap<EffectKey, Option<Duration>>,
    /// When each was asked for.
    asked: BTreeMap<EffectKey, Duration>,
    /// Effects performed, each once, except for those that a reload asks for again.
    performed: BTreeSet<EffectKey>,
    /// The call ids of the tools that were started.
    pub(crate) started: BTreeMap<String, EffectKey>,
    pub(crate) entries: Vec<Entry>,
    pub(crate) seen: Vec<Seen>,
    /// The conversation of each request.
    pub(crate) requests: Vec<(EffectKey, Vec<ChatMessage>)>,
    /// How much of the caller's script is done.
    scripted: usize,
    /// Store and reload the run after every input.
    reloads: bool,
    lines: Vec<String>,
}

struct AtWork {
    effect: Effect,
    due: Option<Duration>,
    is_aborted: bool,
    assembler: Option<ReplyAssembler>,
}

/// An input, and when it came.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub(crate) at: Duration,
    pub(crate) input: Input,
    is_scripted: bool,
}

/// An event, and how many inputs there had been.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Seen {
    pub(crate) after: usize,
    /// From the model's stream, not from the run.
    pub(crate) is_delta: bool,
    pub(crate) event: LoopEvent,
}

impl Sim {
    pub(crate) fn new(world: World) -> Self {
        let run = Run::new(world.config.clone(), world.params.clone());
        Self {
            run,
            world,
            clock: Duration::ZERO,
            at_work: BTreeMap::new(),
            due: BTreeMap::new(),
            asked: BTreeMap::new(),
            performed: BTreeSet::new(),
            started: BTreeMap::new(),
            entries: Vec::new(),
            seen: Vec::new(),
            requests: Vec::new(),
            scripted: 0,
            reloads: false,
            lines: Vec::new(),
        }
    }

    pub(crate) fn reloading(mut self) -> Self {
        self.reloads = true;
        self
    }

    /// The same world, from its journal up to an input.
    pub(crate) fn resumed(&self, inputs: usize) -> Self {
        let lines: Vec<String> = self.journal()[..=inputs].iter().map(show::json).collect();
        let records = lines.iter().map(|line| serde_json::from_str(line).unwrap());
        let entries = self.entries[..inputs].to_vec();
        Self {
            run: replay(records).unwrap(),
            clock: entries.last().map_or(Duration::ZERO, |entry| entry.at),
            due: self.due.clone(),
            asked: self.asked.clone(),
            scripted: entries.iter().filter(|entry| entry.is_scripted).count(),
            entries,
            ..Self::new(self.world.clone())
        }
    }

    /// What would have been stored.
    pub(crate) fn journal(&self) -> Vec<Record> {
        let start = Record::start(self.world.config.clone(), self.world.params.clone());
        let inputs = self.entries.iter().map(|entry| Record::Input(entry.input.clone()));
        std::iter::once(start).chain(inputs).collect()
    }

    pub(crate) fn into_end(mut self) -> Self {
        while let Some(next) = self.next_input() {
            assert!(self.entries.len() < 10_000, "the run does not end");
            self.apply(next);
        }
        self
    }

    /// What has happened, line by line.
    pub(crate) fn transcript(&self) -> String {
        let mut lines = self.lines.clone();
        lines.push(String::new());
        lines.push(match self.run.result() {
            Ok(result) => show::result(&result),
            Err(error) => format!("error: {error}"),
        });
        lines.extend(self.run.messages().iter().map(show::message));
        lines.join("\n")
    }

    pub(crate) fn keys_at_work(&self) -> Vec<EffectKey> {
        self.at_work.keys().copied().collect()
    }

    // ---- the rule: take all outputs, then give one input -------------------------------------

    /// Takes outputs until the run waits; gives the next thing that happens.
    pub(crate) fn next_input(&mut self) -> Option<Entry> {
        let deadline = loop {
            match self.run.poll_output() {
                Output::Event(event) => self.see(event, false),
                Output::Perform(effect) => self.perform(effect),
                Output::Abort(key) => self.abort(key),
                Output::Wait { deadline } => break deadline,
                Output::Yielded => {
                    let results = show::results(self.run.last_results());
                    self.lines.push(format!("{:>4} -> yielded {results}", self.clock_text()));
                    return Some(self.caller_after_yield());
                }
                Output::Finished => {
                    assert_eq!(self.keys_at_work(), [], "left behind at the end");
                    return None;
                }
                other => panic!("unknown output {other:?}"),
            }
        };
        let outstanding: BTreeSet<EffectKey> =
            self.run.outstanding().iter().map(|effect| effect.key).collect();
        assert!(outstanding.iter().eq(self.at_work.keys()), "not at work: {outstanding:?}");
        Some(self.first_to_happen(deadline))
    }

    pub(crate) fn apply(&mut self, entry: Entry) {
        self.clock = entry.at;
        self.lines.push(format!("{:>4} <- {}", self.clock_text(), show::input(&entry.input)));
        self.scripted += usize::from(entry.is_scripted);
        self.entries.push(entry.clone());
        self.run.handle_input(entry.input).unwrap();
        self.check();
    }

    /// What must hold after every input.
    fn check(&mut self) {
        let messages = self.run.messages();
        assert!(keeps_grammar(&messages), "{}", show::conversation(&messages));
        assert!(self.run.iteration() <= self.world.config.max_iterations);
        if self.reloads {
            while !self.run_is_drained() {}
            let stored = show::json(&self.run);
            let reloaded: Run = serde_json::from_str(&stored).unwrap();
            assert_eq!(reloaded, self.run);
            self.run = reloaded;
        }
    }

    /// Takes one output; whether there was none.
    fn run_is_drained(&mut self) -> bool {
        match self.run.poll_output() {
            Output::Event(event) => self.see(event, false),
            Output::Perform(effect) => self.perform(effect),
            Output::Abort(key) => self.abort(key),
            _ => return true,
        }
        false
    }

    fn see(&mut self, event: LoopEvent, is_delta: bool) {
        self.lines.push(format!("{:>4}    {}", self.clock_text(), show::event(&event)));
        self.seen.push(Seen { after: self.entries.len(), is_delta, event });
    }

    fn perform(&mut self, effect: Effect) {
        let key = effect.key;
        self.lines.push(format!("{:>4} -> {}", self.clock_text(), show::effect(&effect)));
        assert!(self.performed.insert(key), "{key} is performed twice");
        if let Action::RunTool(call) = &effect.action {
            assert_eq!(self.started.insert(call.id.clone(), key), None, "{key} repeats an id");
        }
        if key.kind == EffectKind::Compaction {
            let params = self.run.summary_params().unwrap();
            let limit = self.world.config.compaction.unwrap().threshold;
            assert!(request_tokens(&params) <= limit, "{key} is itself too long");
            assert!(keeps_grammar(&params.messages), "{key}");
        }
        let answered_at_once = self.begin(effect);
        if answered_at_once && self.world.is_eager && !is_model_call(key) {
            let entry = self.answer(key);
            self.apply(entry);
        }
    }

    /// Starts an effect; whether it takes no time.
    fn begin(&mut self, effect: Effect) -> bool {
        let key = effect.key;
        let mut others = self.at_work.keys();
        if key.kind == EffectKind::Tool {
            assert!(others.all(|other| other.kind != EffectKind::Approval), "{key} is too early");
        }
        if !self.world.config.parallel_tool_execution && key.kind >= EffectKind::Tool {
            assert_eq!(self.keys_at_work(), [], "{key} is not alone");
        }
        let is_model = is_model_call(key);
        if key.kind == EffectKind::Model {
            let messages = self.run.params().messages.clone();
            assert!(keeps_grammar(&messages), "{key}: {}", show::conversation(&messages));
            self.requests.push((key, messages));
        }
        let duration = self.world.duration(key);
        let clock = self.clock;
        self.asked.entry(key).or_insert(clock);
        let due = *self.due.entry(key).or_insert_with(|| duration.map(|takes| clock + takes));
        let assembler = is_model.then(|| self.run.assembler());
        let known = self.at_work.insert(key, AtWork { effect, due, is_aborted: false, assembler });
        assert!(known.is_none(), "{key} is at work already");
        due == Some(clock)
    }

    fn abort(&mut self, key: EffectKey) {
        self.lines.push(format!("{:>4} -> abort {key}", self.clock_text()));
        // A reloaded run asks for the end of what was begun before.
        if !self.at_work.contains_key(&key) {
            let outstanding = self.run.outstanding();
            let effect = outstanding.into_iter().find(|effect| effect.key == key).unwrap();
            self.begin(effect);
        }
        self.at_work.get_mut(&key).unwrap().is_aborted = true;
    }

    // ---- what happens next --------------------------------------------------------------------

    fn first_to_happen(&mut self, deadline: Option<Duration>) -> Entry {
        if let Some(key) = self.at_work.iter().find(|(_, work)| work.is_aborted).map(|(k, _)| *k) {
            return self.answer(key);
        }
        let order = self.world.order;
        let done = self
            .at_work
            .iter()
            .filter_map(|(key, work)| Some((work.due?.max(self.clock), mix(*key, order), *key)));
        let done = done.min();
        let soonest = [done.map(|(at, ..)| at), deadline].into_iter().flatten().min();
        if let Some((When::At(at), input)) = self.world.caller.get(self.scripted)
            && soonest.is_none_or(|soonest| *at <= soonest)
        {
            let at = (*at).max(self.clock);
            return Entry { at, input: input.clone(), is_scripted: true };
        }
        match (done, deadline) {
            (Some((at, _, key)), deadline) if deadline.is_none_or(|deadline| at <= deadline) => {
                self.clock = at;
                self.answer(key)
            }
            (_, Some(deadline)) => {
                let at = deadline.max(self.clock);
                Entry { at, input: Input::Now(at), is_scripted: false }
            }
            _ => panic!("nothing will ever happen:\n{}", self.transcript()),
        }
    }

    fn caller_after_yield(&self) -> Entry {
        let scripted = self.world.caller.get(self.scripted);
        let input = scripted.filter(|(when, _)| *when == When::Yielded).map(|(_, i)| i.clone());
        let is_scripted = input.is_some();
        Entry { at: self.clock, input: input.unwrap_or(Input::Continue), is_scripted }
    }

    fn answer(&mut self, key: EffectKey) -> Entry {
        let work = self.at_work.remove(&key).unwrap();
        let outcome = match work.is_aborted && !self.world.is_too_late(key) {
            true => self.cut(key, work),
            false => self.outcome(key, work),
        };
        let input = Input::Outcome { key, outcome };
        Entry { at: self.clock, input, is_scripted: false }
    }

    fn outcome(&mut self, key: EffectKey, work: AtWork) -> Outcome {
        match work.effect.action {
            Action::CallModel | Action::Summarize => {
                let said = self.world.said(key);
                let mut assembler = work.assembler.unwrap();
                for event in said.events {
                    match assembler.push(event) {
                        Ok(Some(event)) if key.kind == EffectKind::Model => self.see(event, true),
                        Ok(_) => {}
                        Err(failure) => return assembler.fail(failure),
                    }
                }
                let outcome = match said.failure {
                    Some(failure) => assembler.fail(failure),
                    None => assembler.finish(),
                };
                with_faults(outcome)
            }
            Action::ReadForceMask => {
                Outcome::ForceMask(self.world.force_mask(key).into_iter().collect())
            }
            Action::DecideStop => {
                // An ending run is no longer interested.
                if let Some(context) = self.run.stop_context() {
                    assert_eq!(context.total_usage, self.run.total_usage());
                    let results = show::results(context.last_tool_results);
                    let executed = context.tool_calls_executed;
                    let line = format!("{executed} tools so far, last: {results}");
                    self.lines.push(format!("{:>4}    {line}", self.clock_text()));
                }
                Outcome::Stop(self.world.decide_stop(key))
            }
            Action::DecideLoop(_) => Outcome::Loop(self.world.judge(key)),
            Action::Approve(_) => Outcome::Approval(self.world.approve(key)),
            Action::RunTool(call) => Outcome::Tool(self.world.run_tool(key, &call)),
            Action::ProcessResult { result, .. } => {
                Outcome::Pipeline(self.world.process(key, &result.content))
            }
            other => panic!("unknown action {other:?}"),
        }
    }

    /// Of a model call the first half has arrived by then; a tool's nested loops have used all. A
    /// tool that was asked for just now has not begun.
    fn cut(&self, key: EffectKey, work: AtWork) -> Outcome {
        if key.kind == EffectKind::Tool && self.asked[&key] == self.clock {
            return Outcome::NotBegun;
        }
        let partial = work.assembler.map(|mut assembler| {
            let events = self.world.said(key).events;
            let half = events.len() / 2;
            for event in events.into_iter().take(half) {
                let _ = assembler.push(event);
            }
            assembler.into_partial()
        });
        let usage = match &work.effect.action {
            Action::RunTool(call) => self.world.run_tool(key, call).usage,
            _ => None,
        };
        Outcome::Cut { partial, usage, duration: None }
    }

    fn clock_text(&self) -> u128 {
        self.clock.as_millis()
    }
}

fn is_model_call(key: EffectKey) -> bool {
    matches!(key.kind, EffectKind::Model | EffectKind::Compaction)
}

fn with_faults(mut outcome: Outcome) -> Outcome {
    if let Outcome::Reply(reply) = &mut outcome {
        let calls = reply.response.tool_calls_iter().enumerate();
        reply.invalid_calls =
            calls.filter_map(|(n, call)| Some((n, World::fault(call)?))).collect();
    }
    outcome
}
