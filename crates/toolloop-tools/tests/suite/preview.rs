//! What a call would change, shown before it does.

use serde_json::{Value, json};
use toolloop_core::ToolCall;
use toolloop_tools::preview;

use super::support::Folder;

fn shown(folder: &Folder, name: &str, arguments: Value) -> Option<String> {
    preview(&folder.root(), &ToolCall { id: "c".into(), name: name.into(), arguments })
}

#[test]
fn an_edit_is_a_diff_and_changes_nothing() {
    let text = "1\n2\n3\n4\n5\n6\n7\n";
    let folder = Folder::new(&[("a", text.as_bytes())]);
    let edits = json!([{"old_text": "4", "new_text": "four"}]);
    let diff = shown(&folder, "edit_file", json!({"path": "a", "edits": edits}));
    assert_eq!(diff.as_deref(), Some("@@ -2,5 +2,5 @@\n 2\n 3\n-4\n+four\n 5\n 6\n"));
    assert_eq!(folder.read("a"), text);
    let edits = json!([{"old_text": "9", "new_text": "x"}]);
    let fault = shown(&folder, "edit_file", json!({"path": "a", "edits": edits})).unwrap();
    assert!(fault.contains("old_text is not in the file"), "{fault}");
}

#[test]
fn a_written_file_is_held_against_what_is_there() {
    let folder = Folder::new(&[("a", b"old\n")]);
    let written =
        |path: &str| shown(&folder, "write_file", json!({"path": path, "content": "new\n"}));
    assert_eq!(written("a").as_deref(), Some("@@ -1 +1 @@\n-old\n+new\n"));
    assert_eq!(written("b/c").as_deref(), Some("@@ -0,0 +1 @@\n+new\n"));
    assert_eq!(folder.names("."), ["a"]);
    assert!(written("../x").unwrap().contains("leads outside the root folder"));
    assert_eq!(shown(&folder, "bash", json!({"command": "ls"})), None);
    assert_eq!(shown(&folder, "edit_file", json!({"edits": 3})), None);
}
