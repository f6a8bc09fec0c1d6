//! No request that a run can make is refused, whatever happened before: the codec of every API
//! encodes it, and the strict judge of that API must take it.
//!
//! `TOOLLOOP_HISTORIES` says how many histories are played, `TOOLLOOP_SEED` which is the first. A
//! history that fails is printed with its seed, made as small as it can be.

mod apis;
mod choices;
mod direct;
mod history;
mod messages;
mod replies;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use bytes::Bytes;
use toolloop::{ChatMessage, ChatParams};
use toolloop_core::transcript::keeps_grammar;

use apis::{APIS, Api};
use choices::{Choices, smallest};
use history::{play, play_long};

#[test]
fn whatever_happened_the_next_request_is_taken() {
    let first = number("TOOLLOOP_SEED").unwrap_or(1);
    let histories = number("TOOLLOOP_HISTORIES").unwrap_or(USUAL_HISTORIES);
    let (begin, next, requests) = (Instant::now(), AtomicU64::new(first), AtomicU64::new(0));
    let failures: Mutex<BTreeMap<String, Failed>> = Mutex::default();
    let seen = TURNS.map(|_| AtomicU64::new(0));
    let work = || {
        while let seed = next.fetch_add(1, Relaxed)
            && seed < first + histories
        {
            let mut choices = Choices::random(seed);
            let played = play(&mut choices, &mut |params, model| {
                requests.fetch_add(1, Relaxed);
                let body = judge(params, model)?;
                for (turn, seen) in TURNS.iter().zip(&seen) {
                    seen.fetch_add(body.contains(turn).into(), Relaxed);
                }
                Ok(())
            });
            if let Err(what) = played {
                let tape = choices.into_tape();
                let mut failures = failures.lock().expect("nobody panics with it");
                failures.entry(kind(&what)).or_insert(Failed { seed, tape, times: 0 }).times += 1;
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let requests = requests.into_inner();
    println!("{histories} histories, {requests} requests, {:?}", begin.elapsed());
    let failures = failures.into_inner().expect("nobody panicked with it");
    let told = failures.into_iter().map(|(kind, failed)| {
        failed.tell(&kind, |choices, last| {
            play(choices, &mut |params, model| {
                *last = Some(params.messages.clone());
                judge(params, model).map(drop)
            })
        })
    });
    let told: Vec<String> = told.collect();
    assert!(told.is_empty(), "{}", told.join("\n\n"));
    for (turn, seen) in TURNS.iter().zip(seen) {
        let seen = seen.into_inner();
        println!("{seen} with: {turn}");
        assert!(seen > 0 || histories < USUAL_HISTORIES, "no request has: {turn}");
    }
}

/// A run keeps what it has sent; a clone of its request is encoded anew. Both are the same bytes,
/// whatever was said, masked, left out, injected or edited, and whoever still has bytes of before.
#[test]
fn what_was_kept_is_what_would_be_encoded_anew() {
    let first = number("TOOLLOOP_SEED").unwrap_or(1);
    let histories = number("TOOLLOOP_HISTORIES").unwrap_or(USUAL_HISTORIES) / 2;
    let variants: Vec<&Api> = APIS.iter().copied().flatten().collect();
    let (next, requests) = (AtomicU64::new(first), AtomicU64::new(0));
    let failures: Mutex<BTreeMap<String, Failed>> = Mutex::default();
    let play = |choices: &mut Choices, last: &mut Option<Vec<ChatMessage>>| {
        let api = choices.pick(&variants);
        let mut held: Vec<(Bytes, Bytes)> = Vec::new();
        let played = play_long(choices, &mut |params, choices| {
            requests.fetch_add(1, Relaxed);
            *last = Some(params.messages.clone());
            let encode = |params| (api.encode)(params).map_err(|error| error.to_string());
            let (kept, anew) = (encode(params)?, encode(&params.clone())?);
            if kept != anew {
                let (kept, anew) = (kept.escape_ascii(), anew.escape_ascii());
                return Err(format!("{}: kept and anew\n{kept}\n{anew}", api.name));
            }
            let grammar = params.encoded.keep_grammar(&params.messages);
            if grammar != keeps_grammar(&params.messages) {
                return Err(format!("{}: the grammar seems {grammar}", api.name));
            }
            if choices.one_in(4) {
                held.push((kept, anew));
            }
            Ok(())
        });
        let changed = held.iter().any(|(kept, anew)| kept != anew);
        played.and(if changed { Err(format!("{}: bytes were changed", api.name)) } else { Ok(()) })
    };
    let work = || {
        while let seed = next.fetch_add(1, Relaxed)
            && seed < first + histories
        {
            let mut choices = Choices::random(seed);
            if let Err(what) = play(&mut choices, &mut None) {
                let tape = choices.into_tape();
                let mut failures = failures.lock().expect("nobody panics with it");
                failures.entry(kind(&what)).or_insert(Failed { seed, tape, times: 0 }).times += 1;
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let failures = failures.into_inner().expect("nobody panicked with it");
    let told = failures.into_iter().map(|(kind, failed)| failed.tell(&kind, play));
    let told: Vec<String> = told.collect();
    assert!(told.is_empty(), "{}", told.join("\n\n"));
    let requests = requests.into_inner();
    println!("{histories} histories, {requests} requests");
    assert!(requests > 5 * histories, "{requests} requests of {histories} histories");
}

/// Has every API judge a request, and gives the first one's body; `model` says which variant of
/// each. Of one of them, the bytes that the run has kept are compared with those made anew.
fn judge(params: &ChatParams, model: usize) -> Result<String, String> {
    let copy = params.clone();
    let mut first = None;
    for (at, variants) in APIS.iter().enumerate() {
        let api = &variants[model % variants.len()];
        let body = api.ask(&copy)?;
        if at == model % APIS.len() && (api.encode)(params).ok().as_ref() != Some(&body) {
            return Err(format!("{}: what was kept differs from what is encoded anew", api.name));
        }
        first.get_or_insert(body);
    }
    Ok(String::from_utf8(first.unwrap_or_default().into()).expect("it was judged"))
}

/// The first history that failed in one way.
struct Failed {
    seed: u64,
    tape: Vec<u32>,
    times: u32,
}

impl Failed {
    fn tell(
        self,
        expected: &str,
        play: impl Fn(&mut Choices, &mut Option<Vec<ChatMessage>>) -> Result<(), String>,
    ) -> String {
        let Self { seed, tape, times } = self;
        let run = |tape: &[u32]| {
            let mut last = None;
            let played = play(&mut Choices::replay(tape.to_vec()), &mut last);
            played.err().map(|what| (what, last))
        };
        let tape =
            smallest(tape, |tape| run(tape).is_some_and(|(what, _)| kind(&what) == expected));
        match run(&tape) {
            Some((what, last)) => {
                format!("seed {seed}, {times} times: {what}\nmessages: {last:#?}")
            }
            None => format!("seed {seed}, {times} times, but not again: {expected}"),
        }
    }
}

/// What failures of one kind have in common.
fn kind(what: &str) -> String {
    what.chars().filter(|c| !c.is_ascii_digit()).take(100).collect()
}

fn number(variable: &str) -> Option<u64> {
    let value = std::env::var(variable).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{variable} is no number: {value}")))
}

/// What the histories must have passed through, by words that it leaves in the conversation.
const TURNS: [&str; 17] = [
    "[Masked",
    "This call was denied",
    "approved with changed arguments",
    "This call was not run: the run was cancelled",
    "This call was not run: the run was stopped",
    "This call was not run: the run reached its time limit",
    "This call was cut off while it ran: the run was interrupted",
    "times in a row with the same arguments",
    "The reply reached its limit of output tokens",
    "Unknown tool",
    "No outcome of this call was recorded",
    "Result of an earlier tool call",
    "summary of what was said",
    "unreadable_arguments",
    "Summary of the conversation up to here",
    "(Messages up to here were left out",
    "[Loop warning",
];

/// What a test that runs at every change has time for; `.ci/run` plays many more.
const USUAL_HISTORIES: u64 = 1_000;
