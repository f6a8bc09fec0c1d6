use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use toolloop_mcp::{McpOptions, McpServers, ServerAddress, ServerConfig};

use super::support::call;

/// A request as it came.
#[derive(Debug, Clone)]
struct Request {
    /// In small letters, as are the names of headers.
    head: String,
    body: Value,
}

/// Status line and headers, and the body.
type Reply = (String, String);

/// A server that answers with what `reply` makes of a request.
struct Web {
    url: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Web {
    async fn new(reply: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (reply, log) = (Arc::new(reply), Arc::clone(&requests));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, Arc::clone(&reply), Arc::clone(&log)));
            }
        });
        Self { url, requests }
    }

    fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    fn config(&self) -> ServerConfig {
        let headers = [("Authorization".to_owned(), "Bearer s3cret-value".to_owned().into())];
        ServerConfig::new("web", ServerAddress { url: self.url.clone(), headers: headers.into() })
    }

    async fn start(&self) -> McpServers {
        McpServers::start(vec![self.config()], McpOptions::default()).await
    }

    async fn fault(&self) -> String {
        self.start().await.faults()[0].to_string()
    }
}

async fn answer(
    stream: TcpStream,
    reply: Arc<impl Fn(&Request) -> Reply>,
    log: Arc<Mutex<Vec<Request>>>,
) {
    let mut stream = BufReader::new(stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if stream.read_line(&mut head).await.unwrap_or(0) == 0 {
                return;
            }
        }
        let head = head.to_lowercase();
        let length = head
            .split("content-length: ")
            .nth(1)
            .map_or(0, |rest| rest.split("\r\n").next().unwrap().parse().unwrap());
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await.unwrap();
        let request = Request { head, body: serde_json::from_slice(&body).unwrap_or_default() };
        let (head, body) = reply(&request);
        log.lock().unwrap().push(request);
        let length = body.len();
        let text = format!("HTTP/1.1 {head}\r\ncontent-length: {length}\r\n\r\n{body}");
        if stream.write_all(text.as_bytes()).await.is_err() {
            return;
        }
    }
}

fn ok(request: &Request, result: Value) -> Reply {
    let body = json!({"jsonrpc": "2.0", "id": request.body["id"], "result": result});
    ("200 OK\r\ncontent-type: application/json".to_owned(), body.to_string())
}

fn status(line: &str) -> Reply {
    (line.to_owned(), String::new())
}

/// What a good server answers; in the session of this name.
fn good(request: &Request, session: &str) -> Reply {
    match request.body["method"].as_str() {
        Some("initialize") => {
            let result = json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                                "serverInfo": {"name": "web", "version": "1"}});
            let (head, body) = ok(request, result);
            (format!("{head}\r\nmcp-session-id: {session}"), body)
        }
        Some("tools/list") => ok(request, json!({"tools": [{"name": "x", "inputSchema": {}}]})),
        Some("tools/call") => ok(request, json!({"content": [{"type": "text", "text": "fine"}]})),
        Some(_) => status("202 Accepted"),
        // It has nothing to say by itself.
        None => status("405 Method Not Allowed"),
    }
}

#[tokio::test]
async fn every_request_carries_the_headers() {
    let web = Web::new(|request| good(request, "s")).await;
    let servers = web.start().await;
    assert_eq!(servers.faults(), []);
    assert_eq!(call(&servers, "web__x", json!({})).await.unwrap().text, "fine");
    servers.close().await;
    let requests = web.requests();
    assert!(requests.len() >= 4, "{requests:?}");
    for request in requests {
        assert!(request.head.contains("authorization: bearer s3cret-value"), "{request:?}");
    }
}

