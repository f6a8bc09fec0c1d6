//! `toolloop fake`: serves a fake model on this machine, to try and test programs against.

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
            .cure("Without --port it takes a free one.")
    })?;
    println!("{}", server.base_url());
    eprintln!("Try it: toolloop run --base-url {} --model demo \"…\"", server.base_url());
    Ok(signals.next().await)
}
