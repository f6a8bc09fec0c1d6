//! Tools of an MCP server: `cargo run -p toolloop --features mcp --example mcp`.
//!
//! Wants OPENAI_API_KEY, and `npx` for the server, which works on this folder.

use toolloop::mcp::{McpOptions, McpServers, ServerCommand, ServerConfig};
use toolloop::{ChatMessage, ChatParams, LlmError, ToolLoopConfig, ToolRegistry, tool_loop};

#[tokio::main]
async fn main() -> Result<(), LlmError> {
    let args = ["-y", "@modelcontextprotocol/server-filesystem", "."].map(str::to_owned);
    let files =
        ServerCommand { program: "npx".into(), args: args.into(), ..ServerCommand::default() };
    let servers =
        McpServers::start(vec![ServerConfig::new("files", files)], McpOptions::default()).await;
    for fault in servers.faults() {
        eprintln!("error: {fault} The run goes on without its tools.");
    }

    let mut tools = ToolRegistry::new();
    for tool in servers.tools() {
        tools.register_shared(tool);
    }
    let question = ChatMessage::user("Which file in this folder was changed last?");
    let params = ChatParams { messages: vec![question], ..ChatParams::default() };
    let provider = toolloop::provider("openai/gpt-5-mini")?;
    let result = tool_loop(&provider, &tools, params, ToolLoopConfig::default(), &()).await;

    // Before anything else: what the servers started ends here, also after an error.
    servers.close().await;
    println!("{}", result?.response.text().unwrap_or_default());
    Ok(())
}
