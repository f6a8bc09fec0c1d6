//! [`CallQuestion`]: asks a person whether a call may run, key by key.
//!
//! `y` once · `a` always (the commands it then covers are shown) · `e` edit · `n` no, with a
//! reason the model reads · `v` view everything.

use serde_json::Value;
use toolloop_core::ToolCall;

use super::keys::Key;
use super::line_editor::{Edit, LineEditor};
use super::paint::Paint;
use super::paint::Style;
use super::text::{Span, clean, truncate, wrap};
use super::tool_line::{Mark, ToolLine, short_name, subject};
use crate::approval::Scope;

/// A question that is open.
#[derive(Debug)]
pub(crate) struct CallQuestion {
    call: ToolCall,
    /// What it would change in a file, as a diff.
    preview: Option<String>,
    scope: Scope,
    state: State,
    viewed: bool,
}

/// What the person said.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Answer {
    Once,
    Always(Scope),
    /// Run it with these arguments instead.
    Edited(Value),
    /// The reason may be empty.
    No(String),
}

#[derive(Debug)]
enum State {
    Choosing,
    Editing(LineEditor),
    Reason(LineEditor),
}

impl CallQuestion {
    pub(crate) fn new(call: ToolCall, preview: Option<String>) -> Self {
        let scope = Scope::of(&call);
        Self { call, preview, scope, state: State::Choosing, viewed: false }
    }

    /// Takes a key; gives the answer once there is one.
    pub(crate) fn handle(&mut self, key: Key) -> Option<Answer> {
        match &mut self.state {
            State::Choosing => return self.choose(key),
            State::Editing(editor) => match editor.handle(key) {
                Edit::Open => {}
                Edit::Cancelled => self.state = State::Choosing,
                Edit::Accepted(text) => return self.edited(&text),
            },
            State::Reason(editor) => match editor.handle(key) {
                Edit::Open => {}
                Edit::Cancelled => self.state = State::Choosing,
                Edit::Accepted(reason) => return Some(Answer::No(reason.trim().to_owned())),
            },
        }
        None
    }

    /// Whether keys write text now, a command or a reason.
    pub(crate) fn is_typing(&self) -> bool {
        !matches!(self.state, State::Choosing)
    }

    /// The lines of the question.
    pub(crate) fn lines(&self, columns: usize, paint: Paint) -> Vec<String> {
        let subject = subject(&self.call.arguments);
        let line = ToolLine {
            mark: Mark::Asking,
            name: short_name(&self.call.name),
            subject: &subject,
            duration: None,
            note: match (self.command(), &self.preview) {
                (Some(_), _) => "runs a command",
                (None, Some(_)) => "changes this file",
                (None, None) => "runs this tool",
            },
        };
        let mut lines = vec![line.render(columns, paint)];
        // Nobody may approve what they cannot see: a call that does not fit is shown in full.
        let cut = subject.contains('\n') || !lines[0].contains(&truncate(&subject, columns));
        if self.preview.is_none() && (cut || self.viewed) {
            let all = match self.command() {
                Some(command) => clean(command).into_owned(),
                None => format!("{:#}", self.call.arguments),
            };
            let all = Span::new(clean(&all).into_owned(), Style::PLAIN);
            let room = columns.saturating_sub(4);
            lines.extend(wrap(&[all], room, paint).into_iter().map(|line| format!("  │ {line}")));
        }
        lines.push(match &self.state {
            State::Choosing => paint.dim(&truncate(&self.choices(), columns)),
            State::Editing(editor) => {
                format!("  {} {}", paint.dim("edit:"), editor.render(columns.saturating_sub(8)))
            }
            State::Reason(editor) => format!(
                "  {} {}",
                paint.dim("no, because (may be empty):"),
                editor.render(columns.saturating_sub(30))
            ),
        });
        lines
    }

    /// The diff to print above the question, after this key: at first its beginning, and all of
    /// it for who wants to view it.
    pub(crate) fn diff(&self, key: Option<Key>, columns: usize, paint: Paint) -> Vec<String> {
        let viewing = matches!(key, Some(Key::Char('v' | 'V'))) && !self.is_typing();
        let (Some(diff), true) = (&self.preview, key.is_none() || viewing) else {
            return Vec::new();
        };
        let most = if viewing { usize::MAX } else { DIFF_LINES };
        let room = columns.saturating_sub(4);
        let mut lines: Vec<String> = diff
            .lines()
            .take(most)
            .flat_map(|line| wrap(&[Span::new(clean(line).into_owned(), look(line))], room, paint))
            .map(|line| format!("  │ {line}"))
            .collect();
        let hidden = diff.lines().count().saturating_sub(most);
        if hidden > 0 {
            lines.push(paint.dim(&format!("  │ … {hidden} more lines, v shows them")));
        }
        lines
    }

    fn choices(&self) -> String {
        format!(
            "  y once · a always {} in this folder · e edit · n no, say why · v view",
            self.scope.shown
        )
    }

