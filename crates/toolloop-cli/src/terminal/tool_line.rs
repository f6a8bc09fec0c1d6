//! [`ToolLine`]: one tool call as one line: mark, name, subject, time, outcome.

use std::time::Duration;

use serde_json::Value;

use super::paint::Paint;
use super::text::{clean, pad, truncate, visible};
use crate::units::{counted, elapsed};

/// A call in a state worth a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ToolLine<'a> {
    pub(crate) mark: Mark,
    pub(crate) name: &'a str,
    /// What it works on: a path, a command.
    pub(crate) subject: &'a str,
    pub(crate) duration: Option<Duration>,
    /// What came of it.
    pub(crate) note: &'a str,
}

/// The state of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    /// With the frame of the animation.
    Running(usize),
    Done,
    Failed,
    Denied,
    Asking,
    /// Cut off by the end of the run.
    Cut,
}

impl ToolLine<'_> {
    /// The line for a terminal of that width.
    pub(crate) fn render(&self, columns: usize, paint: Paint) -> String {
        let mark = match self.mark {
            Mark::Running(frame) => paint.dim(SPINNER[frame % SPINNER.len()]),
            Mark::Done => paint.green("✓"),
            Mark::Failed => paint.red("✗"),
            Mark::Denied => paint.yellow("–"),
            Mark::Asking => paint.yellow("?"),
            Mark::Cut => paint.yellow("■"),
        };
        // Half the line is for the subject, so that times stand below each other.
        let left = (columns / 2).clamp(16, 60);
        let name = pad(self.name, NAME_COLUMNS);
        let subject_columns = left.saturating_sub(name.chars().count() + 5);
        let subject = pad(&truncate(self.subject, subject_columns), subject_columns);
        let time = self.duration.map_or(String::new(), elapsed);
        let time = format!("{time:>6}");
        let used = name.chars().count() + subject_columns + time.chars().count() + 9;
        let note = truncate(self.note, columns.saturating_sub(used));
        let note = match self.mark {
            Mark::Failed => paint.red(&note),
            Mark::Running(_) => paint.dim(&note),
            _ => note,
        };
        let name = if name.trim_end() == name { name } else { paint.bold(&name) };
        format!("{mark} {name}  {subject}  {}   {note}", paint.dim(&time)).trim_end().to_owned()
    }
}

/// How people call a tool: the built-in ones by their verb.
pub(crate) fn short_name(tool: &str) -> &str {
    match tool {
        "list_dir" => "list",
        "read_file" => "read",
        "write_file" => "write",
        "edit_file" => "edit",
        "bash_output" => "output",
        "bash_kill" => "kill",
        "fetch_url" => "fetch",
        "read_result" => "more",
        other => other,
    }
}

/// What a call works on, from its arguments: a command, an address, a pattern and where it is
/// looked for, a path, a job, or all of them as JSON.
pub(crate) fn subject(arguments: &Value) -> String {
    let text = |name| arguments.get(name).and_then(Value::as_str);
    let in_background = arguments.get("background") == Some(&Value::Bool(true));
    let sought = ["command", "pattern", "url", "handle", "job", "task"].into_iter().find_map(text);
    let subject = match (sought, text("path"), arguments) {
        (Some(pattern), Some(folder), _) => format!("{pattern} in {folder}"),
        (Some(command), ..) if in_background => format!("{command} &"),
        (Some(sought), ..) => sought.to_owned(),
        (_, Some(path), _) => format!("{path}{}", line_range(arguments)),
        (.., Value::Object(map)) if map.is_empty() => ".".to_owned(),
        (.., arguments) => arguments.to_string(),
    };
    visible(&subject).trim().to_owned()
}

/// What came of a call, in a few words.
pub(crate) fn outcome(tool: &str, content: &str, is_error: bool) -> String {
    let content = clean(content);
    let lines = || content.lines().map(str::trim).filter(|line| !line.is_empty());
    let last = lines().next_back().unwrap_or("");
    if matches!(tool, "bash" | "bash_output" | "bash_kill") {
        return exit_of(last).unwrap_or_else(|| lines().next().unwrap_or("").to_owned());
    }
    if is_error {
        return lines().next().unwrap_or("failed").to_owned();
    }
    // What a tool adds in brackets is no content: "[120 more entries ..]".
    let shown: Vec<&str> = content.lines().filter(|line| !is_remark(line)).collect();
    if tool != "list_dir" {
        return match (tool, shown.as_slice()) {
            (_, []) => last.trim_matches(['[', ']']).to_owned(),
            ("write_file" | "edit_file", [told, ..]) => change_of(told).unwrap_or(told).to_owned(),
            ("glob", files) => counted(files.len(), "file"),
            ("grep", lines) => match lines.iter().filter(|line| is_match(line)).count() {
                0 => counted(lines.len(), "file"),
                1 => "1 match".to_owned(),
                matches => format!("{matches} matches"),
            },
            (_, lines) => counted(lines.len(), "line"),
        };
    }
    let folders = shown.iter().filter(|line| line.ends_with('/')).count();
    match (shown.len() - folders, folders) {
        (0, 0) => "empty".to_owned(),
        (files, 0) => counted(files, "file"),
        (0, folders) => counted(folders, "folder"),
        (files, folders) => format!("{}, {}", counted(files, "file"), counted(folders, "folder")),
    }
}

fn line_range(arguments: &Value) -> String {
    let line = |name| arguments.get(name).and_then(Value::as_u64);
    match (line("start_line"), line("end_line")) {
        (None, None) => String::new(),
        (start, end) => {
            format!(":{}-{}", start.unwrap_or(1), end.map_or(String::new(), |end| end.to_string()))
        }
    }
}

