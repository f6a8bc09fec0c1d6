//! [`TerminalFace`]: a run as a person sees it.
//!
//! The answer goes to standard output: rendered in a terminal, as it is where there are no
//! colours, and only in the end, alone, where it is no terminal. Everything else (notes) is for
//! terminals only.

use std::collections::HashMap;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use toolloop_core::{LoopEvent, ToolCall};

use super::approval::Question;
use super::keys::Key;
use super::live::Live;
use super::markdown::Markdown;
use super::paint::{Paint, Style};
use super::screen::{Screen, Size};
use super::text::{Span, clean, wrap};
use super::tool_line::{Mark, ToolLine, outcome, short_name, subject};
use crate::exit::Exit;
use crate::face::{Face, Header};
use crate::model::host;
use crate::origin::{Origin, short_path};
use crate::providers::key_variables;
use crate::report::Report;
use crate::summary::{Ending, Reason};

/// Shows a run on standard output and standard error.
pub(crate) struct TerminalFace {
    screen: Screen<Box<dyn Write>>,
    paint: Paint,
    answer: Answer,
    /// Whether tools, times and the summary are shown.
    notes: bool,
    quiet: bool,
    live: Live,
    /// What the calls of this run work on, by their id.
    subjects: HashMap<String, String>,
    question: Vec<String>,
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

impl TerminalFace {
    /// The face for the streams this process has.
    pub(crate) fn of_process(quiet: bool) -> Self {
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
            quiet,
            live: Live::default(),
            subjects: HashMap::new(),
            question: Vec::new(),
            last: Last::Nothing,
        }
    }

    fn columns(&self) -> usize {
        self.screen.size().columns
    }

    /// Prints notes that stay.
    fn note(&mut self, lines: &[String], now: Duration) -> io::Result<()> {
        if !self.notes || lines.is_empty() {
            return Ok(());
        }
        // What was said before stands before.
        self.settle_text(false, now)?;
        let mut all = Vec::new();
        if self.last == Last::Text {
            all.push(String::new());
        }
        self.last = Last::Note;
        all.extend(lines.iter().cloned());
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
        if !self.question.is_empty() {
            live.extend(self.question.iter().cloned());
        } else if self.notes {
            let lines = self.live.lines(now, columns, self.paint);
            if !lines.is_empty() && (self.last == Last::Text || !live.is_empty()) {
                live.push(String::new());
            }
            live.extend(lines);
        }
        live
    }

