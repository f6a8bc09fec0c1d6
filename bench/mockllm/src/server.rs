//! [`Server`]: the connections, the counters, and where each conversation stands.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use memchr::memmem;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;

use crate::script::Script;
use crate::spec::Spec;

/// Everything the connections share.
#[derive(Default)]
pub(crate) struct Server {
    connections: Cell<u64>,
    requests: Cell<u64>,
    /// Answers that wait for a release now.
    held: Cell<u64>,
    /// Holds that are still to be passed over.
    unheld: Cell<u64>,
    scripts: RefCell<Scripts>,
    release: watch::Sender<()>,
}

/// Rendered answers, by model and number.
type Scripts = HashMap<(Vec<u8>, u32), Rc<Script>>;

impl Server {
    /// Answers the requests of one connection until it ends.
    pub(crate) async fn serve(&self, mut sock: TcpStream) -> std::io::Result<()> {
        self.connections.update(|n| n + 1);
        sock.set_nodelay(true)?;
        let mut buf = Vec::with_capacity(16 * 1024);
        loop {
            let request = loop {
                match Request::parse(&buf) {
                    Ok(Some(request)) if buf.len() >= request.end() => break request,
                    Ok(Some(request)) => buf.reserve(request.end() - buf.len()),
                    Ok(None) => buf.reserve(4096),
                    Err(fault) => return sock.write_all(&bad_request(&fault)).await,
                }
                if sock.read_buf(&mut buf).await? == 0 {
                    return Ok(());
                }
            };
            if request.path == "/v1/chat/completions" {
                self.requests.update(|n| n + 1);
                match self.script(&buf[request.head_len..request.end()]) {
                    Ok(script) => self.send(&mut sock, &script).await?,
                    Err(fault) => sock.write_all(&bad_request(&fault)).await?,
                }
            } else {
                sock.write_all(&self.control(&request.path)).await?;
            }
            if request.close {
                return Ok(());
            }
            buf.drain(..request.end());
        }
    }

    /// The answer that is due: the tool results in the request tell where it stands.
    fn script(&self, body: &[u8]) -> Result<Rc<Script>, String> {
        let start = memmem::find(body, b"\"bench-").ok_or("no model named bench-...")? + 1;
        let len = memchr::memchr(b'"', &body[start..]).ok_or("unterminated model name")?;
        let model = &body[start..start + len];
        let name = std::str::from_utf8(model).map_err(|e| e.to_string())?;
        let spec = Spec::parse(name).ok_or_else(|| format!("cannot read model name {name}"))?;
        let results = memmem::find_iter(body, b"\"tool_call_id\"").count() as u32;
        let n = (results / spec.calls.max(1)).min(spec.iterations);
        let mut scripts = self.scripts.borrow_mut();
        let script = scripts
            .entry((model.to_vec(), n))
            .or_insert_with(|| Rc::new(Script::render(name, spec, n)));
        Ok(script.clone())
    }

    async fn send(&self, sock: &mut TcpStream, script: &Script) -> std::io::Result<()> {
        for (i, write) in script.writes.iter().enumerate() {
            if let (Some(delay), true) = (script.delay, i > 0) {
                tokio::time::sleep(delay).await;
            }
            sock.write_all(&write.data).await?;
            if write.hold_after {
                self.hold().await;
            }
        }
        Ok(())
    }

    async fn hold(&self) {
        if self.unheld.get() > 0 {
            self.unheld.update(|n| n - 1);
            return;
        }
        let mut released = self.release.subscribe();
        self.held.update(|n| n + 1);
        // The sender lives as long as the server.
        let _ = released.changed().await;
        self.held.update(|n| n - 1);
    }

    fn control(&self, path: &str) -> Vec<u8> {
        if let Some(spec) = path.strip_prefix("/ctl/expect/").and_then(Spec::parse) {
            return plain("200 OK", &spec.expectation());
        }
        if let Some(unheld) = path.strip_prefix("/ctl/reset/").and_then(|n| n.parse().ok()) {
            self.connections.set(0);
            self.requests.set(0);
            self.unheld.set(unheld);
            return plain("200 OK", "{}\n");
        }
        match path {
            "/ctl/stats" => plain(
                "200 OK",
                &format!(
                    "{{\"connections\":{},\"requests\":{},\"held\":{}}}\n",
                    self.connections.get(),
                    self.requests.get(),
                    self.held.get()
                ),
            ),
            "/ctl/release" => {
                self.release.send_replace(());
                plain("200 OK", "{}\n")
            }
            _ => plain("404 Not Found", "{}\n"),
        }
    }
}

/// What matters of a request's head.
struct Request {
    path: String,
    head_len: usize,
    body_len: usize,
    /// The client asks to close the connection.
    close: bool,
}

impl Request {
    /// The request at the start of `buf`, once its head is complete.
    fn parse(buf: &[u8]) -> Result<Option<Self>, String> {
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut request = httparse::Request::new(&mut headers);
        let head_len = match request.parse(buf).map_err(|e| e.to_string())? {
            httparse::Status::Partial => return Ok(None),
            httparse::Status::Complete(n) => n,
        };
        let mut body_len = 0;
        let mut close = false;
        for header in request.headers.iter() {
            let name = header.name;
            if name.eq_ignore_ascii_case("content-length") {
                let value = std::str::from_utf8(header.value).map_err(|e| e.to_string())?;
                body_len = value.trim().parse().map_err(|_| "bad content-length")?;
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                return Err("chunked request bodies are not supported".to_owned());
            } else if name.eq_ignore_ascii_case("connection") {
                close = header.value.eq_ignore_ascii_case(b"close");
            }
        }
        let path = request.path.unwrap_or_default().to_owned();
        Ok(Some(Self { path, head_len, body_len, close }))
    }

    fn end(&self) -> usize {
        self.head_len + self.body_len
    }
}

fn bad_request(fault: &str) -> Vec<u8> {
    eprintln!("mockllm: {fault}");
    plain("400 Bad Request", fault)
}

fn plain(status: &str, body: &str) -> Vec<u8> {
    let len = body.len();
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len}\r\n\r\n{body}"
    )
    .into_bytes()
}
