//! [`ApprovalRules`]: which calls run, which are asked about, and which never run.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::chat::ToolCall;
use crate::handler::EffectClass;

/// Rules that decide about calls before anybody is asked. The first list with a rule that fits
/// decides: `deny`, then `ask`, then `allow`; a call that fits none is asked about.
///
/// ```
/// use toolloop_core::policy::approval::{ApprovalRules, Verdict};
/// use toolloop_core::{EffectClass, ToolCall};
///
/// let rules = ApprovalRules {
///     deny: vec!["bash(command: git push *)".parse()?],
///     allow: vec!["@read_only".parse()?, "bash(command: git *)".parse()?],
///     ..ApprovalRules::default()
/// };
/// let decide = |command: &str| {
///     let arguments = serde_json::json!({"command": command});
///     let call = ToolCall { id: "1".into(), name: "bash".into(), arguments };
///     rules.decide(&call, EffectClass::Once)
/// };
/// assert_eq!(decide("git log --oneline"), Verdict::Allow);
/// assert_eq!(decide("git log | sh"), Verdict::Ask);
/// assert!(matches!(decide("git status; git push --force"), Verdict::Deny(_)));
/// # Ok::<(), toolloop_core::policy::approval::InvalidRule>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalRules {
    /// Calls that never run.
    pub deny: Vec<ApprovalRule>,
    /// Calls that somebody is asked about, even where `allow` has them.
    pub ask: Vec<ApprovalRule>,
    /// Calls that run without asking.
    pub allow: Vec<ApprovalRule>,
}

/// What the rules say of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It runs.
    Allow,
    /// Somebody decides.
    Ask,
    /// It does not run; why, for the model.
    Deny(String),
}

impl ApprovalRules {
    /// What the rules say of a call to a tool of this class.
    pub fn decide(&self, call: &ToolCall, class: EffectClass) -> Verdict {
        if let Some(rule) = self.deny.iter().find(|rule| rule.concerns(call, class)) {
            return Verdict::Deny(format!("the rule `{rule}` forbids this call"));
        }
        let asked = self.ask.iter().any(|rule| rule.concerns(call, class));
        match !asked && self.allow.iter().any(|rule| rule.allows(call, class)) {
            true => Verdict::Allow,
            false => Verdict::Ask,
        }
    }
}

/// Calls, named by their tool, by an argument, or by what running them twice would mean.
///
/// As text: `bash` is every call of that tool, `mcp__*` every tool whose name begins so,
/// `bash(command: git log *)` those whose argument fits the pattern, and `@read_only`,
/// `@idempotent` and `@once` are the tools of an [`EffectClass`]. In a pattern `*` is any text, a
/// last ` *` may also be missing, and `\*` and `\\` are the characters themselves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ApprovalRule(Kind);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Class(EffectClass),
    Tool { name: Pattern, argument: Option<(String, Pattern)> },
}

impl ApprovalRule {
    /// Every call of a tool.
    pub fn tool(name: &str) -> Self {
        Self(Kind::Tool { name: Pattern::exactly(name), argument: None })
    }

    /// Every call of the tools of a class.
    pub fn class(class: EffectClass) -> Self {
        Self(Kind::Class(class))
    }

    /// The calls of a tool whose argument is exactly this text.
    pub fn exactly(tool: &str, argument: &str, text: &str) -> Self {
        let argument = Some((argument.to_owned(), Pattern::exactly(text)));
        Self(Kind::Tool { name: Pattern::exactly(tool), argument })
    }

    /// The calls of a tool whose argument is these words, or begins with them.
    pub fn beginning(tool: &str, argument: &str, words: &str) -> Self {
        let mut rule = Self::exactly(tool, argument, &format!("{words} "));
        if let Kind::Tool { argument: Some((_, pattern)), .. } = &mut rule.0 {
            pattern.0.push(String::new());
        }
        rule
    }

    /// Whether the rule, as one that forbids or asks, has this call: `*` is any text, and each
    /// command in a line of several counts.
    pub fn concerns(&self, call: &ToolCall, class: EffectClass) -> bool {
        self.fits(call, class, |pattern, text| {
            let parts = text.split(|c| acts(c) && c != '\\').map(str::trim);
            std::iter::once(text).chain(parts).any(|text| pattern.fits(text, |_| true))
        })
    }

    /// Whether the rule, as one that allows, has this call: `*` is no text with which a shell
    /// would do something else besides, and no way up from a folder.
    pub fn allows(&self, call: &ToolCall, class: EffectClass) -> bool {
        let harmless = |text: &str| {
            !text.contains(acts) && !text.split(['/', ' ', '=']).any(|part| part == "..")
        };
        self.fits(call, class, |pattern, text| pattern.fits(text, harmless))
    }

