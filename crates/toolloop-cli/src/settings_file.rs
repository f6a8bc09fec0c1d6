//! [`read`]: a settings file (TOML) as [`Settings`], every value with its line.
//!
//! ```toml
//! model = "openai/gpt-5-mini"
//! dialect = "xml"
//! one_tool = false
//! max_iterations = 20
//! timeout = "5m"
//! sandbox = "network"
//! writable = ["~/.cache"]
//! dialect = "xml"
//!
//! [openai]
//! api_key = "sk-..."
//!
//! [approvals]
//! allow = ["bash(command: git log *)"]
//! deny = ["bash(command: git push *)"]
//!
//! # In US dollars for a million tokens, in place of the list price.
//! [prices."openai/gpt-5-mini"]
//! input = 0.25
//! cached = 0.025
//! output = 2.0
//! ```
//!
//! The file of a folder may come from strangers, so it may not approve calls, open the sandbox, or
//! hold keys.

use std::collections::BTreeMap;
use std::io::ErrorKind::{NotADirectory, NotFound};
use std::path::Path;
use std::time::Duration;

use clap::ValueEnum;
use secrecy::SecretString;
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use toolloop::tool::{ApprovalRule, InvalidRule};
use toolloop_providers::Price;

use crate::args::{SandboxMode, Yes};
use crate::nearest::nearest;
use crate::origin::{Origin, Owner, Sourced, short_path};
use crate::providers::PROVIDERS;
use crate::report::Report;
use crate::settings::{Approvals, ProviderSettings, Settings};
use crate::units::parse_duration;

/// The settings in a file; none where there is no such file.
pub(crate) fn read(path: &Path, owner: Owner) -> Result<Settings, Report> {
    match std::fs::read_to_string(path) {
        Ok(text) => parse(&text, path, owner),
        Err(error) if matches!(error.kind(), NotFound | NotADirectory) => Ok(Settings::default()),
        Err(error) => Err(Report::usage(format!("cannot read {}: {error}", short_path(path)))),
    }
}

fn parse(text: &str, path: &Path, owner: Owner) -> Result<Settings, Report> {
    let file = File { text, path, owner };
    let table = DeTable::parse(text).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start);
        file.wrong(offset, error.message().to_owned())
    })?;
    let mut settings = Settings::default();
    for (key, value) in table.get_ref() {
        match key.get_ref().as_ref() {
            "model" => settings.model = Some(file.string(value)?),
            "base_url" => settings.base_url = Some(file.string(value)?),
            "tools" => settings.tools = Some(file.strings(value)?),
            "system" => settings.system = Some(file.string(value)?),
            "dialect" => settings.dialect = Some(file.one_of(value)?),
            "one_tool" => settings.one_tool = Some(file.truth(value)?),
            "max_iterations" => settings.max_iterations = Some(file.count(value)?),
            "timeout" => settings.timeout = Some(file.duration(value)?),
            "yes" => {
                file.only_in_own_file(key, "approve calls", "--yes")?;
                settings.yes = Some(file.yes(value)?);
            }
            "sandbox" => {
                let mode = file.one_of(value)?;
                if mode.value != SandboxMode::Strict {
                    file.only_in_own_file(key, "open the sandbox", "--sandbox")?;
                }
                settings.sandbox = Some(mode);
            }
            "writable" => {
                file.only_in_own_file(key, "open the sandbox", "--sandbox")?;
                settings.writable = Some(file.strings(value)?);
            }
            "approvals" => settings.approvals = file.approvals(value)?,
            "prices" => settings.prices = file.prices(value)?,
            name => match PROVIDERS.iter().find(|provider| provider.name == name) {
                Some(provider) => {
                    let table = file.provider(value)?;
                    settings.providers.insert(provider.name.to_owned(), table);
                }
                None => {
                    let known = KEYS.into_iter().chain(PROVIDERS.iter().map(|p| p.name));
                    return Err(file.unknown(key, known));
                }
            },
        }
    }
    Ok(settings)
}

const KEYS: [&str; 13] = [
    "model",
    "base_url",
    "tools",
    "system",
    "dialect",
    "one_tool",
    "max_iterations",
    "timeout",
    "yes",
    "sandbox",
    "writable",
    "approvals",
    "prices",
];

const PRICE_KEYS: [&str; 4] = ["input", "cached", "cache_write", "output"];

/// A file while it is read.
struct File<'a> {
    text: &'a str,
    path: &'a Path,
    owner: Owner,
}

type Value<'a> = Spanned<DeValue<'a>>;

