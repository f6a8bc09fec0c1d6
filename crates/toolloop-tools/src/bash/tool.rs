//! [`BashTool`]: the tool `bash`.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::Command;
use toolloop_core::{
    CallContext, EffectClass, ToolCall, ToolDefinition, ToolError, ToolFuture, ToolHandler,
    ToolOutput, read_arguments,
};
use toolloop_platform::inherited;

use super::process::{End, Output, Running};
use super::progress::Progress;
use super::report::{ending, with_last_line};
use crate::results::shorten;
use crate::sandbox::{Enforced, Sandbox, enforceable};
use crate::{Jobs, ResultStore};

/// Runs commands with bash, or with `sh` where there is no bash.
///
/// The result is stdout as it is, then stderr below a line `[stderr]`, and last a line like
/// `[exit code 0]`. Any other end than that one is a [`ToolError`] with the same text. Of each
/// stream at most 32 KiB are kept, its beginning and its end; with a
/// [store](Self::with_results) the rest can be read on, up to 4 MiB.
///
/// A command runs in a [`Sandbox`] unless [`without_sandbox`](Self::without_sandbox) is said: it
/// writes only in the working folder and in a temporary folder of this tool, `$TMPDIR`. It has no
/// input, no terminal and a time limit, and leads its own process group. When it ends, runs into
/// the limit, or its future is dropped, all its processes are killed.
///
/// Variables that look like secrets are not passed on: names with `KEY`, `TOKEN`, `SECRET`,
/// `PASSWORD`, `PASSWD`, `PASSPHRASE`, `CREDENTIAL`, `AUTH` or `COOKIE` in them (but
/// `SSH_AUTH_SOCK` and `GIT_AUTHOR_*`), and addresses with a password in them.
#[derive(Debug, Clone)]
pub struct BashTool {
    timeout: Duration,
    working_dir: Option<PathBuf>,
    sandbox: Option<Sandbox>,
    jobs: Option<Jobs>,
    results: Option<ResultStore>,
    /// The temporary folder, once a command has needed it.
    scratch: Arc<OnceLock<TempDir>>,
}

impl BashTool {
    /// Runs commands in the current folder, in a sandbox, for 30 seconds at most.
    pub fn new() -> Self {
        Self {
            timeout: DEFAULT_TIMEOUT,
            working_dir: None,
            sandbox: Some(Sandbox::new()),
            jobs: None,
            results: None,
            scratch: Arc::default(),
        }
    }