    fn fits(
        &self,
        call: &ToolCall,
        class: EffectClass,
        argument_fits: impl Fn(&Pattern, &str) -> bool,
    ) -> bool {
        match &self.0 {
            Kind::Class(of) => *of == class,
            Kind::Tool { name, argument } => {
                name.fits(&call.name, |_| true)
                    && argument.as_ref().is_none_or(|(argument, pattern)| {
                        match call.arguments.get(argument) {
                            Some(Value::String(text)) => argument_fits(pattern, text),
                            Some(Value::Null) | None => false,
                            Some(other) => argument_fits(pattern, &other.to_string()),
                        }
                    })
            }
        }
    }
}

impl FromStr for ApprovalRule {
    type Err = InvalidRule;

    fn from_str(text: &str) -> Result<Self, InvalidRule> {
        let invalid = || InvalidRule(text.to_owned());
        let rule = text.trim();
        if let Some(class) = rule.strip_prefix('@') {
            let known = CLASSES.iter().find(|(name, _)| *name == class);
            return known.map(|(_, class)| Self(Kind::Class(*class))).ok_or_else(invalid);
        }
        let (name, argument) = match rule.split_once('(') {
            None => (rule, None),
            Some((name, rest)) => {
                let inner = rest.strip_suffix(')').ok_or_else(invalid)?;
                let (argument, pattern) = inner.split_once(':').ok_or_else(invalid)?;
                let pattern = pattern.strip_prefix(' ').unwrap_or(pattern);
                if argument.is_empty() || argument.contains(char::is_whitespace) {
                    return Err(invalid());
                }
                (name, Some((argument.to_owned(), Pattern::parse(pattern))))
            }
        };
        if name.is_empty() || name.contains(|c: char| c.is_whitespace() || c == ')') {
            return Err(invalid());
        }
        Ok(Self(Kind::Tool { name: Pattern::parse(name), argument }))
    }
}

impl fmt::Display for ApprovalRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Class(class) => {
                let name = CLASSES.iter().find(|(_, of)| of == class).map_or("", |(name, _)| name);
                write!(f, "@{name}")
            }
            Kind::Tool { name, argument: None } => write!(f, "{name}"),
            Kind::Tool { name, argument: Some((argument, pattern)) } => {
                write!(f, "{name}({argument}: {pattern})")
            }
        }
    }
}

impl TryFrom<String> for ApprovalRule {
    type Error = InvalidRule;

    fn try_from(text: String) -> Result<Self, InvalidRule> {
        text.parse()
    }
}

impl From<ApprovalRule> for String {
    fn from(rule: ApprovalRule) -> Self {
        rule.to_string()
    }
}

/// A text that is no [`ApprovalRule`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no rule: write tool, tool(argument: pattern), @read_only, @idempotent or @once")]
pub struct InvalidRule(String);

/// Texts that must follow each other, with any text between two of them.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Pattern(Vec<String>);

impl Pattern {
    fn exactly(text: &str) -> Self {
        Self(vec![text.to_owned()])
    }

    fn parse(text: &str) -> Self {
        let mut parts = vec![String::new()];
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            match (c, parts.last_mut()) {
                ('*', _) => parts.push(String::new()),
                (c, Some(part)) => {
                    let escaped = (c == '\\').then(|| chars.next_if(|c| matches!(c, '*' | '\\')));
                    part.push(escaped.flatten().unwrap_or(c));
                }
                (_, None) => {}
            }
        }
        Self(parts)
    }

    /// Whether the text fits, and what stands for each `*` does, too.
    fn fits(&self, text: &str, wild: impl Fn(&str) -> bool + Copy) -> bool {
        let Some((first, rest)) = self.0.split_first() else { return false };
        // A pattern that ends in ` *` is also about the words before it alone.
        let alone =
            matches!(rest, [last] if last.is_empty()) && first.strip_suffix(' ') == Some(text);
        alone || text.strip_prefix(first.as_str()).is_some_and(|text| follow(rest, text, wild))
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, part) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str("*")?;
            }
            f.write_str(&part.replace('\\', "\\\\").replace('*', "\\*"))?;
        }
        Ok(())
    }
}

/// Whether the text is any text and a part, for each part. The first place where a part stands is
/// as good as a later one, except for the last part, which must end the text.
fn follow(parts: &[String], text: &str, wild: impl Fn(&str) -> bool + Copy) -> bool {
    match parts {
        [] => text.is_empty(),
        [last] => text.strip_suffix(last.as_str()).is_some_and(wild),
        [part, rest @ ..] => text
            .find(part.as_str())
            .is_some_and(|at| wild(&text[..at]) && follow(rest, &text[at + part.len()..], wild)),
    }
}

