//! `bash` against commands that try to get out, to stay, or to take the machine with them.
//!
//! What this kernel does not enforce is said and not tried; the table in SECURITY.md names these
//! tests.

use std::io::Read;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use toolloop_tools::sandbox::{Enforced, enforceable, probe};
use toolloop_tools::{BashTool, Sandbox};

use super::bash::{bash, pid, wait_dead};
use super::support::{Folder, call};

/// What holds here; `None`, with a note, where `part` does not.
async fn enforced<T>(what: &str, part: impl Fn(Enforced) -> Option<T>) -> Option<T> {
    let held = probe().await.unwrap();
    let part = part(held);
    if part.is_none() {
        println!("skipped: {what} is not enforced here ({held})");
    }
    part
}

async fn landlock() -> Option<u32> {
    enforced("Landlock", |held| held.landlock).await
}

async fn seccomp() -> Option<()> {
    enforced("seccomp", |held| held.seccomp.then_some(())).await
}

async fn processes() -> Option<()> {
    enforced("the end of all processes", |held| held.processes.then_some(())).await
}

fn tool(folder: &Folder) -> BashTool {
    BashTool::new().with_working_dir(folder.path())
}

/// Runs a script that says `out` for each way out that it found.
async fn tries(tool: &BashTool, script: &str) -> String {
    match call(tool, bash(&format!("{{ {script}\n}} 2>/dev/null; true"))).await {
        Ok(text) => text,
        Err(text) => text,
    }
}

const NOTHING: &str = "[no output]\n[exit code 0]";

#[tokio::test]
async fn writing_outside_is_refused() {
    if landlock().await.is_none() {
        return;
    }
    let folder = Folder::new(&[("in", b"in")]);
    let outer = folder.outer().display().to_string();
    std::fs::write(folder.outer().join("kept"), "kept").unwrap();
    std::fs::create_dir(folder.outer().join("dir")).unwrap();
    let script = format!(
        "cd {outer}
         echo x >new && echo out new
         echo x >>kept && echo out append
         : >kept && echo out truncate
         rm kept && echo out remove
         rmdir dir && echo out rmdir
         mv kept root/ && echo out move from
         mv root/in . && echo out move to
         ln kept root/hard && echo out >>root/hard && echo out hard link
         ln -s {outer}/kept root/link && echo x >root/link && echo out link
         mkdir d && echo out mkdir
         mkfifo f && echo out fifo
         echo x >/tmp/toolloop-escape && echo out tmp
         echo x >~/.toolloop-escape && echo out home
         mknod root/disk b 254 0 && echo out device
         echo x >/dev/pts/0 && echo out terminal
         mount -t tmpfs none root && echo out mount
         echo 1 >/proc/sys/kernel/sysrq && echo out sysctl
         chroot . /bin/true && cd / && echo x >tmp/toolloop-escape && echo out chroot
         unshare -Urm sh -c 'mount --bind {outer} root && echo x >root/new' && echo out namespace"
    );
    assert_eq!(tries(&tool(&folder), &script).await, NOTHING);
    let mut left: Vec<_> = std::fs::read_dir(folder.outer())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left, ["dir", "kept", "root"]);
    assert_eq!(std::fs::read_to_string(folder.outer().join("kept")).unwrap(), "kept");
}

