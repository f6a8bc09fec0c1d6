//! `bash`: what a command gives, and that nothing of it stays behind.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::task::yield_now;
use toolloop_core::{CallContext, EffectClass, ToolCall, ToolHandler};
use toolloop_tools::BashTool;

use super::support::{Folder, Watcher, call, call_in};

/// A command that wrote `started`, and left processes.
pub(crate) const LEFT: &str = "started\n[processes it left in the background were killed; what must go on \
    running is started with background]\n[exit code 0]";

pub(crate) fn bash(command: &str) -> Value {
    json!({ "command": command })
}

/// Whether the process is gone, or only waits to be counted by its parent.
fn is_dead(pid: &str) -> bool {
    match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('Z')),
        Err(_) => true,
    }
}

/// The pid that a command writes into `file`, once it has.
pub(crate) async fn pid(file: &Path) -> String {
    loop {
        match std::fs::read_to_string(file) {
            Ok(text) if text.ends_with('\n') => return text.trim().to_owned(),
            _ => yield_now().await,
        }
    }
}

pub(crate) async fn wait_dead(pid: &str) {
    let begin = Instant::now();
    while !is_dead(pid) {
        assert!(begin.elapsed() < Duration::from_secs(5), "process {pid} still lives");
        yield_now().await;
    }
}

#[tokio::test]
async fn output_errors_and_exit_code_are_told_apart() {
    let tool = BashTool::new();
    assert_eq!(call(&tool, bash("echo hi")).await, Ok("hi\n[exit code 0]".into()));
    assert_eq!(call(&tool, bash("true")).await, Ok("[no output]\n[exit code 0]".into()));
    assert_eq!(
        call(&tool, bash("printf out; echo err >&2; exit 3")).await,
        Err("out\n[stderr]\nerr\n[exit code 3]".into())
    );
    assert_eq!(
        call(&tool, bash("kill -9 $$")).await,
        Err("[no output]\n[ended by signal: 9 (SIGKILL)]".into())
    );
    assert_eq!(call(&tool, bash("-x")).await.unwrap_err().lines().last(), Some("[exit code 127]"));
}

#[tokio::test]
async fn it_runs_in_its_folder_without_input_or_terminal() {
    let folder = Folder::new(&[]);
    let tool = BashTool::new().with_working_dir(folder.path());
    let script = "pwd -P; cat; (: </dev/tty) 2>/dev/null || echo no terminal; echo $TERM $PAGER";
    let output = call(&tool, bash(script)).await.map(|text| folder.neutral(text));
    assert_eq!(output, Ok("ROOT\nno terminal\ndumb cat\n[exit code 0]".into()));
    let lost = BashTool::new().with_working_dir("/no/such");
    let error = call(&lost, bash("true")).await;
    assert_eq!(error, Err("The working folder /no/such does not exist.".into()));
}

#[tokio::test]
async fn the_time_limit_kills_grandchildren_too() {
    let folder = Folder::new(&[]);
    let tool = BashTool::new().with_working_dir(folder.path()).with_timeout(Duration::from_secs(1));
    // It ignores the polite signal.
    let script = "trap '' TERM; echo before; (trap '' TERM; sleep 600 & echo $! >pid; wait) ; :";
    let error = call(&tool, bash(script)).await.unwrap_err();
    assert_eq!(
        error,
        "before\n[killed after its time limit of 1 s; give a larger timeout_seconds, or run \
         less]"
    );
    wait_dead(&pid(&folder.path().join("pid")).await).await;
}

#[tokio::test]
async fn a_command_can_clean_up_when_its_time_is_up() {
    let tool = BashTool::new().with_timeout(Duration::from_secs(1));
    let script = "trap 'echo cleaned; exit' TERM; echo up; while :; do :; done";
    let error = call(&tool, bash(script)).await.unwrap_err();
    assert!(error.starts_with("up\ncleaned\n[killed after its time limit of 1 s;"), "{error}");
}

