//! `grep`: lines by a regular expression.

use std::time::Duration;

use serde_json::json;
use toolloop_tools::Grep;

use super::support::{Folder, call};

#[tokio::test]
async fn matches_stand_below_their_file() {
    let folder = Folder::new(&[
        ("src/a.rs", b"fn one() {}\nlet x;\nfn two() {}\r\n"),
        ("src/b.rs", b"// none\n"),
        ("README.md", b"A fn in words"),
        (".gitignore", b"out\n"),
        ("out/a.rs", b"fn hidden() {}\n"),
    ]);
    let tool = Grep::new(folder.root());
    let all = call(&tool, json!({"pattern": r"\bfn\b"})).await;
    let expected = "README.md\n1:A fn in words\n\nsrc/a.rs\n1:fn one() {}\n3:fn two() {}\n";
    assert_eq!(all, Ok(expected.into()));
    let narrow = call(&tool, json!({"pattern": "fn t.*$", "path": "src", "glob": "*.rs"})).await;
    assert_eq!(narrow, Ok("src/a.rs\n3:fn two() {}\n".into()));
    let ignored = json!({"pattern": "hidden", "include_ignored": true});
    assert_eq!(call(&tool, ignored).await, Ok("out/a.rs\n1:fn hidden() {}\n".into()));
    let one = call(&tool, json!({"pattern": "FN", "path": "out/a.rs", "ignore_case": true})).await;
    assert_eq!(one, Ok("out/a.rs\n1:fn hidden() {}\n".into()));
    let none = call(&tool, json!({"pattern": "x()", "literal": true})).await;
    assert_eq!(none, Ok("[no match in 4 files]".into()));
}

#[tokio::test]
async fn lines_around_are_shown_and_gaps_marked() {
    let text: String = (1..=12).map(|n| format!("{n}\n")).collect();
    let folder = Folder::new(&[("a", text.as_bytes()), ("b", b"x\n2\n")]);
    let tool = Grep::new(folder.root());
    let found = call(&tool, json!({"pattern": "^(2|3|9)$", "context": 1})).await;
    let expected = "a\n1-1\n2:2\n3:3\n4-4\n--\n8-8\n9:9\n10-10\n\nb\n1-x\n2:2\n";
    assert_eq!(found, Ok(expected.into()));
    let on = call(&tool, json!({"pattern": "^(2|3|9)$", "context": 1, "offset": 2})).await;
    assert_eq!(on, Ok("a\n8-8\n9:9\n10-10\n\nb\n1-x\n2:2\n".into()));
}

#[tokio::test]
async fn files_can_be_counted_alone() {
    let folder = Folder::new(&[("a", b"x\nx\n"), ("b", b"y"), ("c", b"x")]);
    let tool = Grep::new(folder.root());
    let files = call(&tool, json!({"pattern": "x", "files_only": true})).await;
    assert_eq!(files, Ok("a  2 matches\nc  1 match\n".into()));
    let on = call(&tool, json!({"pattern": "x", "files_only": true, "offset": 1})).await;
    assert_eq!(on, Ok("c  1 match\n".into()));
}

#[tokio::test]
async fn many_matches_come_in_parts() {
    let text: String = (0..500).map(|n| format!("hit {n}\n")).collect();
    let folder = Folder::new(&[("a", text.as_bytes()), ("b", b"hit b\n")]);
    let tool = Grep::new(folder.root());
    let part = async |offset: usize| {
        call(&tool, json!({"pattern": "hit", "offset": offset})).await.unwrap()
    };
    let first = part(0).await;
    let lines: Vec<_> = first.lines().collect();
    assert_eq!((lines.len(), lines[1], lines[200]), (202, "1:hit 0", "200:hit 199"));
    let note = "[there are more: go on with offset 200, or narrow the search with path, glob or \
                pattern]";
    assert_eq!(lines[201], note);
    assert!(part(200).await.starts_with("a\n201:hit 200\n"));
    assert!(part(400).await.ends_with("\n500:hit 499\n\nb\n1:hit b\n"));
    assert_eq!(part(501).await, "[there are only 501; offset is behind the last]");
}

#[tokio::test]
async fn long_lines_are_shown_around_the_match() {
    let line = format!("{}NEEDLE{}\n", "ä".repeat(10_000), "ö".repeat(10_000));
    let folder = Folder::new(&[("min.js", line.as_bytes())]);
    let found = call(&Grep::new(folder.root()), json!({"pattern": "NEEDLE"})).await.unwrap();
    let expected = format!("min.js\n1:…{}NEEDLE{}…\n", "ä".repeat(50), "ö".repeat(147));
    assert_eq!(found, expected);
}

#[tokio::test]
async fn binary_files_and_endless_lines_are_passed_over() {
    let folder = Folder::new(&[
        ("bin", b"needle \0 needle\n"),
        ("line", &b"needle".repeat(2_000_000)),
        ("text", b"needle\n"),
        ("utf16", b"\xff\xfen\0e\0e\0d\0l\0e\0\n\0"),
    ]);
    let found = call(&Grep::new(folder.root()), json!({"pattern": "needle"})).await;
    let expected = "text\n1:needle\n\nutf16\n1:needle\n[1 file could not be read, or had lines \
                    above 8 MiB]";
    assert_eq!(found, Ok(expected.into()));
}

#[tokio::test]
async fn a_search_that_takes_too_long_gives_what_it_has() {
    let folder = Folder::new(&[("a", b"x\n")]);
    let tool = Grep::new(folder.root()).with_time_limit(Duration::ZERO);
    let stopped = "[stopped for the time it took, after 0 files: give a path or glob]";
    assert_eq!(call(&tool, json!({"pattern": "x"})).await, Ok(stopped.into()));
    assert_eq!(call(&tool, json!({"pattern": "x", "path": "a"})).await, Ok(stopped.into()));
}

#[tokio::test]
async fn errors_name_the_cure() {
    let folder = Folder::new(&[]);
    let tool = Grep::new(folder.root());
    let fault = async |input| folder.neutral(call(&tool, input).await.unwrap_err());
    assert_eq!(
        fault(json!({"pattern": "f("})).await,
        "`f(` is no regular expression: unclosed group. Set literal: true to look for it as it is."
    );
    assert_eq!(
        fault(json!({"pattern": "a\nb"})).await,
        "A pattern matches within one line, so it cannot hold a line break. Search for the first \
         line, with context to see the next ones."
    );
    let gone = fault(json!({"pattern": "a", "path": "src"})).await;
    assert_eq!(gone, "`src` does not exist under ROOT. list_dir shows what does.");
}

#[tokio::test]
async fn a_pattern_that_explodes_is_refused_at_once() {
    let folder = Folder::new(&[("a", b"aaaa\n")]);
    let tool = Grep::new(folder.root());
    let pattern = "(a{1000}){1000}";
    let refused = call(&tool, json!({"pattern": pattern}));
    let refused = tokio::time::timeout(Duration::from_secs(20), refused).await.expect("at once");
    let told = "`(a{1000}){1000}` stands for too many texts. Repeat less in it.";
    assert_eq!(refused, Err(told.into()));
    // What people write is far from that.
    for pattern in
        [r"\b\p{L}{1,40}\b", r"^\s*(?i:pub(\([a-z: ]+\))? )?(async )?fn \w{1,60}\(", "a{0,1000}"]
    {
        call(&tool, json!({"pattern": pattern})).await.unwrap();
    }
}
