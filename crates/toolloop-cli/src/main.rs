//! The command `toolloop`: reads the command line and hands over to a command.

mod approval;
mod args;
mod asking;
mod commands;
mod connect;
mod ending;
mod errors;
mod exit;
mod face;
mod folder;
mod follow;
mod grants;
mod json;
mod model;
mod nearest;
mod origin;
mod plan;
mod providers;
mod report;
mod run_id;
mod sandbox;
mod servers;
mod settings;
mod settings_file;
mod signals;
mod starting;
mod steering;
mod summary;
mod task;
mod terminal;
mod toolbox;
mod units;
mod usage;

use std::process::ExitCode;

use clap::{ArgMatches, FromArgMatches};

use args::{Cli, Command};
use exit::Exit;
use report::Report;

fn main() -> ExitCode {
    let matches = match Cli::of_environment().try_get_matches() {
        Ok(matches) => matches,
        Err(error) => {
            // Help goes to standard output, errors to standard error; either may be closed.
            let error = usage::explained(error, std::env::args_os());
            let _ = error.print();
            return if error.use_stderr() { Exit::Usage } else { Exit::Answered }.into();
        }
    };
    let exit = run(&matches).unwrap_or_else(|error| {
        let report = error
            .downcast::<Report>()
            .unwrap_or_else(|error| Report::new(Exit::Failed, "other", format!("{error:#}")));
        report.eprint();
        report.exit
    });
    exit.into()
}

fn run(matches: &ArgMatches) -> anyhow::Result<Exit> {
    let cli = Cli::from_arg_matches(matches)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let matches = matches.subcommand().map_or(matches, |(_, matches)| matches);
    let exit = runtime.block_on(async {
        match &cli.command {
            Command::Run(args) => commands::run::run(args, matches).await,
            Command::Mcp(args) => commands::mcp::run(args).await,
            Command::Models(args) => commands::models::run(args, matches).await,
            Command::Config => commands::config::run().await,
            Command::Doctor => commands::doctor::run().await,
            Command::Fake(args) => commands::fake::run(args).await,
            Command::Completions(args) => commands::completions::run(args),
        }
    });
    // A thread that still waits for a disk or for input must not hold up the end.
    runtime.shutdown_background();
    exit
}
