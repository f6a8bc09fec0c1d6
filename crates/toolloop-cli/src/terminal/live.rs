//! [`Live`]: what is going on right now, as the lines at the bottom of the terminal.
//!
//! One line per running tool with its time and, below it, the last lines of its output; else
//! `thinking 4 s` once the model has been silent for a second. Times are those since the run
//! began, so that tests bring their own clock.

use std::collections::VecDeque;
use std::time::Duration;

use toolloop_core::RetryNotice;
use toolloop_providers::Timeouts;

use super::paint::{Paint, Style};
use super::text::{Span, clean, truncate, wrap};
use super::tool_line::{Mark, STOPPED, ToolLine, short_name, subject};
use crate::units::pause;

/// Running tools, and how long the model has been silent.
#[derive(Debug, Default)]
pub(crate) struct Live {
    running: Vec<Running>,
    /// When the model last said something; `None` while nobody waits for it.
    silent_since: Option<Duration>,
    /// When it last gave any sign of life: thoughts and half calls are no words.
    alive: Duration,
    /// Whether it has given one in this reply.
    begun: bool,
    /// How sentences call who serves the model.
    label: String,
    /// The announced next try and when it comes.
    retry: Option<(RetryNotice, Duration)>,
    /// What is started before the model is asked, and since when.
    starting: Option<(String, Duration)>,
}

/// A tool that runs.
#[derive(Debug)]
struct Running {
    call_id: String,
    name: String,
    subject: String,
    since: Duration,
    output: VecDeque<String>,
}

impl Live {
    /// Names who serves the model.
    pub(crate) fn set_label(&mut self, label: String) {
        self.label = label;
    }

    /// These are being started; an empty list: they are there.
    pub(crate) fn starts(&mut self, names: &[String], now: Duration) {
        self.starting = (!names.is_empty()).then(|| (names.join(", "), now));
    }

    /// The model is asked.
    pub(crate) fn model_is_asked(&mut self, now: Duration) {
        self.model_speaks(now);
        self.begun = false;
    }

    /// The model has said something, and will say more.
    pub(crate) fn model_speaks(&mut self, now: Duration) {
        self.silent_since = Some(now);
        self.model_lives(now);
    }

    /// The model works on something that is not shown.
    pub(crate) fn model_lives(&mut self, now: Duration) {
        self.alive = now;
        self.begun = true;
        self.retry = None;
    }

    /// Nothing is expected of the model.
    pub(crate) fn model_is_done(&mut self) {
        self.silent_since = None;
        self.retry = None;
    }

    /// The model is asked again after a pause.
    pub(crate) fn retry_comes(&mut self, notice: RetryNotice, now: Duration) {
        let at = now + notice.delay;
        self.retry = Some((notice, at));
        self.silent_since = Some(at);
        self.alive = at;
        self.begun = false;
    }

    pub(crate) fn tool_starts(
        &mut self,
        call_id: &str,
        tool: &str,
        arguments: &serde_json::Value,
        now: Duration,
    ) {
        self.model_is_done();
        self.running.push(Running {
            call_id: call_id.to_owned(),
            name: short_name(tool).to_owned(),
            subject: subject(arguments),
            since: now,
            output: VecDeque::new(),
        });
    }

    /// A running tool has written something.
    pub(crate) fn tool_writes(&mut self, call_id: &str, text: &str) {
        let Some(tool) = self.running.iter_mut().find(|tool| tool.call_id == call_id) else {
            return;
        };
        for line in text.lines().map(last_overprint).filter(|line| !line.trim().is_empty()) {
            if tool.output.len() == OUTPUT_LINES {
                tool.output.pop_front();
            }
            tool.output.push_back(clean(line).into_owned());
        }
    }

    /// A tool has ended; gives what it worked on.
    pub(crate) fn tool_ends(&mut self, call_id: &str) -> Option<String> {
        let index = self.running.iter().position(|tool| tool.call_id == call_id)?;
        Some(self.running.remove(index).subject)
    }

    /// The lines of tools that were running when the run ended.
    pub(crate) fn cut_off(&mut self, now: Duration, columns: usize, paint: Paint) -> Vec<String> {
        let cut = std::mem::take(&mut self.running);
        cut.iter().map(|tool| tool.line(Mark::Cut, STOPPED, now).render(columns, paint)).collect()
    }

    /// A retry as a line that stays.
    pub(crate) fn retry_line(&self, notice: &RetryNotice) -> String {
        retry_line(&self.label, notice, notice.delay)
    }

    /// The lines to show now.
    pub(crate) fn lines(&self, now: Duration, columns: usize, paint: Paint) -> Vec<String> {
        let frame = (now.as_millis() / 100) as usize;
        let mut lines = Vec::new();
        // With several tools there is room for one line of output each, in the tool's own line.
        let alone = self.running.len() == 1;
        for tool in &self.running {
            let note = tool.output.back().map_or("", String::as_str);
            let note = if alone { "" } else { note };
            lines.push(tool.line(Mark::Running(frame), note, now).render(columns, paint));
            for line in tool.output.iter().filter(|_| alone) {
                lines.push(paint.dim(&truncate(&format!("  │ {line}"), columns)));
            }
        }
        let waiting = self.waiting(now).map(|text| Span::new(text, Style::DIM));
        lines.extend(wrap(waiting.as_slice(), columns, paint));
        lines
    }

