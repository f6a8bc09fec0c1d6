//! `toolloop completions`: a script that completes the command's words in a shell.

use std::io::{self, Write};

use clap::CommandFactory;

use crate::args::{Cli, CompletionsArgs};
use crate::exit::Exit;

/// Runs the command.
pub(crate) fn run(args: &CompletionsArgs) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "toolloop", &mut script);
    match io::stdout().write_all(&script) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(Exit::Answered),
    }
}
