//! `glob`: files by a pattern for their paths.

use serde_json::json;
use toolloop_tools::Glob;

use super::support::{Folder, call};

fn project() -> Folder {
    Folder::new(&[
        (".git/HEAD", b""),
        (".github/ci.yml", b""),
        (".gitignore", b"/target\n*.log\n!keep.log\n"),
        ("Cargo.toml", b""),
        ("src/main.rs", b""),
        ("src/a/mod.rs", b""),
        ("src/a/.gitignore", b"mod.rs.bak\n"),
        ("src/a/mod.rs.bak", b""),
        ("src/x.log", b""),
        ("src/keep.log", b""),
        ("target/debug/main.rs", b""),
    ])
}

#[tokio::test]
async fn files_come_sorted_by_path_and_ignored_ones_not() {
    let folder = project();
    let tool = Glob::new(folder.root());
    let find = async |pattern: &str| call(&tool, json!({"pattern": pattern})).await.unwrap();
    assert_eq!(find("*.rs").await, "src/a/mod.rs\nsrc/main.rs\n");
    assert_eq!(find("src/*.rs").await, "src/main.rs\n");
    assert_eq!(find("*.{log,yml}").await, ".github/ci.yml\nsrc/keep.log\n");
    assert_eq!(find("**/mod*").await, "src/a/mod.rs\n");
    assert_eq!(find("*.py").await, "[none of 7 files matches, ignored ones left out]");
}

#[tokio::test]
async fn a_folder_and_ignored_files_can_be_asked_for() {
    let folder = project();
    let tool = Glob::new(folder.root());
    let within = call(&tool, json!({"pattern": "*.rs*", "path": "./src/a"})).await;
    assert_eq!(within, Ok("src/a/mod.rs\n".into()));
    let all = call(&tool, json!({"pattern": "*.{rs,log}", "include_ignored": true})).await;
    let expected = "src/a/mod.rs\nsrc/keep.log\nsrc/main.rs\nsrc/x.log\ntarget/debug/main.rs\n";
    assert_eq!(all, Ok(expected.into()));
    // Named itself, an ignored folder is searched.
    let named = call(&tool, json!({"pattern": "*.rs", "path": "target"})).await;
    assert_eq!(named, Ok("target/debug/main.rs\n".into()));
}

#[tokio::test]
async fn rules_of_the_repository_around_the_root_hold() {
    let folder = Folder::new(&[("dist/a.js", b""), ("a.js", b"")]);
    std::fs::create_dir(folder.outer().join(".git")).unwrap();
    std::fs::write(folder.outer().join(".gitignore"), "dist/\n").unwrap();
    let found = call(&Glob::new(folder.root()), json!({"pattern": "*.js"})).await;
    assert_eq!(found, Ok("a.js\n".into()));
}

#[tokio::test]
async fn a_long_list_comes_in_parts() {
    let folder = Folder::new(&[]);
    for n in 0..450 {
        folder.write(&format!("{n:03}"), b"");
    }
    let tool = Glob::new(folder.root());
    let part =
        async |offset: usize| call(&tool, json!({"pattern": "*", "offset": offset})).await.unwrap();
    let first = part(0).await;
    let lines: Vec<_> = first.lines().collect();
    assert_eq!((lines.len(), lines[0], lines[199]), (201, "000", "199"));
    let note = "[files 1 to 200, and there are more: go on with offset 200, or narrow the pattern]";
    assert_eq!(lines[200], note);
    assert!(part(200).await.starts_with("200\n201\n"));
    assert!(part(400).await.ends_with("\n448\n449\n"));
    assert_eq!(part(450).await, "[only 450 files match; offset is behind the last]");
}

#[tokio::test]
async fn links_are_not_followed() {
    let folder = Folder::new(&[("real/x", b"")]);
    std::os::unix::fs::symlink("real", folder.path().join("link")).unwrap();
    std::os::unix::fs::symlink(".", folder.path().join("loop")).unwrap();
    let found = call(&Glob::new(folder.root()), json!({"pattern": "**"})).await;
    assert_eq!(found, Ok("real/x\n".into()));
}

#[tokio::test]
async fn errors_name_the_cure() {
    let folder = Folder::new(&[("a", b"")]);
    let tool = Glob::new(folder.root());
    let fault = async |input| folder.neutral(call(&tool, input).await.unwrap_err());
    assert_eq!(
        fault(json!({"pattern": "/etc/*"})).await,
        "The pattern `/etc/*` must be relative to the folder that is searched, without `..`. Name \
         that folder in path."
    );
    assert_eq!(
        fault(json!({"pattern": "*.{rs"})).await,
        "`*.{rs` is no pattern for paths: unclosed alternate group; missing '}' (maybe escape '{' \
         with '[{]'?). Examples: *.rs, src/**/*.{js,ts}."
    );
    let file = fault(json!({"pattern": "*", "path": "a"})).await;
    assert_eq!(file, "`a` is a file, not a folder. Use read_file.");
}

#[tokio::test]
async fn an_offset_behind_everything_is_told() {
    let folder = Folder::new(&[("a", b""), ("b", b"")]);
    let found = call(&Glob::new(folder.root()), json!({"pattern": "*", "offset": u64::MAX})).await;
    assert_eq!(found, Ok("[only 2 files match; offset is behind the last]".into()));
}
