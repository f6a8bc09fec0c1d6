//! The client that the protocol's conformance suite drives: connects to the server at the address
//! in its last argument, calls every tool once, and accepts every question.
//!
//! ```sh
//! conformance client --command target/debug/examples/conformance --scenario tools_call
//! ```

use std::process::ExitCode;
use std::sync::Arc;

use serde_json::json;
use toolloop_core::CallContext;
use toolloop_mcp::{Answer, McpOptions, McpServers, ServerAddress, ServerConfig};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let Some(url) = std::env::args().next_back().filter(|url| url.starts_with("http")) else {
        eprintln!("usage: conformance URL");
        return ExitCode::from(2);
    };
    let address = ServerAddress { url, ..ServerAddress::default() };
    let options = McpOptions {
        elicit: Some(Arc::new(|question| {
            eprintln!("asked: {}", question.message);
            Box::pin(async { Answer::Accept(Some(json!({}))) })
        })),
        ..McpOptions::default()
    };
    let servers = McpServers::start(vec![ServerConfig::new("server", address)], options).await;
    for fault in servers.faults() {
        eprintln!("{fault}");
    }
    let mut failed = !servers.faults().is_empty();
    for tool in servers.tools::<()>() {
        let name = tool.definition().name;
        let arguments = match name.as_str() {
            "server__add_numbers" => json!({"a": 2, "b": 3}),
            _ => json!({}),
        };
        match tool.call(arguments, &CallContext::detached("1"), &()).await {
            Ok(output) => println!("{name}: {}", output.content),
            Err(error) => {
                eprintln!("{name}: {error}");
                failed = true;
            }
        }
    }
    servers.close().await;
    ExitCode::from(u8::from(failed))
}
