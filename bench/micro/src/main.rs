//! Micro-benchmarks: what the pieces of a tool loop cost on their own.
//!
//! ```text
//! target/release/micro [WORD]       all, or those whose path contains the word
//! cargo run --release -p micro --features allocations -- [WORD]     with allocations
//! target/release/micro guard        instructions counted, and held against limits
//! ```

use std::process::ExitCode;

mod assembler;
mod codec;
mod delta;
mod dialect;
mod guard;
mod request;
mod run;
mod tool;

#[cfg(feature = "allocations")]
#[global_allocator]
static ALLOC: divan::AllocProfiler = divan::AllocProfiler::system();

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let Some(("guard", words)) = words.split_first().map(|(first, rest)| (&**first, rest)) {
        return guard::main(words);
    }
    divan::Divan::from_args().run_benches();
    ExitCode::SUCCESS
}

/// A chunk of OpenAI Chat Completions with this text delta.
fn chunk(text: &str) -> String {
    format!(
        "{{\"id\":\"chatcmpl-bench0000\",\"object\":\"chat.completion.chunk\",\"created\":1760000000,\
         \"model\":\"bench-i5-t2000-c1-a8\",\"service_tier\":\"default\",\"system_fingerprint\":\
         \"fp_bench\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}},\"logprobs\":null,\
         \"finish_reason\":null}}],\"usage\":null}}"
    )
}