/// Whether a shell takes this character for more than a part of a word.
fn acts(c: char) -> bool {
    matches!(c, ';' | '&' | '|' | '<' | '>' | '`' | '$' | '(' | ')' | '{' | '}' | '\\' | '!')
        || c.is_control()
}

const CLASSES: [(&str, EffectClass); 3] = [
    ("read_only", EffectClass::ReadOnly),
    ("idempotent", EffectClass::Idempotent),
    ("once", EffectClass::Once),
];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn bash(command: &str) -> ToolCall {
        ToolCall { id: "c".into(), name: "bash".into(), arguments: json!({"command": command}) }
    }

    fn rule(text: &str) -> ApprovalRule {
        text.parse().unwrap()
    }

    fn allows(text: &str, command: &str) -> bool {
        rule(text).allows(&bash(command), EffectClass::Once)
    }

    fn concerns(text: &str, command: &str) -> bool {
        rule(text).concerns(&bash(command), EffectClass::Once)
    }

    #[test]
    fn an_allowed_prefix_covers_nothing_that_does_something_else() {
        let wc = "bash(command: wc *)";
        for covered in ["wc", "wc a", "wc -l a b/c"] {
            assert!(allows(wc, covered), "{covered}");
        }
        for other in [
            "wcx",
            "wc a; rm b",
            "wc a && rm b",
            "wc a > b",
            "wc $(rm b)",
            "wc a\nrm b",
            "wc ../x",
            "wc a/../b",
            " wc a",
            "X=1 wc a",
            "wc --from=..",
        ] {
            assert!(!allows(wc, other), "{other}");
        }
    }

    #[test]
    fn a_rule_that_forbids_finds_the_command_in_a_line() {
        let rm = "bash(command: rm *)";
        for found in ["rm x", "ls; rm x", "ls && rm -rf /", "echo $(rm x)", "rm", "a\nrm b"] {
            assert!(concerns(rm, found), "{found}");
        }
        assert!(!concerns(rm, "echo rm x"));
        assert!(concerns("bash(command: *secret*)", "cat a/secret.txt"));
    }

    #[test]
    fn exact_texts_are_exact() {
        let text = r"wc -l * | sort \ x";
        let exact = ApprovalRule::exactly("bash", "command", text);
        assert_eq!(exact.to_string(), r"bash(command: wc -l \* | sort \\ x)");
        assert_eq!(rule(&exact.to_string()), exact);
        assert!(exact.allows(&bash(text), EffectClass::Once));
        assert!(!exact.allows(&bash(r"wc -l a | sort \ x"), EffectClass::Once));
        let beginning = ApprovalRule::beginning("bash", "command", "git log");
        assert_eq!(beginning, rule("bash(command: git log *)"));
    }

    #[test]
    fn names_and_classes() {
        let call = |name: &str| ToolCall { name: name.into(), ..bash("x") };
        assert!(rule("mcp__*").allows(&call("mcp__files__read"), EffectClass::Once));
        assert!(!rule("mcp__*").allows(&call("bash"), EffectClass::Once));
        assert!(rule("@read_only").allows(&call("any"), EffectClass::ReadOnly));
        assert!(!rule("@read_only").allows(&call("any"), EffectClass::Once));
        // An argument that is not there, or is no text.
        assert!(!allows("bash(path: *)", "x"));
        let count = ToolCall { arguments: json!({"n": 3}), ..bash("") };
        assert!(rule("bash(n: 3)").allows(&count, EffectClass::Once));
    }

    #[test]
    fn the_first_list_that_fits_decides() {
        let rules = ApprovalRules {
            deny: vec![rule("bash(command: rm *)")],
            ask: vec![rule("bash(command: git push *)")],
            allow: vec![rule("bash(command: *)")],
        };
        let decide = |command| rules.decide(&bash(command), EffectClass::Once);
        assert_eq!(decide("ls"), Verdict::Allow);
        assert_eq!(decide("git push origin"), Verdict::Ask);
        let reason = "the rule `bash(command: rm *)` forbids this call".to_owned();
        assert_eq!(decide("rm x"), Verdict::Deny(reason));
        assert_eq!(ApprovalRules::default().decide(&bash("ls"), EffectClass::Once), Verdict::Ask);
    }

    #[test]
    fn what_is_no_rule_is_refused() {
        for text in ["", "@all", "bash(", "bash(git *)", "bash()", "bash(: x)", "a b", "x)"] {
            assert!(text.parse::<ApprovalRule>().is_err(), "{text}");
        }
        let stored = serde_json::to_string(&rule("bash(command: a*b)")).unwrap();
        assert_eq!(stored, r#""bash(command: a*b)""#);
        assert_eq!(
            serde_json::from_str::<ApprovalRule>(&stored).unwrap(),
            rule("bash(command: a*b)")
        );
    }
}
