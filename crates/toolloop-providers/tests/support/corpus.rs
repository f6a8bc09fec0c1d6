//! The recordings of real providers. They are not part of the project: `TOOLLOOP_CORPUS` names
//! the folder.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// The folder, where one is named.
pub(crate) fn folder() -> Option<PathBuf> {
    let folder = std::env::var_os("TOOLLOOP_CORPUS").map(PathBuf::from);
    if folder.is_none() {
        println!("skipped: TOOLLOOP_CORPUS names no folder of recorded streams");
    }
    folder
}

/// Holds what we see of each recorded stream of an API against what its SDK saw. `compare` gives
/// both, from the stream's entry in the manifest, its body and what the SDK saw.
pub(crate) fn assert_as_the_sdk(
    api: &str,
    at_least: usize,
    compare: impl Fn(&Value, &[u8], &Value) -> (Value, Value),
) {
    let Some(folder) = folder() else { return };
    let manifest = read(&folder.join("manifest.json"));
    let (mut wrong, mut count) = (Vec::new(), 0);
    for stream in manifest["streams"].as_array().unwrap() {
        if stream["api"] != api || stream["oracle"].is_null() {
            continue;
        }
        count += 1;
        let path = |member: &str| folder.join(stream[member].as_str().unwrap());
        let body = std::fs::read(path("file")).unwrap();
        let (seen, expected) = compare(stream, &body, &read(&path("oracle")));
        if seen != expected {
            wrong.push(format!("{}\n  saw      {seen}\n  expected {expected}", stream["file"]));
        }
    }
    println!("{count} streams");
    assert!(wrong.is_empty(), "{} of {count} differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count >= at_least, "only {count} streams found");
}

pub(crate) fn read(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// Another one each time, and printed.
pub(crate) fn seed() -> u64 {
    let seed = std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64 | 1;
    println!("seed of the cuts: {seed}");
    seed
}

/// The body, cut anywhere.
pub(crate) fn random_pieces<'a>(body: &'a [u8], seed: &mut u64) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    let mut rest = body;
    while !rest.is_empty() {
        *seed ^= *seed << 13;
        *seed ^= *seed >> 7;
        *seed ^= *seed << 17;
        let (piece, others) = rest.split_at((*seed % 97) as usize % rest.len() + 1);
        pieces.push(piece);
        rest = others;
    }
    pieces
}
