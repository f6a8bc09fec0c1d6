//! `list_dir`: what a folder holds, in a stable order and bounded.

use serde_json::json;
use toolloop_tools::ListDir;

use super::support::{Folder, call};

#[tokio::test]
async fn entries_are_sorted_and_sizes_shown() {
    let folder = Folder::new(&[("b.txt", b"12345"), ("a/x.rs", b""), (".env", &[b'x'; 2048])]);
    let listed = call(&ListDir::new(folder.root()), json!({})).await;
    assert_eq!(listed, Ok(".env  2.0 KiB\na/\nb.txt  5 B\n".into()));
}

#[tokio::test]
async fn deeper_levels_follow_their_folder_and_git_stays_closed() {
    let folder = Folder::new(&[
        ("a-b", b"1"),
        ("a/x/deep.rs", b"1"),
        ("a/y.rs", b"12"),
        (".git/HEAD", b"ref"),
    ]);
    let tool = ListDir::new(folder.root());
    let two = call(&tool, json!({"path": ".", "depth": 2})).await;
    assert_eq!(two, Ok(".git/\na/\na/x/\na/y.rs  2 B\na-b  1 B\n".into()));
    let three = call(&tool, json!({"path": "a", "depth": 3})).await;
    assert_eq!(three, Ok("x/\nx/deep.rs  1 B\ny.rs  2 B\n".into()));
}

#[tokio::test]
async fn an_empty_folder_says_so() {
    let folder = Folder::new(&[]);
    let listed = call(&ListDir::new(folder.root()), json!({})).await;
    assert_eq!(listed, Ok("[empty folder]".into()));
}

#[tokio::test]
async fn of_many_entries_the_nearest_are_shown_and_the_rest_counted() {
    let folder = Folder::new(&[("zzz", b"")]);
    for n in 0..600 {
        folder.write(&format!("many/{n:03}"), b"");
    }
    let listed = call(&ListDir::new(folder.root()), json!({"depth": 9})).await.unwrap();
    let lines: Vec<_> = listed.lines().collect();
    assert_eq!((lines.len(), lines[0], lines[1]), (501, "many/", "many/000  0 B"));
    assert_eq!(lines[499], "zzz  0 B");
    assert_eq!(lines[500], "[102 more entries; list a folder further down]");
}

#[tokio::test]
async fn odd_names_stay_on_one_line() {
    let folder = Folder::new(&[("two\nlines", b"")]);
    let listed = call(&ListDir::new(folder.root()), json!({})).await;
    assert_eq!(listed, Ok("two\\nlines  0 B\n".into()));
}

#[tokio::test]
async fn links_are_shown_and_not_followed() {
    let folder = Folder::new(&[("real/file", b"1")]);
    std::os::unix::fs::symlink("/etc", folder.path().join("etc")).unwrap();
    std::os::unix::fs::symlink("real", folder.path().join("link")).unwrap();
    let tool = ListDir::new(folder.root());
    let listed = call(&tool, json!({"depth": 5})).await;
    assert_eq!(listed, Ok("etc -> /etc\nlink -> real\nreal/\nreal/file  1 B\n".into()));
    // Asked for by name, a link inside is followed, one that leads outside is not.
    assert_eq!(call(&tool, json!({"path": "link"})).await, Ok("file  1 B\n".into()));
    let refused = call(&tool, json!({"path": "etc"})).await.unwrap_err();
    assert!(refused.contains("outside the root folder"), "{refused}");
}

#[tokio::test]
async fn errors_name_the_cure() {
    let folder = Folder::new(&[("main.rs", b"")]);
    let tool = ListDir::new(folder.root());
    let mut errors = Vec::new();
    for input in [json!({"path": "src"}), json!({"path": "main.rs"}), json!({"dir": "."})] {
        errors.push(folder.neutral(call(&tool, input).await.unwrap_err()));
    }
    assert_eq!(
        errors,
        [
            "`src` does not exist under ROOT. list_dir shows what does.",
            "`main.rs` is a file, not a folder. Use read_file.",
            "The arguments of list_dir are not right: unknown field `dir`, expected `path` or \
             `depth`. Call it again.",
        ]
    );
}