    fn choose(&mut self, key: Key) -> Option<Answer> {
        match key {
            Key::Char('y' | 'Y') => return Some(Answer::Once),
            Key::Char('a' | 'A') => return Some(Answer::Always(self.scope.clone())),
            Key::Char('e' | 'E') => {
                let text = match self.command() {
                    Some(command) => command.to_owned(),
                    None => self.call.arguments.to_string(),
                };
                self.state = State::Editing(LineEditor::new(&text));
            }
            Key::Char('n' | 'N') | Key::Escape => {
                self.state = State::Reason(LineEditor::new(""));
            }
            Key::Char('v' | 'V') => self.viewed = !self.viewed,
            // Enter means nothing here: a line typed ahead must not approve a command.
            _ => {}
        }
        None
    }

    /// The edited command, or the edited arguments where the tool has no command.
    fn edited(&mut self, text: &str) -> Option<Answer> {
        let mut arguments = self.call.arguments.clone();
        match arguments.get_mut("command") {
            Some(command) => *command = Value::String(text.to_owned()),
            // Not JSON: the line stays open.
            None => arguments = serde_json::from_str(text).ok()?,
        }
        Some(if arguments == self.call.arguments {
            Answer::Once
        } else {
            Answer::Edited(arguments)
        })
    }

    fn command(&self) -> Option<&str> {
        self.call.arguments.get("command")?.as_str()
    }
}

/// How a line of a diff looks.
fn look(line: &str) -> Style {
    match line.as_bytes().first() {
        Some(b'+') => Style::GREEN,
        Some(b'-') => Style::RED,
        Some(b'@') => Style::DIM,
        _ => Style::PLAIN,
    }
}

/// So many lines of a diff are shown unasked.
const DIFF_LINES: usize = 40;

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolloop::tool::ApprovalRule;

    use super::*;

    fn question(name: &str, arguments: Value) -> CallQuestion {
        CallQuestion::new(ToolCall { id: "c".into(), name: name.into(), arguments }, None)
    }

    fn asked(arguments: Value, keys: &str) -> Option<Answer> {
        let mut question = question("bash", arguments);
        let mut answer = None;
        for c in keys.chars() {
            assert_eq!(answer, None, "an answer before the last key");
            answer = question.handle(match c {
                '\n' => Key::Enter,
                '\x1b' => Key::Escape,
                '<' => Key::Backspace,
                c => Key::Char(c),
            });
        }
        answer
    }

    #[test]
    fn the_keys_mean_what_the_line_says() {
        let command = json!({"command": "wc -l *"});
        assert_eq!(asked(command.clone(), "y"), Some(Answer::Once));
        assert_eq!(
            asked(command.clone(), "a"),
            Some(Answer::Always(Scope {
                rule: ApprovalRule::beginning("bash", "command", "wc"),
                shown: "\"wc …\"".into()
            }))
        );
        assert_eq!(
            asked(command.clone(), "e<a.txt\n"),
            Some(Answer::Edited(json!({"command": "wc -l a.txt"})))
        );
        assert_eq!(asked(command.clone(), "e\n"), Some(Answer::Once));
        assert_eq!(asked(command.clone(), "nnot now \n"), Some(Answer::No("not now".into())));
        assert_eq!(asked(command.clone(), "n\n"), Some(Answer::No(String::new())));
        assert_eq!(asked(command.clone(), "\x1b\x1bvn\x1by"), Some(Answer::Once));
        assert_eq!(asked(command, "\n\nq"), None);
    }

    #[test]
    fn the_question_fits_two_lines() {
        let lines = question("bash", json!({"command": "wc -l *"})).lines(80, Paint::new(false));
        assert_eq!(
            lines,
            [
                "? bash  wc -l *                                   runs a command",
                "  y once · a always \"wc …\" in this folder · e edit · n no, say why · v view",
            ]
        );
    }

    #[test]
    fn a_diff_is_shown_above_in_part_and_on_demand_whole() {
        let diff = "@@ -1 +1,50 @@\n-old\n".to_owned() + &"+new\n".repeat(50);
        let arguments = json!({"path": "a.txt", "edits": []});
        let call = ToolCall { id: "c".into(), name: "edit_file".into(), arguments };
        let mut question = CallQuestion::new(call, Some(diff));
        let paint = Paint::new(false);
        let shown = question.diff(None, 80, paint);
        assert_eq!(shown[..3], ["  │ @@ -1 +1,50 @@", "  │ -old", "  │ +new"]);
        assert_eq!(shown[40], "  │ … 12 more lines, v shows them");
        assert_eq!(question.handle(Key::Char('v')), None);
        assert_eq!(question.diff(Some(Key::Char('v')), 80, paint).len(), 52);
        assert_eq!(question.diff(Some(Key::Char('n')), 80, paint), [""; 0]);
        let lines = question.lines(80, paint);
        assert!(lines[0].starts_with("? edit  a.txt") && lines[0].ends_with("changes this file"));
        assert_eq!(lines.len(), 2);
    }

    #[test]
    fn a_command_that_does_not_fit_is_shown_whole() {
        let command = format!("echo {}; rm -rf \u{1b}[8m/", "x".repeat(80));
        let lines = question("bash", json!({"command": command})).lines(60, Paint::new(false));
        assert_eq!(
            lines[1..4],
            [
                "  │ echo".to_owned(),
                format!("  │ {}", "x".repeat(56)),
                format!("  │ {}; rm -rf /", "x".repeat(24)),
            ]
        );
        let lines = question("bash", json!({"command": "a\nb"})).lines(60, Paint::new(false));
        assert_eq!(lines[1..3], ["  │ a", "  │ b"]);
    }
}
