//! [`TerminalFace`]: a run as a person sees it.
//!
//! The answer goes to standard output: rendered in a terminal, as it is where there are no
//! colours, and only in the end, alone, where it is no terminal. Everything else (notes) is for
//! terminals only.

use std::collections::HashMap;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use toolloop_core::{LoopEvent, ToolCall, ToolResult};

use super::keys::Key;
use super::notes;
use super::page::Page;
use super::paint::Style;
use super::question::Question;
use super::screen::Size;
use super::text::{Span, clean, wrap};
use super::tool_line::{Mark, STOPPED, ToolLine, outcome, short_name, subject};
use crate::face::{Face, Header};
use crate::model::host;
use crate::origin::{Origin, short_path};
use crate::report::Report;
use crate::steering::Steering;
use crate::summary::{Ending, Reason};

/// Shows a run on standard output and standard error.
pub(crate) struct TerminalFace {
    page: Page,
    quiet: bool,
    /// What the calls of this run work on, by their id.
    subjects: HashMap<String, String>,
}

impl TerminalFace {
    /// The face for the streams this process has.
    pub(crate) fn of_process(quiet: bool) -> Self {
        Self { page: Page::of_process(quiet), quiet, subjects: HashMap::new() }
    }

    fn note(&mut self, lines: &[String], now: Duration) -> io::Result<()> {
        self.page.note(lines, now)
    }

    fn note_of_run(&mut self, event: &LoopEvent, now: Duration) -> io::Result<()> {
        match notes::of_run(event) {
            Some(line) => self.note(&[self.page.paint.dim(&line)], now),
            None => Ok(()),
        }
    }

    /// A text of several lines, as wide as the terminal.
    fn wrapped(&self, text: impl Into<String>, style: Style) -> Vec<String> {
        wrap(&[Span::new(text, style)], self.page.columns(), self.page.paint)
    }

    /// Says that a script answers. Also where nobody looks: an answer of the demo model in a log
    /// must not pass for one of a real model.
    fn announce_demo(&self) -> Vec<String> {
        let text = notes::demo();
        if !self.page.notes && !self.quiet {
            let _ = writeln!(io::stderr(), "{text}");
        }
        self.wrapped(text, Style::PLAIN)
    }

    fn tool_ended(
        &mut self,
        tool: &str,
        result: &ToolResult,
        duration: Duration,
        now: Duration,
    ) -> io::Result<()> {
        let (mark, note) = match result.is_error {
            true if result.was_cut_off() => (Mark::Cut, STOPPED.to_owned()),
            true => (Mark::Failed, outcome(tool, &result.content, true)),
            false => (Mark::Done, outcome(tool, &result.content, false)),
        };
        let line = ToolLine {
            mark,
            name: short_name(tool),
            subject: &self.page.live.tool_ends(&result.tool_call_id).unwrap_or_default(),
            duration: Some(duration),
            note: &note,
        };
        self.note(&[line.render(self.page.columns(), self.page.paint)], now)
    }

    fn tool_refused(
        &mut self,
        call_id: &str,
        tool: &str,
        reason: &str,
        now: Duration,
    ) -> io::Result<()> {
        self.page.settle_text(true, now)?;
        // The line says that it was not run by its mark.
        let reason = reason.strip_prefix("This call was denied: ").unwrap_or(reason);
        let line = ToolLine {
            mark: Mark::Denied,
            name: short_name(tool),
            subject: self.subjects.get(call_id).map_or("", String::as_str),
            duration: None,
            note: &clean(reason),
        };
        self.note(&[line.render(self.page.columns(), self.page.paint)], now)
    }
}

impl Face for TerminalFace {
    fn begin(&mut self, header: &Header<'_>) -> io::Result<()> {
        let Some(target) = header.target else { return Ok(()) };
        self.page.live.set_label(target.label());
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
        parts.extend(header.sandbox.map(str::to_owned));
        parts.push(format!("run {}", header.run));
        lines.push(self.page.paint.dim(&parts.join(" · ")));
        self.note(&lines, Duration::ZERO)?;
        self.page.ends_header();
        Ok(())
    }

