//! [`apply`]: exact-text edits of a text, all of them or none.

use schemars::JsonSchema;
use serde::Deserialize;

/// One change of a text.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Edit {
    /// What to do; default replace. replace, delete, insert_before and insert_after act at
    /// old_text; append and prepend at the end and the beginning of the file.
    #[serde(default)]
    pub(crate) action: Action,
    /// Text of the file, exactly as it stands there. It must stand there only once, so take in
    /// enough of the lines around.
    pub(crate) old_text: Option<String>,
    /// The new text, with its line breaks; not for delete.
    pub(crate) new_text: Option<String>,
    /// Whether to act at every place where old_text stands; default false.
    #[serde(default)]
    pub(crate) replace_all: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Action {
    #[default]
    Replace,
    Delete,
    InsertBefore,
    InsertAfter,
    Append,
    Prepend,
}

/// An edited text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Edited {
    pub(crate) text: String,
    /// How many places were changed.
    pub(crate) places: usize,
}

/// Makes the edits one after the other, each in the text that the one before has left.
///
/// # Errors
/// What is wrong with the first edit that cannot be made, and what to do about it.
pub(crate) fn apply(text: &str, edits: &[Edit]) -> Result<Edited, String> {
    if edits.is_empty() {
        return Err("There are no edits. Give at least one.".into());
    }
    let line_end = LineEnd::of(text);
    let mut edited = Edited { text: text.to_owned(), places: 0 };
    for (number, edit) in (1..).zip(edits) {
        let made = edit.make(&edited.text, line_end).map_err(|fault| match edits.len() {
            1 => fault,
            count => format!("Edit {number} of {count}: {fault}"),
        })?;
        edited = Edited { text: made.text, places: edited.places + made.places };
    }
    match edited.text == text {
        true => Err("The edits would change nothing: the text after is the text before.".into()),
        false => Ok(edited),
    }
}

impl Edit {
    fn make(&self, text: &str, line_end: LineEnd) -> Result<Edited, String> {
        let new = match (&self.new_text, self.action) {
            // Models fill in each field, and an empty text says nothing.
            (Some(new), Action::Delete) if !new.is_empty() => {
                return Err("delete takes no new_text. Use replace to put text there.".into());
            }
            (_, Action::Delete) => String::new(),
            (Some(new), _) => line_end.adapt(new),
            (None, _) => return Err("new_text is missing. To remove text use delete.".into()),
        };
        let old = self.old_text.as_deref().unwrap_or_default();
        if matches!(self.action, Action::Append | Action::Prepend) {
            if !old.is_empty() {
                return Err("append and prepend take no old_text. To insert at a place in the \
                            file use insert_before or insert_after."
                    .into());
            }
            let text = match self.action {
                // What marks the encoding stays in front of all.
                Action::Prepend => match text.strip_prefix(BYTE_ORDER_MARK) {
                    Some(text) => format!("{BYTE_ORDER_MARK}{new}{text}"),
                    None => new + text,
                },
                // What is appended begins a line of its own.
                _ if text.is_empty() || text.ends_with('\n') => text.to_owned() + &new,
                _ => format!("{text}{}{new}", line_end.as_str()),
            };
            return Ok(Edited { text, places: 1 });
        }
        if old.is_empty() {
            return Err(
                "old_text is missing or empty. Give the text of the file that the edit is \
                        about; append and prepend need none."
                    .into(),
            );
        }
        let (old, new) = match (line_end.adapt(old), LineEnd::CrLf.adapt(old)) {
            // Of a file with lines of both kinds a model sees no difference.
            (old, as_crlf) if !text.contains(&old) && text.contains(&as_crlf) => {
                (as_crlf, LineEnd::CrLf.adapt(&new))
            }
            (old, _) => (old, new),
        };
        self.check_places(text, &old)?;
        let with = match self.action {
            Action::InsertBefore => new + &old,
            Action::InsertAfter => old.clone() + &new,
            _ => new,
        };
        Ok(Edited { text: text.replace(&old, &with), places: text.matches(&old).count() })
    }

