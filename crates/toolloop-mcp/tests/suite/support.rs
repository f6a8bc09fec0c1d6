//! A scripted server on the other end of a pipe, and a call that remembers its progress.

use std::io;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, WriteHalf, split};
use toolloop_core::{BoxFuture, CallContext, CallHost, ToolContent};
use toolloop_mcp::{McpOptions, McpServers, Pipe, ServerConfig, ServerTransport};

/// What the server does with a message that is no part of the greeting or the list of tools.
type Script = Arc<dyn Fn(Value, Wire) -> BoxFuture<'static, ()> + Send + Sync>;

/// A server that answers the greeting and lists its tools by itself.
#[derive(Clone)]
pub(crate) struct Fake {
    pub(crate) tools: Arc<Mutex<Value>>,
    /// Everything it was told.
    pub(crate) told: Arc<Mutex<Vec<Value>>>,
    /// Whether it can be reached.
    pub(crate) up: Arc<Mutex<bool>>,
    /// Whether it speaks the newest protocol alone.
    pub(crate) newest: bool,
    starts: Arc<Mutex<usize>>,
    script: Script,
}

/// The server's way to us.
#[derive(Clone)]
pub(crate) struct Wire(Arc<tokio::sync::Mutex<Option<WriteHalf<tokio::io::DuplexStream>>>>);

impl Wire {
    pub(crate) async fn send(&self, message: Value) {
        self.raw(format!("{message}\n").as_bytes()).await;
    }

    pub(crate) async fn raw(&self, bytes: &[u8]) {
        if let Some(writer) = self.0.lock().await.as_mut() {
            // The other side may be gone.
            let _ = writer.write_all(bytes).await;
        }
    }

    pub(crate) async fn reply(&self, to: &Value, result: Value) {
        self.send(json!({"jsonrpc": "2.0", "id": to["id"], "result": result})).await;
    }

    pub(crate) async fn reply_text(&self, to: &Value, text: &str) {
        self.reply(to, json!({"content": [{"type": "text", "text": text}]})).await;
    }

    pub(crate) async fn notify(&self, method: &str, params: Value) {
        let method = format!("notifications/{method}");
        self.send(json!({"jsonrpc": "2.0", "method": method, "params": params})).await;
    }

    pub(crate) async fn progress(&self, call: &Value, progress: u32, message: &str) {
        let token = &call["params"]["_meta"]["progressToken"];
        let params = json!({"progressToken": token, "progress": progress, "message": message});
        self.notify("progress", params).await;
    }

    /// The server dies.
    pub(crate) async fn die(&self) {
        if let Some(mut writer) = self.0.lock().await.take() {
            writer.shutdown().await.unwrap();
        }
    }
}

impl Fake {
    /// With tools of these names, and a script for calls.
    pub(crate) fn new<F>(
        tools: &[&str],
        script: impl Fn(Value, Wire) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let tools =
            tools.iter().map(|name| json!({"name": name, "inputSchema": {"type": "object"}}));
        Self {
            tools: Arc::new(Mutex::new(tools.collect())),
            told: Arc::default(),
            up: Arc::new(Mutex::new(true)),
            newest: false,
            starts: Arc::default(),
            script: Arc::new(move |message, wire| Box::pin(script(message, wire))),
        }
    }

