//! [`Http`]: connections to the server, one HTTP/1.1 connection per conversation at a time.

use std::sync::Mutex;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::text;

pub(crate) type Connection = SendRequest<Full<Bytes>>;

pub(crate) struct Http {
    authority: String,
    path: String,
    idle: Mutex<Vec<Connection>>,
}

impl Http {
    pub(crate) fn new(base_url: &str) -> Self {
        let rest = base_url.strip_prefix("http://").expect("--base-url must be http://");
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        Self {
            authority: authority.to_owned(),
            path: format!("/{path}/chat/completions"),
            idle: Mutex::default(),
        }
    }

    pub(crate) async fn connection(&self) -> Result<Connection, String> {
        if let Some(connection) = self.idle.lock().expect("no panic under the lock").pop() {
            return Ok(connection);
        }
        let sock = TcpStream::connect(&self.authority).await.map_err(text)?;
        sock.set_nodelay(true).map_err(text)?;
        let (sender, connection) = http1::handshake(TokioIo::new(sock)).await.map_err(text)?;
        tokio::spawn(connection);
        Ok(sender)
    }

    pub(crate) async fn post(
        &self,
        connection: &mut Connection,
        body: Bytes,
    ) -> Result<Response<Incoming>, String> {
        let request = Request::post(&self.path)
            .header("host", &self.authority)
            .header("authorization", "Bearer none")
            .header("content-type", "application/json")
            .header("accept", "text/event-stream")
            .body(Full::new(body))
            .map_err(text)?;
        connection.ready().await.map_err(text)?;
        let response = connection.send_request(request).await.map_err(text)?;
        if !response.status().is_success() {
            return Err(format!("status {}", response.status()));
        }
        Ok(response)
    }

    /// Keeps a connection for the next conversation.
    pub(crate) fn rest(&self, connection: Connection) {
        self.idle.lock().expect("no panic under the lock").push(connection);
    }
}
