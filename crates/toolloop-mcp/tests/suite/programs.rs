use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;
use toolloop_mcp::{McpOptions, McpServers, ServerCommand, ServerConfig};

use super::support::call;

/// A server written in the shell: it answers the greeting and one list, and then runs `body`.
fn script(body: &str) -> ServerConfig {
    let text = format!(
        r#"read greeting
echo '{{"jsonrpc":"2.0","id":0,"result":{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"sh","version":"1"}}}}}}'
read initialized; read list
echo '{{"jsonrpc":"2.0","id":1,"result":{{"tools":[{{"name":"x","inputSchema":{{}}}}]}}}}'
{body}"#
    );
    command(&text)
}

fn command(text: &str) -> ServerConfig {
    let args = ["-c".to_owned(), text.to_owned()].into();
    let command = ServerCommand { program: "sh".into(), args, ..ServerCommand::default() };
    ServerConfig::new("files", command)
}

async fn fault(config: ServerConfig) -> String {
    let servers = McpServers::start(vec![config], McpOptions::default()).await;
    servers.faults()[0].to_string()
}

async fn started(config: ServerConfig) -> McpServers {
    let servers = McpServers::start(vec![config], McpOptions::default()).await;
    assert_eq!(servers.faults(), []);
    servers
}

#[tokio::test]
async fn a_program_that_ends_at_once_says_how() {
    assert_eq!(
        fault(command("echo 'npx: not found' >&2; exit 127")).await,
        "server \"files\" ended at once (exit 127: npx: not found)."
    );
    assert_eq!(fault(command("kill -9 $$")).await, "server \"files\" ended at once (signal 9).");
}

#[tokio::test]
async fn a_program_or_folder_that_is_not_there_is_named_with_the_cure() {
    let folder = Some("/no/such/folder".into());
    let command = ServerCommand { program: "sh".into(), folder, ..ServerCommand::default() };
    assert_eq!(
        fault(ServerConfig::new("files", command)).await,
        "server \"files\" cannot be started: there is no folder /no/such/folder. Correct \"cwd\"."
    );

    let command = ServerCommand { program: "no-such-program".into(), ..ServerCommand::default() };
    assert_eq!(
        fault(ServerConfig::new("files", command)).await,
        "server \"files\" cannot be started: there is no program \"no-such-program\". Install it, \
         or correct \"command\"."
    );
}

#[tokio::test]
async fn the_end_in_a_call_is_told_with_the_last_words_but_no_secret() {
    let mut config = script("read call; echo \"bad token $TOKEN\" >&2; exit 3");
    let toolloop_mcp::ServerTransport::Stdio(command) = &mut config.transport else { panic!() };
    command.env.insert("TOKEN".into(), "s3cret-value".to_owned().into());
    let servers = started(config).await;
    let failed = call(&servers, "files__x", json!({})).await.unwrap_err();
    let said = "Server \"files\" ended (exit 3: bad token [redacted]). The call may";
    assert!(failed.starts_with(said), "{failed}");
}

#[tokio::test]
async fn a_program_inherits_no_secret_and_gets_what_it_is_given() {
    let mut config = script(
        r#"read call
echo "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"$(env | grep -c 'CARGO_REGISTRY_TOKEN\|SECRET') $GIVEN ${PATH:+path}\"}]}}"
read more"#,
    );
    let toolloop_mcp::ServerTransport::Stdio(command) = &mut config.transport else { panic!() };
    command.env.insert("GIVEN".into(), "given".to_owned().into());
    let servers = started(config).await;
    let text = call(&servers, "files__x", json!({})).await.unwrap().text;
    assert_eq!(text, "0 given path");
    servers.close().await;
}

#[tokio::test]
async fn nothing_that_a_program_started_outlives_it() {
    let folder = tempfile::tempdir().unwrap();
    let pids = folder.path().join("pids");
    // One grandchild that ignores hints, one in the background; both keep the pipes open.
    let body = format!(
        "(trap '' TERM; sleep 1000) & echo $! >> {0}; sleep 1001 & echo $! >> {0}; wait",
        pids.display()
    );
    let servers = started(script(&body)).await;
    let begun = Instant::now();
    while std::fs::read_to_string(&pids).unwrap_or_default().lines().count() < 2 {
        assert!(begun.elapsed() < Duration::from_secs(10), "the program did not begin");
        tokio::task::yield_now().await;
    }
    let closing = Instant::now();
    servers.close().await;
    assert!(closing.elapsed() < Duration::from_secs(3), "{:?}", closing.elapsed());
    for pid in std::fs::read_to_string(&pids).unwrap().lines() {
        assert_dies(pid);
    }
}

#[tokio::test]
async fn a_program_that_stays_after_its_leader_is_ended_too() {
    let folder = tempfile::tempdir().unwrap();
    let pid = folder.path().join("pid");
    let body = format!("sleep 1000 & echo $! > {}; read call; exit 1", pid.display());
    let servers = started(script(&body)).await;
    let failed = call(&servers, "files__x", json!({})).await.unwrap_err();
    assert!(failed.starts_with("Server \"files\" ended (exit 1). "), "{failed}");
    assert_dies(std::fs::read_to_string(&pid).unwrap().trim());
}

/// A killed process takes a moment to end.
fn assert_dies(pid: &str) {
    let begun = Instant::now();
    while is_alive(pid) {
        assert!(begun.elapsed() < Duration::from_secs(1), "{pid} lives");
        std::thread::yield_now();
    }
}

/// Whether the process runs; one that has ended counts until its parent asks for its status.
fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid).join("stat"));
    let state = stat.ok().and_then(|stat| stat.rsplit_once(") ")?.1.chars().next());
    state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
}
