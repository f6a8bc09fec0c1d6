//! [`Settings`]: what flags, environment and files say, each value with where it came from.
//!
//! Every source gives a `Settings`; [`Settings::over`] lays the stronger over the weaker. The
//! defaults are applied by who uses a value, so that `None` means: nobody said anything.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use clap::ArgMatches;
use clap::parser::ValueSource;
use secrecy::SecretString;
use toolloop::tool::ApprovalRule;
use toolloop_providers::Price;

use crate::args::{DialectName, ModelsArgs, RunArgs, SandboxMode, Yes, names};
use crate::origin::{Origin, Owner, Sourced};
use crate::report::Report;
use crate::settings_file;

/// What somebody said about a run; `None` is nothing.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    pub(crate) model: Option<Sourced<String>>,
    pub(crate) base_url: Option<Sourced<String>>,
    pub(crate) tools: Option<Sourced<Vec<String>>>,
    pub(crate) system: Option<Sourced<String>>,
    pub(crate) dialect: Option<Sourced<DialectName>>,
    /// Whether a message may have one call; nothing said: as is usual in the dialect.
    pub(crate) one_tool: Option<Sourced<bool>>,
    pub(crate) max_iterations: Option<Sourced<u32>>,
    pub(crate) timeout: Option<Sourced<Duration>>,
    pub(crate) yes: Option<Sourced<Yes>>,
    pub(crate) sandbox: Option<Sourced<SandboxMode>>,
    pub(crate) writable: Option<Sourced<Vec<String>>>,
    pub(crate) approvals: Approvals,
    /// By name of the provider.
    pub(crate) providers: BTreeMap<String, ProviderSettings>,
    /// By name of the model, as it is chosen.
    pub(crate) prices: BTreeMap<String, Price>,
}

/// Rules about calls; those of all sources count.
#[derive(Debug, Default)]
pub(crate) struct Approvals {
    pub(crate) deny: Vec<Sourced<ApprovalRule>>,
    pub(crate) ask: Vec<Sourced<ApprovalRule>>,
    pub(crate) allow: Vec<Sourced<ApprovalRule>>,
}

/// A provider's table in a settings file.
#[derive(Debug, Default)]
pub(crate) struct ProviderSettings {
    pub(crate) api_key: Option<Sourced<SecretString>>,
    pub(crate) base_url: Option<Sourced<String>>,
}

impl Settings {
    /// Everything that applies to `toolloop run`.
    pub(crate) fn of_run(
        args: &RunArgs,
        matches: &ArgMatches,
        environment: &Environment<'_>,
    ) -> Result<Self, Report> {
        let origin = |id: &str, flag, variable: &str| match matches.value_source(id) {
            Some(ValueSource::EnvVariable) => Origin::Variable(variable.to_owned()),
            _ => Origin::Flag(flag),
        };
        // An empty variable is one that is not set: that is how shells switch one off.
        let text = |value: &Option<String>, origin: Origin| {
            let value = value.clone().filter(|text| !text.is_empty());
            value.map(|value| Sourced::new(value, origin))
        };
        let flags = Self {
            model: text(&args.model, origin("model", "--model", "TOOLLOOP_MODEL")),
            base_url: text(&args.base_url, origin("base_url", "--base-url", "TOOLLOOP_BASE_URL")),
            tools: text(&args.tools, origin("tools", "--tools", "TOOLLOOP_TOOLS"))
                .map(|tools| tools.map(|list| names(&list))),
            system: text(&args.system, origin("system", "--system", "TOOLLOOP_SYSTEM")),
            dialect: args
                .dialect
                .map(|name| Sourced::new(name, origin("dialect", "--dialect", "TOOLLOOP_DIALECT"))),
            one_tool: args.one_tool.map(|one| {
                Sourced::new(one, origin("one_tool", "--one-tool", "TOOLLOOP_ONE_TOOL"))
            }),
            max_iterations: args.max_iterations.map(|limit| {
                let origin =
                    origin("max_iterations", "--max-iterations", "TOOLLOOP_MAX_ITERATIONS");
                Sourced::new(limit, origin)
            }),
            timeout: args.timeout.map(|limit| {
                Sourced::new(limit, origin("timeout", "--timeout", "TOOLLOOP_TIMEOUT"))
            }),
            yes: args
                .yes
                .clone()
                .map(|yes| Sourced::new(yes, origin("yes", "--yes", "TOOLLOOP_YES"))),
            sandbox: args
                .sandbox
                .map(|mode| Sourced::new(mode, origin("sandbox", "--sandbox", "TOOLLOOP_SANDBOX"))),
            ..Self::default()
        };
        Ok(flags.over(Self::of_files(environment)?))
    }

    /// Everything that applies to `toolloop models`.
    pub(crate) fn of_models(
        args: &ModelsArgs,
        matches: &ArgMatches,
        environment: &Environment<'_>,
    ) -> Result<Self, Report> {
        let origin = match matches.value_source("base_url") {
            Some(ValueSource::EnvVariable) => Origin::Variable("TOOLLOOP_BASE_URL".to_owned()),
            _ => Origin::Flag("--base-url"),
        };
        let base_url = args.base_url.clone().filter(|url| !url.is_empty());
        let flags = Self {
            base_url: base_url.map(|url| Sourced::new(url, origin)),
            model: environment
                .get("TOOLLOOP_MODEL")
                .map(|model| Sourced::new(model, Origin::Variable("TOOLLOOP_MODEL".to_owned()))),
            ..Self::default()
        };
        Ok(flags.over(Self::of_files(environment)?))
    }