    fn waiting(&self, now: Duration) -> Option<String> {
        if let Some((notice, at)) = self.retry.as_ref().filter(|(_, at)| *at > now) {
            return Some(retry_line(&self.label, notice, at.saturating_sub(now)));
        }
        if let Some((names, since)) = &self.starting {
            let seconds = now.saturating_sub(*since).as_secs();
            return (seconds > 0).then(|| format!("starting {} {seconds} s", clean(names)));
        }
        let seconds = now.checked_sub(self.silent_since?)?.as_secs();
        let stalled = now.saturating_sub(self.alive);
        match seconds {
            0 => None,
            seconds if stalled < LONG_SILENCE => Some(format!("thinking {seconds} s")),
            seconds => {
                let limits = Timeouts::default();
                let limit = if self.begun { limits.stall } else { limits.first_content };
                Some(format!(
                    "thinking {seconds} s · no sign of the model for {} s (limit {} s)",
                    stalled.as_secs(),
                    limit.as_secs()
                ))
            }
        }
    }
}

impl Running {
    fn line<'a>(&'a self, mark: Mark, note: &'a str, now: Duration) -> ToolLine<'a> {
        ToolLine {
            mark,
            name: &self.name,
            subject: &self.subject,
            duration: Some(now.saturating_sub(self.since)),
            note,
        }
    }
}

/// `waiting: OpenAI limits the rate (429), next try in 2 s (2 of 5). "Rate limit reached"`.
fn retry_line(label: &str, notice: &RetryNotice, left: Duration) -> String {
    let reason = clean(&notice.reason);
    let status = reason.strip_prefix("HTTP ").and_then(|rest| rest.split_once(": "));
    let (what, quote) = match status {
        Some(("429", quote)) => (format!("{label} limits the rate (429)"), quote),
        Some((status, quote)) => (format!("{label} failed ({status})"), quote),
        None => (reason.to_string(), ""),
    };
    let when =
        format!("next try in {} ({} of {})", pause(left), notice.attempt + 1, notice.max_attempts);
    match quote {
        "" => format!("waiting: {what}, {when}"),
        quote => format!("waiting: {what}, {when}. \"{quote}\""),
    }
}

/// Of a line that overwrites itself, as progress bars do, what one sees of it.
fn last_overprint(line: &str) -> &str {
    line.trim_end_matches('\r').rsplit('\r').next().unwrap_or(line)
}

const OUTPUT_LINES: usize = 3;
/// From here on silence is worth a word.
const LONG_SILENCE: Duration = Duration::from_secs(20);

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lines(live: &Live, ms: u64) -> Vec<String> {
        live.lines(Duration::from_millis(ms), 80, Paint::new(false))
    }

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_silent_model_is_thinking_after_a_second() {
        let mut live = Live::default();
        assert_eq!(lines(&live, 9000), Vec::<String>::new());
        live.model_is_asked(at(1000));
        assert_eq!(lines(&live, 1900), Vec::<String>::new());
        assert_eq!(lines(&live, 5100), ["thinking 4 s"]);
        assert_eq!(
            lines(&live, 31_000),
            ["thinking 30 s · no sign of the model for 30 s (limit 120 s)"]
        );
        live.model_lives(at(30_000));
        assert_eq!(lines(&live, 31_000), ["thinking 30 s"]);
        assert_eq!(
            lines(&live, 55_000),
            ["thinking 54 s · no sign of the model for 25 s (limit 60 s)"]
        );
        live.model_is_done();
        assert_eq!(lines(&live, 31_000), Vec::<String>::new());
    }

    #[test]
    fn what_starts_for_longer_than_a_second_is_named() {
        let mut live = Live::default();
        live.starts(&["files".to_owned(), "web".to_owned()], at(1000));
        assert_eq!(lines(&live, 1900), Vec::<String>::new());
        assert_eq!(lines(&live, 5100), ["starting files, web 4 s"]);
        live.starts(&[], at(6000));
        assert_eq!(lines(&live, 9000), Vec::<String>::new());
    }

    #[test]
    fn a_running_tool_shows_its_time_and_last_lines() {
        let mut live = Live::default();
        live.tool_starts("c1", "bash", &json!({"command": "make"}), at(0));
        live.tool_writes("c1", "one\ntwo\n");
        live.tool_writes("c1", "three\n10%\r55%\r\n");
        assert_eq!(
            lines(&live, 3200),
            ["⠹ bash  make                              3.2 s", "  │ two", "  │ three", "  │ 55%"]
        );
        live.tool_starts("c2", "read_file", &json!({"path": "a"}), at(3000));
        assert_eq!(
            lines(&live, 3200),
            [
                "⠹ bash  make                              3.2 s   55%",
                "⠹ read  a                                 0.2 s"
            ]
        );
        assert_eq!(live.tool_ends("c1").as_deref(), Some("make"));
        assert_eq!(live.tool_ends("c1"), None);
        let cut = live.cut_off(at(4000), 80, Paint::new(false));
        assert_eq!(cut, ["■ read  a                                 1.0 s   stopped"]);
        assert_eq!(lines(&live, 4000), Vec::<String>::new());
    }

    #[test]
    fn a_pause_before_the_next_try_counts_down() {
        let mut live = Live::default();
        let notice = RetryNotice {
            attempt: 1,
            max_attempts: 5,
            delay: at(2000),
            reason: "HTTP 429: Rate limit reached".to_owned(),
            may_have_cost: false,
        };
        live.set_label("OpenAI".to_owned());
        live.retry_comes(notice, at(500));
        assert_eq!(
            lines(&live, 500),
            [
                "waiting: OpenAI limits the rate (429), next try in 2 s (2 of 5). \"Rate limit",
                "reached\""
            ]
        );
        assert_eq!(
            lines(&live, 1900),
            [
                "waiting: OpenAI limits the rate (429), next try in 0.6 s (2 of 5). \"Rate limit",
                "reached\""
            ]
        );
        assert_eq!(lines(&live, 4600), ["thinking 2 s"]);
    }
}
