//! What leads out of the root, waits for ever or has no end: each refused or bounded.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::{Value, json};
use toolloop_core::ToolHandler;
use toolloop_tools::{EditFile, Glob, Grep, ListDir, ReadFile, Root, WriteFile};

use super::support::{Folder, call};

/// A call of each file tool with this path, for text that stands in `secret`.
fn all_tools(root: &Root, path: &str) -> Vec<(Box<dyn ToolHandler>, Value)> {
    vec![
        (Box::new(ReadFile::new(root.clone())), json!({"path": path})),
        (Box::new(ListDir::new(root.clone())), json!({"path": path})),
        (Box::new(Glob::new(root.clone())), json!({"path": path, "pattern": "*"})),
        (Box::new(Grep::new(root.clone())), json!({"path": path, "pattern": "."})),
        (
            Box::new(WriteFile::new(root.clone())),
            json!({"path": path, "content": "changed", "overwrite": true}),
        ),
        (
            Box::new(EditFile::new(root.clone())),
            json!({"path": path, "edits": [{"action": "append", "new_text": "changed"}]}),
        ),
    ]
}

/// A root with `outside` beside it, and links to it.
fn with_outside() -> Folder {
    let folder = Folder::new(&[("sub/x", b"inside")]);
    let outside = folder.outer().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("secret"), "secret").unwrap();
    symlink(&outside, folder.path().join("absolute")).unwrap();
    symlink("../outside", folder.path().join("relative")).unwrap();
    symlink("../../outside", folder.path().join("sub/deep")).unwrap();
    symlink("..", folder.path().join("up")).unwrap();
    symlink("../outside/secret", folder.path().join("file")).unwrap();
    symlink("../outside/new", folder.path().join("dangling")).unwrap();
    symlink("/proc/self/root", folder.path().join("proc")).unwrap();
    folder
}

fn assert_untouched(outside: &Path) {
    assert_eq!(fs::read_to_string(outside.join("secret")).unwrap(), "secret");
    let names: Vec<_> = fs::read_dir(outside).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["secret"]);
}

#[tokio::test]
async fn no_path_and_no_link_leads_out() {
    let folder = with_outside();
    let outside = folder.outer().join("outside");
    let absolute = outside.join("secret");
    for path in [
        "../outside/secret",
        "../outside/new",
        "sub/../../outside/secret",
        "absolute/secret",
        "relative/secret",
        "relative/new",
        "sub/deep/secret",
        "up/outside/secret",
        "file",
        "dangling",
        "proc/etc/passwd",
        "/etc/passwd",
        "/proc/self/environ",
        absolute.to_str().unwrap(),
    ] {
        for (tool, input) in all_tools(&folder.root(), path) {
            let name = tool.definition().name;
            let refused = folder.neutral(call(&*tool, input).await.unwrap_err());
            let expected =
                format!("`{}` leads outside the root folder ROOT.", folder.neutral(path.into()));
            assert!(refused.starts_with(&expected), "{name} {path}: {refused}");
        }
    }
    assert_untouched(&outside);
}

#[tokio::test]
async fn searches_do_not_follow_links_out() {
    let folder = with_outside();
    let found = call(&Grep::new(folder.root()), json!({"pattern": "secret|inside"})).await;
    assert_eq!(found, Ok("sub/x\n1:inside\n".into()));
    let found = call(&Glob::new(folder.root()), json!({"pattern": "**"})).await;
    assert_eq!(found, Ok("sub/x\n".into()));
}

