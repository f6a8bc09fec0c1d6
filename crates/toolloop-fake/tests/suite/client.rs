use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};
use toolloop_fake::FakeServer;

/// A connection that shows what comes as it comes.
pub(crate) struct Client {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// A response as far as it came.
#[derive(Debug, PartialEq)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    /// Without the framing.
    pub(crate) body: String,
    pub(crate) whole: bool,
}

impl Client {
    pub(crate) fn connect(server: &FakeServer) -> Self {
        Self::connect_to(server.address())
    }

    pub(crate) fn connect_to(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        // A test that would hang fails instead.
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        Self { stream, buffer: Vec::new() }
    }

    /// Asks for a completion.
    pub(crate) fn ask(&mut self, body: &Value) -> Response {
        self.send("POST", "/v1/chat/completions", &[], body);
        self.response()
    }

    pub(crate) fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &Value,
    ) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.send_text(method, path, headers, &body);
    }

    /// Sends a body that need not be JSON.
    pub(crate) fn send_text(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) {
        let mut request = format!("{method} {path} HTTP/1.1\r\nhost: test\r\n");
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        request += &format!("content-length: {}\r\n\r\n{body}", body.len());
        self.stream.write_all(request.as_bytes()).unwrap();
    }

    /// Reads until the response ends or the connection does.
    pub(crate) fn response(&mut self) -> Response {
        let head = self.read_until(b"\r\n\r\n").expect("the connection closed before the head");
        let mut lines = head.trim_end().split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers: Vec<(String, String)> = lines
            .map(|line| {
                let (name, value) = line.split_once(": ").unwrap();
                (name.to_owned(), value.to_owned())
            })
            .collect();
        let header = |name: &str| headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str());
        let (body, whole) = match header("content-length") {
            Some(length) => self.sized_body(length.parse().unwrap()),
            None => self.chunked_body(),
        };
        let body = String::from_utf8_lossy(&body).into_owned();
        Response { status, headers, body, whole }
    }

    /// The text up to and including `mark`; `None` where the connection ends before.
    pub(crate) fn read_until(&mut self, mark: &[u8]) -> Option<String> {
        loop {
            if let Some(at) = self.buffer.windows(mark.len()).position(|window| window == mark) {
                let text = self.buffer.drain(..at + mark.len()).collect();
                return Some(String::from_utf8(text).unwrap());
            }
            if !self.fill() {
                return None;
            }
        }
    }

    /// Everything that comes until the connection ends.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        while self.fill() {}
        std::mem::take(&mut self.buffer)
    }

    /// The error with which the connection ends, if it is one.
    pub(crate) fn end(&mut self) -> Option<ErrorKind> {
        match self.stream.read(&mut [0; 64]) {
            Ok(0) => None,
            Ok(n) => panic!("{n} bytes came"),
            Err(error) => Some(error.kind()),
        }
    }

    /// Closes the sending side.
    pub(crate) fn hang_up(&mut self) {
        self.stream.shutdown(Shutdown::Write).unwrap();
    }

    fn sized_body(&mut self, length: usize) -> (Vec<u8>, bool) {
        while self.buffer.len() < length && self.fill() {}
        let end = length.min(self.buffer.len());
        (self.buffer.drain(..end).collect(), end == length)
    }

    fn chunked_body(&mut self) -> (Vec<u8>, bool) {
        let mut body = Vec::new();
        loop {
            let Some(size) = self.read_until(b"\r\n") else { return (body, false) };
            let size = usize::from_str_radix(size.trim(), 16).unwrap();
            let (mut chunk, whole) = self.sized_body(size);
            body.append(&mut chunk);
            if !whole || self.read_until(b"\r\n").is_none() {
                return (body, false);
            }
            if size == 0 {
                return (body, true);
            }
        }
    }

    fn fill(&mut self) -> bool {
        let mut bytes = [0; 64 << 10];
        match self.stream.read(&mut bytes) {
            Ok(n) => {
                self.buffer.extend_from_slice(&bytes[..n]);
                n > 0
            }
            Err(error) if error.kind() == ErrorKind::ConnectionReset => false,
            Err(error) => panic!("nothing comes: {error}"),
        }
    }
}

impl Response {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// The events of a stream, without `data: ` and the blank line.
    pub(crate) fn events(&self) -> Vec<&str> {
        let events = self.body.split_terminator("\n\n");
        events.map(|event| event.strip_prefix("data: ").unwrap_or(event)).collect()
    }

    /// The text of a streamed reply.
    pub(crate) fn text(&self) -> String {
        let chunks = self.events();
        let chunks = chunks.iter().filter_map(|event| serde_json::from_str::<Value>(event).ok());
        chunks
            .filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str().map(str::to_owned))
            .collect()
    }
}

/// A request for a stream.
pub(crate) fn streamed() -> Value {
    json!({"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": true})
}

/// A request for one object.
pub(crate) fn whole() -> Value {
    json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]})
}