    pub(crate) fn config(&self) -> ServerConfig {
        let this = self.clone();
        let open = move || -> BoxFuture<'static, io::Result<Pipe>> {
            let this = this.clone();
            Box::pin(async move { this.open() })
        };
        ServerConfig::new("fake", ServerTransport::Pipe(Arc::new(open)))
    }

    pub(crate) async fn start(&self) -> McpServers {
        let servers = McpServers::start(vec![self.config()], McpOptions::default()).await;
        assert_eq!(servers.faults(), []);
        servers
    }

    pub(crate) fn starts(&self) -> usize {
        *self.starts.lock().unwrap()
    }

    /// What it was told of this method.
    pub(crate) fn told(&self, method: &str) -> Vec<Value> {
        let told = self.told.lock().unwrap();
        told.iter().filter(|message| message["method"] == method).cloned().collect()
    }

    fn open(self) -> io::Result<Pipe> {
        if !*self.up.lock().unwrap() {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        *self.starts.lock().unwrap() += 1;
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let (reader, writer) = split(ours);
        tokio::spawn(self.serve(theirs));
        Ok(Pipe { reader: Box::new(reader), writer: Box::new(writer) })
    }

    async fn serve(self, pipe: tokio::io::DuplexStream) {
        let (reader, writer) = split(pipe);
        let wire = Wire(Arc::new(tokio::sync::Mutex::new(Some(writer))));
        let mut lines = BufReader::new(reader).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let message: Value = serde_json::from_str(&line).unwrap();
            self.told.lock().unwrap().push(message.clone());
            match message["method"].as_str() {
                Some("initialize") if self.newest => {
                    let error = json!({"code": -32601, "message": "Method not found"});
                    let id = &message["id"];
                    wire.send(json!({"jsonrpc": "2.0", "id": id, "error": error})).await;
                }
                Some("server/discover") if self.newest => {
                    let result = json!({"resultType": "complete", "supportedVersions": ["2026-07-28"],
                                        "capabilities": {"tools": {"listChanged": true}},
                                        "ttlMs": 0, "cacheScope": "private"});
                    wire.reply(&message, result).await;
                }
                Some("initialize") => {
                    let capabilities = json!({"tools": {"listChanged": true}});
                    let info = json!({"name": "fake", "version": "1"});
                    let version = &message["params"]["protocolVersion"];
                    let result = json!({"protocolVersion": version, "capabilities": capabilities,
                                        "serverInfo": info});
                    wire.reply(&message, result).await;
                }
                Some("tools/list") => {
                    let tools = self.tools.lock().unwrap().clone();
                    let mut list = json!({"tools": tools});
                    if self.newest {
                        list["resultType"] = "complete".into();
                        list["ttlMs"] = 0.into();
                        list["cacheScope"] = "private".into();
                    }
                    wire.reply(&message, list).await;
                }
                Some("notifications/initialized") => {}
                _ => {
                    tokio::spawn((self.script)(message, wire.clone()));
                }
            }
        }
    }
}

/// A call of a run, with what it showed.
pub(crate) struct Call {
    pub(crate) context: CallContext,
    shown: Arc<Shown>,
}

#[derive(Default)]
struct Shown(Mutex<Vec<String>>);

impl Call {
    pub(crate) fn new() -> Self {
        let shown = Arc::new(Shown::default());
        let host = Arc::clone(&shown) as Arc<dyn CallHost>;
        Self { context: CallContext::new("call_1", "run-7/t/1/0", host), shown }
    }

    pub(crate) fn progress(&self) -> Vec<String> {
        self.shown.0.lock().unwrap().clone()
    }

    /// Calls the first tool of the servers that has this name.
    pub(crate) async fn run(
        &self,
        servers: &McpServers,
        name: &str,
        arguments: Value,
    ) -> Result<ToolContent, String> {
        let tools = servers.tools::<()>();
        let tool = tools.iter().find(|tool| tool.definition().name == name).expect("no such tool");
        let output = tool.call(arguments, &self.context, &()).await;
        output.map(|output| output.content).map_err(|error| error.message)
    }
}

impl CallHost for Shown {
    fn progress(&self, call_id: &str, text: String) {
        assert_eq!(call_id, "call_1");
        self.0.lock().unwrap().push(text);
    }

    fn is_cancelled(&self) -> bool {
        false
    }

    fn cancelled(&self) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}

/// A call whose progress does not matter.
pub(crate) async fn call(
    servers: &McpServers,
    name: &str,
    arguments: Value,
) -> Result<ToolContent, String> {
    Call::new().run(servers, name, arguments).await
}
