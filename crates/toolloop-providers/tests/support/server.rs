//! A loopback server that answers each request with a script of raw bytes.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use toolloop_providers::{OpenAiProvider, OpenAiProviderBuilder};

/// What the server does with a request.
#[derive(Clone)]
pub(crate) enum Act {
    Send(Vec<u8>),
    /// Sends the bytes so many times.
    Repeat(Vec<u8>, usize),
    Pause(Duration),
    /// Says nothing until the client hangs up.
    Hang,
    Close,
}

pub(crate) struct Server {
    pub(crate) url: String,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    scripts: Mutex<std::collections::VecDeque<Vec<Act>>>,
    requests: Mutex<Vec<String>>,
    connections: AtomicUsize,
    hung_up: Notify,
}

impl Server {
    /// The n-th request gets the n-th script; one too many gets an empty answer.
    pub(crate) async fn start(scripts: impl IntoIterator<Item = Vec<Act>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new(Shared::default());
        shared.scripts.lock().unwrap().extend(scripts);
        let server = Self { url, shared: Arc::clone(&shared) };
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                shared.connections.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(serve(socket, Arc::clone(&shared)));
            }
        });
        server
    }

    pub(crate) fn builder(&self) -> OpenAiProviderBuilder {
        OpenAiProvider::builder("test-model").base_url(format!("{}/v1", self.url)).api_key(KEY)
    }

    pub(crate) fn provider(&self) -> OpenAiProvider {
        self.builder().build().unwrap()
    }

    /// The requests so far, head and body.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.shared.requests.lock().unwrap().clone()
    }

    pub(crate) fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::Relaxed)
    }

    /// Waits until a client has closed a connection on which the server hangs.
    pub(crate) async fn hung_up(&self) {
        self.shared.hung_up.notified().await;
    }
}

async fn serve(mut socket: TcpStream, shared: Arc<Shared>) {
    // In virtual time, a piece that the kernel holds back never comes.
    socket.set_nodelay(true).unwrap();
    while let Some(request) = read_request(&mut socket).await {
        shared.requests.lock().unwrap().push(request);
        let script = shared.scripts.lock().unwrap().pop_front().unwrap_or_default();
        for act in script {
            let sent = match act {
                Act::Send(bytes) => socket.write_all(&bytes).await,
                Act::Repeat(bytes, times) => repeat(&mut socket, &bytes, times).await,
                Act::Pause(time) => {
                    tokio::time::sleep(time).await;
                    Ok(())
                }
                Act::Hang => {
                    let mut rest = [0; 64];
                    while socket.read(&mut rest).await.is_ok_and(|read| read > 0) {}
                    shared.hung_up.notify_one();
                    return;
                }
                Act::Close => return,
            };
            if sent.is_err() {
                shared.hung_up.notify_one();
                return;
            }
        }
    }
}

async fn repeat(socket: &mut TcpStream, bytes: &[u8], times: usize) -> std::io::Result<()> {
    for _ in 0..times {
        socket.write_all(bytes).await?;
    }
    Ok(())
}

async fn read_request(socket: &mut TcpStream) -> Option<String> {
    let mut request = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&request).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().unwrap())
            });
            if body.len() >= length.unwrap_or(0) {
                return Some(text);
            }
        }
        let mut piece = [0; 4096];
        match socket.read(&mut piece).await {
            Ok(read) if read > 0 => request.extend_from_slice(&piece[..read]),
            _ => return None,
        }
    }
}

/// An answer of one piece.
pub(crate) fn answer(status: &str, headers: &[(&str, &str)], body: &str) -> Vec<Act> {
    let mut text = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str("\r\n");
    text.push_str(body);
    vec![Act::Send(text.into_bytes())]
}

pub(crate) fn json(status: &str, body: &str) -> Vec<Act> {
    answer(status, &[("content-type", "application/json")], body)
}

/// The head of a stream whose pieces are sent with [`piece`] and ended with [`end`].
pub(crate) fn head() -> Act {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
                transfer-encoding: chunked\r\nx-request-id: req_1\r\n\r\n";
    Act::Send(head.into())
}

pub(crate) fn piece(text: &str) -> Act {
    Act::Send(format!("{:x}\r\n{text}\r\n", text.len()).into_bytes())
}

pub(crate) fn end() -> Act {
    Act::Send(b"0\r\n\r\n".to_vec())
}

/// A whole reply that says this.
pub(crate) fn says(text: &str) -> Vec<Act> {
    vec![head(), piece(&delta(text)), piece(STOP), piece("data: [DONE]\n\n"), end()]
}

pub(crate) fn delta(text: &str) -> String {
    format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n")
}

pub(crate) const STOP: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";

pub(crate) const KEY: &str = "sk-test-0123456789-abcd";
