//! [`Cli`]: the command line. What a flag means for a run is decided in `settings`.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use toolloop_core::Dialect;

use crate::exit::TABLE;
use crate::units::parse_duration;

/// Run an agent from a terminal: ask a model, run the tools it calls, until it answers.
#[derive(Debug, Parser)]
#[command(
    name = "toolloop",
    version,
    after_help = TABLE,
    arg_required_else_help = true,
    max_term_width = 100
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    /// The command line, with variables that are set and empty as if they were not: that is how
    /// shells switch one off.
    pub(crate) fn of_environment() -> clap::Command {
        let is_empty = |name: &OsStr| std::env::var_os(name).is_some_and(|value| value.is_empty());
        Self::command().mut_subcommands(|command| {
            command.mut_args(|arg| match arg.get_env().is_some_and(is_empty) {
                true => arg.env(None::<&'static str>),
                false => arg,
            })
        })
    }
}

/// The commands, one file each in `commands`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Give the model a task and let it work with its tools
    Run(RunArgs),
    /// Show or try the MCP servers of a folder
    Mcp(McpArgs),
    /// Show which models can be used, and how one is chosen
    #[command(after_help = HOW_CHOSEN)]
    Models(ModelsArgs),
    /// Show every setting of a run here, and where it came from
    Config,
    /// Check what a run here would need: keys, servers, the folder
    Doctor,
    /// Serve a fake model on this machine, to try and test programs against
    Fake(FakeArgs),
    /// Print a script that completes the words of this command in a shell
    #[command(after_help = HOW_INSTALLED)]
    Completions(CompletionsArgs),
}

/// `toolloop run`.
#[derive(Debug, Args)]
#[command(after_help = ABOUT_RUNS)]
pub(crate) struct RunArgs {
    /// What to do; - reads it from standard input, and piped input is added to it
    pub(crate) task: Option<String>,
    /// The model, as provider/name (see: toolloop help models)
    #[arg(long, value_name = "PROVIDER/NAME", env = "TOOLLOOP_MODEL", hide_env = true)]
    pub(crate) model: Option<String>,
    /// Address of a server that speaks the OpenAI API
    #[arg(long, value_name = "URL", env = "TOOLLOOP_BASE_URL", hide_env = true)]
    pub(crate) base_url: Option<String>,
    /// Tools the model may use, or none [default: all]
    #[arg(long, value_name = "a,b|none", env = "TOOLLOOP_TOOLS", hide_env = true)]
    pub(crate) tools: Option<String>,
    /// Folder to work in [default: this one]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// System prompt, instead of the built-in one
    #[arg(long, value_name = "TEXT", env = "TOOLLOOP_SYSTEM", hide_env = true)]
    pub(crate) system: Option<String>,
    /// Most model calls with tools before the run ends [default: 50]
    #[arg(long, value_name = "N", env = "TOOLLOOP_MAX_ITERATIONS", hide_env = true,
        value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_iterations: Option<u32>,
    /// Longest time for the whole run, like 90s or 5m [default: none]
    #[arg(long, value_name = "TIME", env = "TOOLLOOP_TIMEOUT", hide_env = true,
        value_parser = parse_duration)]
    pub(crate) timeout: Option<Duration>,
    /// Run tools without asking: all of them, or those listed
    #[arg(long, value_name = "LIST", env = "TOOLLOOP_YES", hide_env = true,
        num_args = 0..=1, require_equals = true, default_missing_value = "all")]
    pub(crate) yes: Option<Yes>,
    /// Hold bash in the folder without network, in the folder, or not at all [default: strict]
    #[arg(
        long,
        value_name = "strict|network|off",
        env = "TOOLLOOP_SANDBOX",
        hide_env = true,
        hide_possible_values = true
    )]
    pub(crate) sandbox: Option<SandboxMode>,
    /// Start the MCP servers of .mcp.json without asking
    #[arg(long, conflicts_with = "no_mcp")]
    pub(crate) mcp: bool,
    /// Start no MCP server
    #[arg(long)]
    pub(crate) no_mcp: bool,
    /// How the model calls tools: native, as text in xml or caret blocks, or auto: native where the
    /// model can [default: auto]
    #[arg(
        long,
        value_name = "WHICH",
        env = "TOOLLOOP_DIALECT",
        hide_env = true,
        hide_possible_values = true
    )]
    pub(crate) dialect: Option<DialectName>,
    /// Let the model make one call in a message: at a second one, it is stopped
    /// [default: where calls are text]
    #[arg(long, value_name = "true|false", env = "TOOLLOOP_ONE_TOOL", hide_env = true,
        num_args = 0..=1, require_equals = true, default_missing_value = "true",
        hide_possible_values = true)]
    pub(crate) one_tool: Option<bool>,
    /// Print events as one JSON object a line; =final prints only the last
    #[arg(long, value_name = "WHICH", num_args = 0..=1, require_equals = true,
        default_missing_value = "events", hide_possible_values = true)]
    pub(crate) json: Option<JsonOutput>,
    /// Print the answer only
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// `toolloop models`.
#[derive(Debug, Args)]
pub(crate) struct ModelsArgs {
    /// List what the server at this address has
    #[arg(long, value_name = "URL", env = "TOOLLOOP_BASE_URL", hide_env = true)]
    pub(crate) base_url: Option<String>,
}

