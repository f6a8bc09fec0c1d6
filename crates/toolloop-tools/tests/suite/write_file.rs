//! `write_file`: whole files in one step, and no file replaced that was not meant.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use serde_json::json;
use toolloop_tools::WriteFile;

use super::support::{Folder, call};

#[tokio::test]
async fn a_new_file_comes_with_its_folders() {
    let folder = Folder::new(&[]);
    let tool = WriteFile::new(folder.root());
    let written = call(&tool, json!({"path": "a/b/c.txt", "content": "one\ntwo\n"})).await;
    assert_eq!(written, Ok("Created `a/b/c.txt` (2 lines, 8 B).".into()));
    assert_eq!(folder.read("a/b/c.txt"), "one\ntwo\n");
    assert_eq!(folder.names("a/b"), ["c.txt"]);
}

#[tokio::test]
async fn a_file_that_exists_is_replaced_only_when_told() {
    let folder = Folder::new(&[("a", b"old\n")]);
    let tool = WriteFile::new(folder.root());
    let refused = call(&tool, json!({"path": "a", "content": "new"})).await;
    assert_eq!(
        refused,
        Err("`a` exists (4 B) and was left as it is. To change a part of it use edit_file; to \
             replace all of it, call write_file again with overwrite: true."
            .into())
    );
    assert_eq!(folder.read("a"), "old\n");
    let told = json!({"path": "a", "content": "new", "overwrite": true});
    assert_eq!(call(&tool, told).await, Ok("Replaced `a` (1 line, 3 B).".into()));
    assert_eq!((folder.read("a"), folder.names(".")), ("new".into(), vec!["a".to_owned()]));
}

#[tokio::test]
async fn the_same_call_again_changes_nothing() {
    let folder = Folder::new(&[]);
    let tool = WriteFile::new(folder.root());
    let input = json!({"path": "a", "content": "text"});
    call(&tool, input.clone()).await.unwrap();
    let before = fs::metadata(folder.path().join("a")).unwrap();
    let again = call(&tool, input).await;
    assert_eq!(again, Ok("`a` holds exactly this already (1 line, 4 B).".into()));
    let after = fs::metadata(folder.path().join("a")).unwrap();
    assert_eq!(before.ino(), after.ino());
}

#[tokio::test]
async fn the_mode_stays_and_a_link_stays_a_link() {
    let folder = Folder::new(&[("bin/run", b"#!/bin/sh\n")]);
    let file = folder.path().join("bin/run");
    fs::set_permissions(&file, Permissions::from_mode(0o750)).unwrap();
    symlink("bin/run", folder.path().join("link")).unwrap();
    let tool = WriteFile::new(folder.root());
    let input = json!({"path": "link", "content": "#!/bin/bash\n", "overwrite": true});
    assert_eq!(call(&tool, input).await, Ok("Replaced `link` (1 line, 12 B).".into()));
    assert_eq!(folder.read("bin/run"), "#!/bin/bash\n");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o750);
    assert!(fs::symlink_metadata(folder.path().join("link")).unwrap().is_symlink());
}

#[tokio::test]
async fn of_two_that_create_one_file_one_is_refused() {
    let folder = Folder::new(&[]);
    let tool = WriteFile::new(folder.root());
    let write = |content: &str| call(&tool, json!({"path": "a", "content": content}));
    let (first, second) = tokio::join!(write("first"), write("second"));
    let landed = folder.read("a");
    assert_eq!((first.is_ok(), second.is_ok()), (landed == "first", landed == "second"));
}

#[tokio::test]
async fn errors_name_the_cure() {
    let folder = Folder::new(&[("sub/x", b""), ("fixed", b"1")]);
    let fixed = folder.path().join("fixed");
    fs::set_permissions(&fixed, Permissions::from_mode(0o444)).unwrap();
    symlink("nowhere", folder.path().join("dangling")).unwrap();
    let tool = WriteFile::new(folder.root());
    let mut errors = Vec::new();
    for path in ["sub", "new/", "sub/x/y", "fixed", "dangling", "."] {
        let input = json!({"path": path, "content": "x", "overwrite": true});
        errors.push(folder.neutral(call(&tool, input).await.unwrap_err()));
    }
    assert_eq!(
        errors,
        [
            "`sub` is a folder. Use list_dir.",
            "`new/` names a folder. Give the path of a file.",
            "A part of `sub/x/y` is a file, not a folder.",
            "`fixed` is marked as read-only. If it is to be changed, `chmod u+w` it first.",
            "`dangling` does not exist under ROOT. list_dir shows what does.",
            "`.` names a folder. Give the path of a file.",
        ]
    );
    assert_eq!((folder.read("fixed"), folder.names(".").len()), ("1".into(), 3));
}
