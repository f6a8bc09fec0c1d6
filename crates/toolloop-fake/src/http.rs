//! [`RequestReader`]: HTTP/1.1 requests off a socket.
//!
//! The server speaks HTTP by hand because its faults live below HTTP: a cut at a byte, a head
//! that never comes, the bytes that were really written. A library buffers these away.

use std::io;

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::log::{Request, masked};

/// Reads requests, one after the other.
pub(crate) struct RequestReader<R> {
    reader: R,
    buffer: Vec<u8>,
}

/// A request, with what must not be written down.
pub(crate) struct Incoming {
    pub(crate) request: Request,
    /// The key, unmasked: `authorization`, or the header that the API asked has for it.
    pub(crate) authorization: Option<String>,
    /// Whether the client takes another reply on this connection.
    pub(crate) keep_alive: bool,
}

impl<R: AsyncRead + Unpin> RequestReader<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self { reader, buffer: Vec::new() }
    }

    /// The next request; `None` once the client has closed. `writer` takes the interim reply
    /// that a client with a large body may wait for.
    ///
    /// # Errors
    /// When the connection fails or what comes is no HTTP.
    pub(crate) async fn next<W: AsyncWrite + Unpin>(
        &mut self,
        writer: &mut W,
    ) -> io::Result<Option<Incoming>> {
        let head = loop {
            if let Some((head, length)) = Head::parse(&self.buffer)? {
                self.buffer.drain(..length);
                break head;
            }
            if self.buffer.len() > MAX_HEAD {
                return Err(invalid("the head of the request is too long"));
            }
            if self.fill().await? == 0 {
                return Ok(None);
            }
        };
        if head.header("expect").is_some_and(|value| value.eq_ignore_ascii_case("100-continue")) {
            writer.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        }
        let body = if head.header("transfer-encoding").is_some() {
            self.chunked_body().await?
        } else {
            let length = head.header("content-length").unwrap_or("0").trim().parse();
            self.take(length.map_err(|_| invalid("content-length is no number"))?).await?
        };
        Ok(Some(head.with_body(&body)))
    }

    /// Waits until the client closes its side.
    pub(crate) async fn closed(&mut self) {
        // Bytes that come meanwhile begin the next request.
        while matches!(self.fill().await, Ok(n) if n > 0) {}
    }

    async fn chunked_body(&mut self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let line = self.line().await?;
            let size = line.split(';').next().unwrap_or_default().trim();
            let size = usize::from_str_radix(size, 16);
            let size = size.map_err(|_| invalid("the size of a chunk is no number"))?;
            if size == 0 {
                break;
            }
            if body.len() + size > MAX_BODY {
                return Err(invalid("the body is too long"));
            }
            body.append(&mut self.take(size).await?);
            self.line().await?;
        }
        // Trailers, up to the empty line.
        while !self.line().await?.is_empty() {}
        Ok(body)
    }

    async fn line(&mut self) -> io::Result<String> {
        loop {
            if let Some(at) = self.buffer.windows(2).position(|pair| pair == b"\r\n") {
                let line = String::from_utf8_lossy(&self.buffer[..at]).into_owned();
                self.buffer.drain(..at + 2);
                return Ok(line);
            }
            if self.buffer.len() > MAX_HEAD {
                return Err(invalid("a line of the body's framing is too long"));
            }
            self.fill_or_fail().await?;
        }
    }

    async fn take(&mut self, length: usize) -> io::Result<Vec<u8>> {
        if length > MAX_BODY {
            return Err(invalid("the body is too long"));
        }
        while self.buffer.len() < length {
            self.fill_or_fail().await?;
        }
        Ok(self.buffer.drain(..length).collect())
    }

    async fn fill_or_fail(&mut self) -> io::Result<()> {
        match self.fill().await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    async fn fill(&mut self) -> io::Result<usize> {
        self.reader.read_buf(&mut self.buffer).await
    }
}

struct Head {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    old_version: bool,
}

