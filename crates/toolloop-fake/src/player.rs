//! [`play`]: does the steps of an answer, one after the other, and writes down what it did.

use std::future::pending;
use std::io;

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::time::sleep;

use crate::log::Recorder;
use crate::playback::{Filler, Step};

/// How a played answer leaves its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Played {
    /// The reply is whole; the next may follow.
    Complete,
    /// The connection is to be closed.
    Close,
    /// The connection is to be reset.
    Reset,
}

/// Does the steps.
///
/// # Errors
/// When the client no longer takes bytes.
pub(crate) async fn play<W: AsyncWrite + Unpin>(
    steps: Vec<Step>,
    keep_alive: bool,
    writer: &mut W,
    recorder: &Recorder,
) -> io::Result<Played> {
    let mut body = Body { writer, recorder, chunked: false };
    for step in steps {
        match step {
            Step::Wait(delay) => sleep(delay).await,
            Step::Head { status, headers } => body.head(status, &headers, keep_alive).await?,
            Step::Write { bytes, event } => {
                body.write(&bytes).await?;
                body.count(event);
            }
            Step::Fill { filler, fill, event } => {
                body.fill(&filler, fill).await?;
                body.count(event);
            }
            Step::Stall { ping: None } => pending().await,
            Step::Stall { ping: Some((interval, ping)) } => loop {
                sleep(interval).await;
                body.write(&ping).await?;
            },
            Step::End => {
                body.end().await?;
                return Ok(Played::Complete);
            }
            Step::Close => return Ok(Played::Close),
            Step::Reset => return Ok(Played::Reset),
        }
    }
    Ok(Played::Close)
}

struct Body<'a, W> {
    writer: &'a mut W,
    recorder: &'a Recorder,
    chunked: bool,
}

impl<W: AsyncWrite + Unpin> Body<'_, W> {
    async fn head(
        &mut self,
        status: u16,
        headers: &[(String, String)],
        keep_alive: bool,
    ) -> io::Result<()> {
        let mut head = format!("HTTP/1.1 {status} {}\r\n", reason(status));
        for (name, value) in headers {
            self.chunked |= name == "transfer-encoding";
            head += &format!("{name}: {value}\r\n");
        }
        head += if keep_alive { "\r\n" } else { "connection: close\r\n\r\n" };
        self.writer.write_all(head.as_bytes()).await?;
        self.recorder.status(status);
        Ok(())
    }

    /// One write of the socket, so that it travels like the delta of a real model.
    async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        if self.chunked {
            let size = format!("{:x}\r\n", bytes.len());
            let chunk = [size.as_bytes(), bytes, b"\r\n"].concat();
            self.writer.write_all(&chunk).await?;
        } else {
            self.writer.write_all(bytes).await?;
        }
        self.recorder.wrote(bytes);
        Ok(())
    }

    async fn fill(&mut self, filler: &Filler, fill: u64) -> io::Result<()> {
        self.write(&filler.prefix).await?;
        let block = [b'a'; 64 << 10];
        let mut left = fill;
        while left > 0 {
            let size = left.min(block.len() as u64);
            // At most the length of the block.
            self.write(&block[..size as usize]).await?;
            left -= size;
        }
        self.write(&filler.suffix).await
    }

    fn count(&self, event: bool) {
        if event {
            self.recorder.event();
        }
    }

    async fn end(&mut self) -> io::Result<()> {
        if self.chunked {
            self.writer.write_all(b"0\r\n\r\n").await?;
        }
        self.writer.flush().await
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        529 => "Overloaded",
        _ => "Status",
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use serde_json::Value;
    use tokio::io::AsyncReadExt;
    use tokio::time::{Instant, timeout};

    use super::*;
    use crate::log::{End, Log, Request};

    const SECOND: Duration = Duration::from_secs(1);

    fn recorder() -> (Arc<Log>, Recorder) {
        let log = Arc::new(Log::new(false, None));
        let request = Request {
            number: 0,
            method: "POST".into(),
            path: "/".into(),
            headers: Vec::new(),
            body: Value::Null,
            bytes: 0,
        };
        let (_, recorder) = log.begin(request);
        (log, recorder)
    }

    fn head() -> Step {
        let chunked = ("transfer-encoding".to_owned(), "chunked".to_owned());
        Step::Head { status: 200, headers: vec![chunked] }
    }

    fn write(text: &str) -> Step {
        Step::Write { bytes: text.into(), event: true }
    }

    #[tokio::test]
    async fn a_stream_is_framed_in_chunks() {
        let (log, recorder) = recorder();
        let mut written = Vec::new();
        let steps = vec![head(), write("one"), write("twenty bytes or more"), Step::End];
        let played = play(steps, true, &mut written, &recorder).await.unwrap();
        recorder.end(End::Complete);
        let expected = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n\
            3\r\none\r\n14\r\ntwenty bytes or more\r\n0\r\n\r\n";
        assert_eq!(
            (String::from_utf8(written).unwrap().as_str(), played),
            (expected, Played::Complete)
        );
        let exchange = log.exchanges().remove(0);
        let recorded = (exchange.status, exchange.events, exchange.bytes, exchange.body_text());
        assert_eq!(recorded, (Some(200), 2, 23, "onetwenty bytes or more".to_owned()));
        assert_eq!(exchange.end, End::Complete);
    }

    #[tokio::test(start_paused = true)]
    async fn delays_take_their_time() {
        let (_log, recorder) = recorder();
        let start = Instant::now();
        let steps = vec![Step::Wait(3 * SECOND), head(), Step::Wait(SECOND), write("x"), Step::End];
        play(steps, true, &mut Vec::new(), &recorder).await.unwrap();
        assert_eq!(start.elapsed(), 4 * SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stall_with_pings_never_ends() {
        let (log, recorder) = recorder();
        let steps = vec![head(), Step::Stall { ping: Some((SECOND, b": ping\n\n".to_vec())) }];
        let mut written = Vec::new();
        let played = timeout(SECOND * 7 / 2, play(steps, true, &mut written, &recorder)).await;
        assert!(played.is_err());
        assert_eq!(log.exchanges()[0].body_text(), ": ping\n\n".repeat(3));
        drop(recorder);
        assert_eq!(log.exchanges()[0].end, End::Stopped);
    }

    #[tokio::test]
    async fn a_huge_event_passes_through_a_small_buffer() {
        let (log, recorder) = recorder();
        let filler = Filler { prefix: b"<".to_vec(), suffix: b">".to_vec() };
        let steps = vec![head(), Step::Fill { filler, fill: 3 << 20, event: true }, Step::End];
        let (mut near, mut far) = tokio::io::duplex(1 << 10);
        let reading = tokio::spawn(async move {
            let (mut buffer, mut total) = ([0; 4096], 0);
            while let n @ 1.. = far.read(&mut buffer).await.unwrap() {
                total += n;
            }
            total
        });
        play(steps, true, &mut near, &recorder).await.unwrap();
        drop(near);
        assert!(reading.await.unwrap() > 3 << 20);
        let exchange = &log.exchanges()[0];
        assert_eq!((exchange.bytes, exchange.events), ((3 << 20) + 2, 1));
        assert_eq!(exchange.body.len(), 1 << 20);
    }
}
