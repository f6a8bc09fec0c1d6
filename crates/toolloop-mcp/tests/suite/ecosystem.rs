//! The variables hold a command each, words separated by spaces.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use toolloop_core::ToolContent;
use toolloop_mcp::{
    Answer, McpOptions, McpServers, ServerAddress, ServerCommand, ServerConfig, ServerTransport,
};

use super::support::Call;

/// The command in this variable; says that the test was skipped where it is not set.
fn command(variable: &str) -> Option<ServerCommand> {
    let Ok(line) = std::env::var(variable) else {
        eprintln!("skipped: {variable} is not set");
        return None;
    };
    let mut words = line.split_whitespace().map(str::to_owned);
    let program = words.next()?;
    Some(ServerCommand { program, args: words.collect(), ..ServerCommand::default() })
}

async fn start(name: &str, transport: impl Into<ServerTransport>) -> McpServers {
    let options = McpOptions {
        folder: Some("/srv".into()),
        elicit: Some(Arc::new(|_| {
            Box::pin(async { Answer::Accept(Some(json!({"name": "Ada", "check": true}))) })
        })),
    };
    let servers = McpServers::start(vec![ServerConfig::new(name, transport)], options).await;
    assert_eq!(servers.faults(), []);
    servers
}

async fn ok(servers: &McpServers, name: &str, arguments: Value) -> ToolContent {
    Call::new().run(servers, name, arguments).await.unwrap()
}

/// What `server-everything` can do, whatever carries it.
async fn everything(servers: &McpServers) {
    let sum = ok(servers, "all__get-sum", json!({"a": 2, "b": 3})).await;
    assert_eq!(sum.text, "The sum of 2 and 3 is 5.");

    let image = ok(servers, "all__get-tiny-image", json!({})).await;
    assert_eq!(image.images.len(), 1);
    assert_eq!(image.images[0].media_type, "image/png");

    let links = ok(servers, "all__get-resource-links", json!({"count": 2})).await;
    assert_eq!(links.text.matches("[resource demo://").count(), 2, "{}", links.text);

    let location = json!({"location": "New York"});
    let weather = ok(servers, "all__get-structured-content", location).await;
    assert!(weather.structured.as_ref().is_some_and(|data| data["temperature"].is_number()));

    let call = Call::new();
    let arguments = json!({"duration": 0.2, "steps": 4});
    call.run(servers, "all__trigger-long-running-operation", arguments).await.unwrap();
    assert_eq!(call.progress(), ["[1/4]", "[2/4]", "[3/4]", "[4/4]"]);

    let asked = ok(servers, "all__trigger-elicitation-request", json!({})).await;
    assert!(asked.text.contains("Ada"), "{}", asked.text);
    let roots = ok(servers, "all__get-roots-list", json!({})).await;
    assert!(roots.text.contains("file:///srv"), "{}", roots.text);

    let refused = Call::new().run(servers, "all__get-sum", json!({"a": "x"})).await.unwrap_err();
    assert!(refused.contains("invalid") || refused.contains("Invalid"), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_everything_over_stdio() {
    let Some(command) = command("TOOLLOOP_MCP_EVERYTHING") else { return };
    let servers = start("all", command).await;
    everything(&servers).await;
    servers.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_everything_over_http_and_after_its_restart() {
    let Some(mut command) = command("TOOLLOOP_MCP_EVERYTHING") else { return };
    command.args.push("streamableHttp".into());
    let port = free_port();
    let server = listening(&command, port).await;
    let url = format!("http://127.0.0.1:{port}/mcp");
    let servers = start("all", ServerAddress { url, ..ServerAddress::default() }).await;
    everything(&servers).await;

    drop(server);
    let lost = Call::new().run(&servers, "all__get-sum", json!({"a": 2, "b": 3})).await;
    let lost = lost.unwrap_err();
    assert!(lost.starts_with("Server \"all\" cannot be reached: "), "{lost}");
    let server = listening(&command, port).await;
    let sum = ok(&servers, "all__get-sum", json!({"a": 2, "b": 3})).await;
    assert_eq!(sum.text, "The sum of 2 and 3 is 5.");

    // Another one in its place, which does not know our session, and names no call in saying so.
    drop(server);
    let _server = listening(&command, port).await;
    let lost = Call::new().run(&servers, "all__get-sum", json!({"a": 2, "b": 3})).await;
    let lost = lost.unwrap_err();
    assert!(lost.starts_with("Server \"all\" "), "{lost}");
    let sum = ok(&servers, "all__get-sum", json!({"a": 2, "b": 3})).await;
    assert_eq!(sum.text, "The sum of 2 and 3 is 5.");
    servers.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_filesystem_works_in_its_folder_only() {
    let Some(mut command) = command("TOOLLOOP_MCP_FILESYSTEM") else { return };
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let note = root.join("note.txt");
    command.args.push(root.display().to_string());
    let options = McpOptions { folder: Some(root), ..McpOptions::default() };
    let servers = McpServers::start(vec![ServerConfig::new("fs", command)], options).await;
    ok(&servers, "fs__write_file", json!({"path": note, "content": "hello"})).await;
    assert_eq!(std::fs::read_to_string(&note).unwrap(), "hello");
    assert_eq!(ok(&servers, "fs__read_text_file", json!({"path": note})).await.text, "hello");
    let outside = json!({"path": "/etc/passwd"});
    let refused = Call::new().run(&servers, "fs__read_text_file", outside).await.unwrap_err();
    assert!(refused.contains("Access denied"), "{refused}");
    servers.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mcp_server_time_tells_the_time() {
    let Some(command) = command("TOOLLOOP_MCP_TIME") else { return };
    let servers = start("time", command).await;
    let arguments =
        json!({"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"});
    let told = ok(&servers, "time__convert_time", arguments).await;
    assert!(told.text.contains("T21:00:00+09:00"), "{}", told.text);
    servers.close().await;
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// Starts an HTTP server and waits until it says that it listens.
async fn listening(command: &ServerCommand, port: u16) -> tokio::process::Child {
    let mut child = tokio::process::Command::new(&command.program)
        .args(&command.args)
        .env("PORT", port.to_string())
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let ready = async {
        while let Some(line) = lines.next_line().await.unwrap() {
            if line.contains("listening") {
                // The pipe stays open, or the server's next words would kill it.
                tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
                return;
            }
        }
        panic!("the server ended");
    };
    tokio::time::timeout(Duration::from_secs(30), ready).await.expect("the server did not start");
    child
}
