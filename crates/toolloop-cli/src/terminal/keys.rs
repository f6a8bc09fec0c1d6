//! [`Keyboard`]: single keys from the terminal, while somebody is asked something or may steer.
//!
//! The terminal keeps its signals (Ctrl-C stays an interrupt, Ctrl-Z a pause) and is put back when
//! the keyboard is dropped. Keys are read from `/dev/tty`, so that a task can come by a pipe.

use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process;
use rustix::termios::{
    LocalModes, OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcgetpgrp, tcsetattr,
};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

/// A key, as far as a question or a line editor cares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    Char(char),
    Enter,
    Escape,
    Backspace,
    Delete,
    Left,
    Right,
    Home,
    End,
    /// Ctrl-U.
    EraseLine,
    /// Ctrl-W.
    EraseWord,
    Other,
}

/// The terminal's keyboard, key by key and without echo.
pub(crate) struct Keyboard {
    terminal: File,
    before: Termios,
    /// A shell that stopped this process has taken the terminal back.
    continued: Signal,
    keys: mpsc::UnboundedReceiver<Key>,
    dropped: Arc<AtomicBool>,
}

impl Keyboard {
    /// Opens the keyboard of the terminal this process belongs to.
    pub(crate) fn open() -> io::Result<Self> {
        let terminal = File::open("/dev/tty")?;
        let before = tcgetattr(&terminal)?;
        let continued = signal(SignalKind::from_raw(process::Signal::CONT.as_raw()))?;
        take(&terminal)?;
        let dropped = Arc::new(AtomicBool::new(false));
        let (sender, keys) = mpsc::unbounded_channel();
        let reader = terminal.try_clone()?;
        let stop = Arc::clone(&dropped);
        std::thread::Builder::new()
            .name("keyboard".to_owned())
            .spawn(move || read_keys(reader, &sender, &stop))?;
        Ok(Self { terminal, before, continued, keys, dropped })
    }

    /// Forgets what was typed: what was there before a question is no answer to it.
    pub(crate) fn forget(&mut self) {
        let _ = tcflush(&self.terminal, QueueSelector::IFlush);
        while self.keys.try_recv().is_ok() {}
    }

    /// The next key; `None` when the terminal is gone.
    pub(crate) async fn next(&mut self) -> Option<Key> {
        loop {
            tokio::select! {
                key = self.keys.recv() => return key,
                // A terminal that cannot be taken is gone, which ends the keys, too.
                Some(()) = self.continued.recv() => drop(take(&self.terminal)),
            }
        }
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        self.dropped.store(true, Ordering::Relaxed);
        // A terminal that is gone needs no putting back.
        let _ = tcsetattr(&self.terminal, OptionalActions::Now, &self.before);
    }
}

/// Single keys from now on, and no echo.
fn take(terminal: &File) -> io::Result<()> {
    let mut modes = tcgetattr(terminal)?;
    modes.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
    Ok(tcsetattr(terminal, OptionalActions::Now, &modes)?)
}

/// Whether somebody can be asked.
pub(crate) fn is_there() -> bool {
    File::open("/dev/tty").is_ok_and(|terminal| rustix::termios::isatty(&terminal))
}

/// Whether the keyboard is this process's: a job in the background is stopped when it touches the
/// terminal.
pub(crate) fn is_ours() -> bool {
    let group = File::open("/dev/tty").and_then(|terminal| Ok(tcgetpgrp(&terminal)?));
    group.is_ok_and(|group| group == process::getpgrp())
}

/// Waits in short steps, so that a dropped keyboard takes no key from who reads next.
fn read_keys(mut terminal: File, keys: &mpsc::UnboundedSender<Key>, stop: &AtomicBool) {
    let step = Timespec { tv_sec: 0, tv_nsec: STEP.as_nanos() as i64 };
    let mut bytes = [0; 256];
    while !stop.load(Ordering::Relaxed) {
        let mut ready = [PollFd::new(&terminal, PollFlags::IN)];
        match poll(&mut ready, Some(&step)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => continue,
            Ok(_) if !stop.load(Ordering::Relaxed) => {}
            _ => return,
        }
        match terminal.read(&mut bytes) {
            Ok(0) => return,
            Ok(count) => {
                if decode(&bytes[..count]).into_iter().any(|key| keys.send(key).is_err()) {
                    return;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

/// The keys in what one read gave. A terminal sends a key's whole sequence at once.
fn decode(bytes: &[u8]) -> Vec<Key> {
    let text = String::from_utf8_lossy(bytes);
    let mut rest = text.as_ref();
    let mut keys = Vec::new();
    while let Some(c) = rest.chars().next() {
        let (key, length) = match c {
            '\x1b' => escape(rest),
            '\r' | '\n' => (Key::Enter, 1),
            '\x7f' | '\x08' => (Key::Backspace, 1),
            '\x01' => (Key::Home, 1),
            '\x05' => (Key::End, 1),
            '\x15' => (Key::EraseLine, 1),
            '\x17' => (Key::EraseWord, 1),
            c if c.is_control() => (Key::Other, 1),
            c => (Key::Char(c), c.len_utf8()),
        };
        keys.push(key);
        rest = &rest[length..];
    }
    keys
}

fn escape(text: &str) -> (Key, usize) {
    for (sequence, key) in SEQUENCES {
        if text.starts_with(sequence) {
            return (key, sequence.len());
        }
    }
    match text.strip_prefix("\x1b[") {
        // An unknown sequence: to its final letter.
        Some(rest) => {
            let end = rest.find(|c: char| c.is_ascii_alphabetic() || c == '~');
            (Key::Other, end.map_or(text.len(), |end| end + 3))
        }
        None => (Key::Escape, 1),
    }
}

const SEQUENCES: [(&str, Key); 10] = [
    ("\x1b[D", Key::Left),
    ("\x1bOD", Key::Left),
    ("\x1b[C", Key::Right),
    ("\x1bOC", Key::Right),
    ("\x1b[H", Key::Home),
    ("\x1b[1~", Key::Home),
    ("\x1b[F", Key::End),
    ("\x1b[4~", Key::End),
    ("\x1b[3~", Key::Delete),
    ("\x1bOH", Key::Home),
];

const STEP: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_as_keys() {
        use Key::*;
        assert_eq!(decode(b"y"), [Char('y')]);
        assert_eq!(decode("ä漢".as_bytes()), [Char('ä'), Char('漢')]);
        assert_eq!(decode(b"a\x7f\r"), [Char('a'), Backspace, Enter]);
        assert_eq!(decode(b"\x1b[D\x1b[3~\x1b[1~x"), [Left, Delete, Home, Char('x')]);
        assert_eq!(decode(b"\x1b"), [Escape]);
        assert_eq!(decode(b"\x1b[200~y"), [Other, Char('y')]);
        assert_eq!(decode(b"\x15\x17\x02"), [EraseLine, EraseWord, Other]);
        assert_eq!(decode(b""), []);
    }
}
