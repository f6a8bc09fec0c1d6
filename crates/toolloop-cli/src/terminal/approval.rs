//! [`CallQuestion`]: asks a person whether a call may run, key by key.
//!
//! `y` once · `a` always (the commands it then covers are shown) · `e` edit · `n` no, with a
//! reason the model reads · `v` view what was left out.
//!
//! Nobody may approve what they cannot see: what does not fit into the line of the question is
//! printed above it, where it stays, however tall the terminal is.

use serde_json::Value;
use toolloop_core::ToolCall;

use super::keys::Key;
use super::line_editor::{Edit, LineEditor};
use super::paint::{Paint, Style};
use super::text::{packed, quoted, visible, width};
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
    /// How often somebody wanted to view all of it.
    views: usize,
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
        Self { call, preview, scope, state: State::Choosing, views: 0 }
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
        let mut lines = vec![self.line(columns, paint)];
        match &self.state {
            State::Choosing => lines.extend(self.choices(columns, paint)),
            State::Editing(editor) => lines.push(format!(
                "  {} {}",
                paint.dim("edit:"),
                editor.render(columns.saturating_sub(8))
            )),
            State::Reason(editor) => lines.push(format!(
                "  {} {}",
                paint.dim("no, because (may be empty):"),
                editor.render(columns.saturating_sub(30))
            )),
        }
        lines
    }

    /// What to print above the question, after this key: at first the beginning of what its line
    /// does not say, and all of it for who wants to view it.
    pub(crate) fn above(&self, key: Option<Key>, columns: usize, paint: Paint) -> Vec<String> {
        let viewing = matches!(key, Some(Key::Char('v' | 'V'))) && !self.is_typing();
        let most = match key {
            None => MOST_LINES,
            Some(_) if viewing && self.views == 1 && self.has_more(columns) => usize::MAX,
            Some(_) => return Vec::new(),
        };
        let Some(all) = (match viewing && self.has_silent_arguments() {
            true => Some(self.json()),
            false => self.beyond_the_line(columns),
        }) else {
            return Vec::new();
        };
        let mut lines = self.quote(&all, columns, paint);
        let hidden = lines.len().saturating_sub(most);
        if hidden > 0 {
            lines.truncate(most);
            lines.push(paint.dim(&format!("  │ … {hidden} more lines, v shows them")));
        }
        lines
    }

    /// The call in one line, as far as it fits.
    fn line(&self, columns: usize, paint: Paint) -> String {
        ToolLine {
            mark: Mark::Asking,
            name: short_name(&self.call.name),
            subject: &subject(&self.call.arguments),
            duration: None,
            note: match (self.command(), &self.preview) {
                (Some(_), _) => "runs a command",
                (None, Some(diff)) if diff.starts_with("@@ -0,0 ") => "writes this file",
                (None, Some(_)) => "changes this file",
                (None, None) => "runs this tool",
            },
        }
        .render(columns, paint)
    }

    /// What a person must see besides the line: a diff, a command that does not fit, arguments of
    /// which the line tells a part.
    fn beyond_the_line(&self, columns: usize) -> Option<String> {
        if let Some(diff) = &self.preview {
            return Some(diff.clone());
        }
        let said = subject(&self.call.arguments);
        let line = self.line(columns, Paint::new(false));
        let fits = !said.contains(['\n', '\t']) && width(&said) < columns && line.contains(&said);
        match self.command() {
            Some(command) => (!fits).then(|| command.to_owned()),
            None => (!fits || !self.says_all(&said)).then(|| self.json()),
        }
    }

    /// Whether these words are all the arguments.
    fn says_all(&self, said: &str) -> bool {
        let all = self.call.arguments.to_string();
        match self.call.arguments.as_object() {
            Some(map) => match map.values().collect::<Vec<_>>().as_slice() {
                [] => true,
                [Value::String(only)] => only == said,
                _ => all == said,
            },
            None => all == said,
        }
    }

    /// Whether there is something left to view.
    fn has_more(&self, columns: usize) -> bool {
        let is_cut = |all: String| self.quote(&all, columns, Paint::new(false)).len() > MOST_LINES;
        self.has_silent_arguments() || self.beyond_the_line(columns).is_some_and(is_cut)
    }

    /// Whether there is more to a command than its text: a time limit, say.
    fn has_silent_arguments(&self) -> bool {
        self.command().is_some_and(|command| !self.says_all(command))
    }

    fn quote(&self, text: &str, columns: usize, paint: Paint) -> Vec<String> {
        let quote = |line: &str| match (line, &self.preview) {
            ("", _) => vec!["  │".to_owned()],
            (line, Some(_)) => quoted(&visible(line), look(line), columns, paint),
            (line, None) => quoted(&visible(line), Style::PLAIN, columns, paint),
        };
        text.lines().flat_map(quote).collect()
    }

    fn json(&self) -> String {
        format!("{:#}", self.call.arguments)
    }

    fn choices(&self, columns: usize, paint: Paint) -> Vec<String> {
        let always = format!("a always {} in this folder", self.scope.shown);
        let mut choices = vec!["y once", &always, "e edit", "n no, say why"];
        if self.views == 0 && self.has_more(columns) {
            choices.push("v view");
        }
        packed(&choices, columns, paint)
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
            Key::Char('v' | 'V') => self.views += 1,
            // Enter means nothing here: a line typed ahead must not approve a command.
            _ => {}
        }
        None
    }

    /// The edited command, or the edited arguments where the tool has no command.
    fn edited(&mut self, text: &str) -> Option<Answer> {
        let mut arguments = self.call.arguments.clone();
        match arguments.get_mut("command").filter(|_| self.command().is_some()) {
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

    /// What `bash` is to run; a server's tool may mean anything by that name.
    fn command(&self) -> Option<&str> {
        (self.call.name == "bash").then(|| self.call.arguments.get("command")?.as_str())?
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

/// So many lines are shown unasked.
const MOST_LINES: usize = 40;

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
        let question = question("bash", json!({"command": "wc -l *"}));
        assert_eq!(
            question.lines(80, PLAIN),
            [
                "? bash  wc -l *                                   runs a command",
                "  y once · a always \"wc …\" in this folder · e edit · n no, say why",
            ]
        );
        assert_eq!(question.above(None, 80, PLAIN), [""; 0]);
    }

    #[test]
    fn no_choice_is_cut_off() {
        let question = question("bash", json!({"command": "cd src && ls", "timeout_seconds": 9}));
        assert_eq!(
            question.lines(80, PLAIN)[1..],
            [
                "  y once · a always exactly this in this folder · e edit · n no, say why",
                "  v view",
            ]
        );
        assert_eq!(
            question.lines(40, PLAIN)[1..],
            [
                "  y once",
                "  a always exactly this in this folder",
                "  e edit · n no, say why · v view",
            ]
        );
    }

    #[test]
    fn what_was_left_out_can_be_viewed_once() {
        let arguments = json!({"command": "make", "timeout_seconds": 9});
        let mut question = question("bash", arguments);
        assert_eq!(question.above(None, 80, PLAIN), [""; 0]);
        let v = Key::Char('v');
        assert_eq!(question.handle(v), None);
        let all =
            ["  │ {", "  │   \"command\": \"make\",", "  │   \"timeout_seconds\": 9", "  │ }"];
        assert_eq!(question.above(Some(v), 80, PLAIN), all);
        assert_eq!(question.lines(80, PLAIN).len(), 2);
        assert_eq!(question.handle(v), None);
        assert_eq!(question.above(Some(v), 80, PLAIN), [""; 0]);
    }

    #[test]
    fn a_diff_is_shown_above_in_part_and_on_demand_whole() {
        let diff = "@@ -1 +1,50 @@\n-old\n".to_owned() + &"+new\n".repeat(50);
        let arguments = json!({"path": "a.txt", "edits": []});
        let call = ToolCall { id: "c".into(), name: "edit_file".into(), arguments };
        let mut question = CallQuestion::new(call, Some(diff));
        let shown = question.above(None, 80, PLAIN);
        assert_eq!(shown[..3], ["  │ @@ -1 +1,50 @@", "  │ -old", "  │ +new"]);
        assert_eq!(shown[40], "  │ … 12 more lines, v shows them");
        assert_eq!(question.handle(Key::Char('v')), None);
        assert_eq!(question.above(Some(Key::Char('v')), 80, PLAIN).len(), 52);
        assert_eq!(question.above(Some(Key::Char('n')), 80, PLAIN), [""; 0]);
        let lines = question.lines(80, PLAIN);
        assert!(lines[0].starts_with("? edit  a.txt") && lines[0].ends_with("changes this file"));
        assert_eq!(lines.len(), 2);
    }

    #[test]
    fn a_diff_that_is_shown_whole_offers_no_more() {
        let arguments = json!({"path": "a.txt", "content": "\ta\n\u{1b}[2Kb\n"});
        let call = ToolCall { id: "c".into(), name: "write_file".into(), arguments };
        let diff = "@@ -0,0 +1,2 @@\n+\ta\n+\u{1b}[2Kb\n".to_owned();
        let mut question = CallQuestion::new(call, Some(diff));
        let shown = ["  │ @@ -0,0 +1,2 @@", "  │ +    a", "  │ +␛[2Kb"];
        assert_eq!(question.above(None, 80, PLAIN), shown);
        assert_eq!(
            question.lines(80, PLAIN),
            [
                "? write  a.txt                                    writes this file",
                "  y once · a always write_file in this folder · e edit · n no, say why",
            ]
        );
        assert_eq!(question.handle(Key::Char('v')), None);
        assert_eq!(question.above(Some(Key::Char('v')), 80, PLAIN), [""; 0]);
    }

    #[test]
    fn a_command_that_does_not_fit_is_shown_whole() {
        let command = format!("echo {}; rm -rf /", "x".repeat(80));
        let long = question("bash", json!({"command": command}));
        assert_eq!(
            long.above(None, 60, PLAIN),
            [
                "  │ echo".to_owned(),
                format!("  │ {}", "x".repeat(56)),
                format!("  │ {}; rm -rf /", "x".repeat(24)),
            ]
        );
        let lines = question("bash", json!({"command": "a\n\n\tb"})).above(None, 60, PLAIN);
        assert_eq!(lines, ["  │ a", "  │", "  │     b"]);
        // A frame at the bottom could not hold it, and its beginning would be lost.
        let steps: String = (0..100).map(|step| format!("echo {step}\n")).collect();
        let mut tall = question("bash", json!({"command": steps}));
        assert_eq!(tall.lines(80, PLAIN).len(), 3);
        assert_eq!(tall.above(None, 80, PLAIN)[40], "  │ … 60 more lines, v shows them");
        assert_eq!(tall.handle(Key::Char('v')), None);
        assert_eq!(tall.above(Some(Key::Char('v')), 80, PLAIN).len(), 100);
    }

    #[test]
    fn no_part_of_a_command_can_hide_from_who_approves_it() {
        let hidden = question("bash", json!({"command": "echo hi \u{1b}]0; rm -rf ~ ;\u{7}"}));
        let shown = [hidden.above(None, 80, PLAIN), hidden.lines(80, PLAIN)].concat();
        assert_eq!(shown[0], "? bash  echo hi ␛]0; rm -rf ~ ;␇                  runs a command");
    }

    #[test]
    fn all_arguments_of_a_servers_tool_are_shown() {
        let arguments = json!({"url": "http://x", "force": true, "body": "\u{202e}x"});
        let deploy = question("s__deploy", arguments);
        assert_eq!(
            deploy.above(None, 80, PLAIN),
            [
                "  │ {",
                "  │   \"url\": \"http://x\",",
                "  │   \"force\": true,",
                "  │   \"body\": \"<U+202E>x\"",
                "  │ }",
            ]
        );
        let simple = question("s__deploy", json!({"url": "http://x"}));
        assert_eq!(simple.above(None, 80, PLAIN), [""; 0]);
        let command = question("s__shell", json!({"command": "ls", "cwd": "/etc"}));
        assert_eq!(command.above(None, 80, PLAIN).len(), 4);
    }

    const PLAIN: Paint = Paint::new(false);
}
