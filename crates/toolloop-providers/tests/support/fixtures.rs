//! Bodies written by hand, one peculiarity each. Beside `<name>.sse` lies `<name>.events`: one
//! event a line, and `error: ..` where it ends so.

use std::path::{Path, PathBuf};

use toolloop_providers::codec::Decoder;

use super::decode::decode_as;

/// Each body of a folder gives its events; there are more than `at_least`.
pub(crate) fn assert_events<D: Decoder>(folder: &str, at_least: usize) {
    let mut wrong = String::new();
    for path in bodies(folder, at_least) {
        let body = std::fs::read(&path).unwrap();
        let expected = std::fs::read_to_string(path.with_extension("events")).unwrap_or_default();
        let seen = lines::<D>(&[&body]);
        if seen != expected {
            wrong.push_str(&format!("--- {}\n{seen}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "these give other events:\n{wrong}");
}

/// They give the same events wherever they are cut.
pub(crate) fn assert_cuts_change_nothing<D: Decoder>(folder: &str, at_least: usize) {
    for path in bodies(folder, at_least) {
        let body = std::fs::read(&path).unwrap();
        let whole = lines::<D>(&[&body]);
        for cut in 0..=body.len() {
            let (first, second) = body.split_at(cut);
            assert_eq!(lines::<D>(&[first, second]), whole, "{} cut at {cut}", path.display());
        }
        let bytes: Vec<_> = body.chunks(1).collect();
        assert_eq!(lines::<D>(&bytes), whole, "{} byte by byte", path.display());
    }
}

fn bodies(folder: &str, at_least: usize) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(folder);
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut streams: Vec<_> = files.filter(|path| path.extension().unwrap() == "sse").collect();
    streams.sort();
    assert!(streams.len() > at_least);
    streams
}

fn lines<D: Decoder>(pieces: &[&[u8]]) -> String {
    let (events, error) = decode_as::<D>(pieces.iter().copied());
    let mut lines: Vec<_> =
        events.iter().map(|event| serde_json::to_string(event).unwrap()).collect();
    lines.extend(error.map(|error| format!("error: {error:?}")));
    lines.join("\n") + "\n"
}
