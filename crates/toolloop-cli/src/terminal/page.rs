//! [`Page`]: what stands in the terminal, the answer as it grows and the notes set apart from it.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use super::keys::Key;
use super::line_editor::LineEditor;
use super::live::Live;
use super::markdown::Markdown;
use super::paint::{Paint, has_colours};
use super::question::Question;
use super::screen::{Screen, Size};
use super::text::clean;

/// Answer, notes and live lines, in the order in which they came.
pub(super) struct Page {
    pub(super) screen: Screen<Box<dyn Write>>,
    pub(super) paint: Paint,
    pub(super) live: Live,
    /// Whether tools, times and the summary are shown.
    pub(super) notes: bool,
    answer: Answer,
    /// The lines of an open question, and whether a text is typed there.
    question: Vec<String>,
    typing: bool,
    /// The lines of what is typed for the model, and whether the last is still open.
    typed: Vec<String>,
    typed_open: bool,
    last: Last,
}

/// How the answer is shown.
enum Answer {
    /// In a terminal with colours.
    Rendered(Markdown),
    /// In a terminal without; `true` while its last line is unfinished.
    Streamed { open_line: bool },
    /// Not in a terminal: the final answer, at the end.
    Final,
}

/// What was printed last: answer and notes are set apart by an empty line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    Nothing,
    Header,
    Note,
    Text,
}

impl Page {
    /// The page for the streams this process has.
    pub(super) fn of_process(quiet: bool) -> Self {
        let (stdout, stderr) = (io::stdout(), io::stderr());
        let (out_is_terminal, err_is_terminal) = (stdout.is_terminal(), stderr.is_terminal());
        let rich = has_colours();
        let answer = match (out_is_terminal, rich) {
            (true, true) => Answer::Rendered(Markdown::default()),
            (true, false) => Answer::Streamed { open_line: false },
            (false, _) => Answer::Final,
        };
        let out: Box<dyn Write> = if out_is_terminal { Box::new(stdout) } else { Box::new(stderr) };
        let terminal = out_is_terminal || err_is_terminal;
        Self {
            screen: Screen::new(out, Size::of_process(), terminal && rich),
            paint: Paint::new(terminal && rich),
            answer,
            notes: err_is_terminal && !quiet,
            live: Live::default(),
            question: Vec::new(),
            typing: false,
            typed: Vec::new(),
            typed_open: false,
            last: Last::Nothing,
        }
    }

    pub(super) fn columns(&self) -> usize {
        self.screen.size().columns
    }

    /// Prints notes that stay.
    pub(super) fn note(&mut self, lines: &[String], now: Duration) -> io::Result<()> {
        if !self.notes || lines.is_empty() {
            return Ok(());
        }
        // What was said before stands before.
        self.settle_text(false, now)?;
        self.print_apart(lines, now)
    }

    /// Prints lines that stay, apart from the answer.
    pub(super) fn print_apart(&mut self, lines: &[String], now: Duration) -> io::Result<()> {
        let gap = (self.last == Last::Text && !lines.is_empty()).then(String::new);
        let all: Vec<String> = gap.into_iter().chain(lines.iter().cloned()).collect();
        if !lines.is_empty() {
            self.last = Last::Note;
        }
        self.print(&all, now)
    }

    /// Prints lines that stay, and repaints what is live below them.
    fn print(&mut self, lines: &[String], now: Duration) -> io::Result<()> {
        let live = self.live_lines(now);
        self.screen.frame(lines, live)
    }

    fn live_lines(&self, now: Duration) -> Vec<String> {
        let columns = self.columns();
        let mut live = Vec::new();
        if let Answer::Rendered(markdown) = &self.answer {
            let open = markdown.open(columns, self.paint);
            if self.last == Last::Note && open.iter().any(|line| !line.is_empty()) {
                live.push(String::new());
            }
            live.extend(open);
        }
        let lines = match (self.question.is_empty(), self.notes) {
            (false, _) => self.question.clone(),
            (true, true) => self.live.lines(now, columns, self.paint),
            (true, false) => Vec::new(),
        };
        if !lines.is_empty() && (self.last == Last::Text || !live.is_empty()) {
            live.push(String::new());
        }
        live.extend(lines);
        live.extend(self.typed.iter().cloned());
        if self.typed_open && !self.question.is_empty() {
            live.push(self.paint.dim("  first finish this line: Enter sends it, Esc drops it"));
        }
        live
    }

