//! Micro-benchmarks: what the pieces of a tool loop cost on their own, in time and allocations.
//!
//! ```text
//! target/release/micro              all
//! target/release/micro assembler    those whose path contains the word
//! ```

mod assembler;
mod delta;
mod request;

use divan::{AllocProfiler, Divan};

#[global_allocator]
static ALLOC: AllocProfiler = AllocProfiler::system();

fn main() {
    Divan::from_args().run_benches();
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