/// `toolloop mcp`.
#[derive(Debug, Args)]
#[command(after_help = ABOUT_SERVERS)]
pub(crate) struct McpArgs {
    #[command(subcommand)]
    pub(crate) command: McpCommand,
}

/// What to do with the servers.
#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// Start the servers and show their tools
    List {
        #[command(flatten)]
        servers: ServersArgs,
    },
    /// Call a tool and print its result
    Call {
        /// Name of the server
        server: String,
        /// Name of the tool, as the server calls it
        tool: String,
        /// Arguments, a JSON object
        #[arg(value_name = "JSON", default_value = "{}")]
        arguments: String,
        #[command(flatten)]
        servers: ServersArgs,
    },
}

/// Which servers, and whether they may be started.
#[derive(Debug, Args)]
pub(crate) struct ServersArgs {
    /// Folder whose .mcp.json it is [default: this one]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Start the servers without asking
    #[arg(long)]
    pub(crate) yes: bool,
}

/// `toolloop fake`.
#[derive(Debug, Args)]
pub(crate) struct FakeArgs {
    /// Port on 127.0.0.1; 0 takes a free one
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) port: u16,
    /// Replies to play instead of the demo model: one JSON object a line
    #[arg(long, value_name = "FILE")]
    pub(crate) script: Option<PathBuf>,
    /// Refuse requests without this key
    #[arg(long, value_name = "KEY")]
    pub(crate) require_key: Option<String>,
}

/// `toolloop completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

/// What `--json` prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum JsonOutput {
    /// Every event.
    Events,
    /// The last line only.
    Final,
}

/// How the model calls tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum DialectName {
    /// As blocks of tags.
    Xml,
    /// As blocks of lines.
    Caret,
    /// Natively where the model can, else as blocks of tags.
    #[default]
    Auto,
    /// By the provider's API.
    Native,
}

impl DialectName {
    /// As the user writes it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Xml => "xml",
            Self::Caret => "caret",
            Self::Auto => "auto",
            Self::Native => "native",
        }
    }
}

impl From<DialectName> for Dialect {
    fn from(name: DialectName) -> Self {
        match name {
            DialectName::Xml => Self::Xml,
            DialectName::Caret => Self::Caret,
            DialectName::Auto => Self::Auto,
            DialectName::Native => Self::Native,
        }
    }
}

/// What `bash` may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SandboxMode {
    /// Write in the folder, and no network.
    Strict,
    /// Write in the folder, and use the network.
    Network,
    /// What the user can do.
    Off,
}

impl SandboxMode {
    /// As the user writes it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::Network => "network",
            Self::Off => "off",
        }
    }
}

/// Which tools run without asking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Yes {
    All,
    Tools(Vec<String>),
}

impl FromStr for Yes {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "all" => Self::All,
            list => Self::Tools(names(list)),
        })
    }
}

/// The names in a comma-separated list; `none` is the empty list.
pub(crate) fn names(list: &str) -> Vec<String> {
    list.split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty() && *name != "none")
        .map(str::to_owned)
        .collect()
}

const ABOUT_RUNS: &str = "\
Examples:
  toolloop run \"what is in this folder?\"
  git diff | toolloop run \"review this change\"
  toolloop run --yes=bash --json=final \"do the tests pass?\"