impl Head {
    /// The head at the beginning of the buffer and its length, once it is whole.
    fn parse(buffer: &[u8]) -> io::Result<Option<(Self, usize)>> {
        let mut headers = [httparse::EMPTY_HEADER; 100];
        let mut parsed = httparse::Request::new(&mut headers);
        let status = parsed.parse(buffer).map_err(|error| invalid(&error.to_string()))?;
        let httparse::Status::Complete(length) = status else { return Ok(None) };
        let head = Self {
            method: parsed.method.unwrap_or_default().to_owned(),
            path: parsed.path.unwrap_or_default().to_owned(),
            old_version: parsed.version == Some(0),
            headers: parsed
                .headers
                .iter()
                .map(|header| {
                    let value = String::from_utf8_lossy(header.value).into_owned();
                    (header.name.to_ascii_lowercase(), value)
                })
                .collect(),
        };
        Ok(Some((head, length)))
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    fn with_body(self, body: &[u8]) -> Incoming {
        let connection = self.header("connection").unwrap_or_default().to_ascii_lowercase();
        let keep_alive = !connection.contains("close")
            && (!self.old_version || connection.contains("keep-alive"));
        let keys = ["authorization", "x-api-key", "x-goog-api-key"];
        let authorization = keys.iter().find_map(|name| self.header(name)).map(str::to_owned);
        let headers = self
            .headers
            .into_iter()
            .map(|(name, value)| {
                let value = masked(&name, &value);
                (name, value)
            })
            .collect();
        let request = Request {
            number: 0,
            method: self.method,
            path: self.path,
            headers,
            body: match body {
                [] => Value::Null,
                _ => serde_json::from_slice(body)
                    .unwrap_or_else(|_| String::from_utf8_lossy(body).into()),
            },
            bytes: body.len(),
        };
        Incoming { request, authorization, keep_alive }
    }
}

fn invalid(message: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message.to_owned())
}

const MAX_HEAD: usize = 64 << 10;
const MAX_BODY: usize = 256 << 20;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    async fn read_all(bytes: &[u8]) -> (Vec<Incoming>, Vec<u8>) {
        let (mut reader, mut written) = (RequestReader::new(bytes), Vec::new());
        let mut requests = Vec::new();
        while let Ok(Some(incoming)) = reader.next(&mut written).await {
            requests.push(incoming);
        }
        (requests, written)
    }

    #[tokio::test]
    async fn requests_follow_each_other() {
        let bytes = b"POST /v1/x HTTP/1.1\r\nContent-Length: 7\r\nAuthorization: Bearer secret-key-1234\r\n\r\n{\"a\":1}\
            GET /v1/models HTTP/1.1\r\nConnection: close\r\n\r\n";
        let (requests, _) = read_all(bytes).await;
        let [first, second] = &requests[..] else { panic!("{} requests", requests.len()) };
        assert_eq!(first.request.body, json!({"a": 1}));
        assert_eq!(first.request.header("authorization"), Some("Bearer ****1234"));
        assert_eq!(first.authorization.as_deref(), Some("Bearer secret-key-1234"));
        assert_eq!((first.keep_alive, second.keep_alive), (true, false));
        assert_eq!((second.request.method.as_str(), &second.request.body), ("GET", &Value::Null));
    }

    #[tokio::test]
    async fn a_chunked_body_is_put_together() {
        let bytes = b"POST /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n\
            3\r\n{\"a\r\n4;ext=1\r\n\":1}\r\n0\r\nTrailer: x\r\n\r\n";
        let (requests, _) = read_all(bytes).await;
        assert_eq!(requests[0].request.body, json!({"a": 1}));
    }

    #[tokio::test]
    async fn a_client_that_asks_first_is_told_to_go_on() {
        let bytes = b"POST /x HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nno";
        let (requests, written) = read_all(bytes).await;
        assert_eq!(requests[0].request.body, json!("no"));
        assert_eq!(written, b"HTTP/1.1 100 Continue\r\n\r\n");
    }

    #[tokio::test]
    async fn what_is_no_http_is_an_error() {
        let mut reader = RequestReader::new(&b"\x16\x03\x01 hello\r\n\r\n"[..]);
        assert!(reader.next(&mut Vec::new()).await.is_err());
    }
}
