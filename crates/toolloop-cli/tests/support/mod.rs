//! A folder with two files, the command in it with an environment of its own, a pseudo-terminal.

mod terminal;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde_json::Value;
use tempfile::TempDir;
use toolloop_fake::FakeServer;

pub(crate) use terminal::Terminal;

/// A folder to work in, with a home beside it.
pub(crate) struct Project {
    root: TempDir,
}

impl Project {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let project = Self { root };
        std::fs::create_dir(project.folder()).unwrap();
        std::fs::create_dir(project.home()).unwrap();
        project.write("main.py", "import os\n\nprint(os.name)\n");
        project.write("README.md", "# Lamps\n\nLight for everyone.\n");
        project
    }

    pub(crate) fn folder(&self) -> PathBuf {
        // As the command sees it: temporary folders may be behind a link.
        self.root.path().canonicalize().unwrap().join("proj")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.root.path().canonicalize().unwrap().join("home")
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.folder().join(name), text).unwrap();
    }

    /// Makes a named pipe; gives what is first written into it, without its line break.
    pub(crate) fn pipe(&self, name: &str) -> Receiver<String> {
        let path = self.folder().join(name);
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let (sender, written) = mpsc::channel();
        std::thread::spawn(move || {
            let text = std::fs::read_to_string(path).unwrap();
            // A test that failed waits no more.
            let _ = sender.send(text.trim_end().to_owned());
        });
        written
    }

    /// Writes the person's own settings.
    pub(crate) fn config(&self, text: &str) {
        let folder = self.home().join(".config/toolloop");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("config.toml"), text).unwrap();
    }

    /// The command in this folder; nothing of the environment of the tests reaches it.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(BINARY);
        command.args(arguments).current_dir(self.folder()).env_clear();
        command.envs(self.environment()).stdin(Stdio::null());
        command
    }

    pub(crate) fn environment(&self) -> Vec<(&'static str, String)> {
        vec![
            ("PATH", std::env::var("PATH").unwrap()),
            ("HOME", self.home().display().to_string()),
            // Nothing listens there: a server on this machine must not answer the tests.
            ("OLLAMA_HOST", "http://127.0.0.1:1".to_owned()),
            ("LMSTUDIO_BASE_URL", "http://127.0.0.1:1/v1".to_owned()),
            ("LLAMACPP_BASE_URL", "http://127.0.0.1:1/v1".to_owned()),
        ]
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        Ran::of(self.command(arguments).output().unwrap())
    }

    /// Runs against a server.
    pub(crate) fn run_at(&self, server: &FakeServer, arguments: &[&str]) -> Ran {
        let url = server.base_url();
        let mut all = vec!["run", "--base-url", &url, "--model", "gpt-test"];
        all.extend(arguments);
        self.run(&all)
    }
}

/// The shortest time that each deed takes, of several turns.
pub(crate) fn fastest<const N: usize>(deeds: [&dyn Fn(); N]) -> [Duration; N] {
    let mut times = [Duration::MAX; N];
    for _ in 0..9 {
        for (time, deed) in times.iter_mut().zip(deeds) {
            let started = Instant::now();
            deed();
            *time = started.elapsed().min(*time);
        }
    }
    times
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    pub(crate) fn of(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Every line of standard output, which must be JSON that fits the schema.
    pub(crate) fn json(&self) -> Vec<Value> {
        let schema = include_str!("../../schema/run-events.schema.json");
        let schema = serde_json::from_str(schema).unwrap();
        let schema = jsonschema::validator_for(&schema).unwrap();
        let lines: Vec<Value> =
            self.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        for line in &lines {
            assert!(schema.is_valid(line), "{line}");
        }
        lines
    }
}

/// The process id a shell wrote into a file, some time ago.
pub(crate) fn pid_in(file: &Path) -> String {
    std::fs::read_to_string(file).unwrap().trim().to_owned()
}

/// What comes next; that another process never does it must not hold up the tests for ever.
pub(crate) fn next<T>(what: &str, events: &Receiver<T>) -> T {
    events.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("waited in vain for {what}"))
}

/// Waits for the end of a process.
pub(crate) fn wait_for_end(pid: &str) {
    let id = Pid::from_raw(pid.parse().unwrap()).unwrap();
    // One that cannot be opened has ended, and its parent knows.
    let Ok(process) = pidfd_open(id, PidfdFlags::empty()) else { return };
    let patience = Timespec { tv_sec: PATIENCE.as_secs().try_into().unwrap(), tv_nsec: 0 };
    let ended = poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&patience)).unwrap();
    assert_eq!(ended, 1, "process {pid} does not end");
}

/// Whether a process is there and no zombie.
pub(crate) fn is_alive(pid: &str) -> bool {
    let output = Command::new("ps").args(["-o", "stat=", "-p", pid]).output().unwrap();
    let state = String::from_utf8(output.stdout).unwrap();
    !state.trim().is_empty() && !state.trim().starts_with('Z')
}

/// Sends a signal.
pub(crate) fn signal(name: &str, pid: u32) {
    let status = Command::new("kill").args(["-s", name, &pid.to_string()]).status().unwrap();
    assert!(status.success());
}

/// How long a test waits for what another process does.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_toolloop");
