//! Any body, cut anywhere, read as a reply of Ollama.

#![no_main]

mod decode;

use libfuzzer_sys::fuzz_target;
use toolloop_providers::codec::ollama::OllamaDecoder;

fuzz_target!(|body: &[u8]| decode::check::<OllamaDecoder>(body));