    /// The time limit of a command that names none.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// The folder that commands run in.
    #[must_use]
    pub fn with_working_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.working_dir = Some(dir.into());
        self
    }

    /// What commands may do.
    #[must_use]
    pub fn with_sandbox(mut self, sandbox: Sandbox) -> Self {
        self.sandbox = Some(sandbox);
        self
    }

    /// Lets commands do what the user can do.
    #[must_use]
    pub fn without_sandbox(mut self) -> Self {
        self.sandbox = None;
        self
    }

    /// Lets the model start commands in the background; give it [`BashOutput`](crate::BashOutput)
    /// and [`BashKill`](crate::BashKill) for the same jobs.
    #[must_use]
    pub fn with_jobs(mut self, jobs: Jobs) -> Self {
        self.jobs = Some(jobs);
        self
    }

    /// Stores output that is longer than a result shows, for
    /// [`ReadResult`](crate::ReadResult).
    #[must_use]
    pub fn with_results(mut self, store: ResultStore) -> Self {
        self.results = Some(store);
        self
    }

    /// Runs a call outside any loop.
    ///
    /// # Errors
    /// What the model should read, when the arguments are not right or the command fails.
    pub async fn execute(&self, call: &ToolCall) -> Result<String, String> {
        let context = CallContext::detached(call.id.as_str());
        self.run(call.arguments.clone(), &context).await.map_err(|error| error.message)
    }

    /// Runs a script, and gives what it wrote and what the kernel enforced meanwhile.
    pub(crate) async fn try_out(&self, script: &str) -> Result<(String, Enforced), ToolError> {
        let output = Output::new(MAX_OUTPUT);
        let running = self.start(script, &output, None).await?;
        let enforced = running.enforced();
        let ended = running.finish(Some(self.timeout), std::future::pending()).await;
        ended.map_err(|error| self.explain(&error))?;
        Ok((output.with(|streams| streams.take_all()), enforced))
    }

    async fn run(&self, input: Value, call: &CallContext) -> Result<String, ToolError> {
        let arguments = read_arguments::<Arguments>(NAME, input)?;
        let asked = arguments.timeout_seconds.map(Duration::from_secs);
        if arguments.background {
            let output = Output::new(MAX_OUTPUT);
            let jobs = self.jobs.as_ref().ok_or_else(|| {
                ToolError::new("Commands cannot run in the background here. Leave it out.")
            })?;
            let room = jobs.room()?;
            let running = self.start(&arguments.command, &output, None).await?;
            let job =
                jobs.add(arguments.command, running, output, asked, (room, self.scratch.clone()));
            return Ok(format!(
                "[{job} started; bash_output shows how it is, bash_kill ends it, and so does the \
                 end of this run]"
            ));
        }
        let limit = asked.map_or(self.timeout, |asked| asked.min(MAX_TIMEOUT.max(self.timeout)));
        let output = Output::new(self.results.as_ref().map_or(MAX_OUTPUT, |_| MAX_STORED));
        let progress = Some(Progress::new(call));
        let running = self.start(&arguments.command, &output, progress).await?;
        let ended = running.finish(Some(limit), std::future::pending()).await;
        let ended = ended.map_err(|error| self.explain(&error))?;
        let output = output.with(|streams| streams.take_all());
        let output = match &self.results {
            Some(store) => shorten(output, MAX_OUTPUT, Some(store)),
            None => output,
        };
        let succeeded = matches!(ended.end, End::Exited(status) if status.success());
        let advice = match succeeded {
            true => String::new(),
            false => self.advice(&output),
        };
        let text = with_last_line(output, &(advice + &ending(&ended)));
        match succeeded {
            true => Ok(text),
            false => Err(ToolError::new(text)),
        }
    }

    async fn start<'a>(
        &self,
        script: &str,
        output: &Output,
        progress: Option<Progress<'a>>,
    ) -> Result<Running<'a>, ToolError> {
        let mut command = self.command(script, std::env::vars_os());
        let explain = |error: io::Error| self.explain(&error);
        let walls = match &self.sandbox {
            None => None,
            Some(sandbox) => {
                let scratch = self.scratch().map_err(explain)?;
                command.env("TMPDIR", scratch);
                let root = self.root().map_err(explain)?;
                let mut writable = vec![root, scratch.to_owned()];
                writable.extend(sandbox.writable.iter().cloned());
                Some((sandbox, writable))
            }
        };
        Running::start(command, walls, output.clone(), progress).await.map_err(explain)
    }

    fn command(
        &self,
        script: &str,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", LAUNCHER, "sh", script]);
        command.env_clear().envs(inherited(variables)).envs(UNATTENDED);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(dir) = &self.working_dir {
            command.current_dir(dir);
        }
        command
    }

    fn root(&self) -> io::Result<PathBuf> {
        match &self.working_dir {
            Some(dir) => Ok(dir.clone()),
            None => std::env::current_dir(),
        }
    }

    fn scratch(&self) -> io::Result<&Path> {
        if let Some(scratch) = self.scratch.get() {
            return Ok(scratch.path());
        }
        let scratch = tempfile::Builder::new().prefix("toolloop-").tempdir()?;
        // Of two calls at once one made it first.
        Ok(self.scratch.get_or_init(|| scratch).path())
    }

    /// Why a command may have failed, if it looks like the sandbox.
    fn advice(&self, output: &str) -> String {
        let Some(sandbox) = &self.sandbox else { return String::new() };
        if !REFUSALS.iter().any(|refusal| output.contains(refusal)) {
            return String::new();
        }
        format!("[{}]\n", describe(sandbox, enforceable()))
    }

    /// Why a command could not be started.
    fn explain(&self, error: &io::Error) -> ToolError {
        let missing_dir = self.working_dir.as_ref().filter(|dir| !dir.is_dir());
        ToolError::new(match (error.kind(), missing_dir) {
            (_, Some(dir)) => format!("The working folder {} does not exist.", dir.display()),
            (io::ErrorKind::NotFound, None) => {
                "There is neither bash nor sh on this machine.".to_owned()
            }
            (io::ErrorKind::ArgumentListTooLong, None) => {
                "The command is too long. Write it to a file in parts, and run that.".to_owned()
            }
            _ => format!("The command could not be started: {error}."),
        })
    }
}

impl Default for BashTool {
    fn default() -> Self {
        Self::new()
    }
}

impl<Ctx> ToolHandler<Ctx> for BashTool {
    fn definition(&self) -> ToolDefinition {
        let seconds = self.timeout.as_secs_f64();
        let mut description = format!(
            "Runs a command with bash in the project folder and gives its output and exit code. \
             It has no input and no terminal, and {seconds} seconds unless timeout_seconds says \
             otherwise. Processes left running end with the command"
        );
        description.push_str(match self.jobs {
            Some(_) => "; start what must go on, like a server, with background.",
            None => ".",
        });
        if let Some(sandbox) = &self.sandbox {
            description.push_str(&format!(" {}", describe(sandbox, enforceable())));
        }
        let mut definition = ToolDefinition::from_type::<Arguments>(NAME, &description);
        if self.jobs.is_none() {
            definition.parameters = without_background(definition.parameters);
        }
        definition
    }

    fn execute<'a>(&'a self, input: Value, _: &'a Ctx) -> ToolFuture<'a> {
        Box::pin(async move {
            self.run(input, &CallContext::detached(NAME)).await.map(ToolOutput::from)
        })
    }

    fn call<'a>(&'a self, input: Value, call: &'a CallContext, _: &'a Ctx) -> ToolFuture<'a> {
        Box::pin(async move { self.run(input, call).await.map(ToolOutput::from) })
    }

    fn effect_class(&self) -> EffectClass {
        EffectClass::Once
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The command, as one would type it into bash.
    command: String,
    /// Seconds after which it is ended, at most 600; in the background never, if left out.
    #[schemars(range(min = 1, max = 600))]
    timeout_seconds: Option<u64>,
    /// Whether to start it and go on at once; bash_output then shows how it is.
    #[serde(default)]
    background: bool,
}