impl File<'_> {
    fn provider(&self, value: &Value<'_>) -> Result<ProviderSettings, Report> {
        let table = value.get_ref().as_table().ok_or_else(|| self.expected(value, "a table"))?;
        let mut settings = ProviderSettings::default();
        for (key, value) in table {
            match key.get_ref().as_ref() {
                "api_key" => {
                    self.only_in_own_file(key, "hold keys", "the provider's variable")?;
                    settings.api_key = Some(self.string(value)?.map(SecretString::from));
                }
                "base_url" => settings.base_url = Some(self.string(value)?),
                _ => return Err(self.unknown(key, ["api_key", "base_url"])),
            }
        }
        Ok(settings)
    }

    fn approvals(&self, value: &Value<'_>) -> Result<Approvals, Report> {
        let table = value.get_ref().as_table().ok_or_else(|| self.expected(value, "a table"))?;
        let mut approvals = Approvals::default();
        for (key, value) in table {
            let list = match key.get_ref().as_ref() {
                "deny" => &mut approvals.deny,
                "ask" => &mut approvals.ask,
                "allow" => {
                    self.only_in_own_file(key, "approve calls", "--yes")?;
                    &mut approvals.allow
                }
                _ => return Err(self.unknown(key, ["deny", "ask", "allow"])),
            };
            *list = self.rules(value)?;
        }
        Ok(approvals)
    }

    fn rules(&self, value: &Value<'_>) -> Result<Vec<Sourced<ApprovalRule>>, Report> {
        let list = value.get_ref().as_array().ok_or_else(|| self.expected(value, "a list"))?;
        let rule = |value: &Value<'_>| {
            let text = self.string(value)?;
            let rule = text
                .value
                .parse()
                .map_err(|error: InvalidRule| self.wrong(value.span().start, error.to_string()))?;
            Ok(Sourced::new(rule, text.origin))
        };
        list.iter().map(rule).collect()
    }

    fn prices(&self, value: &Value<'_>) -> Result<BTreeMap<String, Price>, Report> {
        let table = value.get_ref().as_table().ok_or_else(|| self.expected(value, "a table"))?;
        table
            .iter()
            .map(|(model, value)| Ok((model.get_ref().to_string(), self.price(value)?)))
            .collect()
    }

    /// What is not said of a cache costs what the input costs.
    fn price(&self, value: &Value<'_>) -> Result<Price, Report> {
        let table = value.get_ref().as_table().ok_or_else(|| self.expected(value, "a table"))?;
        let [mut input, mut cached, mut cache_write, mut output] = [None; 4];
        for (key, value) in table {
            let part = match key.get_ref().as_ref() {
                "input" => &mut input,
                "cached" => &mut cached,
                "cache_write" => &mut cache_write,
                "output" => &mut output,
                _ => return Err(self.unknown(key, PRICE_KEYS)),
            };
            *part = Some(self.dollars(value)?);
        }
        let (Some(input), Some(output)) = (input, output) else {
            return Err(self.wrong(value.span().start, "a price needs input and output".into()));
        };
        let (cached, cache_write) = (cached.unwrap_or(input), cache_write.unwrap_or(input));
        Ok(Price { input, cached, cache_write, output })
    }

    fn dollars(&self, value: &Value<'_>) -> Result<f64, Report> {
        let text = match value.get_ref() {
            DeValue::Integer(number) => number.as_str(),
            DeValue::Float(number) => number.as_str(),
            _ => return Err(self.expected(value, "a number of dollars")),
        };
        let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0);
        number.ok_or_else(|| self.expected(value, "a number of dollars from 0"))
    }

    fn string(&self, value: &Value<'_>) -> Result<Sourced<String>, Report> {
        let text = value.get_ref().as_str().ok_or_else(|| self.expected(value, "a text"))?;
        Ok(self.sourced(value, text.to_owned()))
    }

    fn strings(&self, value: &Value<'_>) -> Result<Sourced<Vec<String>>, Report> {
        let list = value.get_ref().as_array().ok_or_else(|| self.expected(value, "a list"))?;
        let texts: Result<Vec<_>, _> =
            list.iter().map(|item| self.string(item).map(|text| text.value)).collect();
        Ok(self.sourced(value, texts?))
    }

    fn count(&self, value: &Value<'_>) -> Result<Sourced<u32>, Report> {
        let number = value
            .get_ref()
            .as_integer()
            .and_then(|n| u32::from_str_radix(n.as_str(), n.radix()).ok())
            .filter(|&number| number > 0)
            .ok_or_else(|| self.expected(value, "a number from 1"))?;
        Ok(self.sourced(value, number))
    }

    fn duration(&self, value: &Value<'_>) -> Result<Sourced<Duration>, Report> {
        let text = self.string(value)?;
        let duration =
            parse_duration(&text.value).map_err(|error| self.wrong(value.span().start, error))?;
        Ok(self.sourced(value, duration))
    }

    fn truth(&self, value: &Value<'_>) -> Result<Sourced<bool>, Report> {
        let truth =
            value.get_ref().as_bool().ok_or_else(|| self.expected(value, "true or false"))?;
        Ok(self.sourced(value, truth))
    }

    fn yes(&self, value: &Value<'_>) -> Result<Sourced<Yes>, Report> {
        match value.get_ref().as_bool() {
            Some(true) => Ok(self.sourced(value, Yes::All)),
            Some(false) => Ok(self.sourced(value, Yes::Tools(Vec::new()))),
            None => Ok(self.strings(value)?.map(Yes::Tools)),
        }
    }

    /// A word of those that the flag takes.
    fn one_of<T: ValueEnum>(&self, value: &Value<'_>) -> Result<Sourced<T>, Report> {
        let text = self.string(value)?;
        T::from_str(&text.value, false).map(|word| self.sourced(value, word)).map_err(|_| {
            let words = T::value_variants().iter().filter_map(T::to_possible_value);
            let words: Vec<_> = words.map(|word| word.get_name().to_owned()).collect();
            let what = match words.split_last() {
                Some((last, [])) => last.clone(),
                Some((last, others)) => format!("{} or {last}", others.join(", ")),
                None => "nothing".to_owned(),
            };
            self.wrong(value.span().start, format!("expected {what}, found `{}`", text.value))
        })
    }

    fn sourced<T>(&self, value: &Value<'_>, inner: T) -> Sourced<T> {
        let line = self.line(value.span().start);
        let path = self.path.to_owned();
        Sourced::new(inner, Origin::File { path, line, owner: self.owner })
    }

    fn only_in_own_file(
        &self,
        key: &Spanned<std::borrow::Cow<'_, str>>,
        deed: &str,
        instead: &str,
    ) -> Result<(), Report> {
        match self.owner {
            Owner::Person => Ok(()),
            Owner::Folder => Err(self
                .wrong(key.span().start, format!("the file of a folder may not {deed}"))
                .advice(format!(
                    "Move `{}` to ~/.config/toolloop/config.toml, or use {instead}.",
                    key.get_ref()
                ))),
        }
    }

    fn unknown<'a>(
        &self,
        key: &Spanned<std::borrow::Cow<'_, str>>,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Report {
        let known: Vec<&str> = known.into_iter().collect();
        let report =
            self.wrong(key.span().start, format!("there is no setting `{}`", key.get_ref()));
        match nearest(key.get_ref(), known.iter().copied(), 1).first() {
            Some(name) => report.advice(format!("Did you mean `{name}`?")),
            None => report.advice(format!("Settings are: {}.", known.join(", "))),
        }
    }

    fn expected(&self, value: &Value<'_>, what: &str) -> Report {
        let span = value.span();
        let found = match value.get_ref() {
            DeValue::Table(_) => "a table",
            // As it stands in the file; a list over several lines is still a list.
            _ => self.text.get(span.clone()).and_then(|text| text.lines().next()).unwrap_or(""),
        };
        self.wrong(span.start, format!("expected {what}, found {found}"))
    }

    fn wrong(&self, offset: usize, what: String) -> Report {
        let what = format!("in {}, line {}: {what}", short_path(self.path), self.line(offset));
        Report::new(crate::exit::Exit::Usage, "settings", what)
    }

    fn line(&self, offset: usize) -> usize {
        1 + self.text.as_bytes().iter().take(offset).filter(|&&byte| byte == b'\n').count()
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;
    use crate::args::DialectName;

    fn own(text: &str) -> Result<Settings, Report> {
        parse(text, Path::new("/c/config.toml"), Owner::Person)
    }

    fn error(text: &str) -> String {
        own(text).unwrap_err().to_string()
    }

    #[test]
    fn every_setting_knows_its_line() {
        let settings = own("model = \"demo\"\nmax_iterations = 20\ntimeout = \"5m\"\n\
            tools = [\"bash\"]\nyes = true\n\n[openai]\napi_key = \"sk-1\"\nbase_url = \"u\"\n")
        .unwrap();
        let at = |line| Origin::File { path: "/c/config.toml".into(), line, owner: Owner::Person };
        assert_eq!(settings.model, Some(Sourced::new("demo".into(), at(1))));
        assert_eq!(settings.max_iterations, Some(Sourced::new(20, at(2))));
        assert_eq!(settings.timeout, Some(Sourced::new(Duration::from_secs(300), at(3))));
        assert_eq!(settings.tools, Some(Sourced::new(vec!["bash".into()], at(4))));
        assert_eq!(settings.yes, Some(Sourced::new(Yes::All, at(5))));
        let openai = &settings.providers["openai"];
        let key = openai.api_key.as_ref().unwrap();
        assert_eq!((key.value.expose_secret(), &key.origin), ("sk-1", &at(8)));
        assert_eq!(openai.base_url, Some(Sourced::new("u".into(), at(9))));
    }

    #[test]
    fn how_calls_are_written_is_a_setting() {
        let settings = own("dialect = \"caret\"\none_tool = false\n").unwrap();
        let at = |line| Origin::File { path: "/c/config.toml".into(), line, owner: Owner::Person };
        assert_eq!(settings.dialect, Some(Sourced::new(DialectName::Caret, at(1))));
        assert_eq!(settings.one_tool, Some(Sourced::new(false, at(2))));
        assert_eq!(
            error("dialect = \"json\""),
            "in /c/config.toml, line 1: expected xml, caret, auto or native, found `json`"
        );
        assert_eq!(
            error("one_tool = 1"),
            "in /c/config.toml, line 1: expected true or false, found 1"
        );
    }

    #[test]
    fn prices_are_of_models() {
        let settings = own("[prices.\"groq/m\"]\ninput = 1\noutput = 2.5\n").unwrap();
        let price = Price { input: 1.0, cached: 1.0, cache_write: 1.0, output: 2.5 };
        assert_eq!(settings.prices, [("groq/m".to_owned(), price)].into());
        assert_eq!(
            error("[prices.m]\ninput = 1"),
            "in /c/config.toml, line 1: a price needs input and output"
        );
        assert_eq!(
            error("[prices.m]\ninput = -1"),
            "in /c/config.toml, line 2: expected a number of dollars from 0, found -1"
        );
        assert!(error("[prices.m]\ncahced = 1").contains("Did you mean `cached`?"));
    }

    #[test]
    fn rules_know_their_line() {
        let rules = own("[approvals]\nallow = [\"@read_only\",\n  \"bash(command: ls *)\"]\n");
        let at = |line| Origin::File { path: "/c/config.toml".into(), line, owner: Owner::Person };
        let rule = |text: &str, line| Sourced::new(text.parse::<ApprovalRule>().unwrap(), at(line));
        let expected = [rule("@read_only", 2), rule("bash(command: ls *)", 3)];
        assert_eq!(rules.unwrap().approvals.allow, expected);
        assert_eq!(
            error("[approvals]\ndeny = [\"bash(ls)\"]"),
            "in /c/config.toml, line 2: `bash(ls)` is no rule: write tool, \
             tool(argument: pattern), @read_only, @idempotent or @once"
        );
    }

    #[test]
    fn unknown_settings_are_errors_with_the_nearest_name() {
        assert_eq!(
            error("\nmodle = \"demo\""),
            "in /c/config.toml, line 2: there is no setting `modle`\n  Did you mean `model`?"
        );
        assert_eq!(
            error("[openai]\napikey = \"x\""),
            "in /c/config.toml, line 2: there is no setting `apikey`\n  Did you mean `api_key`?"
        );
        assert_eq!(
            error("zzz = 1"),
            "in /c/config.toml, line 1: there is no setting `zzz`\n  Settings are: model, \
             base_url, tools, system, dialect, one_tool, max_iterations, timeout, yes, sandbox, \
             writable, approvals, prices, openai, anthropic, \
             gemini, responses, aicore, ollama, deepseek, mistral, groq, openrouter, xai, \
             together, lmstudio, llamacpp, vllm."
        );
    }

    #[test]
    fn wrong_types_name_what_is_wanted() {
        assert_eq!(error("model = 3"), "in /c/config.toml, line 1: expected a text, found 3");
        assert_eq!(
            error("max_iterations = 0"),
            "in /c/config.toml, line 1: expected a number from 1, found 0"
        );
        assert_eq!(
            error("a\n= 1").lines().next().unwrap().split(": ").next().unwrap(),
            "in /c/config.toml, line 1"
        );
        assert!(error("timeout = \"soon\"").contains("\"soon\" is no duration"));
        assert_eq!(
            error("dialect = \"yaml\""),
            "in /c/config.toml, line 1: expected xml, caret, auto or native, found `yaml`"
        );
        assert_eq!(own("dialect = \"xml\"").unwrap().dialect.unwrap().value, DialectName::Xml);
    }

    #[test]
    fn the_file_of_a_folder_may_not_loosen_anything() {
        let folder = |text| parse(text, Path::new("toolloop.toml"), Owner::Folder);
        assert_eq!(
            folder("yes = true").unwrap_err().to_string(),
            "in toolloop.toml, line 1: the file of a folder may not approve calls\n  \
             Move `yes` to ~/.config/toolloop/config.toml, or use --yes."
        );
        assert!(
            folder("[openai]\napi_key = \"k\"").unwrap_err().what.contains("may not hold keys")
        );
        assert!(folder("[approvals]\nallow = [\"bash\"]").is_err());
        assert!(folder("model = \"demo\"\n[approvals]\ndeny = [\"bash\"]").is_ok());
    }
}
