//! Any body, cut anywhere, read as a reply of the Responses API.

#![no_main]

mod decode;

use libfuzzer_sys::fuzz_target;
use toolloop_providers::codec::openai_responses::ResponsesDecoder;

fuzz_target!(|body: &[u8]| decode::check::<ResponsesDecoder>(body));