    /// Takes more of the answer.
    fn text(&mut self, delta: &str) -> io::Result<()> {
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
    fn settle_text(&mut self, whole: bool, now: Duration) -> io::Result<()> {
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

    /// Says that a script answers. Also where nobody looks: an answer of the demo model in a log
    /// must not pass for one of a real model.
    fn announce_demo(&self) -> Vec<String> {
        let text = format!(
            "No key and no local model found: using the built-in demo model (scripted; the tools \
             are real).\nFor a real one: export {}, or start Ollama.   toolloop help models",
            key_variables()
        );
        if !self.notes && !self.quiet {
            let _ = writeln!(io::stderr(), "{text}");
        }
        wrap(&[Span::new(text, Style::PLAIN)], self.columns(), self.paint)
    }

    fn tool_line(&self, line: &ToolLine<'_>) -> String {
        line.render(self.columns(), self.paint)
    }
}

impl Face for TerminalFace {
    fn begin(&mut self, header: &Header<'_>) -> io::Result<()> {
        let Some(target) = header.target else { return Ok(()) };
        self.live.set_label(target.label());
        let mut lines = Vec::new();
        if header.fell_back_to_demo {
            lines.extend(self.announce_demo());
            lines.push(String::new());
        }
        let mut parts = vec![target.name()];
        if !matches!(target.base_url.origin, Origin::Default) {
            parts.push(host(&target.base_url.value).to_owned());
        }
        parts.push(short_path(header.folder));
        parts.push(format!("run {}", header.run));
        lines.push(self.paint.dim(&parts.join(" · ")));
        self.note(&lines, Duration::ZERO)?;
        self.last = Last::Header;
        Ok(())
    }

    fn event(&mut self, event: &LoopEvent, now: Duration) -> io::Result<()> {
        match event {
            LoopEvent::TextDelta(text) => {
                self.live.model_speaks(now);
                self.text(text)
            }
            LoopEvent::ReasoningDelta(_)
            | LoopEvent::ToolCallStart { .. }
            | LoopEvent::ToolCallDelta { .. } => {
                self.live.model_lives(now);
                Ok(())
            }
            LoopEvent::ToolCallComplete { call: ToolCall { id, arguments, .. }, .. } => {
                self.subjects.insert(id.clone(), subject(arguments));
                self.live.model_lives(now);
                Ok(())
            }
            LoopEvent::IterationStart { .. } => {
                self.settle_text(true, now)?;
                self.live.model_is_asked(now);
                Ok(())
            }
            LoopEvent::Usage(_) => {
                self.live.model_is_done();
                self.settle_text(true, now)
            }
            LoopEvent::ToolExecutionStart { call_id, tool_name, arguments } => {
                self.settle_text(true, now)?;
                self.live.tool_starts(call_id, tool_name, arguments, now);
                Ok(())
            }
            LoopEvent::ToolProgress { call_id, text } => {
                self.live.tool_writes(call_id, text);
                Ok(())
            }
            LoopEvent::ToolExecutionEnd { call_id, tool_name, result, duration } => {
                let subject = self.live.tool_ends(call_id).unwrap_or_default();
                let line = self.tool_line(&ToolLine {
                    mark: if result.is_error { Mark::Failed } else { Mark::Done },
                    name: short_name(tool_name),
                    subject: &subject,
                    duration: Some(*duration),
                    note: &outcome(tool_name, &result.content, result.is_error),
                });
                self.note(&[line], now)
            }
            LoopEvent::ToolCallRefused { call_id, tool_name, reason } => {
                self.settle_text(true, now)?;
                let subject = self.subjects.get(call_id).cloned().unwrap_or_default();
                let line = self.tool_line(&ToolLine {
                    mark: Mark::Denied,
                    name: short_name(tool_name),
                    subject: &subject,
                    duration: None,
                    note: &clean(reason),
                });
                self.note(&[line], now)
            }
            LoopEvent::AttemptDiscarded { .. } => {
                if let Answer::Rendered(markdown) = &mut self.answer {
                    *markdown = Markdown::default();
                }
                self.settle_text(true, now)?;
                let line = self.paint.dim("the reply broke off; it begins anew");
                self.note(&[line], now)
            }
            LoopEvent::RetryScheduled(notice) => {
                self.live.retry_comes(notice.clone(), now);
                match self.screen.is_live() {
                    true => Ok(()),
                    false => self.note(&[self.live.retry_line(notice)], now),
                }
            }
            LoopEvent::LoopDetected { tool_name, consecutive_count, .. } => {
                let line =
                    format!("the model repeats itself: {tool_name}, {consecutive_count} times");
                self.note(&[self.paint.dim(&line)], now)
            }
            _ => Ok(()),
        }
    }

    fn tick(&mut self, now: Duration) -> io::Result<()> {
        if !self.screen.is_live() {
            return Ok(());
        }
        self.screen.resize(Size::of_process());
        self.settle_text(false, now)
    }

    fn question(
        &mut self,
        question: Option<(&Question, Option<Key>)>,
        now: Duration,
    ) -> io::Result<()> {
        self.settle_text(true, now)?;
        let lines =
            question.map_or(Vec::new(), |(question, _)| question.lines(self.columns(), self.paint));
        if self.screen.is_live() {
            self.question = lines;
            return self.print(&[], now);
        }
        self.plain_question(lines, question.and_then(|(_, key)| key))
    }

    fn end(&mut self, ending: &Ending, now: Duration) -> io::Result<()> {
        self.settle_text(true, now)?;
        self.live.model_is_done();
        let cut = self.live.cut_off(now, self.columns(), self.paint);
        self.note(&cut, now)?;
        self.screen.frame(&[], Vec::new())?;
        if let Answer::Final = self.answer {
            print_answer(&ending.text)?;
        }
        if let Some(report) = &ending.report {
            if self.notes && self.last != Last::Nothing {
                self.screen.write("\n")?;
            }
            eprint_report(report, self.paint);
        }
        let nothing_done = ending.reason == Reason::Error && ending.tools == 0;
        if self.notes && !(nothing_done && ending.iterations <= 1) {
            let line = self.paint.dim(&ending.line());
            self.screen.write(&format!("\n{line}\n"))?;
        }
        Ok(())
    }
}

impl TerminalFace {
    /// Without repainting: the question is printed when it changes its form, keys are echoed.
    fn plain_question(&mut self, lines: Vec<String>, key: Option<Key>) -> io::Result<()> {
        let same_form = lines.len() == self.question.len()
            && lines.last().map(|line| line.starts_with("  y "))
                == self.question.last().map(|line| line.starts_with("  y "));
        let echo = match key {
            Some(Key::Char(c)) if same_form => c.to_string(),
            Some(Key::Backspace) if same_form => "\x08 \x08".to_owned(),
            _ if lines.is_empty() => "\n".to_owned(),
            _ => format!("{}{}", if key.is_some() { "\n" } else { "" }, lines.join("\n")),
        };
        self.question = lines;
        self.screen.write(&echo)
    }
}

/// Prints an error where errors go, `error:` before it.
pub(crate) fn eprint_report(report: &Report, paint: Paint) {
    let label = match report.exit {
        Exit::Limit => paint.yellow("limit:"),
        Exit::Approval => paint.yellow("approval needed:"),
        _ => paint.red("error:"),
    };
    let mut text = format!("{label} {}", clean(&report.to_string()));
    text.push('\n');
    // Standard error that is closed leaves nobody to tell.
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Whether escape sequences are wanted where there is a terminal.
pub(crate) fn has_colours() -> bool {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb" || term.is_empty());
    !set("NO_COLOR") && !dumb
}

fn print_answer(text: &str) -> io::Result<()> {
    let text = clean(text.trim_end());
    if text.is_empty() {
        return Ok(());
    }
    let mut stdout = io::stdout().lock();
    match writeln!(stdout, "{text}").and_then(|()| stdout.flush()) {
        // `| head -1` has what it wanted.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}
