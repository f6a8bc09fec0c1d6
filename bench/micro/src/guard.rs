//! The guard: what the hot paths may cost, as ratios of instruction counts.
//!
//! Time is another one on each machine and at each hour; the instructions that a piece of work
//! takes are nearly the same everywhere. `micro guard` runs this very program again under
//! callgrind, each piece of work with N and with 2 N steps; the difference is what N steps cost,
//! whatever comes before and after them. A ratio of two pieces also outlives another compiler.

use std::io::ErrorKind;
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::codec::anthropic::Anthropic;
use crate::codec::gemini::Gemini;
use crate::codec::ollama::Ollama;
use crate::codec::openai_chat::{self, OpenAiChat};
use crate::codec::openai_responses::OpenAiResponses;
use crate::{codec, dialect, run};

/// A piece of work whose instructions are counted.
struct Work {
    name: &'static str,
    /// How many steps are enough for what happens once in a while not to show.
    steps: usize,
    /// Does so many steps.
    run: fn(usize),
}

/// What a step of one piece of work may cost, as a multiple of a step of another.
struct Limit {
    of: &'static str,
    to: &'static str,
    at_most: f64,
}

const fn work(name: &'static str, steps: usize, run: fn(usize)) -> Work {
    Work { name, steps, run }
}

const fn limit(of: &'static str, to: &'static str, at_most: f64) -> Limit {
    Limit { of, to, at_most }
}

const WORKS: &[Work] = &[
    work("decode chat", 2000, codec::decode_some::<OpenAiChat>),
    work("decode chat, dated", 2000, openai_chat::decode_some_dated),
    work("decode responses", 2000, codec::decode_some::<OpenAiResponses>),
    work("decode anthropic", 2000, codec::decode_some::<Anthropic>),
    work("decode gemini", 2000, codec::decode_some::<Gemini>),
    work("decode ollama", 2000, codec::decode_some::<Ollama>),
    work("parse chat", 2000, codec::parse_some::<OpenAiChat>),
    work("parse responses", 2000, codec::parse_some::<OpenAiResponses>),
    work("parse anthropic", 2000, codec::parse_some::<Anthropic>),
    work("parse gemini", 2000, codec::parse_some::<Gemini>),
    work("parse ollama", 2000, codec::parse_some::<Ollama>),
    work("assemble", 2000, dialect::assemble_some),
    work("assemble behind a dialect", 2000, dialect::assemble_some_in_dialect),
    work("iteration after 10", 200, run::iterate_after::<10>),
    work("iteration after 1000", 200, run::iterate_after::<1000>),
    work("call among 64", 1280, run::call_among_64),
    work("encode chat whole", 20, codec::encode_whole_again::<OpenAiChat>),
    work("encode chat next", 20, codec::encode_next::<OpenAiChat>),
    work("encode responses whole", 20, codec::encode_whole_again::<OpenAiResponses>),
    work("encode responses next", 20, codec::encode_next::<OpenAiResponses>),
    work("encode anthropic whole", 20, codec::encode_whole_again::<Anthropic>),
    work("encode anthropic next", 20, codec::encode_next::<Anthropic>),
    work("encode gemini whole", 20, codec::encode_whole_again::<Gemini>),
    work("encode gemini next", 20, codec::encode_next::<Gemini>),
    work("encode ollama whole", 20, codec::encode_whole_again::<Ollama>),
    work("encode ollama next", 20, codec::encode_next::<Ollama>),
];

/// Some 10 % above what was measured.
const LIMITS: &[Limit] = &[
    // A text delta, to the least that a parser could make of the same bytes.
    limit("decode chat", "parse chat", 0.15),
    limit("decode chat, dated", "parse chat", 0.19),
    limit("decode responses", "parse responses", 0.3),
    limit("decode anthropic", "parse anthropic", 0.34),
    limit("decode gemini", "parse gemini", 1.72),
    limit("decode ollama", "parse ollama", 0.47),
    // Bytes to the follower's event, in the API where that is cheapest.
    limit("assemble behind a dialect", "assemble", 1.2),
    // The machine does not grow slower with what is behind it, nor with calls beside a call.
    limit("iteration after 1000", "iteration after 10", 1.1),
    limit("call among 64", "iteration after 10", 1.2),
    // The next request of a run, after 300 iterations. Anthropic and Gemini write the last turns
    // again, because what follows may change them.
    limit("encode chat next", "encode chat whole", 0.001),
    limit("encode responses next", "encode responses whole", 0.001),
    limit("encode anthropic next", "encode anthropic whole", 0.017),
    limit("encode gemini next", "encode gemini whole", 0.004),
    limit("encode ollama next", "encode ollama whole", 0.001),
];

/// Without words, guards; with the name of a piece of work and a number, does so many steps.
pub(crate) fn main(words: &[String]) -> ExitCode {
    if let [name, steps] = words {
        let work = WORKS.iter().find(|work| work.name == *name).expect("a known piece of work");
        (work.run)(steps.parse().expect("a number of steps"));
        return ExitCode::SUCCESS;
    }
    match Command::new("valgrind").arg("--version").output() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            println!("SKIPPED: instructions are not counted, because valgrind is not installed");
            ExitCode::SUCCESS
        }
        _ => guard(),
    }
}

fn guard() -> ExitCode {
    let counts = count_all();
    for (work, count) in WORKS.iter().zip(&counts) {
        println!("{:<28}{count:>10.0} instructions a step", work.name);
    }
    println!();
    let mut kept = true;
    for Limit { of, to, at_most } in LIMITS {
        let count = |name: &str| {
            let at = WORKS.iter().position(|work| work.name == name);
            counts[at.expect("a known piece of work")]
        };
        let ratio = count(of) / count(to);
        let verdict = if ratio <= *at_most { "ok" } else { "TOO MUCH" };
        println!("{of:<28}{ratio:>10.3} of {to:<24} at most {at_most:<6}{verdict}");
        kept &= ratio <= *at_most;
    }
    if kept { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The instructions of one step of each piece of work. Counts do not mind what runs beside.
fn count_all() -> Vec<f64> {
    let (next, counts) = (AtomicUsize::new(0), Mutex::new(vec![0.0; WORKS.len()]));
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(work) = WORKS.get(at) else { break };
                    let [once, twice] = [1, 2].map(|times| count(work.name, times * work.steps));
                    let step = (twice as f64 - once as f64) / work.steps as f64;
                    counts.lock().expect("no thread panicked")[at] = step;
                }
            });
        }
    });
    counts.into_inner().expect("no thread panicked")
}

/// The instructions of a whole process that does so many steps.
fn count(name: &str, steps: usize) -> u64 {
    let program = std::env::current_exe().expect("the program has a path");
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args(["guard", name, &steps.to_string()])
        // Else a large copy is one instruction a byte, where it is one for 32.
        .env("GLIBC_TUNABLES", "glibc.cpu.x86_rep_movsb_threshold=1073741824")
        .output()
        .expect("valgrind starts");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {told}");
    let collected = told.lines().find_map(|line| line.split_once("Collected : "));
    let (_, count) = collected.unwrap_or_else(|| panic!("{name}: no count in {told}"));
    count.trim().parse().expect("a count is a number")
}
