//! `edit_file`: exact-text edits, all or none, and none lost.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use toolloop_core::{EffectClass, ToolHandler};
use toolloop_tools::{EditFile, WriteFile};

use super::support::{Folder, call};

#[tokio::test]
async fn several_edits_land_together() {
    let folder = Folder::new(&[("a.rs", b"use b;\n\nfn main() {\n    old();\n}\n")]);
    fs::set_permissions(folder.path().join("a.rs"), Permissions::from_mode(0o755)).unwrap();
    let tool = EditFile::new(folder.root());
    let edited = call(
        &tool,
        json!({"path": "a.rs", "edits": [
            {"old_text": "old()", "new_text": "new()"},
            {"action": "insert_after", "old_text": "use b;\n", "new_text": "use c;\n"},
            {"action": "append", "new_text": "\nfn new() {}\n"},
        ]}),
    );
    let told = "Edited `a.rs` in 3 places: it had 5 lines, now 8 lines.";
    assert_eq!(edited.await, Ok(told.into()));
    let expected = "use b;\nuse c;\n\nfn main() {\n    new();\n}\n\nfn new() {}\n";
    assert_eq!(folder.read("a.rs"), expected);
    assert_eq!(folder.names("."), ["a.rs"]);
    let mode = fs::metadata(folder.path().join("a.rs")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o755);
}

#[tokio::test]
async fn one_fault_and_nothing_is_changed() {
    let folder = Folder::new(&[("a", b"one\ntwo\ntwo\n")]);
    let tool = EditFile::new(folder.root());
    let edits = json!([
        {"old_text": "one", "new_text": "1"},
        {"old_text": "two", "new_text": "2"},
    ]);
    assert_eq!(
        call(&tool, json!({"path": "a", "edits": edits})).await,
        Err("`a` was left as it is. Edit 2 of 2: old_text stands in the file more than once \
             (lines 2, 3). Take in more of the text around it, or set replace_all."
            .into())
    );
    assert_eq!(folder.read("a"), "one\ntwo\ntwo\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parallel_edits_of_one_file_all_land() {
    let lines: String = (0..64).map(|n| format!("line {n} open\n")).collect();
    let folder = Folder::new(&[("a", lines.as_bytes())]);
    // Roots of their own, as two agents in one process have.
    let edits = (0..64).map(|n| {
        let tool = EditFile::new(folder.root());
        tokio::spawn(async move {
            let edit = json!({"old_text": format!("line {n} open"),
                              "new_text": format!("line {n} done")});
            call(&tool, json!({"path": "a", "edits": [edit]})).await
        })
    });
    for edit in edits.collect::<Vec<_>>() {
        edit.await.unwrap().unwrap();
    }
    assert_eq!(folder.read("a"), lines.replace("open", "done"));
    assert_eq!(folder.names("."), ["a"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edit_and_a_replacement_at_the_same_time_are_one_after_the_other() {
    for _ in 0..20 {
        let folder = Folder::new(&[("a", b"x\n")]);
        let (edit, write) = (EditFile::new(folder.root()), WriteFile::new(folder.root()));
        let edits = json!([{"action": "append", "new_text": "edited\n"}]);
        let edit =
            tokio::spawn(async move { call(&edit, json!({"path": "a", "edits": edits})).await });
        let input = json!({"path": "a", "content": "whole\n", "overwrite": true});
        let write = tokio::spawn(async move { call(&write, input).await });
        edit.await.unwrap().unwrap();
        write.await.unwrap().unwrap();
        let left = folder.read("a");
        assert!(["whole\n", "whole\nedited\n"].contains(&left.as_str()), "{left:?}");
    }
}

#[tokio::test]
async fn what_is_no_text_is_left_alone() {
    let folder = Folder::new(&[("png", b"\x89PNG\r\n\x1a\n\0"), ("latin1", b"caf\xe9 x\n")]);
    let tool = EditFile::new(folder.root());
    let mut errors = Vec::new();
    for path in ["png", "latin1", "gone", "."] {
        let edits = json!([{"old_text": "x", "new_text": "y"}]);
        errors.push(call(&tool, json!({"path": path, "edits": edits})).await.unwrap_err());
    }
    assert_eq!(
        errors,
        [
            "`png` is a binary file (PNG image); its text cannot be edited.",
            "`latin1` is not valid UTF-8, and an edit here could spoil it. Edit it with bash.",
            "`gone` does not exist. write_file creates it; list_dir shows what there is.",
            "`.` names a folder. Give the path of a file.",
        ]
    );
}

#[test]
fn the_schema_is_flat_and_the_effect_must_not_be_repeated() {
    let folder = Folder::new(&[]);
    let tool = EditFile::new(folder.root());
    let tool: &dyn ToolHandler = &tool;
    let schema = tool.definition().parameters;
    let edit = &schema.as_value()["properties"]["edits"]["items"]["properties"];
    let actions = edit["action"]["enum"].as_array().map(Vec::len);
    assert_eq!((actions, tool.effect_class()), (Some(6), EffectClass::Once), "{edit:#}");
    assert!(!schema.as_value().to_string().contains("$ref"));
    assert_eq!(edit["replace_all"]["type"], Value::from("boolean"));
}