/// The schema for a tool that has no jobs.
fn without_background(parameters: toolloop_core::JsonSchema) -> toolloop_core::JsonSchema {
    let mut schema = parameters.as_value().clone();
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.shift_remove("background");
    }
    schema.into()
}

/// The sandbox as the model must know it, as far as it holds.
fn describe(sandbox: &Sandbox, held: Enforced) -> String {
    let files = held.landlock.map(|_| {
        let more: String =
            sandbox.writable.iter().map(|path| format!(", {}", path.display())).collect();
        format!("it can write only in the project folder, $TMPDIR{more}")
    });
    let network = held.seccomp.then_some(match sandbox.network {
        true => "it has the network but no Unix sockets",
        false => "it has no network, not even localhost",
    });
    match (files, network) {
        (Some(files), Some(network)) => format!("Sandbox: {files}, and {network}."),
        (Some(files), None) => format!("Sandbox: {files}."),
        (None, Some(network)) => format!("Sandbox: {network}."),
        (None, None) => "There is no sandbox here: take care what you change.".to_owned(),
    }
}

const NAME: &str = "bash";
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
/// The longest a model may ask for.
const MAX_TIMEOUT: Duration = Duration::from_secs(600);
/// Bytes of each output stream that are kept.
const MAX_OUTPUT: usize = 32 * 1024;
/// The same where they are stored.
const MAX_STORED: usize = 4 * 1024 * 1024;
/// Waits for the sign to begin, closes what this program got from a shell and passed on, and
/// becomes the shell that runs the script. After `--`, a script that begins with a dash is no
/// option.
const LAUNCHER: &str = "read -r begin || exit; \
    exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-; \
    command -v bash >/dev/null && exec bash -c -- \"$1\" </dev/null; \
    exec sh -c -- \"$1\" </dev/null";
/// Nobody sits at a terminal: no colours, no pager, no question.
const UNATTENDED: [(&str, &str); 5] = [
    ("TERM", "dumb"),
    ("NO_COLOR", "1"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
];
/// What programs say when a sandbox stops them.
const REFUSALS: [&str; 9] = [
    "ermission denied",
    "peration not permitted",
    "PermissionError",
    "EACCES",
    "EPERM",
    "onnect",
    "ould not resolve",
    "emporary failure in name resolution",
    "etwork is unreachable",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn secrets_do_not_reach_the_command() {
        let variables = [("PATH", env!("PATH")), ("MY_API_KEY", "hunter2"), ("PLAIN", "seen")];
        let variables = variables.map(|(name, value)| (name.into(), value.into()));
        let command = BashTool::new().command("echo $MY_API_KEY$PLAIN", variables);
        let output = Output::new(MAX_OUTPUT);
        let running = Running::start(command, None, output.clone(), None).await.unwrap();
        running.finish(Some(DEFAULT_TIMEOUT), std::future::pending()).await.unwrap();
        assert_eq!(output.with(|streams| streams.take_all()), "seen\n");
    }

    #[test]
    fn the_model_is_told_only_of_what_holds() {
        let sandbox = Sandbox::new().allow_writing("/a");
        let held = |landlock, seccomp| Enforced { landlock, seccomp, ..Enforced::default() };
        assert_eq!(
            [(Some(7), true), (Some(1), false), (None, true), (None, false)]
                .map(|(landlock, seccomp)| describe(&sandbox, held(landlock, seccomp))),
            [
                "Sandbox: it can write only in the project folder, $TMPDIR, /a, and it has no \
                 network, not even localhost.",
                "Sandbox: it can write only in the project folder, $TMPDIR, /a.",
                "Sandbox: it has no network, not even localhost.",
                "There is no sandbox here: take care what you change.",
            ]
        );
    }

    #[test]
    fn the_schema_comes_from_the_arguments() {
        let schema = |tool: BashTool| {
            let definition = ToolHandler::<()>::definition(&tool);
            definition.parameters.as_value().clone()
        };
        let mut expected = serde_json::json!({
            "type": "object",
            "properties": {
                "command": {
                    "description": "The command, as one would type it into bash.",
                    "type": "string",
                },
                "timeout_seconds": {
                    "description": "Seconds after which it is ended, at most 600; in the \
                                    background never, if left out.",
                    "type": ["integer", "null"],
                    "format": "uint64",
                    "minimum": 1,
                    "maximum": 600,
                },
                "background": {
                    "description": "Whether to start it and go on at once; bash_output then \
                                    shows how it is.",
                    "type": "boolean",
                    "default": false,
                },
            },
            "additionalProperties": false,
            "required": ["command"],
        });
        assert_eq!(schema(BashTool::new().with_jobs(Jobs::new())), expected);
        expected["properties"].as_object_mut().unwrap().remove("background");
        assert_eq!(schema(BashTool::new()), expected);
    }
}
