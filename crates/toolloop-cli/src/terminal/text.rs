//! Text on its way to a terminal: [`clean`] and [`visible`] make it harmless, [`truncate`] and
//! [`wrap`] make it fit.

use std::borrow::Cow;
use std::fmt::Write;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::paint::{Paint, Style};

/// `text` without anything that acts on a terminal: escape sequences, control characters but
/// newline and tab, and the marks that reorder text.
///
/// Models and tools repeat what they read; what they read must not move the cursor, set the
/// title or show a command as another one than it is.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    if !text.contains(is_active) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\x1b' => skip_sequence(&mut chars),
            c if is_active(c) => {}
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// `text` with a sign in place of everything that acts on a terminal: `␛` for an escape.
///
/// For what a person is asked to agree to. A shell reads on where a terminal sees an escape
/// sequence, so nothing may be taken out of a command that is shown.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(is_active) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match (c, u8::try_from(c)) {
            (c, _) if !is_active(c) => out.push(c),
            (_, Ok(0x7f)) => out.push('␡'),
            // The signs stand in the order of the characters.
            (_, Ok(byte @ 0..=0x1f)) => out.extend(char::from_u32(0x2400 + u32::from(byte))),
            // Writing to a string does not fail.
            _ => drop(write!(out, "<U+{:04X}>", u32::from(c))),
        }
    }
    Cow::Owned(out)
}

/// The columns a text takes, without escape sequences.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// The columns a painted text takes: escape sequences take none.
pub(crate) fn painted_width(text: &str) -> usize {
    let mut rest = text;
    let mut columns = 0;
    while let Some(start) = rest.find("\x1b[") {
        columns += width(&rest[..start]);
        rest = &rest[start..];
        rest = rest.find('m').map_or("", |end| &rest[end + 1..]);
    }
    columns + width(rest)
}

/// One line of at most `columns`, an ellipsis where something is missing.
pub(crate) fn truncate(text: &str, columns: usize) -> String {
    let text = text.replace(['\n', '\t'], " ");
    if width(&text) <= columns {
        return text;
    }
    let mut out = String::new();
    let mut used = 1;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used > columns {
            break;
        }
        out.push(c);
    }
    if columns > 0 {
        out.push('…');
    }
    out
}

/// Pads a text with blanks to `columns`.
pub(crate) fn pad(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(width(text))))
}

/// A piece of text with one look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) text: String,
    pub(crate) style: Style,
}

impl Span {
    pub(crate) fn new(text: impl Into<String>, style: Style) -> Self {
        Self { text: text.into(), style }
    }
}

/// Breaks spans into lines of at most `columns`, at blanks where there are any, between letters
/// where there are none. A newline in a span is a break.
pub(crate) fn wrap(spans: &[Span], columns: usize, paint: Paint) -> Vec<String> {
    let columns = columns.max(1);
    let cells: Vec<(char, Style)> =
        spans.iter().flat_map(|span| span.text.chars().map(|c| (c, span.style))).collect();
    let mut lines = Vec::new();
    let (mut start, mut used) = (0, 0);
    // Where the line may end: the blank itself is dropped there.
    let mut blank = None;
    let mut i = 0;
    while i < cells.len() {
        let (c, _) = cells[i];
        if c == '\n' {
            lines.push(painted(&cells[start..i], paint));
            (start, used, blank) = (i + 1, 0, None);
        } else {
            let columns_of_c = if c == '\t' { 1 } else { c.width().unwrap_or(0) };
            if used + columns_of_c > columns && i > start {
                let end = if c == ' ' { i } else { blank.unwrap_or(i) };
                lines.push(painted(&cells[start..end], paint));
                start = if end < cells.len() && cells[end].0 == ' ' { end + 1 } else { end };
                (used, blank) = (0, None);
                i = start;
                continue;
            }
            if c == ' ' {
                blank = Some(i);
            }
            used += columns_of_c;
        }
        i += 1;
    }
    if start < cells.len() {
        lines.push(painted(&cells[start..], paint));
    }
    lines
}

/// What somebody else wrote, behind a bar.
pub(crate) fn quoted(text: &str, style: Style, columns: usize, paint: Paint) -> Vec<String> {
    // A tab is as wide as the terminal likes; the line would not fit.
    let text = Span::new(text.replace('\t', "    "), style);
    let lines = wrap(&[text], columns.saturating_sub(4), paint);
    lines.into_iter().map(|line| format!("  │ {line}").trim_end().to_owned()).collect()
}

/// What can be chosen, in as few lines as there is room for.
pub(crate) fn packed(choices: &[&str], columns: usize, paint: Paint) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for choice in choices {
        match lines.last_mut() {
            Some(line) if width(line) + 3 + width(choice) <= columns => {
                *line += " · ";
                *line += choice;
            }
            _ => lines.push(format!("  {choice}")),
        }
    }
    lines.iter().map(|line| paint.dim(&truncate(line, columns))).collect()
}

