//! `read_file`: text whole or in part, and nothing from outside the root.

use std::os::unix::fs::symlink;
use std::process::Command;

use serde_json::json;
use toolloop_tools::ReadFile;

use super::support::{Folder, call};

#[tokio::test]
async fn a_short_file_comes_as_it_is() {
    let folder = Folder::new(&[("a.txt", b"one\r\ntwo"), ("empty", b"")]);
    let tool = ReadFile::new(folder.root());
    assert_eq!(call(&tool, json!({"path": "a.txt"})).await, Ok("one\r\ntwo".into()));
    let empty = call(&tool, json!({"path": "empty"})).await;
    assert_eq!(empty, Ok("[`empty` is an empty file.]".into()));
}

#[tokio::test]
async fn ranges_say_what_follows() {
    let folder = Folder::new(&[("a", b"1\n2\n3\n4\n5")]);
    let tool = ReadFile::new(folder.root());
    let read = async |start: u64, end: u64| {
        call(&tool, json!({"path": "a", "start_line": start, "end_line": end})).await
    };
    let middle = "2\n3\n[lines 2 to 3 of a file of 9 B; read on with start_line 4]";
    assert_eq!(read(2, 3).await, Ok(middle.into()));
    assert_eq!(read(4, 5).await, Ok("4\n5\n[lines 4 to 5, the end of the file]".into()));
    assert_eq!(read(5, 99).await, Ok("5\n[lines 5 to 5, the end of the file]".into()));
    assert_eq!(read(1, 5).await, Ok("1\n2\n3\n4\n5".into()));
    let behind = "`a` has only 5 lines; start_line 6 is behind its end.";
    assert_eq!(read(6, 7).await, Err(behind.into()));
    assert_eq!(read(60, 70).await, Err(behind.replace("6 is", "60 is")));
    assert!(read(0, 1).await.is_err());
    assert!(read(3, 2).await.is_err());
}

#[tokio::test]
async fn a_huge_file_comes_in_whole_lines_and_says_how_to_read_on() {
    let line = "0123456789".repeat(10) + "\n";
    let folder = Folder::new(&[("big", line.repeat(10_000).as_bytes())]);
    let tool = ReadFile::new(folder.root());
    let first = call(&tool, json!({"path": "big"})).await.unwrap();
    let shown = 48 * 1024 / line.len();
    let note = format!(
        "[lines 1 to {shown} of a file of 986.3 KiB; read on with start_line {}]",
        shown + 1
    );
    assert_eq!(first, line.repeat(shown) + &note);
    let on = call(&tool, json!({"path": "big", "start_line": shown + 1, "end_line": shown + 1}));
    assert!(on.await.unwrap().starts_with(&line));
}

#[tokio::test]
async fn a_line_of_a_megabyte_is_cut_between_characters() {
    let content = format!("first\n{}\nlast\n", "ä".repeat(512 * 1024));
    let folder = Folder::new(&[("min.js", content.as_bytes())]);
    let read = call(&ReadFile::new(folder.root()), json!({"path": "min.js"})).await.unwrap();
    let cut = "ä".repeat(8 * 1024);
    assert_eq!(
        read,
        format!(
            "first\n{cut} [... line cut, it has 1048577 bytes; grep shows parts of it]\nlast\n"
        )
    );
}

#[tokio::test]
async fn a_small_limit_still_makes_progress() {
    let folder = Folder::new(&[("a", b"0123456789\n2\n3\n")]);
    let tool = ReadFile::new(folder.root()).with_max_output(4);
    let read = call(&tool, json!({"path": "a"})).await.unwrap();
    let note = "[lines 1 to 1 of a file of 15 B; read on with start_line 2]";
    assert_eq!(
        read,
        format!("0123 [... line cut, it has 11 bytes; grep shows parts of it]\n{note}")
    );
    let on = call(&tool, json!({"path": "a", "start_line": 2})).await;
    assert_eq!(on, Ok("2\n3\n[lines 2 to 3, the end of the file]".into()));
}

#[tokio::test]
async fn binaries_are_described_and_bad_utf8_is_shown_with_a_note() {
    let folder =
        Folder::new(&[("a.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"), ("latin1", b"caf\xe9\n")]);
    let tool = ReadFile::new(folder.root());
    let binary = "[`a.png` is a binary file (PNG image, 16 B); it is not shown.]";
    assert_eq!(call(&tool, json!({"path": "a.png"})).await, Ok(binary.into()));
    let lossy = "caf\u{fffd}\n[not valid UTF-8: what could not be read stands as \u{fffd}]";
    assert_eq!(call(&tool, json!({"path": "latin1"})).await, Ok(lossy.into()));
}

#[tokio::test]
async fn no_path_leads_out_of_the_root() {
    let folder = Folder::new(&[("in.txt", b"inside"), ("sub/x", b"")]);
    let secret = folder.outer().join("secret");
    std::fs::write(&secret, "secret").unwrap();
    symlink(&secret, folder.path().join("absolute")).unwrap();
    symlink("../secret", folder.path().join("relative")).unwrap();
    symlink("..", folder.path().join("up")).unwrap();
    let tool = ReadFile::new(folder.root());
    let sibling = format!("{}-other/x", folder.path().display());
    let dotted = format!("{}/../secret", folder.path().display());
    for path in [
        "../secret",
        "sub/../../secret",
        "absolute",
        "relative",
        "up/secret",
        "/proc/self/environ",
        "/etc/passwd",
        secret.to_str().unwrap(),
        &sibling,
        &dotted,
    ] {
        let refused = folder.neutral(call(&tool, json!({"path": path})).await.unwrap_err());
        assert!(refused.contains("leads outside the root folder ROOT."), "{path}: {refused}");
    }
    let inside = folder.path().join("sub/../in.txt");
    assert_eq!(call(&tool, json!({"path": inside})).await, Ok("inside".into()));
}

#[tokio::test]
async fn what_is_no_file_is_refused_at_once() {
    let folder = Folder::new(&[("sub/x", b"")]);
    let made = Command::new("mkfifo").arg(folder.path().join("pipe")).status().unwrap();
    assert!(made.success());
    let tool = ReadFile::new(folder.root());
    let mut errors = Vec::new();
    for path in ["pipe", "sub", "sub/x/y", "no"] {
        errors.push(folder.neutral(call(&tool, json!({"path": path})).await.unwrap_err()));
    }
    assert_eq!(
        errors,
        [
            "`pipe` is a pipe, socket or device, not a file.",
            "`sub` is a folder. Use list_dir.",
            "A part of `sub/x/y` is a file, not a folder.",
            "`no` does not exist under ROOT. list_dir shows what does.",
        ]
    );
}
