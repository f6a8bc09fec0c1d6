//! `toolloop fake`: serves a fake model on this machine, to try and test programs against.

use std::io::{self, Write};
use std::time::Duration;

use toolloop_fake::{FakeServer, Script};

use crate::args::FakeArgs;
use crate::exit::Exit;
use crate::report::Report;
use crate::signals::Signals;

/// Serves until it is interrupted.
pub(crate) async fn run(args: &FakeArgs) -> anyhow::Result<Exit> {
    let script = match &args.script {
        Some(path) => Script::load(path)
            .map_err(|error| Report::usage(format!("{}: {error}", path.display())))?,
        None => Script::demo(Duration::from_millis(15)),
    };
    let script = match &args.require_key {
        Some(key) => script.forget().require_key(key),
        None => script.forget(),
    };
    let mut signals = Signals::listen()?;
    let server = FakeServer::bind(([127, 0, 0, 1], args.port), script).map_err(|error| {
        Report::new(Exit::Failed, "server", format!("cannot listen on port {}: {error}", args.port))
            .advice("Without --port it takes a free one.")
    })?;
    let url = server.base_url();
    writeln!(io::stdout(), "{url}")?;
    // The address is what a script reads; the hint is for people and may get lost.
    let _ = writeln!(io::stderr(), "Try it: toolloop run --base-url {url} --model demo \"…\"");
    Ok(signals.next().await)
}
