//! [`Wish`]: what the user wants, by the words of the task.

use super::listing::is_text;

/// What the user wants, as far as a script can tell.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// To know what is in the folder.
    Folder,
    /// To know what is in these files.
    Files(Vec<String>),
    /// To have a command run.
    Command(String),
    /// Something a script cannot do.
    Unknown,
}

impl Wish {
    pub(super) fn of(task: &str) -> Self {
        let lower = task.to_lowercase();
        let words: Vec<&str> =
            lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
        let mentions = |list: &[&str]| words.iter().any(|word| list.contains(word));
        if mentions(&RUN)
            && let Some(command) = quoted(task)
        {
            return Self::Command(command.to_owned());
        }
        let files = named_files(task);
        if !files.is_empty() {
            return Self::Files(files);
        }
        if mentions(&RUN) || mentions(&COUNT) {
            return Self::Command("wc -l *".to_owned());
        }
        if mentions(&FOLDER) { Self::Folder } else { Self::Unknown }
    }
}

/// What stands between backticks.
fn quoted(task: &str) -> Option<&str> {
    let (_, behind) = task.split_once('`')?;
    let (command, _) = behind.split_once('`')?;
    Some(command.trim()).filter(|command| !command.is_empty())
}

fn named_files(task: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for word in task.split_whitespace() {
        let name = word.trim_matches(|c: char| !c.is_alphanumeric());
        // A name with a known ending, not a word at the end of a sentence.
        if name.contains('.') && is_text(name) && !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    names.truncate(MOST_FILES);
    names
}

const MOST_FILES: usize = 3;
const RUN: [&str; 6] = ["run", "execute", "command", "shell", "bash", "terminal"];
const COUNT: [&str; 4] = ["count", "lines", "loc", "wc"];
const FOLDER: [&str; 23] = [
    "folder",
    "folders",
    "directory",
    "directories",
    "dir",
    "file",
    "files",
    "project",
    "repo",
    "repository",
    "codebase",
    "code",
    "here",
    "list",
    "ls",
    "contents",
    "workspace",
    "readme",
    "look",
    "explore",
    "overview",
    "summarize",
    "summarise",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_tell_what_is_wanted() {
        let files = |names: &[&str]| Wish::Files(names.iter().map(|n| (*n).to_owned()).collect());
        let command = |text: &str| Wish::Command(text.to_owned());
        let cases = [
            ("What is in this folder?", Wish::Folder),
            ("what's here", Wish::Folder),
            ("Explain the project", Wish::Folder),
            ("How many files are there?", Wish::Folder),
            ("Compare main.py and `src/lib.rs`.", files(&["main.py", "src/lib.rs"])),
            ("How many lines does it have?", command("wc -l *")),
            ("Run `cargo test` please", command("cargo test")),
            ("Run main.py", files(&["main.py"])),
            ("What is the capital of France?", Wish::Unknown),
            ("Say hello, e.g. in French.", Wish::Unknown),
            ("", Wish::Unknown),
        ];
        for (task, wish) in cases {
            assert_eq!(Wish::of(task), wish, "{task}");
        }
    }
}