#[tokio::test]
async fn work_inside_goes_on_as_ever() {
    let folder = Folder::new(&[("a/f", b"one\n")]);
    let script = "set -e
        mkdir b; mv a/f b/g; ln b/g a/h; rm b/g; ln -s ../a/h b/l; truncate -s 3 a/h; cat b/l; echo
        echo x >/dev/null; echo err >/dev/stderr; echo x | tee /dev/stdout; cat <<<here | sort
        mktemp >name; [ \"$(dirname \"$(cat name)\")\" = $TMPDIR ]
        (cd /usr && ls >/dev/null); head -c 1 /dev/urandom >/dev/null; find . -type f | sort";
    assert_eq!(
        call(&tool(&folder), bash(script)).await,
        Ok("one\nx\nx\nhere\n./a/h\n./name\n[stderr]\nerr\n[exit code 0]".into())
    );
}

#[tokio::test]
async fn more_folders_can_be_opened_for_writing() {
    let folder = Folder::new(&[]);
    let extra = folder.outer().join("extra");
    std::fs::create_dir(&extra).unwrap();
    let tool = tool(&folder).with_sandbox(Sandbox::new().allow_writing(&extra));
    let script = format!("echo x >{}/new && echo written", extra.display());
    assert_eq!(tries(&tool, &script).await, "written\n[exit code 0]");
}

#[tokio::test]
async fn the_model_learns_why_it_was_refused() {
    if landlock().await.is_none() {
        return;
    }
    let folder = Folder::new(&[]);
    let script = format!("echo x >{}/new", folder.outer().display());
    let error = call(&tool(&folder), bash(&script)).await.unwrap_err();
    let last: Vec<_> = error.lines().rev().take(2).collect();
    assert_eq!(
        last,
        [
            "[exit code 1]",
            "[Sandbox: it can write only in the project folder, $TMPDIR, and it has no network, \
             not even localhost.]"
        ]
    );
}

#[tokio::test]
async fn secrets_of_the_system_are_not_read() {
    if landlock().await.is_none() {
        return;
    }
    let folder = Folder::new(&[]);
    let script = "head -c 1 /etc/shadow; dd if=/dev/mem count=1; cat /proc/kcore | head -c 1";
    assert_eq!(tries(&tool(&folder), script).await, NOTHING);
}

#[tokio::test]
async fn the_network_is_refused_unless_allowed() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let script = format!(
        "(: <>/dev/tcp/127.0.0.1/{port}) && echo out tcp
         (echo x >/dev/udp/127.0.0.1/{port}) && echo out udp"
    );
    let folder = Folder::new(&[]);
    let open = tool(&folder).with_sandbox(Sandbox::new().allow_network());
    assert_eq!(tries(&open, &script).await, "out tcp\nout udp\n[exit code 0]");
    if seccomp().await.is_some() {
        assert_eq!(tries(&tool(&folder), &script).await, NOTHING);
    }
}

#[tokio::test]
async fn a_sandbox_binds_the_command_and_not_the_program() {
    let folder = Folder::new(&[]);
    let (go, has_begun) = std::sync::mpsc::channel::<()>();
    let mine = folder.outer().join("mine");
    let other_thread = std::thread::spawn(move || {
        has_begun.recv().unwrap();
        (std::fs::write(mine, "x").is_ok(), UdpSocket::bind("127.0.0.1:0").is_ok())
    });
    call(&tool(&folder), bash("true")).await.unwrap();
    std::fs::write(folder.outer().join("also mine"), "x").unwrap();
    UdpSocket::bind("127.0.0.1:0").unwrap();
    go.send(()).unwrap();
    assert_eq!(other_thread.join().unwrap(), (true, true));
}