    /// Takes more of the answer.
    pub(super) fn text(&mut self, delta: &str) -> io::Result<()> {
        match &mut self.answer {
            // Painted with the next tick.
            Answer::Rendered(markdown) => markdown.push(delta),
            Answer::Streamed { open_line } => {
                let delta = clean(delta);
                let gap = if self.last == Last::Note { "\n" } else { "" };
                *open_line = !delta.ends_with('\n');
                self.last = Last::Text;
                self.screen.write(&format!("{gap}{delta}"))?;
            }
            Answer::Final => {}
        }
        Ok(())
    }

    /// Prints those lines of the answer that have become final; all of them with `whole`.
    pub(super) fn settle_text(&mut self, whole: bool, now: Duration) -> io::Result<()> {
        let columns = self.columns();
        match &mut self.answer {
            Answer::Rendered(markdown) => {
                let mut lines = match whole {
                    true => markdown.finish(columns, self.paint),
                    false => markdown.settle(columns, self.paint),
                };
                if whole {
                    *markdown = Markdown::default();
                }
                if !lines.is_empty() {
                    if self.last == Last::Note {
                        lines.insert(0, String::new());
                    }
                    self.last = Last::Text;
                }
                self.print(&lines, now)
            }
            Answer::Streamed { open_line } if whole && *open_line => {
                *open_line = false;
                self.screen.write("\n")
            }
            _ => Ok(()),
        }
    }

    /// Without repainting: a question is printed when it changes its form, keys are echoed.
    fn plain_question(
        &mut self,
        question: &Question,
        key: Option<Key>,
        above: &[String],
    ) -> io::Result<()> {
        let was_typing = std::mem::replace(&mut self.typing, question.is_typing());
        match key {
            Some(Key::Char(c)) if was_typing && self.typing => {
                return self.screen.write(&c.to_string());
            }
            Some(Key::Backspace) if was_typing && self.typing => {
                return self.screen.write("\x08 \x08");
            }
            _ => {}
        }
        let lines = question.lines(self.columns(), self.paint);
        if lines == self.question && above.is_empty() {
            return Ok(());
        }
        // Behind a question stands the cursor, behind an answer the end of a line.
        let apart = key.is_some() || self.last == Last::Text;
        self.last = Last::Note;
        let mut text = if apart { "\n".to_owned() } else { String::new() };
        above.iter().for_each(|line| text.extend([line, "\n"]));
        // The terminal's own cursor stands where text is typed.
        text += lines.join("\n").trim_end_matches(LineEditor::CURSOR);
        self.question = lines;
        self.screen.write(&text)
    }

    /// What was printed of the reply stays; what was not is forgotten.
    pub(super) fn drop_open_text(&mut self, now: Duration) -> io::Result<()> {
        if let Answer::Rendered(markdown) = &mut self.answer {
            *markdown = Markdown::default();
        }
        self.settle_text(true, now)
    }

    /// Whether the answer is printed alone, once it is whole.
    pub(super) fn wants_whole_answer(&self) -> bool {
        matches!(self.answer, Answer::Final)
    }

    /// What stands above now is a header: the answer follows it closely.
    pub(super) fn ends_header(&mut self) {
        self.last = Last::Header;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.last == Last::Nothing
    }

    /// The lines of what is typed for the model; `open`: the last of them still is.
    pub(super) fn typed(
        &mut self,
        lines: Vec<String>,
        open: bool,
        now: Duration,
    ) -> io::Result<()> {
        self.typed = lines;
        self.typed_open = open;
        self.print(&[], now)
    }

    /// Asks, after this key.
    pub(super) fn ask(
        &mut self,
        question: &Question,
        key: Option<Key>,
        now: Duration,
    ) -> io::Result<()> {
        self.settle_text(true, now)?;
        let above = question.above(key, self.columns(), self.paint);
        if !self.screen.is_live() {
            return self.plain_question(question, key, &above);
        }
        self.question = question.lines(self.columns(), self.paint);
        self.print_apart(&above, now)
    }

    /// The question is no more.
    pub(super) fn answered(&mut self, now: Duration) -> io::Result<()> {
        self.question.clear();
        self.typing = false;
        match self.screen.is_live() {
            true => self.print(&[], now),
            false => self.screen.write("\n"),
        }
    }
}
