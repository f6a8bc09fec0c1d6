//! Any body, cut anywhere, read as a reply of Chat Completions.

#![no_main]

mod decode;

use libfuzzer_sys::fuzz_target;
use toolloop_providers::codec::openai_chat::ChatDecoder;

fuzz_target!(|body: &[u8]| decode::check::<ChatDecoder>(body));