    fn check_places(&self, text: &str, old: &str) -> Result<(), String> {
        // Also where they overlap: either could be meant.
        let mut places = Vec::new();
        let mut from = 0;
        while let Some(at) = text[from..].find(old) {
            places.push(from + at);
            from += at + text[from + at..].chars().next().map_or(1, char::len_utf8);
            if places.len() > MOST_PLACES {
                break;
            }
        }
        match places.as_slice() {
            [] => Err(not_found(text, old)),
            [_] => Ok(()),
            _ if self.replace_all => Ok(()),
            _ => {
                let more = if places.len() > MOST_PLACES { ", and more" } else { "" };
                let lines = places.iter().take(MOST_PLACES);
                let lines: Vec<_> = lines.map(|at| line_of(text, *at).to_string()).collect();
                Err(format!(
                    "old_text stands in the file more than once (lines {}{more}). Take in more of \
                     the text around it, or set replace_all.",
                    lines.join(", ")
                ))
            }
        }
    }
}

/// How the lines of a text end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineEnd {
    Lf,
    CrLf,
}

impl LineEnd {
    fn of(text: &str) -> Self {
        let all = text.matches('\n').count();
        match all > 0 && text.matches("\r\n").count() == all {
            true => Self::CrLf,
            false => Self::Lf,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Lf => "\n",
            Self::CrLf => "\r\n",
        }
    }

    /// A model's text with the line ends of the file: models rarely write a carriage return.
    fn adapt(self, text: &str) -> String {
        match self == Self::CrLf && !text.contains('\r') {
            true => text.replace('\n', "\r\n"),
            false => text.to_owned(),
        }
    }
}

/// Says where text stands that differs in white space only, the usual fault.
fn not_found(text: &str, old: &str) -> String {
    let squeezed = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let wanted: Vec<String> = old.trim().lines().map(squeezed).collect();
    let lines: Vec<String> = text.lines().map(squeezed).collect();
    let fits = |window: &[String]| match (window, wanted.as_slice()) {
        ([line], [part]) => line.contains(part),
        (window, wanted) => window == wanted,
    };
    let found = match wanted.iter().all(String::is_empty) {
        true => None,
        false => lines.windows(wanted.len()).position(fits),
    };
    match found {
        Some(at) => format!(
            "old_text is not in the file, but from line {} on the same words stand there with \
             other white space. Copy them exactly as read_file shows them.",
            at + 1
        ),
        None => {
            "old_text is not in the file. Read the file again and copy the text exactly.".into()
        }
    }
}

fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

