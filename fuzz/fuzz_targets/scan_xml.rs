//! Any text, cut anywhere, read by the scanner of one dialect.

#![no_main]

mod scan;

use libfuzzer_sys::fuzz_target;
use toolloop_core::dialect::Dialect;

fuzz_target!(|text: &str| scan::check(Dialect::Xml, text));