#[tokio::test]
async fn the_programs_environment_and_memory_stay_closed() {
    if landlock().await.is_none() {
        return;
    }
    let folder = Folder::new(&[]);
    // Every thread of the program, from the first moment: none of them shares the sandbox.
    let script = "for i in {1..50}; do
            for t in /proc/$PPID /proc/$PPID/task/*; do
                for f in environ maps mem auxv root/etc/passwd fd/0; do
                    : <$t/$f && echo out $f
                done
            done
        done";
    assert_eq!(tries(&tool(&folder), script).await, NOTHING);
}

#[tokio::test]
async fn the_program_cannot_be_signalled() {
    if processes().await.is_none() {
        return;
    }
    let folder = Folder::new(&[]);
    // `kill -9 -1` ends all it may signal; the command itself is not among those.
    let script = "kill -9 $PPID && echo out; kill -STOP $PPID && echo out; kill -9 -1; echo alive";
    assert_eq!(tries(&tool(&folder), script).await, "alive\n[exit code 0]");
}

#[tokio::test]
async fn a_daemon_that_hides_ends_with_the_command() {
    if processes().await.is_none() {
        return;
    }
    let folder = Folder::new(&[]);
    // Its own session, no parent, no environment.
    let script = "(setsid env -i sh -c 'echo $$ >pid; exec sleep 600' >/dev/null 2>&1 </dev/null &)
        until [ -s pid ]; do :; done; echo started";
    let output = call(&tool(&folder), bash(script)).await;
    assert_eq!(output, Ok("started\n[exit code 0]".into()));
    wait_dead(&pid(&folder.path().join("pid")).await).await;
}

#[tokio::test]
async fn a_daemon_in_a_session_of_its_own_ends_without_a_sandbox_too() {
    let folder = Folder::new(&[]);
    let script = "(setsid sh -c 'echo $$ >pid; exec sleep 600' >/dev/null 2>&1 </dev/null &)
        until [ -s pid ]; do :; done; echo started";
    for tool in [tool(&folder), tool(&folder).without_sandbox()] {
        let output = call(&tool, bash(script)).await;
        assert_eq!(output, Ok(super::bash::LEFT.into()));
        wait_dead(&pid(&folder.path().join("pid")).await).await;
        std::fs::remove_file(folder.path().join("pid")).unwrap();
    }
}

#[tokio::test]
async fn ten_gigabytes_of_output_are_bounded() {
    let folder = Folder::new(&[]);
    let tool = tool(&folder).with_timeout(Duration::from_secs(2));
    let resident = || {
        let status = std::fs::read_to_string("/proc/self/statm").unwrap();
        status.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
    };
    let (before, begin) = (resident(), Instant::now());
    // As much as comes in two seconds; it would be ten gigabytes.
    let output = call(&tool, bash("yes 0123456789 | head -c 10000000000")).await;
    let text = output.unwrap_or_else(|error| error);
    assert!(text.len() < 33 * 1024, "{}", text.len());
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    let grown = resident().saturating_sub(before);
    assert!(grown < 64 * 1024 * 1024, "{grown}");
}

#[tokio::test]
async fn files_and_dumps_are_limited() {
    let folder = Folder::new(&[]);
    let script = "truncate -s 17G big && echo out size; ulimit -c
        [ $(</proc/self/oom_score_adj) -ge 500 ] && echo first";
    assert_eq!(tries(&tool(&folder), script).await, "0\nfirst\n[exit code 0]");
}

#[tokio::test]
async fn everything_ends_when_the_program_is_killed() {
    if processes().await.is_none() {
        return;
    }
    let folder = Folder::new(&[]);
    // This very program, in the test below.
    let mut program = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "suite::bash_escape::program_to_be_killed", "--ignored"])
        .env("PROGRAM_FOLDER", folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = pid(&folder.path().join("pid")).await;
    program.kill().unwrap();
    wait_dead(&pid).await;
    assert_eq!(program.wait().unwrap().signal(), Some(9));
    let mut said = String::new();
    program.stdout.unwrap().read_to_string(&mut said).unwrap();
    assert!(said.contains("running 1 test"), "{said}");
}

#[tokio::test]
async fn what_a_shell_had_open_stays_out_of_reach() {
    let folder = Folder::new(&[]);
    let outside = folder.outer().join("outside");
    let script = "exec \"$1\" --exact suite::bash_escape::program_with_an_open_file --ignored 9>$2";
    let output = Command::new("sh")
        .args(["-c", script, "sh"])
        .args([std::env::current_exe().unwrap(), outside.clone()])
        .env("PROGRAM_FOLDER", folder.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(std::fs::read_to_string(folder.path().join("said")).unwrap(), "closed\n");
    assert_eq!(std::fs::read_to_string(outside).unwrap(), "");
}

/// Not a test: a program that was given a file by its shell.
#[tokio::test]
#[ignore = "started by what_a_shell_had_open_stays_out_of_reach"]
async fn program_with_an_open_file() {
    let Some(folder) = std::env::var_os("PROGRAM_FOLDER") else { return };
    let tool = BashTool::new().with_working_dir(folder);
    call(&tool, bash("(echo out >&9) 2>/dev/null || echo closed >said")).await.unwrap();
}

/// Not a test: the program that `everything_ends_when_the_program_is_killed` kills.
#[tokio::test]
#[ignore = "started by everything_ends_when_the_program_is_killed"]
async fn program_to_be_killed() {
    let Some(folder) = std::env::var_os("PROGRAM_FOLDER") else { return };
    let tool = BashTool::new().with_working_dir(folder);
    let _ = call(&tool, bash("setsid sleep 600 & echo $! >pid; wait")).await;
}

#[tokio::test]
async fn the_probe_says_what_holds() {
    let held = probe().await.unwrap();
    println!("{held}");
    assert!(held.limits, "{held}");
    // The kernel keeps what it says.
    let said = enforceable();
    let told = |held: Enforced| (held.landlock, held.seccomp, held.processes);
    assert_eq!(told(held), told(said));
    // A kernel that signals are kept in by keeps files in as well.
    assert!(!held.processes || held.landlock >= Some(6), "{held}");
}
