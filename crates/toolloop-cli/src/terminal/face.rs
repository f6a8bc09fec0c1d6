//! [`TerminalFace`]: a run as a person sees it.
//!
//! The answer goes to standard output: rendered in a terminal, as it is where there are no
//! colours, and only in the end, alone, where it is no terminal. Everything else (notes) is for
//! terminals only.

use std::collections::HashMap;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use toolloop_core::{CompactionMethod, LoopEvent, ReducedSchema, ToolCall, ToolResult};

use super::keys::Key;
use super::line_editor::LineEditor;
use super::live::Live;
use super::markdown::Markdown;
use super::paint::{Paint, Style, has_colours};
use super::question::Question;
use super::screen::{Screen, Size};
use super::text::{Span, clean, wrap};
use super::tool_line::{Mark, STOPPED, ToolLine, outcome, short_name, subject};
use crate::face::{Face, Header};
use crate::model::host;
use crate::origin::{Origin, short_path};
use crate::providers::KEY_VARIABLES;
use crate::report::Report;
use crate::steering::Steering;
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
            typing: false,
            typed: Vec::new(),
            typed_open: false,
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
        self.print_apart(lines, now)
    }

    /// Prints lines that stay, apart from the answer.
    fn print_apart(&mut self, lines: &[String], now: Duration) -> io::Result<()> {
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
             are real).\nFor a real one: export {KEY_VARIABLES}, or start Ollama.   toolloop help models"
        );
        if !self.notes && !self.quiet {
            let _ = writeln!(io::stderr(), "{text}");
        }
        wrap(&[Span::new(text, Style::PLAIN)], self.columns(), self.paint)
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
            subject: &self.live.tool_ends(&result.tool_call_id).unwrap_or_default(),
            duration: Some(duration),
            note: &note,
        };
        self.note(&[line.render(self.columns(), self.paint)], now)
    }

    fn tool_refused(
        &mut self,
        call_id: &str,
        tool: &str,
        reason: &str,
        now: Duration,
    ) -> io::Result<()> {
        self.settle_text(true, now)?;
        // The line says that it was not run by its mark.
        let reason = reason.strip_prefix("This call was denied: ").unwrap_or(reason);
        let line = ToolLine {
            mark: Mark::Denied,
            name: short_name(tool),
            subject: self.subjects.get(call_id).map_or("", String::as_str),
            duration: None,
            note: &clean(reason),
        };
        self.note(&[line.render(self.columns(), self.paint)], now)
    }

    /// The reply begins anew; what was printed of it stays, marked as void.
    fn text_is_void(&mut self, now: Duration) -> io::Result<()> {
        if let Answer::Rendered(markdown) = &mut self.answer {
            *markdown = Markdown::default();
        }
        self.settle_text(true, now)?;
        self.note(&[self.paint.dim("the reply broke off; it begins anew")], now)
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
        parts.extend(header.sandbox.map(str::to_owned));
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
            LoopEvent::ToolExecutionEnd { tool_name, result, duration, .. } => {
                self.tool_ended(tool_name, result, *duration, now)
            }
            LoopEvent::ToolCallRefused { call_id, tool_name, reason } => {
                self.tool_refused(call_id, tool_name, reason, now)
            }
            LoopEvent::ToolCallAnswered { tool_name, result, .. } => {
                self.tool_ended(tool_name, result, Duration::ZERO, now)
            }
            LoopEvent::AttemptDiscarded { .. } => self.text_is_void(now),
            LoopEvent::RetryScheduled(notice) => {
                self.live.retry_comes(notice.clone(), now);
                match self.screen.is_live() {
                    true => Ok(()),
                    false => self.note(&[self.live.retry_line(notice)], now),
                }
            }
            LoopEvent::SchemasReduced { schemas } => {
                let line = reduced(schemas);
                self.note(&[self.paint.dim(&line)], now)
            }
            LoopEvent::Compacted { method, tokens_before, tokens_after, .. } => {
                let how = match method {
                    CompactionMethod::Summary => "summed up",
                    CompactionMethod::Truncation => "left out",
                };
                let line = format!(
                    "the conversation got long, its older part is {how}: ~{tokens_before} to \
                     ~{tokens_after} tokens"
                );
                self.note(&[self.paint.dim(&line)], now)
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

    fn can_ask(&self) -> bool {
        // A question in a file would wait for ever.
        io::stdout().is_terminal() || io::stderr().is_terminal()
    }

    fn can_steer(&self) -> bool {
        self.notes && self.screen.is_live()
    }

    fn typed(&mut self, steering: &Steering, now: Duration) -> io::Result<()> {
        self.typed = steering.lines(self.columns(), self.paint);
        self.typed_open = steering.is_typing();
        self.print(&[], now)
    }

    fn sent(&mut self, lines: &[String], now: Duration) -> io::Result<()> {
        self.settle_text(true, now)?;
        let line = |line: &String| {
            let text = Span::new(format!("› {}", clean(line)), Style::PLAIN);
            wrap(&[text], self.columns(), self.paint)
        };
        let lines: Vec<_> = lines.iter().flat_map(line).collect();
        self.note(&lines, now)
    }

    fn unsent(&mut self, lines: &[String], now: Duration) -> io::Result<()> {
        self.typed.clear();
        self.typed_open = false;
        let line = |line: &String| {
            let text = format!("not sent, the run was over: {}", clean(line));
            wrap(&[Span::new(text, Style::DIM)], self.columns(), self.paint)
        };
        let lines: Vec<_> = lines.iter().flat_map(line).collect();
        self.note(&lines, now)
    }

    fn warn(&mut self, report: &Report, now: Duration) -> io::Result<()> {
        let text = clean(&report.to_string()).into_owned();
        if !self.notes {
            // Not for the eyes only: what is missing bears on the answer. Standard error that is
            // closed leaves nobody to tell.
            let _ = writeln!(io::stderr(), "{text}");
            return Ok(());
        }
        let lines = wrap(&[Span::new(text, Style::DIM)], self.columns(), self.paint);
        self.note(&lines, now)
    }

    fn starting(&mut self, servers: &[String], now: Duration) -> io::Result<()> {
        self.live.starts(servers, now);
        self.tick(now)
    }

    fn ask(&mut self, question: &Question, key: Option<Key>, now: Duration) -> io::Result<()> {
        self.settle_text(true, now)?;
        let above = question.above(key, self.columns(), self.paint);
        if !self.screen.is_live() {
            return self.plain_question(question, key, &above);
        }
        self.question = question.lines(self.columns(), self.paint);
        self.print_apart(&above, now)
    }

    fn answered(&mut self, now: Duration) -> io::Result<()> {
        self.question.clear();
        self.typing = false;
        match self.screen.is_live() {
            true => self.print(&[], now),
            false => self.screen.write("\n"),
        }
    }

    fn end(&mut self, ending: &Ending, now: Duration) -> io::Result<()> {
        self.settle_text(true, now)?;
        self.live.model_is_done();
        let cut = self.live.cut_off(now, self.columns(), self.paint);
        self.note(&cut, now)?;
        self.screen.frame(&[], Vec::new())?;
        // A pipe gets an answer, not the half of one that broke off.
        let is_answer =
            !matches!(ending.reason, Reason::Error | Reason::Cancelled | Reason::Approval);
        if let (Answer::Final, true) = (&self.answer, is_answer) {
            print_answer(&ending.text)?;
        }
        if let Some(report) = &ending.report {
            if self.notes && self.last != Last::Nothing {
                self.screen.write("\n")?;
            }
            report.eprint();
        }
        let nothing_done = ending.reason == Reason::Error && ending.tools == 0;
        if self.notes && !(nothing_done && ending.iterations <= 1) {
            let line = self.paint.dim(&ending.line());
            self.screen.write(&format!("\n{line}\n"))?;
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

/// Of which schemas the API was told less than they say, in one line that fits most terminals.
fn reduced(schemas: &[ReducedSchema]) -> String {
    let name = |schema: &ReducedSchema| match &schema.tool {
        Some(tool) => clean(tool).into_owned(),
        None => "the answer".to_owned(),
    };
    let mut names: Vec<_> = schemas.iter().take(MOST_NAMES).map(name).collect();
    if schemas.len() > MOST_NAMES {
        names.push(format!("{} more", schemas.len() - MOST_NAMES));
    }
    format!("checked here, for the API takes only a part of their schemas: {}", names.join(", "))
}

const MOST_NAMES: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reduced_schemas_fit_into_a_line() {
        let schema = |tool: Option<&str>| ReducedSchema {
            tool: tool.map(str::to_owned),
            dropped: vec!["a rule".to_owned()],
        };
        let said = "checked here, for the API takes only a part of their schemas: ";
        assert_eq!(
            reduced(&[schema(Some("wait")), schema(None)]),
            format!("{said}wait, the answer")
        );
        let many = ["a", "b", "c", "d", "e"].map(|tool| schema(Some(tool)));
        assert_eq!(reduced(&many), format!("{said}a, b, c, 2 more"));
    }
}
