//! Fork bombs. For a moment they take every number that the system has for processes, so they run
//! one after the other and beside no other test.

#[allow(dead_code)]
#[path = "suite/support.rs"]
mod support;

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::Mutex;
use toolloop_tools::BashTool;
use toolloop_tools::sandbox::probe;

use support::{Folder, call};

static ALONE: Mutex<()> = Mutex::const_new(());

#[tokio::test]
async fn a_fork_bomb_is_bounded() {
    let _alone = ALONE.lock().await;
    let folder = Folder::new(&[]);
    let begin = Instant::now();
    let tool = tool(&folder).with_timeout(Duration::from_secs(20));
    // Each one lives on, so that all count.
    let bomb = "bomb() { bomb & bomb & sleep 30; }; bomb; wait";
    let error = call(&tool, bash(bomb)).await.unwrap_err();
    let killed = "[killed: it had started more than 1024 processes]";
    // A user who is not root runs into the kernel's own limit.
    let refused = error.contains("esource temporarily unavailable");
    assert!(refused || error.ends_with(killed), "{error}");
    assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
    // Nothing of it is left.
    assert_eq!(found(&tool, "-f '[b]omb[(]'").await, NOTHING);
}

#[tokio::test]
async fn a_fork_bomb_that_hides_is_bounded() {
    let _alone = ALONE.lock().await;
    let held = probe().await.unwrap();
    if !held.processes {
        println!("skipped: the end of all processes is not enforced here ({held})");
        return;
    }
    let folder =
        Folder::new(&[("bomb", b"setsid env -i sh bomb & setsid env -i sh bomb & exec sleep 30")]);
    let begin = Instant::now();
    let tool = tool(&folder).with_timeout(Duration::from_secs(20));
    let error = call(&tool, bash("sh bomb 2>&1; sleep 30")).await.unwrap_err();
    let killed = "[killed: it had started more than 1024 processes]";
    // A user who is not root runs into the kernel's own limit.
    let refused = error.contains("annot fork") || error.contains("temporarily unavailable");
    assert!(refused || error.ends_with(killed), "{error}");
    assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
    assert_eq!(found(&tool, "-fx 'sh bomb'").await, NOTHING);
}

fn tool(folder: &Folder) -> BashTool {
    BashTool::new().with_working_dir(folder.path())
}

fn bash(command: &str) -> Value {
    json!({ "command": command })
}

/// The processes that still run, as `pgrep` says it.
async fn found(tool: &BashTool, pattern: &str) -> String {
    let found = call(tool, bash(&format!("pgrep {pattern}"))).await;
    found.unwrap_or_else(|text| text)
}

const NOTHING: &str = "[no output]\n[exit code 1]";
