//! [`Policy`]: which calls run without asking. [`Scope`]: what "always" covers.

use toolloop_core::ToolCall;

use crate::args::Yes;

/// Which calls run without asking anybody.
#[derive(Debug, Default)]
pub(crate) struct Policy {
    /// Tools that change nothing.
    pub(crate) read_only: Vec<String>,
    /// What `--yes` says.
    pub(crate) yes: Option<Yes>,
    /// What a person has said "always" to in this run.
    pub(crate) always: Vec<Scope>,
}

impl Policy {
    /// Whether this call runs without asking.
    pub(crate) fn allows(&self, call: &ToolCall) -> bool {
        let by_flag = match &self.yes {
            Some(Yes::All) => true,
            Some(Yes::Tools(tools)) => tools.contains(&call.name),
            None => false,
        };
        by_flag
            || self.read_only.contains(&call.name)
            || self.always.iter().any(|scope| scope.covers(call))
    }
}

/// The calls an "always" covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Simple commands that begin with these words.
    Prefix(Vec<String>),
    /// Exactly this command.
    Command(String),
    /// Every call of this tool.
    Tool(String),
}

impl Scope {
    /// The scope that is offered for a call: as wide as its first word (or two, where the second
    /// is a subcommand), but only where those words say what the command does.
    pub(crate) fn of(call: &ToolCall) -> Self {
        let Some(command) = command_of(call) else { return Self::Tool(call.name.clone()) };
        let exact = || Self::Command(command.to_owned());
        let Some(words) = simple_words(command) else { return exact() };
        match words.as_slice() {
            [program, ..] if RUNS_ANYTHING.contains(program) => exact(),
            [program, second, ..] if HAS_SUBCOMMANDS.contains(program) => {
                match second.chars().all(|c| c.is_ascii_lowercase() || c == '-')
                    && !second.starts_with('-')
                    && !RUNS_ANYTHING.contains(second)
                {
                    true => Self::Prefix(vec![(*program).to_owned(), (*second).to_owned()]),
                    false => exact(),
                }
            }
            [program, ..] if !HAS_SUBCOMMANDS.contains(program) => {
                Self::Prefix(vec![(*program).to_owned()])
            }
            _ => exact(),
        }
    }

    /// The scope in words, as the question shows it.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Prefix(words) => format!("\"{} …\" in this run", words.join(" ")),
            Self::Command(_) => "exactly this in this run".to_owned(),
            Self::Tool(name) => format!("{name} in this run"),
        }
    }

    fn covers(&self, call: &ToolCall) -> bool {
        match (self, command_of(call)) {
            (Self::Prefix(prefix), Some(command)) => simple_words(command).is_some_and(|words| {
                words.len() >= prefix.len() && words.iter().zip(prefix).all(|(a, b)| a == b)
            }),
            (Self::Command(exact), Some(command)) => exact == command,
            (Self::Tool(name), _) => *name == call.name,
            _ => false,
        }
    }
}

fn command_of(call: &ToolCall) -> Option<&str> {
    (call.name == "bash").then(|| call.arguments.get("command")?.as_str())?
}

/// The words of a command that is just a program and its arguments: nothing that starts a second
/// command, writes a file or sets a variable.
fn simple_words(command: &str) -> Option<Vec<&str>> {
    let acts = |c: char| {
        matches!(c, ';' | '&' | '|' | '<' | '>' | '`' | '$' | '(' | ')' | '{' | '}' | '\\' | '!')
            || c.is_control()
    };
    if command.contains(acts) {
        return None;
    }
    let words: Vec<&str> = command.split_whitespace().collect();
    let program = words.first()?;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | '+');
    program.chars().all(plain).then_some(words)
}

/// Programs whose first word says nothing of what they do.
const RUNS_ANYTHING: [&str; 36] = [
    "sh", "bash", "zsh", "dash", "fish", "env", "sudo", "doas", "su", "xargs", "find", "fd",
    "python", "python3", "perl", "ruby", "node", "deno", "bun", "php", "lua", "awk", "gawk", "sed",
    "eval", "exec", "source", ".", "command", "nohup", "timeout", "time", "ssh", "make",
    "parallel", "watch",
];

const HAS_SUBCOMMANDS: [&str; 19] = [
    "git",
    "gh",
    "cargo",
    "npm",
    "pnpm",
    "yarn",
    "npx",
    "go",
    "pip",
    "pip3",
    "uv",
    "docker",
    "podman",
    "kubectl",
    "helm",
    "systemctl",
    "apt",
    "brew",
    "terraform",
];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn bash(command: &str) -> ToolCall {
        ToolCall { id: "c".into(), name: "bash".into(), arguments: json!({"command": command}) }
    }

    fn offered(command: &str) -> String {
        Scope::of(&bash(command)).describe()
    }

    #[test]
    fn the_offered_scope_is_no_wider_than_its_words() {
        assert_eq!(offered("wc -l *"), "\"wc …\" in this run");
        assert_eq!(offered("git log --oneline"), "\"git log …\" in this run");
        for exact in [
            "git",
            "git -c core.pager=x log",
            "wc -l * | sh",
            "sh -c ls",
            "sudo ls",
            "ls > x",
            "X=1 ls",
            "find . -delete",
            "echo $(ls)",
            "a\nb",
            "npx",
            "cargo +nightly test",
            "",
        ] {
            assert_eq!(offered(exact), "exactly this in this run", "{exact}");
        }
    }

    #[test]
    fn always_covers_only_what_was_shown() {
        let policy =
            |command| Policy { always: vec![Scope::of(&bash(command))], ..Policy::default() };
        let wc = policy("wc -l *");
        for covered in ["wc -l a", "wc"] {
            assert!(wc.allows(&bash(covered)), "{covered}");
        }
        for other in ["wcx", "wc a; rm b", "wc a && rm b", "wc a > b", "wc $(rm b)", "wc a\nrm b"] {
            assert!(!wc.allows(&bash(other)), "{other}");
        }
        let exact = policy("wc -l * | sort");
        assert!(exact.allows(&bash("wc -l * | sort")));
        assert!(!exact.allows(&bash("wc -l * | sort -r")));
        assert!(!policy("git log").allows(&bash("git push")));
    }

    #[test]
    fn flags_and_harmless_tools_need_no_question() {
        let call = bash("rm -rf x");
        assert!(!Policy::default().allows(&call));
        let yes = |yes| Policy { yes: Some(yes), ..Policy::default() };
        assert!(yes(Yes::All).allows(&call));
        assert!(yes(Yes::Tools(vec!["bash".into()])).allows(&call));
        assert!(!yes(Yes::Tools(vec!["read_file".into()])).allows(&call));
        let read_only = Policy { read_only: vec!["bash".into()], ..Policy::default() };
        assert!(read_only.allows(&call));
    }
}
