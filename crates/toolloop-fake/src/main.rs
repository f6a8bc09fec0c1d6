//! The command `toolloop-fake`: serves the demo model or a script file.

use std::fs::File;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use toolloop_fake::{FakeServer, Script};

/// A fake model provider: speaks OpenAI Chat Completions strictly, on the loopback.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// The port to listen on; 0 is any free one.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// The address to listen on.
    #[arg(long, default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    host: IpAddr,
    /// The model to serve.
    #[arg(long, value_enum, default_value_t = Model::Demo)]
    model: Model,
    /// Serves the replies in this file of JSON lines instead.
    #[arg(long, value_name = "FILE", conflicts_with = "model")]
    script: Option<PathBuf>,
    /// Pause of the demo model before every word, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = Script::DEMO_WORD_DELAY.as_millis() as u64)]
    word_delay: u64,
    /// Refuses requests without this key.
    #[arg(long, value_name = "KEY")]
    require_key: Option<String>,
    /// Appends one JSON line for each request to this file; `-` is stdout.
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Model {
    /// Scripted: lists and reads a folder through tool calls.
    Demo,
}

fn main() -> ExitCode {
    match serve(Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

fn serve(arguments: Arguments) -> Result<(), String> {
    let mut script = match (&arguments.script, arguments.model) {
        (Some(path), _) => {
            Script::load(path).map_err(|error| format!("{}: {error}", path.display()))?
        }
        (None, Model::Demo) => Script::demo(Duration::from_millis(arguments.word_delay)),
    };
    // Nobody asks this process what it has seen.
    script = script.forget();
    if let Some(key) = arguments.require_key {
        script = script.require_key(key);
    }
    if let Some(path) = arguments.log {
        script = script.log_to(log_file(&path).map_err(|e| format!("{}: {e}", path.display()))?);
    }
    let address = (arguments.host, arguments.port);
    let server = FakeServer::bind(address, script).map_err(|error| {
        format!("cannot listen on {}:{}: {error}", arguments.host, arguments.port)
    })?;
    println!("listening on {}", server.base_url());
    server.join();
    Ok(())
}

fn log_file(path: &PathBuf) -> io::Result<Box<dyn Write + Send>> {
    if path.as_os_str() == "-" {
        return Ok(Box::new(io::stdout()));
    }
    Ok(Box::new(File::options().create(true).append(true).open(path)?))
}
