//! Long results: kept under a handle, read on by bytes, gone when nobody needs them.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;
use toolloop_tools::{BashTool, ReadResult, ResultStore};

use super::support::{Folder, call};

#[tokio::test]
async fn what_was_left_out_can_be_read_part_by_part() {
    let text: String = (0..5000).map(|n| format!("line {n} ä\n")).collect();
    let store = ResultStore::temporary();
    let tool = ReadResult::new(store.clone());
    let shown = store.spill(&text, 4096).unwrap();
    let note = shown.lines().find(|line| line.starts_with("[...")).unwrap();
    let from = note.find('{').unwrap()..note.rfind('}').unwrap() + 1;
    let mut input: serde_json::Value = serde_json::from_str(&note[from]).unwrap();

    let mut whole = text[..input["start"].as_u64().unwrap() as usize].to_owned();
    loop {
        let part = call(&tool, input.clone()).await.unwrap();
        let Some((text, rest)) = part.rsplit_once("[up to byte ") else {
            whole += &part;
            break;
        };
        // The line end before the note is not of the result, unless a line ends there.
        let next = rest.split_whitespace().next().unwrap().parse::<usize>().unwrap();
        whole += &text[..next - whole.len()];
        input["start"] = json!(next);
    }
    assert_eq!(whole, text);
}

#[tokio::test]
async fn no_character_is_cut_and_each_part_gets_on() {
    let store = ResultStore::temporary();
    let handle = store.store("aä€𝄞z").unwrap();
    let tool = ReadResult::new(store);
    let part = async |start: u64, length: u64| {
        call(&tool, json!({"handle": handle, "start": start, "length": length})).await.unwrap()
    };
    assert_eq!(part(0, 2).await, "a\n[up to byte 1 of 11; read on with start 1]");
    assert_eq!(part(1, 2).await, "ä\n[up to byte 3 of 11; read on with start 3]");
    // A start in the middle of a character is one before it.
    assert_eq!(part(2, 4).await, "ä€\n[up to byte 6 of 11; read on with start 6]");
    assert_eq!(part(6, 4).await, "𝄞\n[up to byte 10 of 11; read on with start 10]");
    assert_eq!(part(10, 1).await, "z");
    assert!(part(6, 1).await.starts_with('𝄞'));
}

#[tokio::test]
async fn only_handles_open_files() {
    let folder = Folder::new(&[("secret", b"secret"), ("results/notes", b"notes")]);
    let store = ResultStore::in_folder(folder.path().join("results"));
    store.store("text").unwrap();
    let tool = ReadResult::new(store);
    for handle in ["r2", "r", "", "notes", "../secret", "r1/../../secret", "/etc/passwd", "r1\0"] {
        let refused = call(&tool, json!({"handle": handle})).await.unwrap_err();
        let expected = format!("There is no stored result {handle}. ");
        assert!(refused.starts_with(&expected), "{refused}");
    }
    let behind = call(&tool, json!({"handle": "r1", "start": 4})).await;
    let expected = "The result r1 has only 4 bytes; start 4 is behind its end.";
    assert_eq!(behind, Err(expected.into()));
}

#[tokio::test]
async fn a_folder_keeps_its_results_and_a_temporary_one_does_not() {
    let folder = Folder::new(&[]);
    let path = folder.path().join("a/results");
    assert_eq!(ResultStore::in_folder(&path).store("first").unwrap(), "r1");
    let later = ResultStore::in_folder(&path);
    assert_eq!(later.store("second").unwrap(), "r2");
    let first = call(&ReadResult::new(later), json!({"handle": "r1"})).await;
    assert_eq!(first, Ok("first".into()));
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(&path.join("r1"))), (0o700, 0o600));

    let store = ResultStore::temporary();
    let path = store.path().to_owned();
    assert!(!path.exists());
    store.store("text").unwrap();
    let clone = store.clone();
    drop(store);
    assert!(path.exists());
    drop(clone);
    assert!(!path.exists());
}

#[tokio::test]
async fn long_output_of_a_command_is_stored_also_when_it_fails() {
    let store = ResultStore::temporary();
    let bash = BashTool::new().with_results(store.clone());
    let shown = call(&bash, json!({"command": "seq 20000; echo bad >&2; exit 3"})).await;
    let shown = shown.unwrap_err();
    assert!(shown.len() < 33 * 1024 && shown.starts_with("1\n2\n"), "{} bytes", shown.len());
    assert!(shown.ends_with("\n20000\n[stderr]\nbad\n[exit code 3]"));
    let whole: String = (1..=20_000).map(|n| format!("{n}\n")).collect();
    let stored = fs::read_to_string(store.path().join("r1")).unwrap();
    assert_eq!(stored, whole + "[stderr]\nbad\n");
    // What fits is not stored.
    let short = call(&bash, json!({"command": "seq 3"})).await;
    assert_eq!(short, Ok("1\n2\n3\n[exit code 0]".into()));
    assert!(!store.path().join("r2").exists());
}