While it works, type a line and press Enter: the model reads it with its next step.

Settings come from flags, then variables (TOOLLOOP_MODEL for --model, and so on),
then ./toolloop.toml, then ~/.config/toolloop/config.toml.";

const ABOUT_SERVERS: &str = "\
.mcp.json names the servers of a folder, as other programs know it:
  {\"mcpServers\": {
    \"files\": {\"command\": \"npx\", \"args\": [\"-y\", \"@modelcontextprotocol/server-filesystem\", \".\"]},
    \"web\": {\"type\": \"http\", \"url\": \"https://example.org/mcp\",
            \"headers\": {\"Authorization\": \"Bearer ${WEB_TOKEN}\"}}}}

A file that came with a folder can name any program, so its servers are started only once you
have agreed to it; if it changes, you are asked again.

Examples:
  toolloop mcp list
  toolloop mcp call files list_directory '{\"path\": \".\"}'";

const HOW_INSTALLED: &str = "\
For example:
  toolloop completions bash > ~/.local/share/bash-completion/completions/toolloop
  toolloop completions zsh > \"${fpath[1]}/_toolloop\"
  toolloop completions fish > ~/.config/fish/completions/toolloop.fish";

const HOW_CHOSEN: &str = "\
How a run chooses its model, the first that applies:
  1. --model PROVIDER/NAME, or TOOLLOOP_MODEL
  2. model = \"PROVIDER/NAME\" in ./toolloop.toml or ~/.config/toolloop/config.toml
  3. a key in the environment: OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY,
     then DEEPSEEK_, MISTRAL_, GROQ_, OPENROUTER_, XAI_ or TOGETHER_API_KEY
  4. a running Ollama (OLLAMA_HOST, or port 11434), LM Studio (1234) or llama.cpp (8080)
  5. the built-in demo model: scripted, but the tools are real

PROVIDER is openai, responses, anthropic, gemini, aicore, ollama, deepseek, mistral, groq,
openrouter, xai, together, lmstudio, llamacpp or vllm. Any other server that speaks the
OpenAI API: --base-url URL --model NAME

Costs are by the list prices of 2026-10. For other prices, in US dollars for a million tokens:
  [prices.\"groq/openai/gpt-oss-120b\"]
  input = 0.15
  cached = 0.075
  output = 0.6
in ./toolloop.toml or ~/.config/toolloop/config.toml";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_help_names_every_provider_and_key() {
        use crate::providers::{KEY_VARIABLES, PROVIDERS};
        assert!(HOW_CHOSEN.contains(KEY_VARIABLES));
        let with_default = PROVIDERS.iter().filter(|provider| provider.default_model.is_some());
        for variable in with_default.skip(3).filter_map(|provider| provider.key_variable()) {
            assert!(HOW_CHOSEN.contains(variable.trim_end_matches("API_KEY")), "{variable}");
        }
        let names = HOW_CHOSEN.replace("\n", " ");
        for provider in PROVIDERS.iter() {
            assert!(names.contains(&format!(" {}", provider.name)), "{}", provider.name);
        }
        assert!(HOW_CHOSEN.contains(toolloop_providers::Price::LISTED_IN));
    }

    #[test]
    fn yes_and_json_take_their_value_behind_an_equals_sign() {
        let cli = Cli::parse_from(["toolloop", "run", "--yes", "--json", "a task"]);
        let Command::Run(run) = cli.command else { panic!("not a run") };
        assert_eq!(run.yes, Some(Yes::All));
        assert_eq!(run.json, Some(JsonOutput::Events));
        assert_eq!(run.task.as_deref(), Some("a task"));

        let cli = Cli::parse_from(["toolloop", "run", "--yes=bash, read_file", "--json=final"]);
        let Command::Run(run) = cli.command else { panic!("not a run") };
        assert_eq!(run.yes, Some(Yes::Tools(vec!["bash".into(), "read_file".into()])));
        assert_eq!(run.json, Some(JsonOutput::Final));
        assert_eq!(run.task, None);
    }

    #[test]
    fn none_is_the_empty_list() {
        assert_eq!(names("none"), Vec::<String>::new());
        assert_eq!(names("bash,,read_file "), ["bash", "read_file"]);
    }
}
