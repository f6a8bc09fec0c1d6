//! [`Terminal`]: the command in a pseudo-terminal, and what it shows there.

use std::io::{Read, Write};
use std::process::Command;
use std::sync::{Arc, Condvar, Mutex};

use portable_pty::{ChildKiller, CommandBuilder, MasterPty, PtySize, native_pty_system};

use super::{BINARY, PATIENCE, Project};

/// A running command and everything it has written.
pub(crate) struct Terminal {
    child: Box<dyn ChildKiller + Send + Sync>,
    master: Box<dyn MasterPty + Send>,
    keyboard: Box<dyn Write + Send>,
    seen: Arc<Seen>,
    pub(crate) pid: u32,
}

/// What two threads see of the command, and how they tell.
#[derive(Default)]
struct Seen {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    written: Vec<u8>,
    exit_code: Option<u32>,
}

impl Seen {
    fn change(&self, deed: impl FnOnce(&mut State)) {
        deed(&mut self.state.lock().unwrap());
        self.changed.notify_all();
    }

    /// Waits until there is something to find in it.
    fn wait_for<T>(&self, what: &str, look: impl Fn(&State) -> Option<T>) -> T {
        let state = self.state.lock().unwrap();
        let missing = |state: &mut State| look(state).is_none();
        let (state, _) = self.changed.wait_timeout_while(state, PATIENCE, missing).unwrap();
        look(&state).unwrap_or_else(|| {
            let written = String::from_utf8_lossy(&state.written);
            panic!("waited in vain for {what} in {written}")
        })
    }
}

impl Terminal {
    pub(crate) fn open(project: &Project, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut command = CommandBuilder::new(BINARY);
        command.args(arguments);
        Self::spawn(project, command, variables)
    }

    /// With redirections as a shell writes them.
    pub(crate) fn open_redirected(project: &Project, arguments: &[&str], to: &str) -> Self {
        let mut command = CommandBuilder::new("sh");
        command.args(["-c", &format!("exec \"$0\" \"$@\" {to}"), BINARY]);
        command.args(arguments);
        Self::spawn(project, command, &[])
    }

    fn spawn(project: &Project, mut command: CommandBuilder, variables: &[(&str, &str)]) -> Self {
        let size = PtySize { rows: 30, cols: 80, pixel_width: 0, pixel_height: 0 };
        let pty = native_pty_system().openpty(size).unwrap();
        command.cwd(project.folder());
        command.env_clear();
        command.env("TERM", "xterm-256color");
        for (name, value) in project.environment() {
            command.env(name, value);
        }
        for (name, value) in variables {
            command.env(name, value);
        }
        let mut running = pty.slave.spawn_command(command).unwrap();
        drop(pty.slave);
        let (child, pid) = (running.clone_killer(), running.process_id().unwrap());
        let seen = Arc::new(Seen::default());
        let mut reader = pty.master.try_clone_reader().unwrap();
        let (sink, ended) = (Arc::clone(&seen), Arc::clone(&seen));
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // A pseudo-terminal ends with an error when the other side is gone.
            while let Ok(count @ 1..) = reader.read(&mut bytes) {
                sink.change(|state| state.written.extend_from_slice(&bytes[..count]));
            }
        });
        std::thread::spawn(move || {
            let exit_code = running.wait().unwrap().exit_code();
            ended.change(|state| state.exit_code = Some(exit_code));
        });
        let keyboard = pty.master.take_writer().unwrap();
        Self { child, master: pty.master, keyboard, seen, pid }
    }

    pub(crate) fn type_keys(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
        self.keyboard.flush().unwrap();
    }

    /// All that was written so far, with its escape sequences.
    pub(crate) fn raw(&self) -> String {
        String::from_utf8_lossy(&self.seen.state.lock().unwrap().written).into_owned()
    }

    /// All that was written so far as text, repaints included.
    pub(crate) fn text(&self) -> String {
        without_sequences(&self.raw())
    }

    /// Waits until this text is there.
    pub(crate) fn wait_for(&self, text: &str) {
        self.seen.wait_for(text, |state| {
            let written = String::from_utf8_lossy(&state.written);
            without_sequences(&written).contains(text).then_some(())
        });
    }

    pub(crate) fn resize(&self, cols: u16) {
        self.master.resize(PtySize { rows: 30, cols, pixel_width: 0, pixel_height: 0 }).unwrap();
    }

    /// Runs `stty` on it.
    pub(crate) fn modes(&self, argument: &str) -> String {
        let tty = std::fs::File::open(self.master.tty_name().unwrap()).unwrap();
        let output = Command::new("stty").arg(argument).stdin(tty).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    /// Whether lines are edited and keys are shown, as a shell wants it.
    pub(crate) fn is_as_a_shell_wants_it(&self) -> bool {
        let modes = self.modes("-a");
        let on = |mode| modes.split([' ', ';', '\n']).any(|word| word == mode);
        on("echo") && on("icanon")
    }

    /// Waits for the end; gives the exit code.
    pub(crate) fn end(&mut self) -> u32 {
        self.seen.wait_for("the end", |state| state.exit_code)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Only a test that failed leaves it running.
        let _ = self.child.kill();
    }
}

fn without_sequences(raw: &str) -> String {
    let mut text = String::new();
    let mut rest = raw;
    while let Some(start) = rest.find("\x1b[") {
        text.push_str(&rest[..start]);
        rest = &rest[start + 2..];
        let end = rest.find(|c: char| c.is_ascii_alphabetic()).map_or(rest.len(), |end| end + 1);
        rest = &rest[end..];
    }
    text + rest
}
