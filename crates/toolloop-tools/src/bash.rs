//! [`BashTool`]: the tool `bash`.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio::process::Command;
use toolloop_core::{
    BoxFuture, CallContext, EffectClass, ToolCall, ToolDefinition, ToolError, ToolHandler,
    ToolOutput, read_arguments,
};

use crate::environment::scrubbed;
use crate::process::{self, Ended};

/// Runs commands with bash, or with `sh` where there is no bash.
///
/// The result is stdout as it is, then stderr below a line `[stderr]`, and last a line like
/// `[exit code 0]`. Any other end than that one is a [`ToolError`] with the same text. Of each
/// stream at most 32 KiB are kept, its beginning and its end.
///
/// A command has no input, no terminal and a time limit, and leads its own process group. When it
/// ends, runs into the limit, or its future is dropped, the whole group is killed; a process that
/// is to live on must leave it with `setsid`.
///
/// Variables that look like secrets are not passed on: names with `KEY`, `TOKEN`, `SECRET`,
/// `PASSWORD`, `PASSWD`, `PASSPHRASE`, `CREDENTIAL`, `AUTH` or `COOKIE` in them (but
/// `SSH_AUTH_SOCK` and `GIT_AUTHOR_*`), and addresses with a password in them. A command that the
/// user's rights allow to find a secret can still find it; this is no sandbox.
#[derive(Debug, Clone)]
pub struct BashTool {
    timeout: Duration,
    working_dir: Option<PathBuf>,
}

impl BashTool {
    /// Runs commands in the current folder, for 30 seconds at most.
    pub fn new() -> Self {
        Self { timeout: DEFAULT_TIMEOUT, working_dir: None }
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

    /// Runs a call outside any loop.
    ///
    /// # Errors
    /// What the model should read, when the arguments are not right or the command fails.
    pub async fn execute(&self, call: &ToolCall) -> Result<String, String> {
        let context = CallContext::detached(call.id.as_str());
        self.run(call.arguments.clone(), &context).await.map_err(|error| error.message)
    }

    async fn run(&self, input: Value, call: &CallContext) -> Result<String, ToolError> {
        let arguments = read_arguments::<Arguments>(NAME, input)?;
        let limit = match arguments.timeout_seconds {
            Some(seconds) => Duration::from_secs(seconds).min(MAX_TIMEOUT.max(self.timeout)),
            None => self.timeout,
        };
        let run = async |shell| {
            let command = self.command(shell, &arguments.command, std::env::vars_os());
            process::run(command, limit, MAX_OUTPUT, call).await
        };
        let ended = match run("bash").await {
            Err(error) if error.kind() == io::ErrorKind::NotFound => run("sh").await,
            ended => ended,
        };
        report(ended.map_err(|error| self.explain(&error))?, limit)
    }

    fn command(
        &self,
        shell: &str,
        script: &str,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Command {
        let mut command = Command::new(shell);
        // After `--`, a script that begins with a dash is no option.
        command.args(["-c", "--", script]);
        command.env_clear().envs(scrubbed(variables));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(dir) = &self.working_dir {
            command.current_dir(dir);
        }
        command
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
        ToolDefinition::from_type::<Arguments>(
            NAME,
            &format!(
                "Runs a command with bash in the project folder and gives its output and exit \
                 code. It has no input and no terminal, and {} seconds unless timeout_seconds \
                 says otherwise. Processes left in the background end with the command; start \
                 with setsid, output redirected, what must live on.",
                self.timeout.as_secs_f64()
            ),
        )
    }

    fn execute<'a>(
        &'a self,
        input: Value,
        _: &'a Ctx,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            self.run(input, &CallContext::detached(NAME)).await.map(ToolOutput::from)
        })
    }

    fn call<'a>(
        &'a self,
        input: Value,
        call: &'a CallContext,
        _: &'a Ctx,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
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
    /// Seconds after which it is ended, at most 600.
    #[schemars(range(min = 1, max = 600))]
    timeout_seconds: Option<u64>,
}

/// What the model reads of a command that has ended.
fn report(ended: Ended, limit: Duration) -> Result<String, ToolError> {
    let mut text = ended.stdout.into_text();
    let stderr = ended.stderr.into_text();
    if !stderr.is_empty() {
        end_line(&mut text);
        text.push_str("[stderr]\n");
        text.push_str(&stderr);
    }
    end_line(&mut text);
    if text.is_empty() {
        text.push_str("[no output]\n");
    }
    match ended.status {
        None => text.push_str(&format!(
            "[killed after its time limit of {} s; give a larger timeout_seconds, or run less]",
            limit.as_secs_f64()
        )),
        Some(status) => {
            if ended.left_processes {
                text.push_str(
                    "[processes it left in the background were killed; start with setsid, output \
                     redirected, what must live on]\n",
                );
            }
            match status.code() {
                Some(code) => text.push_str(&format!("[exit code {code}]")),
                // By a signal; the status says which.
                None => text.push_str(&format!("[ended by {status}]")),
            }
        }
    }
    match ended.status.is_some_and(|status| status.success()) {
        true => Ok(text),
        false => Err(ToolError::new(text)),
    }
}

fn end_line(text: &mut String) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
}

const NAME: &str = "bash";
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
/// The longest a model may ask for.
const MAX_TIMEOUT: Duration = Duration::from_secs(600);
/// Bytes of each output stream that are kept.
const MAX_OUTPUT: usize = 32 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn secrets_do_not_reach_the_command() {
        let variables = [("PATH", env!("PATH")), ("MY_API_KEY", "hunter2"), ("PLAIN", "seen")];
        let variables = variables.map(|(name, value)| (name.into(), value.into()));
        let command = BashTool::new().command("bash", "echo $MY_API_KEY$PLAIN", variables);
        let call = CallContext::detached("c");
        let ended = process::run(command, DEFAULT_TIMEOUT, MAX_OUTPUT, &call).await.unwrap();
        assert_eq!(report(ended, DEFAULT_TIMEOUT), Ok("seen\n[exit code 0]".into()));
    }

    #[test]
    fn the_schema_comes_from_the_arguments() {
        let definition = ToolHandler::<()>::definition(&BashTool::new());
        assert_eq!(
            definition.parameters.as_value(),
            &serde_json::json!({
                "type": "object",
                "properties": {
                    "command": {
                        "description": "The command, as one would type it into bash.",
                        "type": "string",
                    },
                    "timeout_seconds": {
                        "description": "Seconds after which it is ended, at most 600.",
                        "type": ["integer", "null"],
                        "format": "uint64",
                        "minimum": 1,
                        "maximum": 600,
                    },
                },
                "additionalProperties": false,
                "required": ["command"],
            })
        );
    }
}