/// Some editors begin a file with it, and no reader shows it.
const BYTE_ORDER_MARK: char = '\u{feff}';
/// So many places are named.
const MOST_PLACES: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(action: Action, old: &str, new: &str) -> Edit {
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Edit { action, old_text: text(old), new_text: text(new), replace_all: false }
    }

    fn edited(text: &str, edits: &[Edit]) -> Result<String, String> {
        apply(text, edits).map(|edited| edited.text)
    }

    #[test]
    fn what_is_empty_counts_as_left_out() {
        let filled = |action, old: &str, new: &str| {
            let [old_text, new_text] = [old, new].map(|text| Some(text.to_owned()));
            edited("a\nb\n", &[Edit { action, old_text, new_text, replace_all: false }])
        };
        assert_eq!(filled(Action::Append, "", "c\n"), Ok("a\nb\nc\n".into()));
        assert_eq!(filled(Action::Prepend, "", "c\n"), Ok("c\na\nb\n".into()));
        assert_eq!(filled(Action::Delete, "a\n", ""), Ok("b\n".into()));
    }

    #[test]
    fn a_byte_order_mark_stays_in_front() {
        let prepended = edited("\u{feff}a\n", &[edit(Action::Prepend, "", "new\n")]);
        assert_eq!(prepended, Ok("\u{feff}new\na\n".into()));
    }

    #[test]
    fn lines_that_end_in_both_ways_are_found_and_keep_their_ends() {
        let text = "a\r\nb\r\nc\nd\n";
        let made = |old: &str, new: &str| edited(text, &[edit(Action::Replace, old, new)]);
        assert_eq!(made("a\nb\n", "1\n2\n3\n"), Ok("1\r\n2\r\n3\r\nc\nd\n".into()));
        assert_eq!(made("c\nd", "3\n4"), Ok("a\r\nb\r\n3\n4\n".into()));
    }

    #[test]
    fn each_action_does_what_its_name_says() {
        use Action::*;
        for (action, old, new, expected) in [
            (Replace, "two", "2", "one\n2\nthree"),
            (Delete, "two\n", "", "one\nthree"),
            (InsertBefore, "two", "1.5\n", "one\n1.5\ntwo\nthree"),
            (InsertAfter, "two\n", "2.5\n", "one\ntwo\n2.5\nthree"),
            (Append, "", "four\n", "one\ntwo\nthree\nfour\n"),
            (Prepend, "", "zero\n", "zero\none\ntwo\nthree"),
        ] {
            let result = edited("one\ntwo\nthree", &[edit(action, old, new)]);
            assert_eq!(result.as_deref(), Ok(expected), "{action:?}");
        }
    }

    #[test]
    fn a_later_edit_sees_what_an_earlier_one_made() {
        let edits =
            [edit(Action::Replace, "a", "b\nb2"), edit(Action::InsertAfter, "b2", " and more")];
        assert_eq!(edited("a\n", &edits), Ok("b\nb2 and more\n".into()));
    }

    #[test]
    fn all_places_only_when_told() {
        let one = edit(Action::Replace, "aa", "b");
        let twice = "old_text stands in the file more than once (lines 1, 1). Take in more of the \
                     text around it, or set replace_all.";
        assert_eq!(edited("aaa", &[one]), Err(twice.into()));
        let all = Edit { replace_all: true, ..edit(Action::InsertBefore, "x", "->") };
        let made = apply("x\näx\n", &[all]);
        assert_eq!(made, Ok(Edited { text: "->x\nä->x\n".into(), places: 2 }));
    }

    #[test]
    fn line_ends_are_those_of_the_file() {
        let replace = || [edit(Action::Replace, "one\ntwo", "1\n2")];
        assert_eq!(edited("one\r\ntwo\r\n", &replace()), Ok("1\r\n2\r\n".into()));
        // Mixed ends are taken as they are.
        assert_eq!(edited("one\ntwo\r\n", &replace()), Ok("1\n2\r\n".into()));
        let append = [edit(Action::Append, "", "three\n")];
        assert_eq!(edited("one\r\ntwo", &append), Ok("one\r\ntwo\r\nthree\r\n".into()));
    }

    #[test]
    fn faults_name_the_edit_and_the_cure() {
        let text = "fn main() {\n    run( 1 );\n}\n";
        let fault = |edits: &[Edit]| edited(text, edits).unwrap_err();
        let spaces = "old_text is not in the file, but from line 2 on the same words stand there \
                      with other white space. Copy them exactly as read_file shows them.";
        assert_eq!(fault(&[edit(Action::Replace, "  run( 1  );\n", "x")]), spaces);
        let lines = edit(Action::Replace, "fn main() {\nrun( 1 );", "x");
        assert_eq!(fault(&[lines]), spaces.replace("line 2", "line 1"));
        let gone = "old_text is not in the file. Read the file again and copy the text exactly.";
        assert_eq!(fault(&[edit(Action::Delete, "stop", "")]), gone);
        let second = [edit(Action::Append, "", "x"), edit(Action::Delete, "stop", "")];
        assert_eq!(fault(&second), format!("Edit 2 of 2: {gone}"));
        for (edits, expected) in [
            (vec![], "There are no edits."),
            (vec![edit(Action::Replace, "}", "}")], "The edits would change nothing"),
            (vec![edit(Action::Replace, "}", "")], "new_text is missing."),
            (vec![edit(Action::Delete, "}", "x")], "delete takes no new_text."),
            (vec![edit(Action::InsertAfter, "", "x")], "old_text is missing or empty."),
            (vec![edit(Action::Append, "}", "x")], "append and prepend take no old_text."),
        ] {
            let fault = fault(&edits);
            assert!(fault.starts_with(expected), "{fault}");
        }
    }
}