    fn event(&mut self, event: &LoopEvent, now: Duration) -> io::Result<()> {
        match event {
            LoopEvent::TextDelta(text) => {
                self.page.live.model_speaks(now);
                self.page.text(text)
            }
            LoopEvent::ReasoningDelta(_)
            | LoopEvent::ToolCallStart { .. }
            | LoopEvent::ToolCallDelta { .. } => {
                self.page.live.model_lives(now);
                Ok(())
            }
            LoopEvent::ToolCallComplete { call: ToolCall { id, arguments, .. }, .. } => {
                self.subjects.insert(id.clone(), subject(arguments));
                self.page.live.model_lives(now);
                Ok(())
            }
            LoopEvent::IterationStart { .. } => {
                self.page.settle_text(true, now)?;
                self.page.live.model_is_asked(now);
                Ok(())
            }
            LoopEvent::Usage(_) => {
                self.page.live.model_is_done();
                self.page.settle_text(true, now)
            }
            LoopEvent::ToolExecutionStart { call_id, tool_name, arguments } => {
                self.page.settle_text(true, now)?;
                self.page.live.tool_starts(call_id, tool_name, arguments, now);
                Ok(())
            }
            LoopEvent::ToolProgress { call_id, text } => {
                self.page.live.tool_writes(call_id, text);
                Ok(())
            }
            LoopEvent::ToolExecutionEnd { tool_name, result, duration, .. } => {
                self.tool_ended(tool_name, result, *duration, now)
            }
            LoopEvent::ToolCallRefused { call_id, tool_name, reason } => {
                self.tool_refused(call_id, tool_name, reason, now)
            }
            LoopEvent::ToolCallAnswered { tool_name, result, .. } => {
                self.tool_ended(tool_name, result, Duration::ZERO, now)
            }
            LoopEvent::AttemptDiscarded { .. } => {
                self.page.drop_open_text(now)?;
                self.note_of_run(event, now)
            }
            LoopEvent::RetryScheduled(notice) => {
                self.page.live.retry_comes(notice.clone(), now);
                match self.page.screen.is_live() {
                    true => Ok(()),
                    false => self.note(&[self.page.live.retry_line(notice)], now),
                }
            }
            event => self.note_of_run(event, now),
        }
    }

    fn tick(&mut self, now: Duration) -> io::Result<()> {
        if !self.page.screen.is_live() {
            return Ok(());
        }
        self.page.screen.resize(Size::of_process());
        self.page.settle_text(false, now)
    }

    fn can_ask(&self) -> bool {
        // A question in a file would wait for ever.
        io::stdout().is_terminal() || io::stderr().is_terminal()
    }

    fn can_steer(&self) -> bool {
        self.page.notes && self.page.screen.is_live()
    }

    fn typed(&mut self, steering: &Steering, now: Duration) -> io::Result<()> {
        let lines = steering.lines(self.page.columns(), self.page.paint);
        self.page.typed(lines, steering.is_typing(), now)
    }

    fn sent(&mut self, lines: &[String], now: Duration) -> io::Result<()> {
        self.page.settle_text(true, now)?;
        let line = |line: &String| self.wrapped(format!("› {}", clean(line)), Style::PLAIN);
        let lines: Vec<_> = lines.iter().flat_map(line).collect();
        self.note(&lines, now)
    }

    fn unsent(&mut self, lines: &[String], now: Duration) -> io::Result<()> {
        self.page.typed(Vec::new(), false, now)?;
        let line = |line: &String| {
            self.wrapped(format!("not sent, the run was over: {}", clean(line)), Style::DIM)
        };
        let lines: Vec<_> = lines.iter().flat_map(line).collect();
        self.note(&lines, now)
    }

    fn warn(&mut self, report: &Report, now: Duration) -> io::Result<()> {
        let text = clean(&report.to_string()).into_owned();
        if !self.page.notes {
            // Not for the eyes only: what is missing bears on the answer. Standard error that is
            // closed leaves nobody to tell.
            let _ = writeln!(io::stderr(), "{text}");
            return Ok(());
        }
        let lines = self.wrapped(text, Style::DIM);
        self.note(&lines, now)
    }

    fn starting(&mut self, servers: &[String], now: Duration) -> io::Result<()> {
        self.page.live.starts(servers, now);
        self.tick(now)
    }

    fn ask(&mut self, question: &Question, key: Option<Key>, now: Duration) -> io::Result<()> {
        self.page.ask(question, key, now)
    }

    fn answered(&mut self, now: Duration) -> io::Result<()> {
        self.page.answered(now)
    }

    fn end(&mut self, ending: &Ending, now: Duration) -> io::Result<()> {
        self.page.settle_text(true, now)?;
        self.page.live.model_is_done();
        let cut = self.page.live.cut_off(now, self.page.columns(), self.page.paint);
        self.note(&cut, now)?;
        self.page.screen.frame(&[], Vec::new())?;
        // A pipe gets an answer, not the half of one that broke off.
        let is_answer =
            !matches!(ending.reason, Reason::Error | Reason::Cancelled | Reason::Approval);
        if self.page.wants_whole_answer() && is_answer {
            print_answer(&ending.text)?;
        }
        if let Some(report) = &ending.report {
            if self.page.notes && !self.page.is_empty() {
                self.page.screen.write("\n")?;
            }
            report.eprint();
        }
        let nothing_done = ending.reason == Reason::Error && ending.tools == 0;
        if self.page.notes && !(nothing_done && ending.iterations <= 1) {
            let line = self.page.paint.dim(&ending.line());
            self.page.screen.write(&format!("\n{line}\n"))?;
        }
        Ok(())
    }
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
