//! Text that must not be taken for markup, and its way back.

/// A value between `<param:..>` tags, in which such a tag is written `&lt;param:`.
pub(super) fn escape_value(value: &str) -> String {
    shift(value, |before| match before.strip_suffix('<') {
        Some(before) => format!("{before}&lt;"),
        None => match escaped_mark(before) {
            Some(at) => format!("{}&amp;{}", &before[..at], &before[at + 1..]),
            None => before.to_owned(),
        },
    })
}

/// The value that was written so.
pub(super) fn unescape_value(written: &str) -> String {
    shift(written, |before| match escaped_mark(before) {
        Some(at) if &before[at..] == "&lt;" => format!("{}<", &before[..at]),
        Some(at) => format!("{}&{}", &before[..at], &before[at + "&amp;".len()..]),
        None => before.to_owned(),
    })
}

/// A value of several lines before a line `--- name`: a line of it that reads so gets a `\`.
pub(super) fn escape_lines(value: &str, closer: &str) -> String {
    let escaped = |line: &str| match line.trim_start_matches('\\').trim_end() == closer {
        true => format!("\\{line}"),
        false => line.to_owned(),
    };
    value.split('\n').map(escaped).collect::<Vec<_>>().join("\n")
}

/// The value that was written so.
pub(super) fn unescape_lines(written: &str, closer: &str) -> String {
    let unescaped = |line: &'_ str| match line.strip_prefix('\\') {
        Some(rest) if rest.trim_start_matches('\\').trim_end() == closer => rest.to_owned(),
        _ => line.to_owned(),
    };
    written.split('\n').map(unescaped).collect::<Vec<_>>().join("\n")
}

/// What a tool gave back, such that nothing in it reads as markup of any dialect.
pub(super) fn escape_result(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut rest = text;
    let mut is_line_start = true;
    while let Some(at) = rest.find(['<', '[', '^', '-', '\n']) {
        let (before, from) = rest.split_at(at);
        escaped.push_str(before);
        is_line_start &= before.trim_ascii_start().is_empty();
        let mark = match from.as_bytes()[0] {
            b'<' if is_tag(from) => "&lt;",
            b'[' if from.starts_with("[TOOL_CALLS]") => "&#91;",
            b'^' if is_line_start && from.starts_with("^^^") => "\\^",
            b'-' if is_line_start && from.starts_with("--- ") => "\\-",
            _ => &from[..1],
        };
        escaped.push_str(mark);
        is_line_start = from.starts_with('\n');
        rest = &from[1..];
    }
    escaped.push_str(rest);
    escaped
}

/// Changes what stands before each `param:` and `/param:`.
fn shift(text: &str, change: impl Fn(&str) -> String) -> String {
    let mut shifted = String::with_capacity(text.len());
    let mut parts = text.split("param:").peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            shifted += part;
            break;
        }
        let (before, slash) = part.strip_suffix('/').map_or((part, ""), |before| (before, "/"));
        shifted += &change(before);
        shifted += slash;
        shifted += "param:";
    }
    shifted
}

/// Where `&lt;`, `&amp;lt;` and so on begin, if the text ends in one.
fn escaped_mark(text: &str) -> Option<usize> {
    let mut before = text.strip_suffix("lt;")?;
    while let Some(shorter) = before.strip_suffix("amp;") {
        before = shorter;
    }
    before.strip_suffix('&').map(str::len)
}

/// Whether a `<` begins a tag of any dialect.
fn is_tag(text: &str) -> bool {
    let name = text[1..].trim_start_matches('/');
    // Of a namespace, whatever its name.
    let space = name.bytes().take(MAX_NAMESPACE + 1).take_while(u8::is_ascii_alphanumeric).count();
    let local = name.get(space..).and_then(|rest| rest.strip_prefix(':')).unwrap_or(name);
    OWN_TAGS.iter().any(|tag| name.starts_with(tag))
        || LEAKED_TAGS.iter().any(|tag| local.starts_with(tag))
}

/// More than a namespace has where one is read.
const MAX_NAMESPACE: usize = 64;
const OWN_TAGS: [&str; 4] = ["tool:", "param:", "result:", "|python_tag|>"];
const LEAKED_TAGS: [&str; 6] =
    ["tool_call", "function", "invoke", "parameter", "thinking", "think>"];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_what_could_end_a_value_is_escaped() {
        assert_eq!(escape_value("a < b &lt; </p>"), "a < b &lt; </p>");
        assert_eq!(
            escape_value("</param:x> &lt;/param:<param:"),
            "&lt;/param:x> &amp;lt;/param:&lt;param:"
        );
        assert_eq!(escape_lines("a\n--- b\n\\--- b\n---", "--- b"), "a\n\\--- b\n\\\\--- b\n---");
    }

    #[test]
    fn results_hold_no_markup() {
        let result = "</tool:x><tool:bash> < b [TOOL_CALLS] ^^^\n^^^bash\n--- x\n<a:invoke n>";
        let escaped = "&lt;/tool:x>&lt;tool:bash> < b &#91;TOOL_CALLS] ^^^\n\\^^^bash\n\\--- x\n\
                       &lt;a:invoke n>";
        assert_eq!(escape_result(result), escaped);
    }

    proptest! {
        #[test]
        fn values_come_back(parts in prop::collection::vec(
            prop::sample::select(vec!["<", "/param:", "param:", "&", "amp;", "lt;", "\n", "--- b", "\\", "x"]),
            0..12,
        )) {
            let value = parts.concat();
            let written = escape_value(&value);
            prop_assert!(!written.contains("</param:") && !written.contains("<param:"));
            prop_assert_eq!(unescape_value(&written), value.as_str());
            let written = escape_lines(&value, "--- b");
            prop_assert!(written.lines().all(|line| line.trim_end() != "--- b"));
            prop_assert_eq!(unescape_lines(&written, "--- b"), value);
        }
    }
}