/// While tools work on `door/secret`, `door` is now a folder inside, now a link that leads out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_swapped_for_a_link_leads_nowhere_else() {
    let folder = Folder::new(&[("door/secret", b"inside"), ("door/.keep", b"")]);
    let outside = folder.outer().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("secret"), "secret").unwrap();
    let (door, link) = (folder.path().join("door"), folder.path().join("link"));
    symlink(&outside, &link).unwrap();
    let is_over = Arc::new(AtomicBool::new(false));
    let swapping = {
        let is_over = Arc::clone(&is_over);
        std::thread::spawn(move || {
            let mut swaps = 0_u32;
            while !is_over.load(Ordering::Relaxed) || swaps % 2 == 1 {
                renameat_with(CWD, &door, CWD, &link, RenameFlags::EXCHANGE).unwrap();
                swaps += 1;
            }
            swaps
        })
    };
    let (mut landed, mut refused) = (0, 0);
    for n in 0..400 {
        let write = WriteFile::new(folder.root());
        let input =
            json!({"path": "door/secret", "content": format!("inside {n}"), "overwrite": true});
        let edit = EditFile::new(folder.root());
        let edits = json!([{"action": "append", "new_text": "more"}]);
        let read = ReadFile::new(folder.root());
        for result in [
            call(&write, input).await,
            call(&edit, json!({"path": "door/secret", "edits": edits})).await,
            call(&read, json!({"path": "door/secret"})).await,
        ] {
            match result {
                Ok(text) => {
                    assert!(!text.contains("secret\n") && text != "secret", "{text}");
                    landed += 1;
                }
                Err(_) => refused += 1,
            }
        }
    }
    is_over.store(true, Ordering::Relaxed);
    let swaps = swapping.join().unwrap();
    println!("{swaps} swaps, {landed} calls landed inside, {refused} were refused");
    assert!(swaps > 0 && landed > 0);
    assert_untouched(&outside);
    let drafts = folder.names("door").into_iter().filter(|name| name.ends_with(".tmp"));
    assert_eq!(drafts.collect::<Vec<_>>(), Vec::<String>::new());
}

#[tokio::test]
async fn pipes_sockets_and_devices_are_refused_at_once() {
    let folder = Folder::new(&[]);
    let path = |name: &str| folder.path().join(name);
    let made = Command::new("mkfifo").arg(path("pipe")).status().unwrap();
    assert!(made.success());
    let _socket = std::os::unix::net::UnixListener::bind(path("socket")).unwrap();
    let device = Command::new("mknod").arg(path("device")).args(["c", "1", "5"]).status().unwrap();
    // Only the superuser makes devices.
    let names = ["pipe", "socket", "device"];
    let names = &names[..if device.success() { 3 } else { 2 }];
    for name in names {
        for (tool, input) in all_tools(&folder.root(), name) {
            let refused = call(&*tool, input).await.unwrap_err();
            let tool = tool.definition().name;
            assert!(
                refused.starts_with(&format!("`{name}` is a pipe, socket or device, not a")),
                "{tool} {name}: {refused}"
            );
        }
    }
    let searched = call(&Grep::new(folder.root()), json!({"pattern": "."})).await;
    assert_eq!(searched, Ok("[no match in 0 files]".into()));
}

#[tokio::test]
async fn devices_under_the_root_have_no_end_and_are_refused() {
    let root = Root::open("/dev").unwrap();
    for path in ["zero", "full", "tty"] {
        if Path::new("/dev").join(path).exists() {
            let refused = call(&ReadFile::new(root.clone()), json!({"path": path})).await;
            let expected = format!("`{path}` is a pipe, socket or device, not a file.");
            assert_eq!(refused, Err(expected));
        }
    }
}

#[tokio::test]
async fn files_of_proc_neither_hang_nor_lead_out() {
    let root = Root::open("/proc/self").unwrap();
    let read = async |path: &str| call(&ReadFile::new(root.clone()), json!({"path": path})).await;
    // Files without a length have an end all the same.
    assert!(read("status").await.unwrap().starts_with("Name:"));
    for path in ["root/etc/passwd", "cwd/Cargo.toml", "exe"] {
        let refused = read(path).await.unwrap_err();
        assert!(refused.contains("lead outside /proc/self"), "{path}: {refused}");
    }
    let write = json!({"path": "status", "content": "x", "overwrite": true});
    assert!(call(&WriteFile::new(root.clone()), write).await.is_err());
}

#[tokio::test]
async fn huge_files_are_bounded() {
    let folder = Folder::new(&[]);
    // Sparse: 64 GiB on no disk at all, one line without end.
    let huge = File::create(folder.path().join("huge")).unwrap();
    huge.set_len(64 << 30).unwrap();
    let read = call(&ReadFile::new(folder.root()), json!({"path": "huge"})).await;
    let binary = "[`huge` is a binary file (unknown type, 64.0 GiB); it is not shown.]";
    assert_eq!(read, Ok(binary.into()));
    let searched = call(&Grep::new(folder.root()), json!({"pattern": "x"})).await;
    assert_eq!(searched, Ok("[no match in 1 file]".into()));
    let edits = json!([{"action": "append", "new_text": "x"}]);
    let edited = call(&EditFile::new(folder.root()), json!({"path": "huge", "edits": edits})).await;
    let refused = "`huge` is larger than 16.0 MiB, the most that can be edited here. Edit it with \
                   bash.";
    assert_eq!(edited, Err(refused.into()));
}
