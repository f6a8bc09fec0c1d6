//! [`Lines`]: the transport of messages that are lines of JSON, over a program or a pipe.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{ErrorData, RequestId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::select;
use tokio::sync::Mutex;
use tokio::time::sleep;

use crate::config::Pipe;
use crate::ending::Ending;
use crate::process::Process;

type Writer = Box<dyn AsyncWrite + Send + Unpin>;

/// Reads and writes one message a line.
///
/// What is no JSON is passed over: servers print greetings on standard output. A message that
/// is too long ends the connection, because nobody can tell which call it would have answered.
pub(crate) struct Lines {
    reader: BufReader<Box<dyn AsyncRead + Send + Unpin>>,
    /// The line that is being read. It is here so that a dropped `receive` loses nothing.
    line: Vec<u8>,
    writer: Arc<Mutex<Option<Writer>>>,
    /// Set when a message could not be written: the server listens no more.
    deaf: Ending,
    process: Option<Process>,
    /// The last line that was no message.
    babble: Option<String>,
    ending: Ending,
}

impl Lines {
    pub(crate) fn new(pipe: Pipe, process: Option<Process>, ending: Ending) -> Self {
        Self {
            reader: BufReader::new(pipe.reader),
            line: Vec::new(),
            writer: Arc::new(Mutex::new(Some(pipe.writer))),
            deaf: Ending::new(),
            process,
            babble: None,
            ending,
        }
    }

    /// Reads to the end of a line, or of the connection.
    async fn read_line(&mut self) -> Result<(), String> {
        loop {
            let Self { reader, process, deaf, .. } = self;
            let over = async {
                match process {
                    Some(process) => select! {
                        () = process.exited() => {}
                        () = deaf.wait() => {}
                    },
                    None => deaf.wait().await,
                }
                sleep(DRAIN).await;
            };
            let available = select! {
                available = reader.fill_buf() => available,
                // Only a process that was left behind keeps the output open for longer.
                () = over => Ok(&[][..]),
            };
            let available = match available {
                Ok([]) => return Err(CLOSED.to_owned()),
                Ok(available) => available,
                Err(error) => return Err(format!("closed the connection ({error})")),
            };
            let end = available.iter().position(|&byte| byte == b'\n');
            let take = end.map_or(available.len(), |at| at + 1);
            if self.line.len() + take > LONGEST {
                return Err(format!("sent a message of more than {} MiB", LONGEST >> 20));
            }
            self.line.extend_from_slice(&available[..take]);
            self.reader.consume(take);
            if end.is_some() {
                return Ok(());
            }
        }
    }

    /// Closes the way to the server, which asks it to end, and says how it went.
    async fn end(&mut self, why: String) {
        // A send that is stuck holds the lock; the program is then killed.
        if let Ok(mut writer) = self.writer.try_lock() {
            writer.take();
        }
        let ended = match &mut self.process {
            Some(process) => Some(process.end().await),
            None => None,
        };
        // Programs that print their complaint in the wrong place are not rare.
        let babble = self.babble.take();
        let ended = match ended {
            Some((exit, said)) if why == CLOSED => match said.or(babble) {
                Some(said) => format!("ended ({exit}: {said})"),
                None => format!("ended ({exit})"),
            },
            Some(_) => why,
            None => why + &babble.map(|said| format!(" ({said})")).unwrap_or_default(),
        };
        self.ending.set(ended);
    }
}

impl Transport<RoleClient> for Lines {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let (writer, deaf) = (Arc::clone(&self.writer), self.deaf.clone());
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let mut writer = writer.lock().await;
            let writer = writer.as_mut().ok_or(io::ErrorKind::NotConnected)?;
            let written = async {
                writer.write_all(&line).await?;
                writer.flush().await
            };
            // No error here: the reading side finds out more, such as how a program exited.
            if let Err(error) = written.await {
                deaf.set(error.to_string());
            }
            Ok(())
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            if let Err(why) = self.read_line().await {
                self.end(why).await;
                return None;
            }
            let line = std::mem::take(&mut self.line);
            let line = line.trim_ascii();
            match serde_json::from_slice(line).ok().or_else(|| unreadable_reply(line)) {
                Some(message) => return Some(message),
                None if line.is_empty() => {}
                None => {
                    let text = String::from_utf8_lossy(line);
                    let shown = text.chars().filter(|c| !c.is_control());
                    self.babble = Some(shown.take(LONGEST_QUOTE).collect());
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.end("was closed".to_owned()).await;
        Ok(())
    }
}

/// What to take a reply for that names its call and is not right otherwise: an error, so that the
/// call does not wait for ever.
fn unreadable_reply(line: &[u8]) -> Option<RxJsonRpcMessage<RoleClient>> {
    let reply: Value = serde_json::from_slice(line).ok()?;
    let id: RequestId = serde_json::from_value(reply.get("id")?.clone()).ok()?;
    let fault = reply.get("error").or(reply.get("result"))?;
    let text: String = fault.to_string().chars().take(LONGEST_QUOTE).collect();
    Some(RxJsonRpcMessage::<RoleClient>::error(ErrorData::internal_error(text, None), Some(id)))
}

const CLOSED: &str = "closed the connection";
/// For what is still in the pipes after the end.
const DRAIN: Duration = Duration::from_millis(200);
/// In bytes. A larger result would not fit any model either.
const LONGEST: usize = 16 << 20;
/// In characters.
const LONGEST_QUOTE: usize = 200;
