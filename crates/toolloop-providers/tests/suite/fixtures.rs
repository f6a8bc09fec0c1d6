//! Streams written by hand, one peculiarity each: the same events, wherever the bytes are cut.
//!
//! Beside `<name>.sse` lies `<name>.events`: one event a line, and `error: ..` where it ends so.

use std::path::{Path, PathBuf};

use crate::support::decode::decode;

#[test]
fn each_fixture_gives_its_events() {
    let mut wrong = String::new();
    for path in fixtures() {
        let body = std::fs::read(&path).unwrap();
        let expected = std::fs::read_to_string(path.with_extension("events")).unwrap_or_default();
        let seen = lines(&[&body]);
        if seen != expected {
            wrong.push_str(&format!("--- {}\n{seen}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "these give other events:\n{wrong}");
}

#[test]
fn a_cut_at_any_byte_changes_nothing() {
    for path in fixtures() {
        let body = std::fs::read(&path).unwrap();
        let whole = lines(&[&body]);
        for cut in 0..=body.len() {
            let (first, second) = body.split_at(cut);
            assert_eq!(lines(&[first, second]), whole, "{} cut at {cut}", path.display());
        }
        let bytes: Vec<_> = body.chunks(1).collect();
        assert_eq!(lines(&bytes), whole, "{} byte by byte", path.display());
    }
}

fn fixtures() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/openai-chat");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut streams: Vec<_> = files.filter(|path| path.extension().unwrap() == "sse").collect();
    streams.sort();
    assert!(streams.len() > 20);
    streams
}

fn lines(pieces: &[&[u8]]) -> String {
    let (events, error) = decode(pieces.iter().copied());
    let mut lines: Vec<_> =
        events.iter().map(|event| serde_json::to_string(event).unwrap()).collect();
    lines.extend(error.map(|error| format!("error: {error:?}")));
    lines.join("\n") + "\n"
}