/// `[exit code 2]` as `exit 2`, `[killed after its time limit of 30 s; ..]` as its first part.
fn exit_of(last: &str) -> Option<String> {
    let remark = last.strip_prefix('[')?.strip_suffix(']')?;
    Some(match remark.strip_prefix("exit code ") {
        Some(code) => format!("exit {code}"),
        None => remark.split(';').next().unwrap_or(remark).to_owned(),
    })
}

/// ``Created `a` (2 lines, 8 B).`` as `2 lines, 8 B`, ``Edited `a` in 3 places: ..`` as `3 places`.
fn change_of(told: &str) -> Option<&str> {
    match told.split_once(" in ").and_then(|(_, places)| places.split_once(": ")) {
        Some((places, _)) => Some(places),
        None => told.strip_suffix(").")?.rsplit_once('(').map(|(_, size)| size),
    }
}

/// Whether a line of `grep` is a match: `12:text`.
fn is_match(line: &str) -> bool {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    digits > 0 && line[digits..].starts_with(':')
}

fn is_remark(line: &str) -> bool {
    line.starts_with('[') && line.ends_with(']')
}

/// What came of a call that was cut off.
pub(crate) const STOPPED: &str = "stopped";
const NAME_COLUMNS: usize = 4;
const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const OFF: Paint = Paint::new(false);

    #[test]
    fn times_stand_below_each_other() {
        let line = |mark, name, subject, ms: Option<u64>, note| {
            let duration = ms.map(Duration::from_millis);
            ToolLine { mark, name, subject, duration, note }.render(80, OFF)
        };
        assert_eq!(
            [
                line(Mark::Done, "list", ".", Some(12), "2 files"),
                line(Mark::Asking, "bash", "wc -l *", None, "runs a command"),
                line(Mark::Failed, "bash", "make", Some(12_340), "exit 2"),
                line(Mark::Denied, "search_the_web", "a long query with words", None, "no"),
                line(Mark::Done, "read", "a", Some(72_000), ""),
            ]
            .join("\n"),
            "\
✓ list  .                                 0.0 s   2 files
? bash  wc -l *                                   runs a command
✗ bash  make                             12.3 s   exit 2
– search_the_web  a long query with wo…           no
✓ read  a                                1 min 12 s"
        );
    }

    #[test]
    fn a_line_never_exceeds_the_terminal() {
        let line = ToolLine {
            mark: Mark::Running(3),
            name: "bash",
            subject: &"x".repeat(300),
            duration: Some(Duration::from_secs(3)),
            note: &"漢".repeat(300),
        };
        for columns in 34..140 {
            let rendered = line.render(columns, OFF);
            assert!(super::super::text::width(&rendered) <= columns, "{columns}: {rendered}");
        }
    }

    #[test]
    fn the_subject_is_what_a_person_looks_for() {
        assert_eq!(subject(&json!({"command": "ls -l", "timeout_seconds": 3})), "ls -l");
        assert_eq!(subject(&json!({"command": "npm start", "background": true})), "npm start &");
        assert_eq!(subject(&json!({"job": "job_1", "wait_seconds": 3})), "job_1");
        assert_eq!(subject(&json!({"path": "a.rs", "start_line": 3})), "a.rs:3-");
        assert_eq!(subject(&json!({"path": "a.rs", "start_line": 3, "end_line": 9})), "a.rs:3-9");
        assert_eq!(subject(&json!({"pattern": "*.rs"})), "*.rs");
        assert_eq!(subject(&json!({"pattern": "fn a", "path": "src"})), "fn a in src");
        assert_eq!(subject(&json!({})), ".");
        assert_eq!(subject(&json!({"city": "Paris"})), r#"{"city":"Paris"}"#);
        assert_eq!(subject(&json!({"command": "echo \u{1b}[2Jx"})), "echo ␛[2Jx");
    }

    #[test]
    fn the_outcome_is_told_in_a_few_words() {
        for (tool, content, is_error, expected) in [
            ("bash", "a\n[exit code 0]", false, "exit 0"),
            ("bash", "a\n[exit code 2]", true, "exit 2"),
            (
                "bash",
                "[killed after its time limit of 30 s; give more]",
                true,
                "killed after its time limit of 30 s",
            ),
            ("bash", "[job_1 started; bash_output shows how it is]", false, "job_1 started"),
            ("bash_output", "a\nb\n[running for 3 s]", false, "running for 3 s"),
            ("bash", "The command is too long.", true, "The command is too long."),
            ("list_dir", "a/\nb  3 bytes\nc  4 bytes\n", false, "2 files, 1 folder"),
            ("list_dir", "[empty folder]", false, "empty"),
            ("read_file", "a\n\nb\n", false, "3 lines"),
            ("read_file", "[`x` is an empty file.]", false, "`x` is an empty file."),
            ("read_file", "No file x.\nThere is y.", true, "No file x."),
            ("glob", "a.rs\nb.rs\n", false, "2 files"),
            ("glob", "[none of 7 files matches]", false, "none of 7 files matches"),
            ("grep", "a\n1:x\n2-y\n\nb\n1:x\n", false, "2 matches"),
            ("grep", "a\n1:x\n", false, "1 match"),
            ("grep", "a  2 matches\nc  1 match\n", false, "2 files"),
            ("write_file", "Created `in (a).txt` (2 lines, 8 B).", false, "2 lines, 8 B"),
            ("write_file", "`a` exists.", true, "`a` exists."),
            ("edit_file", "Edited `a` in 3 places: it had 5 lines, now 8.", false, "3 places"),
            ("other", "", false, ""),
        ] {
            assert_eq!(outcome(tool, content, is_error), expected, "{tool} {content:?}");
        }
    }
}
