//! [`Matches`]: the part of a search's matches that is shown, as text.

use std::collections::VecDeque;
use std::io;
use std::path::Path;

use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkContextKind, SinkMatch};

use crate::output::printable;

/// What a search has found: of all matches those behind `offset`, until they are enough.
pub(crate) struct Matches {
    files_only: bool,
    offset: usize,
    /// How many there were, those passed over included.
    seen: usize,
    text: String,
    /// Another one came when there were enough.
    is_full: bool,
}

impl Matches {
    pub(crate) fn new(files_only: bool, offset: usize) -> Self {
        Self { files_only, offset, seen: 0, text: String::new(), is_full: false }
    }

    /// Takes the matches of the next file.
    pub(crate) fn of_file<'a>(
        &'a mut self,
        path: &'a Path,
        matcher: &'a RegexMatcher,
    ) -> impl Sink<Error = io::Error> + use<'a> {
        let lead = VecDeque::new();
        FileMatches { all: self, path, matcher, count: 0, is_open: false, is_shown: false, lead }
    }

    pub(crate) fn are_enough(&self) -> bool {
        self.is_full
    }

    /// Where the next part begins, and the text.
    pub(crate) fn into_text(self) -> (usize, String) {
        (self.seen, self.text)
    }

    /// Counts a match or a file; whether it is shown.
    fn count(&mut self) -> bool {
        let shown = self.seen.saturating_sub(self.offset);
        if shown >= MAX_SHOWN || self.text.len() >= MAX_TEXT {
            self.is_full = true;
            return false;
        }
        self.seen += 1;
        self.seen > self.offset
    }
}

struct FileMatches<'a> {
    all: &'a mut Matches,
    path: &'a Path,
    matcher: &'a RegexMatcher,
    count: usize,
    /// Whether the file's path stands in the text.
    is_open: bool,
    /// Whether the last match is shown, so that the lines after it are.
    is_shown: bool,
    /// Lines, shown only if a match follows that is shown.
    lead: VecDeque<String>,
}

impl Sink for FileMatches<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.count += 1;
        if self.all.files_only {
            return Ok(true);
        }
        self.is_shown = self.all.count();
        if self.is_shown {
            if !self.is_open {
                self.is_open = true;
                if !self.all.text.is_empty() {
                    self.all.text.push('\n');
                }
                self.all.text.push_str(&printable(self.path));
                self.all.text.push('\n');
                // Nothing of this file stands above that it could be set apart from.
                if self.lead.front().is_some_and(|line| line == BREAK) {
                    self.lead.pop_front();
                }
            }
            self.all.text.extend(self.lead.drain(..));
            let at = self.matcher.find(found.bytes()).ok().flatten().map_or(0, |at| at.start());
            let line = clipped(found.bytes(), at);
            self.all.text.push_str(&numbered(found.line_number(), ':', &line));
        }
        self.lead.clear();
        Ok(!self.all.is_full)
    }

    fn context(&mut self, _: &Searcher, line: &SinkContext<'_>) -> io::Result<bool> {
        if !self.all.files_only {
            let text = numbered(line.line_number(), '-', &clipped(line.bytes(), 0));
            match line.kind() {
                SinkContextKind::After if self.is_shown => self.all.text.push_str(&text),
                SinkContextKind::After => {}
                _ => self.lead.push_back(text),
            }
        }
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        self.lead.push_back(BREAK.to_owned());
        Ok(true)
    }

    fn finish(&mut self, _: &Searcher, _: &grep_searcher::SinkFinish) -> io::Result<()> {
        if self.all.files_only && self.count > 0 && self.all.count() {
            let path = printable(self.path);
            self.all.text.push_str(&format!("{path}  {}\n", matches(self.count)));
        }
        Ok(())
    }
}

fn matches(count: usize) -> String {
    match count {
        1 => "1 match".to_owned(),
        _ => format!("{count} matches"),
    }
}

fn numbered(line: Option<u64>, mark: char, text: &str) -> String {
    format!("{}{mark}{text}\n", line.unwrap_or_default())
}

/// A line, or of a long one the part around the byte `at`.
fn clipped(line: &[u8], at: usize) -> String {
    let mut end = line.len();
    while end > 0 && matches!(line[end - 1], b'\n' | b'\r') {
        end -= 1;
    }
    let line = &line[..end];
    if line.len() <= MAX_LINE {
        return String::from_utf8_lossy(line).into_owned();
    }
    let from = at.saturating_sub(MAX_LINE / 4).min(line.len() - MAX_LINE);
    let is_start = |at: &usize| line.get(*at).is_none_or(|byte| byte & 0xc0 != 0x80);
    let from = (from..=from + 3).find(is_start).unwrap_or(from);
    let to = (from..=from + MAX_LINE).rev().find(is_start).unwrap_or(from + MAX_LINE);
    let text = String::from_utf8_lossy(&line[from..to.min(line.len())]);
    let (before, after) = (if from > 0 { "…" } else { "" }, if to < line.len() { "…" } else { "" });
    format!("{before}{text}{after}")
}

/// Between places of a file that are not next to each other.
const BREAK: &str = "--\n";
/// Matches, or files.
const MAX_SHOWN: usize = 200;
/// Bytes; reached before `MAX_SHOWN` where lines are long or much context is asked for.
const MAX_TEXT: usize = 48 * 1024;
const MAX_LINE: usize = 400;