#[tokio::test]
async fn a_server_that_wants_a_key_is_told_apart_from_one_that_is_not_there() {
    let web = Web::new(|_| status("401 Unauthorized\r\nwww-authenticate: Bearer")).await;
    let fault = web.fault().await;
    let said = format!("server \"web\" at {} wants a key: ", web.url);
    assert!(fault.starts_with(&said) && fault.ends_with("Give it in \"headers\"."), "{fault}");

    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    drop(listener);
    let gone = Web { url, requests: Arc::default() };
    let fault = gone.fault().await;
    let said = format!("server \"web\" cannot be reached at {}: ", gone.url);
    assert!(fault.starts_with(&said), "{fault}");
    assert!(fault.contains("refused"), "{fault}");
    assert!(fault.ends_with("Start it, or correct \"url\"."), "{fault}");
}

#[tokio::test]
async fn what_is_no_server_says_so_and_no_key_is_told() {
    let page = "<html>s3cret-value</html>";
    let web = Web::new(move |_| ("404 Not Found".to_owned(), page.to_owned())).await;
    let fault = web.fault().await;
    assert!(fault.contains("404"), "{fault}");
    assert!(!fault.contains("s3cret-value"), "{fault}");
}

#[tokio::test]
async fn a_redirect_to_somebody_else_is_not_followed() {
    let other = Web::new(|request| good(request, "s")).await;
    let there = other.url.clone();
    let web =
        Web::new(move |_| status(&format!("307 Temporary Redirect\r\nlocation: {there}"))).await;
    let fault = web.fault().await;
    assert!(fault.contains("307"), "{fault}");
    assert_eq!(other.requests().len(), 0);
}

#[tokio::test]
async fn a_lost_session_fails_one_call_and_the_next_opens_another() {
    // It forgets the first session at the first call, and names no call in saying so.
    let sessions = Arc::new(Mutex::new(0));
    let web = Web::new(move |request| {
        let mut sessions = sessions.lock().unwrap();
        if request.body["method"] == "initialize" {
            *sessions += 1;
        }
        let lost = request.body["method"] == "tools/call"
            && request.head.contains("mcp-session-id: s1\r\n");
        if lost {
            let error = json!({"code": -32000, "message": "No valid session"});
            let body = json!({"jsonrpc": "2.0", "id": null, "error": error});
            let head = "400 Bad Request\r\ncontent-type: application/json";
            return (head.to_owned(), body.to_string());
        }
        good(request, &format!("s{sessions}"))
    })
    .await;
    let servers = web.start().await;
    assert_eq!(servers.faults(), []);
    let lost = call(&servers, "web__x", json!({})).await.unwrap_err();
    assert!(lost.starts_with("Server \"web\" answered: No valid session. "), "{lost}");
    assert_eq!(call(&servers, "web__x", json!({})).await.unwrap().text, "fine");
}

#[tokio::test]
async fn a_server_that_fails_in_a_call_is_reached_anew() {
    let failed = Arc::new(Mutex::new(false));
    let web = Web::new(move |request| {
        let is_call = request.body["method"] == "tools/call";
        match is_call && !std::mem::replace(&mut *failed.lock().unwrap(), is_call) {
            true => status("502 Bad Gateway"),
            false => good(request, "s"),
        }
    })
    .await;
    let servers = web.start().await;
    let failed = call(&servers, "web__x", json!({})).await.unwrap_err();
    assert!(failed.starts_with("Server \"web\" cannot be reached: HTTP 502. "), "{failed}");
    assert_eq!(call(&servers, "web__x", json!({})).await.unwrap().text, "fine");
}

#[tokio::test]
async fn an_address_or_header_that_cannot_be_is_named() {
    let refused = async |url: &str, header: &str| {
        let headers = [(header.to_owned(), "x".to_owned().into())].into();
        let address = ServerAddress { url: url.to_owned(), headers };
        let config = ServerConfig::new("web", address);
        McpServers::start(vec![config], McpOptions::default()).await.faults()[0].to_string()
    };
    assert_eq!(
        refused("example.org/mcp", "A").await,
        "server \"web\" has the url \"example.org/mcp\". Begin it with http:// or https://."
    );
    assert_eq!(
        refused("http://127.0.0.1:1", "my header").await,
        "server \"web\" has a header \"my header\" that HTTP cannot carry. Correct it."
    );
}