fn painted(cells: &[(char, Style)], paint: Paint) -> String {
    let end = cells.iter().rposition(|(c, _)| *c != ' ').map_or(0, |last| last + 1);
    cells[..end]
        .chunk_by(|a, b| a.1 == b.1)
        .map(|run| paint.apply(&run.iter().map(|(c, _)| *c).collect::<String>(), run[0].1))
        .collect()
}

fn is_active(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        c => c.is_control(),
    }
}

/// Skips the rest of an escape sequence: CSI to its final byte, strings to their terminator.
fn skip_sequence(chars: &mut std::str::Chars<'_>) {
    let mut ahead = chars.clone();
    match ahead.next() {
        Some('[') => {
            for c in ahead.by_ref() {
                match c {
                    '\x20'..='\x3f' => {}
                    '\x40'..='\x7e' => break,
                    // No sequence after all: leave the rest as text.
                    _ => return,
                }
            }
            *chars = ahead;
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            let mut last = ' ';
            for c in ahead.by_ref() {
                if c == '\x07' || (last == '\x1b' && c == '\\') {
                    *chars = ahead;
                    return;
                }
                last = c;
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Paint = Paint::new(false);

    fn wrapped(text: &str, columns: usize) -> Vec<String> {
        wrap(&[Span::new(text, Style::PLAIN)], columns, PLAIN)
    }

    #[test]
    fn what_acts_on_a_terminal_is_taken_out() {
        assert_eq!(clean("plain\ttext\n"), "plain\ttext\n");
        assert_eq!(clean("\x1b[31mred\x1b[0m \x1b]0;title\x07x\x08\r"), "red x");
        assert_eq!(clean("\x1bPq#0\x1b\\after"), "after");
        assert_eq!(clean("\x1b]unfinished"), "]unfinished");
        assert_eq!(clean("rm \u{202e}gnp.x"), "rm gnp.x");
        assert_eq!(clean("\x1b[3\u{e9}"), "[3\u{e9}");
        assert!(matches!(clean("ä漢 ok"), Cow::Borrowed(_)));
    }

    #[test]
    fn what_a_person_agrees_to_hides_nothing() {
        assert_eq!(visible("echo \x1b]0; rm -rf ~ ;\x07"), "echo ␛]0; rm -rf ~ ;␇");
        assert_eq!(visible("ls \x1b[ >.x\r\x7f\u{9b}"), "ls ␛[ >.x␍␡<U+009B>");
        assert_eq!(visible("rm \u{202e}gnp.x\n\t"), "rm <U+202E>gnp.x\n\t");
        assert!(matches!(visible("ä漢 ok"), Cow::Borrowed(_)));
    }

    #[test]
    fn lines_are_cut_by_columns_not_by_bytes() {
        assert_eq!(truncate("abcdef", 6), "abcdef");
        assert_eq!(truncate("abcdefg", 6), "abcde…");
        assert_eq!(truncate("漢字漢字", 5), "漢字…");
        assert_eq!(truncate("a\nb\tc", 9), "a b c");
        assert_eq!(truncate("abc", 0), "");
        assert_eq!(pad("漢", 4), "漢  ");
    }

    #[test]
    fn text_is_wrapped_at_blanks() {
        assert_eq!(wrapped("the quick brown fox", 10), ["the quick", "brown fox"]);
        assert_eq!(wrapped("the quick brown", 9), ["the quick", "brown"]);
        assert_eq!(wrapped("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrapped("a\n\nb", 4), ["a", "", "b"]);
        assert_eq!(wrapped("漢字漢字", 5), ["漢字", "漢字"]);
        assert_eq!(wrapped("", 5), Vec::<String>::new());
    }

    #[test]
    fn a_look_never_spans_two_lines() {
        let spans = [Span::new("one ", Style::PLAIN), Span::new("two three", Style::BOLD)];
        let lines = wrap(&spans, 7, Paint::new(true));
        assert_eq!(lines, ["one \x1b[1mtwo\x1b[0m", "\x1b[1mthree\x1b[0m"]);
        assert_eq!(painted_width(&lines[0]), 7);
    }

    #[test]
    fn no_width_breaks_the_wrapping() {
        let text = "ein langes Wort: Donaudampfschifffahrt 漢字 e\u{301} ende";
        for columns in 0..60 {
            let lines = wrapped(text, columns);
            let squeezed: String = lines.concat().split(' ').collect();
            assert_eq!(squeezed, text.split(' ').collect::<String>(), "{columns}");
            assert!(lines.iter().all(|line| width(line) <= columns.max(2)), "{columns} {lines:?}");
        }
    }
}
