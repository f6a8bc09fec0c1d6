//! Bounds for what a tool gives the model: [`HeadTail`] for output of unknown length, and sizes
//! as people write them.

use std::collections::VecDeque;
use std::path::Path;

/// The beginning and the end of a stream of bytes, in bounded memory.
///
/// The end matters most (the error, the summary), the beginning next (what was run), so both
/// stay and the middle goes.
#[derive(Debug)]
pub(crate) struct HeadTail {
    half: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    /// Bytes that were in neither.
    dropped: u64,
}

impl HeadTail {
    /// Keeps at most `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self { half: limit / 2, head: Vec::new(), tail: VecDeque::new(), dropped: 0 }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let (head, rest) = bytes.split_at(bytes.len().min(self.half - self.head.len()));
        self.head.extend_from_slice(head);
        self.tail.extend(rest);
        let excess = self.tail.len().saturating_sub(self.half);
        self.tail.drain(..excess);
        self.dropped += excess as u64;
    }

    /// Takes out what has come so far, but for a character that is not whole yet.
    pub(crate) fn take(&mut self) -> Self {
        let rest = Self::new(self.half * 2);
        let mut taken = std::mem::replace(self, rest);
        let cut: Vec<u8> = match taken.dropped {
            0 => {
                taken.head.extend(taken.tail.drain(..));
                taken.head.split_off(whole_characters(&taken.head))
            }
            _ => {
                let whole = whole_characters(taken.tail.make_contiguous());
                taken.tail.split_off(whole).into()
            }
        };
        self.push(&cut);
        taken
    }

    /// The text, with a line in the middle that says how much is missing.
    pub(crate) fn into_text(self) -> String {
        self.into_text_with(|_, dropped| format!("[... {dropped} bytes left out ...]"))
    }

    /// The same; `note` makes the line, from where the missing bytes begin and how many they are.
    pub(crate) fn into_text_with(self, note: impl FnOnce(usize, u64) -> String) -> String {
        let mut head = self.head;
        let mut tail = Vec::from(self.tail);
        if self.dropped == 0 {
            head.append(&mut tail);
            return String::from_utf8(head)
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        }
        let head_end = head_end(&head);
        let tail_start = tail_start(&tail);
        let dropped = self.dropped + (head.len() - head_end + tail_start) as u64;
        format!(
            "{}\n{}\n{}",
            String::from_utf8_lossy(&head[..head_end]).trim_end_matches('\n'),
            note(head_end, dropped),
            String::from_utf8_lossy(&tail[tail_start..]),
        )
    }
}

/// A size as people read it: `812 B`, `3.4 KiB`.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    // Below the figure that would print as 1024.0.
    while value >= 1023.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// The path on one line, whatever characters its names hold.
pub(crate) fn printable(path: &Path) -> String {
    let mut printable = String::new();
    for character in path.to_string_lossy().chars() {
        match character.is_control() {
            true => printable.extend(character.escape_default()),
            false => printable.push(character),
        }
    }
    printable
}

/// A number with its noun: `1 line`, `3 lines`.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    }
}

/// Length of `bytes` without a character that was cut at its end.
pub(crate) fn whole_characters(bytes: &[u8]) -> usize {
    let last = bytes.len().saturating_sub(4)..bytes.len();
    match last.rev().find(|&at| !is_continuation(bytes[at])) {
        Some(start) => match std::str::from_utf8(&bytes[start..]) {
            Err(error) if error.error_len().is_none() => start,
            _ => bytes.len(),
        },
        None => bytes.len(),
    }
}

/// Where the head ends: after its last line if that is near, else after its last character.
fn head_end(head: &[u8]) -> usize {
    let near = head.len().saturating_sub(NEAR);
    match memchr::memrchr(b'\n', &head[near..]) {
        Some(at) => near + at + 1,
        None => whole_characters(head),
    }
}

/// Where the tail starts: at its first line if that is near, else at its first character.
fn tail_start(tail: &[u8]) -> usize {
    match memchr::memchr(b'\n', &tail[..tail.len().min(NEAR)]) {
        Some(at) => at + 1,
        None => tail.iter().take(3).take_while(|&&byte| is_continuation(byte)).count(),
    }
}

fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

/// How much of a line may be given up to cut between lines.
const NEAR: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn bounded(limit: usize, pieces: &[&str]) -> String {
        let mut kept = HeadTail::new(limit);
        for piece in pieces {
            kept.push(piece.as_bytes());
        }
        kept.into_text()
    }

    #[test]
    fn what_fits_stays_whole() {
        assert_eq!(bounded(8, &["abc", "defg", "h"]), "abcdefgh");
        assert_eq!(bounded(8, &[]), "");
    }

    #[test]
    fn the_middle_goes_and_is_counted() {
        assert_eq!(bounded(8, &["0123456789"]), "0123\n[... 2 bytes left out ...]\n6789");
    }

    #[test]
    fn the_cut_is_between_lines_where_one_is_near() {
        let text = bounded(16, &["one\ntwo\nthree\nfour\nfive\nsix\n"]);
        assert_eq!(text, "one\ntwo\n[... 16 bytes left out ...]\nsix\n");
    }

    #[test]
    fn a_character_is_never_cut() {
        let text = bounded(8, &["äöüäöüäöü€"]);
        assert_eq!(text, "äö\n[... 14 bytes left out ...]\n€");
    }

    #[test]
    fn memory_is_bounded_however_much_comes() {
        let mut kept = HeadTail::new(1000);
        for _ in 0..10_000 {
            kept.push(&[b'x'; 999]);
        }
        assert_eq!((kept.head.len(), kept.tail.len()), (500, 500));
        assert_eq!(kept.dropped, 9_990_000 - 1000);
    }

    #[test]
    fn what_is_taken_while_it_comes_ends_with_a_whole_character() {
        let mut kept = HeadTail::new(8);
        kept.push("aö€".as_bytes().split_last().unwrap().1);
        assert_eq!(kept.take().into_text(), "aö");
        kept.push(&"€".as_bytes()[2..]);
        kept.push("0123456789ö".as_bytes().split_last().unwrap().1);
        assert_eq!(kept.take().into_text(), "€0\n[... 6 bytes left out ...]\n789");
        kept.push(&"ö".as_bytes()[1..]);
        assert_eq!(kept.take().into_text(), "ö");
    }

    #[test]
    fn sizes_read_well() {
        let sizes = [0, 1023, 1024, 3_500, 1_048_570, 1_048_576].map(size);
        assert_eq!(sizes, ["0 B", "1023 B", "1.0 KiB", "3.4 KiB", "1.0 MiB", "1.0 MiB"]);
    }

    #[test]
    fn only_a_cut_character_is_taken_off() {
        assert_eq!(whole_characters("aä".as_bytes()), 3);
        assert_eq!(whole_characters(&"aä".as_bytes()[..2]), 1);
        assert_eq!(whole_characters(&"€".as_bytes()[..2]), 0);
        assert_eq!(whole_characters(b"a\xff"), 2);
        assert_eq!(whole_characters(b""), 0);
    }
}
