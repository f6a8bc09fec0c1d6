//! [`Policy`]: which calls run without asking. [`Scope`]: what "always" covers.

use std::collections::HashMap;

use toolloop::tool::{ApprovalRule, ApprovalRules, EffectClass, Verdict};
use toolloop_core::ToolCall;

use crate::args::Yes;
use crate::grants::Grants;

/// Which calls run without asking anybody, and which never run.
#[derive(Debug, Default)]
pub(crate) struct Policy {
    /// What the settings say.
    pub(crate) rules: ApprovalRules,
    /// The tools of the run.
    pub(crate) classes: HashMap<String, EffectClass>,
    /// What `--yes` says.
    pub(crate) yes: Option<Yes>,
    /// What a person has said "always" to in this folder.
    pub(crate) grants: Grants,
}

impl Policy {
    /// What is to be done about this call. What a person has said outweighs a rule that asks, and
    /// a rule that forbids outweighs all.
    pub(crate) fn decide(&self, call: &ToolCall) -> Verdict {
        let class = self.classes.get(&call.name).copied().unwrap_or_default();
        let verdict = self.rules.decide(call, class);
        let by_flag = match &self.yes {
            Some(Yes::All) => true,
            Some(Yes::Tools(tools)) => tools.contains(&call.name),
            None => false,
        };
        match verdict {
            Verdict::Ask if by_flag || self.grants.cover(call, class) => Verdict::Allow,
            verdict => verdict,
        }
    }
}

/// The calls an "always" covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scope {
    pub(crate) rule: ApprovalRule,
    /// How the question names them.
    pub(crate) shown: String,
}

impl Scope {
    /// The scope that is offered for a call: as wide as its first word (or two, where the second
    /// is a subcommand), but only where those words say what the command does.
    pub(crate) fn of(call: &ToolCall) -> Self {
        let Some(command) = command_of(call) else {
            return Self { rule: ApprovalRule::tool(&call.name), shown: call.name.clone() };
        };
        match telling_words(command) {
            Some(words) => Self {
                rule: ApprovalRule::beginning(&call.name, "command", &words),
                shown: format!("\"{words} …\""),
            },
            None => Self {
                rule: ApprovalRule::exactly(&call.name, "command", command),
                shown: "exactly this".to_owned(),
            },
        }
    }
}

fn command_of(call: &ToolCall) -> Option<&str> {
    (call.name == "bash").then(|| call.arguments.get("command")?.as_str())?
}

/// The words that say what a command does, if its first ones do.
fn telling_words(command: &str) -> Option<String> {
    let words = simple_words(command)?;
    let telling = match words.as_slice() {
        [program, ..] if RUNS_ANYTHING.contains(program) => return None,
        [program, second, ..] if HAS_SUBCOMMANDS.contains(program) => {
            let is_subcommand = second.chars().all(|c| c.is_ascii_lowercase() || c == '-')
                && !second.starts_with('-')
                && !RUNS_ANYTHING.contains(second);
            is_subcommand.then(|| format!("{program} {second}"))?
        }
        [program, ..] if !HAS_SUBCOMMANDS.contains(program) => (*program).to_owned(),
        _ => return None,
    };
    // The rule is about the text, so the words must stand there as they are shown.
    command.starts_with(&telling).then_some(telling)
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

    #[test]
    fn the_offered_scope_is_no_wider_than_its_words() {
        let offered = |command: &str| Scope::of(&bash(command)).shown;
        assert_eq!(offered("wc -l *"), "\"wc …\"");
        assert_eq!(offered("git log --oneline"), "\"git log …\"");
        for exact in [
            "git",
            "git -c core.pager=x log",
            "git  log",
            " wc x",
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
            assert_eq!(offered(exact), "exactly this", "{exact}");
            let policy = granted(exact);
            assert_eq!(policy.decide(&bash(exact)), Verdict::Allow, "{exact}");
            assert_eq!(policy.decide(&bash(&format!("{exact} x"))), Verdict::Ask, "{exact}");
        }
    }

    fn granted(command: &str) -> Policy {
        let mut policy = Policy::default();
        policy.grants.add_for_this_run(Scope::of(&bash(command)).rule);
        policy
    }

    #[test]
    fn always_covers_only_what_was_shown() {
        let policy = granted("git log --oneline");
        assert_eq!(policy.decide(&bash("git log")), Verdict::Allow);
        assert_eq!(policy.decide(&bash("git log -3")), Verdict::Allow);
        for other in ["git push", "git log; rm x", "git log > x", "git logs"] {
            assert_eq!(policy.decide(&bash(other)), Verdict::Ask, "{other}");
        }
    }

    #[test]
    fn a_person_outweighs_a_rule_that_asks_but_none_that_forbids() {
        let rules = ApprovalRules {
            deny: vec!["bash(command: rm *)".parse().unwrap()],
            ask: vec!["bash(command: git *)".parse().unwrap()],
            allow: vec!["bash".parse().unwrap()],
        };
        let policy = Policy { rules: rules.clone(), ..granted("git log") };
        assert_eq!(policy.decide(&bash("ls")), Verdict::Allow);
        assert_eq!(policy.decide(&bash("git log")), Verdict::Allow);
        assert_eq!(policy.decide(&bash("git push")), Verdict::Ask);
        let all = Policy { rules, yes: Some(Yes::All), ..Policy::default() };
        assert_eq!(all.decide(&bash("git push")), Verdict::Allow);
        assert!(matches!(all.decide(&bash("rm x")), Verdict::Deny(_)));
    }

    #[test]
    fn flags_and_harmless_tools_need_no_question() {
        let call = bash("rm -rf x");
        assert_eq!(Policy::default().decide(&call), Verdict::Ask);
        let yes = |yes| Policy { yes: Some(yes), ..Policy::default() }.decide(&call);
        assert_eq!(yes(Yes::All), Verdict::Allow);
        assert_eq!(yes(Yes::Tools(vec!["bash".into()])), Verdict::Allow);
        assert_eq!(yes(Yes::Tools(vec!["read_file".into()])), Verdict::Ask);
        let harmless = Policy {
            rules: ApprovalRules {
                allow: vec!["@read_only".parse().unwrap()],
                ..ApprovalRules::default()
            },
            classes: [("bash".to_owned(), EffectClass::ReadOnly)].into(),
            ..Policy::default()
        };
        assert_eq!(harmless.decide(&call), Verdict::Allow);
    }
}
