//! Every case gives the same, wherever its text was cut.

use toolloop_core::dialect::StreamingError;

use super::cases::{Case, cases};
use super::reading::{Part, read};

fn check<'a>(case: &Case, pieces: impl IntoIterator<Item = &'a str>) -> Result<(), String> {
    let read = read(case.dialect, case.limit, case.end, pieces);
    match read == case.parts {
        true => Ok(()),
        false => Err(format!("{}\n read: {read:#?}\n expected: {:#?}", case.name, case.parts)),
    }
}

fn boundaries(text: &str) -> Vec<usize> {
    (0..=text.len()).filter(|at| text.is_char_boundary(*at)).collect()
}

#[test]
fn whole() {
    let failed: Vec<_> = cases().iter().filter_map(|c| check(c, [&*c.text]).err()).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn at_every_place_in_two() {
    for case in cases() {
        for at in boundaries(&case.text) {
            let (first, second) = case.text.split_at(at);
            check(&case, [first, second]).unwrap_or_else(|e| panic!("at {at}: {e}"));
        }
    }
}

#[test]
fn in_single_characters() {
    for case in cases() {
        let ends = boundaries(&case.text);
        let pieces = ends.windows(2).map(|ends| &case.text[ends[0]..ends[1]]);
        check(&case, pieces).unwrap();
    }
}

#[test]
fn in_a_thousand_random_ways() {
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    for case in cases() {
        let all = boundaries(&case.text);
        for round in 0..1000 {
            let mut ends = vec![0];
            for at in &all {
                seed ^= seed << 13;
                seed ^= seed >> 7;
                seed ^= seed << 17;
                if seed.is_multiple_of(2 + round % 30) {
                    ends.push(*at);
                }
            }
            ends.push(case.text.len());
            let pieces = ends.windows(2).map(|ends| &case.text[ends[0]..ends[1]]);
            check(&case, pieces).unwrap_or_else(|e| panic!("{ends:?}: {e}"));
        }
    }
}

#[test]
fn a_limit_reads_as_the_specification_says() {
    let sentences = [StreamingError::ToolLimitReached, StreamingError::UserCancelled];
    assert_eq!(
        sentences.map(|error| error.to_string()),
        ["Tool limit reached - only one tool per message allowed", "Streaming cancelled by user"]
    );
    let limited = cases().iter().filter(|c| c.parts.contains(&Part::LimitReached)).count();
    assert!(limited >= 5);
}
