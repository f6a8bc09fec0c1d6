//! What the demo model says: sentences about what it saw.

use super::listing::Listing;
use super::turn::ToolResult;

/// What is in the folder and in the files that were read of it.
pub(super) fn folder(listing: &Listing, text: &str, read: &[&ToolResult]) -> String {
    if listing.is_empty() {
        return match text.trim() {
            "" | "[empty folder]" => "The folder is empty.".to_owned(),
            other => format!("I could not list the folder: {other}"),
        };
    }
    let parts = [entries(&listing.files, "file"), entries(&listing.folders, "folder")];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let more = if listing.cut { " The listing was cut, so there is more." } else { "" };
    let mut answer = format!("The folder has {}.{more}", parts.join(", and "));
    if !read.is_empty() {
        answer.push('\n');
    }
    for result in read {
        answer += &format!("\n- {}", file(result));
    }
    answer
}

/// What is in the files that were read.
pub(super) fn files(read: &[&ToolResult]) -> String {
    let sentences: Vec<String> = read.iter().map(|result| file(result)).collect();
    match &sentences[..] {
        [one] => one.clone(),
        all => all
            .iter()
            .map(|sentence| format!("- {sentence}\n"))
            .collect::<String>()
            .trim_end()
            .to_owned(),
    }
}

/// What a command printed.
pub(super) fn command(result: &ToolResult) -> String {
    let command = result.arguments["command"].as_str().unwrap_or("The command");
    let lines: Vec<&str> = result.text.lines().collect();
    let left_out = lines.len().saturating_sub(MOST_LINES);
    let mut output = lines[left_out..].join("\n");
    if left_out > 0 {
        output.insert_str(0, "...\n");
    }
    format!("`{command}` gives:\n\n```\n{output}\n```")
}

/// A call was not run, so there is nothing to say.
pub(super) fn denied(tool: &str, reason: &str) -> String {
    format!("My call of `{tool}` did not go through, so I cannot say: {reason}")
}

/// The task needs a tool that is not there.
pub(super) fn no_tools(tool: &str) -> String {
    format!("I would need the tool `{tool}` for that, and it was not offered to me. {}", cannot())
}

/// The task is beyond a script.
pub(super) fn cannot() -> String {
    "I am the built-in demo model, a script that can list and read the folder it runs in: ask \
     “What is in this folder?”. For a real model, set OPENAI_API_KEY, ANTHROPIC_API_KEY or \
     GEMINI_API_KEY, or start Ollama."
        .to_owned()
}

/// `2 files, `a` and `b``
fn entries(names: &[String], kind: &str) -> Option<String> {
    let shown: Vec<String> =
        names.iter().take(MOST_NAMES).map(|name| format!("`{name}`")).collect();
    let left_out = names.len() - shown.len();
    let list = match (&shown[..], left_out) {
        ([], _) => return None,
        ([one], 0) => one.clone(),
        ([all @ .., last], 0) => format!("{} and {last}", all.join(", ")),
        (all, more) => format!("{} and {more} more", all.join(", ")),
    };
    let plural = if names.len() == 1 { "" } else { "s" };
    Some(format!("{} {kind}{plural}, {list}", names.len()))
}

/// A sentence about a file that was to be read.
fn file(result: &ToolResult) -> String {
    let path = result.arguments["path"].as_str().unwrap_or("the file");
    if let Some(reason) = result.denial() {
        return format!("`{path}` was not read: {reason}");
    }
    if let Some(remark) = remark(&result.text, path) {
        return remark;
    }
    let (lines, cut) = lines(&result.text);
    let size = match (lines.len(), cut) {
        (1, false) => "1 line".to_owned(),
        (count, false) => format!("{count} lines"),
        (count, true) => format!("more than {count} lines"),
    };
    match (heading(path, &lines), opening(&lines)) {
        (Some(heading), _) => format!("`{path}` has {size}; its heading is “{heading}”."),
        (None, Some(line)) => format!("`{path}` has {size} and begins with “{line}”."),
        (None, None) => format!("`{path}` has {size}, all blank."),
    }
}

/// What the tool says about the file where it does not show it.
fn remark(text: &str, path: &str) -> Option<String> {
    let text = text.trim();
    let mut lines = text.lines();
    let line = lines.next().unwrap_or("[The file is empty.]");
    let inner = line.strip_prefix('[').and_then(|line| line.strip_suffix(']'));
    let quoted = format!("`{path}`");
    let is_remark = inner.is_some() || line.contains(&quoted) || line.starts_with("Error");
    if !is_remark || lines.next().is_some() {
        return None;
    }
    let sentence = inner.unwrap_or(line);
    Some(match sentence.contains(&quoted) {
        true => sentence.to_owned(),
        false => format!("{quoted}: {sentence}"),
    })
}

/// The lines of a file, without a last one in brackets that says there are more.
fn lines(text: &str) -> (Vec<&str>, bool) {
    let mut lines: Vec<&str> = text.lines().collect();
    let cut = lines.last().is_some_and(|line| {
        line.starts_with("[lines ") && line.ends_with(']') && line.contains("read on")
    });
    if cut {
        lines.pop();
    }
    (lines, cut)
}

/// The first heading of a Markdown file.
fn heading(path: &str, lines: &[&str]) -> Option<String> {
    if !path.to_lowercase().ends_with(".md") {
        return None;
    }
    let heading = lines.iter().find_map(|line| {
        let text = line.trim_start_matches('#');
        (text.len() < line.len() && text.starts_with(' ')).then(|| text.trim())
    });
    heading.filter(|text| !text.is_empty()).map(shortened)
}

/// The first line that says something.
fn opening(lines: &[&str]) -> Option<String> {
    lines.iter().map(|line| line.trim()).find(|line| !line.is_empty()).map(shortened)
}

fn shortened(line: &str) -> String {
    match line.char_indices().nth(MOST_CHARS) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line.to_owned(),
    }
}

const MOST_NAMES: usize = 20;
const MOST_LINES: usize = 20;
const MOST_CHARS: usize = 80;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_names_are_shortened() {
        let names: Vec<String> = (0..22).map(|n| n.to_string()).collect();
        let text = entries(&names, "file").unwrap();
        assert!(text.starts_with("22 files, `0`, `1`, "), "{text}");
        assert!(text.ends_with("`19` and 2 more"), "{text}");
    }

    #[test]
    fn remarks_of_the_tool_are_passed_on() {
        let said = |text: &str| remark(text, "a.txt");
        assert_eq!(said("[`a.txt` is an empty file.]"), Some("`a.txt` is an empty file.".into()));
        assert_eq!(said(""), Some("`a.txt`: The file is empty.".into()));
        assert_eq!(said("Error: no such file"), Some("`a.txt`: Error: no such file".into()));
        assert_eq!(said("[package]\nname = \"x\""), None);
    }

    #[test]
    fn a_cut_file_is_said_to_have_more() {
        let text = "one\ntwo\n[lines 1 to 2 of a file of 1 MiB; read on with start_line 3]";
        assert_eq!(lines(text), (vec!["one", "two"], true));
    }
}
