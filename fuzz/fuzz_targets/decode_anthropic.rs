//! Any body, cut anywhere, read as a reply of Anthropic Messages.

#![no_main]

mod decode;

use libfuzzer_sys::fuzz_target;
use toolloop_providers::codec::anthropic::MessagesDecoder;

fuzz_target!(|body: &[u8]| decode::check::<MessagesDecoder>(body));