    fn of_files(environment: &Environment<'_>) -> Result<Self, Report> {
        let folder = settings_file::read(&PathBuf::from("toolloop.toml"), Owner::Folder)?;
        let Some(path) = environment.config_file() else { return Ok(folder) };
        Ok(folder.over(settings_file::read(&path, Owner::Person)?))
    }

    /// These settings, with those of `weaker` where these say nothing.
    pub(crate) fn over(mut self, weaker: Self) -> Self {
        for (name, weak) in weaker.providers {
            let strong = self.providers.entry(name).or_default();
            strong.api_key = strong.api_key.take().or(weak.api_key);
            strong.base_url = strong.base_url.take().or(weak.base_url);
        }
        self.approvals.deny.extend(weaker.approvals.deny);
        self.approvals.ask.extend(weaker.approvals.ask);
        self.approvals.allow.extend(weaker.approvals.allow);
        let mut prices = weaker.prices;
        prices.append(&mut self.prices);
        Self {
            model: self.model.or(weaker.model),
            base_url: self.base_url.or(weaker.base_url),
            tools: self.tools.or(weaker.tools),
            system: self.system.or(weaker.system),
            dialect: self.dialect.or(weaker.dialect),
            one_tool: self.one_tool.or(weaker.one_tool),
            max_iterations: self.max_iterations.or(weaker.max_iterations),
            timeout: self.timeout.or(weaker.timeout),
            yes: self.yes.or(weaker.yes),
            sandbox: self.sandbox.or(weaker.sandbox),
            writable: self.writable.or(weaker.writable),
            approvals: self.approvals,
            providers: self.providers,
            prices,
        }
    }
}

/// The environment variables, so that tests can bring their own.
pub(crate) struct Environment<'a>(pub(crate) &'a dyn Fn(&str) -> Option<String>);

impl Environment<'static> {
    /// Those of this process.
    pub(crate) fn of_process() -> Self {
        Self(&|name| std::env::var(name).ok())
    }
}

impl Environment<'_> {
    /// The value of a variable that is set and not empty.
    pub(crate) fn get(&self, name: &str) -> Option<String> {
        (self.0)(name).filter(|value| !value.is_empty())
    }

    /// The person's settings.
    pub(crate) fn config_file(&self) -> Option<PathBuf> {
        Some(self.folder("XDG_CONFIG_HOME", ".config")?.join("config.toml"))
    }

    /// What the person has always allowed, by folder.
    pub(crate) fn grants_file(&self) -> Option<PathBuf> {
        Some(self.folder("XDG_STATE_HOME", ".local/state")?.join("approvals.toml"))
    }

    fn folder(&self, variable: &str, usual: &str) -> Option<PathBuf> {
        let folder = match self.get(variable) {
            Some(folder) => PathBuf::from(folder),
            None => PathBuf::from(self.get("HOME")?).join(usual),
        };
        Some(folder.join("toolloop"))
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, FromArgMatches};

    use super::*;
    use crate::args::{Cli, Command};

    fn of_flags(line: &[&str]) -> Settings {
        let matches = Cli::command().get_matches_from(line);
        let Command::Run(args) = Cli::from_arg_matches(&matches).unwrap().command else {
            panic!("not a run")
        };
        let (_, matches) = matches.subcommand().unwrap();
        Settings::of_run(&args, matches, &Environment(&|_| None)).unwrap()
    }

    #[test]
    fn flags_know_that_they_are_flags() {
        let settings =
            of_flags(&["toolloop", "run", "x", "--model", "demo", "--tools", "bash", "--yes"]);
        let flag = |name| Origin::Flag(name);
        assert_eq!(settings.model, Some(Sourced::new("demo".into(), flag("--model"))));
        assert_eq!(settings.tools, Some(Sourced::new(vec!["bash".into()], flag("--tools"))));
        assert_eq!(settings.yes, Some(Sourced::new(Yes::All, flag("--yes"))));
        assert_eq!(settings.timeout, None);
    }

    #[test]
    fn the_stronger_source_wins_value_by_value() {
        let origin = |line| Origin::File { path: "f".into(), line, owner: Owner::Person };
        let strong = Settings {
            model: Some(Sourced::new("a".into(), Origin::Flag("--model"))),
            ..Settings::default()
        };
        let weak = Settings {
            model: Some(Sourced::new("b".into(), origin(1))),
            max_iterations: Some(Sourced::new(7, origin(2))),
            ..Settings::default()
        };
        let both = strong.over(weak);
        assert_eq!(both.model, Some(Sourced::new("a".into(), Origin::Flag("--model"))));
        assert_eq!(both.max_iterations, Some(Sourced::new(7, origin(2))));
    }

    #[test]
    fn the_persons_file_is_under_xdg_or_home() {
        let xdg = Environment(&|name| (name == "XDG_CONFIG_HOME").then(|| "/x".to_owned()));
        assert_eq!(xdg.config_file(), Some("/x/toolloop/config.toml".into()));
        let home = Environment(&|name| (name == "HOME").then(|| "/h".to_owned()));
        assert_eq!(home.config_file(), Some("/h/.config/toolloop/config.toml".into()));
        assert_eq!(Environment(&|_| None).config_file(), None);
    }
}