#[tokio::test]
async fn dropping_the_call_kills_the_group() {
    let folder = Folder::new(&[]);
    let tool = BashTool::new().with_working_dir(folder.path());
    let context = CallContext::detached("c");
    let file = folder.path().join("pid");
    let running = tool.call(bash("sleep 600 & echo $! >pid; wait"), &context, &());
    let pid = tokio::select! {
        ended = running => panic!("it ended: {ended:?}"),
        pid = pid(&file) => pid,
    };
    wait_dead(&pid).await;
}

#[tokio::test]
async fn a_background_child_neither_hangs_the_call_nor_survives_it() {
    let folder = Folder::new(&[]);
    let tool = BashTool::new().with_working_dir(folder.path());
    let begin = Instant::now();
    let output = call(&tool, bash("sleep 600 & echo $! >pid; echo started")).await;
    assert_eq!(output, Ok(LEFT.into()));
    assert!(begin.elapsed() < Duration::from_secs(5));
    wait_dead(&pid(&folder.path().join("pid")).await).await;
}

#[tokio::test]
async fn a_process_that_has_ended_was_not_left_behind() {
    // Its parent is gone too, so in a container it may stay listed for ever.
    let dead = "read -r s <$p && s=${s##*) } && [ ${s%% *} != Z ]";
    let script = format!("p=/proc/$( (true >&2 & echo $!) )/stat; while {dead}; do :; done; :");
    let output = call(&BashTool::new(), bash(&format!("{{ {script}; }} 2>/dev/null"))).await;
    assert_eq!(output, Ok("[no output]\n[exit code 0]".into()));
}

#[tokio::test]
async fn ten_megabytes_of_output_are_bounded() {
    let script =
        "echo first; head -c 10000000 /dev/zero | tr '\\0' x | fold -w 99; echo; echo last";
    let output = call(&BashTool::new(), bash(script)).await.unwrap();
    assert!(output.len() < 33 * 1024, "{}", output.len());
    assert!(output.starts_with("first\nxxx"));
    assert!(output.ends_with("xxx\nlast\n[exit code 0]"), "{}", &output[output.len() - 99..]);
    let cut = output.lines().find(|line| line.starts_with("[... ")).unwrap();
    let lost: usize = cut.split(' ').nth(1).unwrap().parse().unwrap();
    let total = "first\n".len() + 10_000_000 + 10_000_000 / 99 + "\nlast\n".len();
    let kept = output.len() - "[exit code 0]".len() - cut.len() - 1;
    assert_eq!(lost, total - kept);
}

#[tokio::test]
async fn whoever_watches_sees_lines_while_it_runs() {
    let folder = Folder::new(&[]);
    let tool = BashTool::new().with_working_dir(folder.path());
    let watcher = Arc::new(Watcher::default());
    let context = watcher.context();
    // It goes on only when its line was seen.
    let script = "printf 'one\\n\\033[1mtw'; until [ -e go ]; do sleep 0.01; done; echo o";
    let running = call_in(&tool, bash(script), &context);
    tokio::pin!(running);
    loop {
        tokio::select! {
            ended = &mut running => panic!("it ended: {ended:?}"),
            () = yield_now() => {}
        }
        if *watcher.0.lock().unwrap() == ["one"] {
            break;
        }
    }
    folder.write("go", b"");
    assert_eq!(running.await, Ok("one\n\u{1b}[1mtwo\n[exit code 0]".into()));
}

#[tokio::test]
async fn the_tool_can_be_run_without_a_loop() {
    let tool = BashTool::new();
    let call = |arguments| ToolCall { id: "c".into(), name: "bash".into(), arguments };
    let output = tool.clone().execute(&call(bash("echo hi"))).await;
    assert_eq!(output, Ok("hi\n[exit code 0]".into()));
    let error = tool.execute(&call(json!({"cmd": "x"}))).await.unwrap_err();
    assert!(error.contains("unknown field `cmd`, expected one of `command`"), "{error}");
}

#[test]
fn a_command_is_never_repeated_by_itself() {
    assert_eq!(ToolHandler::<()>::effect_class(&BashTool::new()), EffectClass::Once);
}
