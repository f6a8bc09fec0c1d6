//! Any body, cut anywhere, read as a reply of Gemini.

#![no_main]

mod decode;

use libfuzzer_sys::fuzz_target;
use toolloop_providers::codec::gemini::GeminiDecoder;

fuzz_target!(|body: &[u8]| decode::check::<GeminiDecoder>(body));
