//! [`FakeServer`]: a model provider on the loopback.

use std::net::{Ipv4Addr, SocketAddr, TcpListener as StdListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use std::{fmt, io, thread};

use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::http::{Incoming, RequestReader};
use crate::log::{End, Exchange, Log, Request};
use crate::playback::Answer;
use crate::player::{Played, play};
use crate::script::Script;
use crate::{anthropic, gemini, ollama, openai_chat};

/// A model provider on the loopback, until it is dropped.
///
/// It runs on a thread of its own, so it serves programs with any runtime or none, and virtual
/// time in a test does not reach it; where it should, there is
/// [`start_here`](Self::start_here).
pub struct FakeServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl FakeServer {
    /// Serves a script on a free port of the loopback.
    ///
    /// # Panics
    /// When the machine has no free port on its loopback, or no thread; see
    /// [`bind`](Self::bind).
    pub fn start(script: Script) -> Self {
        match Self::bind((Ipv4Addr::LOCALHOST, 0), script) {
            Ok(server) => server,
            Err(error) => panic!("the fake server cannot start: {error}"),
        }
    }

    /// The same on the runtime of the caller, whose clock it keeps: where a test has paused the
    /// time, a stall of a minute with a ping every ten seconds takes none.
    ///
    /// # Panics
    /// Outside a tokio runtime, or when the machine has no free port on its loopback.
    pub fn start_here(script: Script) -> Self {
        let (listener, address) = match listen((Ipv4Addr::LOCALHOST, 0).into()) {
            Ok(listening) => listening,
            Err(error) => panic!("the fake server cannot start: {error}"),
        };
        let shared = Arc::new(Shared::new(script));
        let (stop, stopped) = oneshot::channel();
        tokio::spawn(serve(listener, Arc::clone(&shared), stopped));
        Self { address, shared, stop: Some(stop), thread: None }
    }

    /// Serves a script at an address; port 0 is any free one.
    ///
    /// # Errors
    /// When the address is taken or not of this machine, or there is no thread to be had.
    pub fn bind(address: impl Into<SocketAddr>, script: Script) -> io::Result<Self> {
        let (listener, address) = listen(address.into())?;
        let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
        let shared = Arc::new(Shared::new(script));
        let (stop, stopped) = oneshot::channel();
        let thread = thread::Builder::new().name("toolloop-fake".to_owned()).spawn({
            let shared = Arc::clone(&shared);
            move || runtime.block_on(serve(listener, shared, stopped))
        })?;
        Ok(Self { address, shared, stop: Some(stop), thread: Some(thread) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What a client of the API takes as its base URL; it ends in `/v1`.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The requests so far, in the order in which they came.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.log.requests()
    }

    /// The requests so far with what was really written in answer, in the order of the requests.
    pub fn log(&self) -> Vec<Exchange> {
        self.shared.log.exchanges()
    }

    /// How many connections were opened so far.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::Relaxed)
    }

    /// Waits until every request so far has had its reply, or its client has gone.
    pub async fn idle(&self) {
        self.shared.log.idle().await;
    }

    /// Serves on, for ever: it does not end by itself.
    pub fn join(mut self) {
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for FakeServer {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            // It only panics where a script does, and has said so.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for FakeServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FakeServer").field("base_url", &self.base_url()).finish_non_exhaustive()
    }
}

/// What all connections of a server know.
struct Shared {
    script: Mutex<Script>,
    log: Arc<Log>,
    connections: AtomicUsize,
}

impl Shared {
    fn new(mut script: Script) -> Self {
        let log = Arc::new(Log::new(script.forget, script.sink.take()));
        Self { script: Mutex::new(script), log, connections: AtomicUsize::new(0) }
    }

    fn answer(&self, request: &Request, authorization: Option<&str>) -> Answer {
        let mut script = self.script.lock().unwrap_or_else(PoisonError::into_inner);
        let mut answer = match request.route() {
            path if path.starts_with("/api/") => ollama::route(&mut script, request, authorization),
            path if path.starts_with("/v1beta/") => {
                gemini::route(&mut script, request, authorization)
            }
            path if path == "/oauth/token" || path.starts_with("/v2/inference/") => {
                anthropic::route_aicore(&mut script, request, authorization)
            }
            _ if anthropic::is_meant(request) => {
                anthropic::route(&mut script, request, authorization)
            }
            _ => openai_chat::route(&mut script, request, authorization),
        };
        if !answer.headers.iter().any(|(name, _)| name == "x-request-id") {
            let id = format!("req_fake_{}", request.number);
            answer.headers.push(("x-request-id".to_owned(), id));
        }
        answer
    }
}

fn listen(address: SocketAddr) -> io::Result<(StdListener, SocketAddr)> {
    let listener = StdListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

/// Serves until the server is dropped; then every connection closes.
async fn serve(listener: StdListener, shared: Arc<Shared>, mut stopped: oneshot::Receiver<()>) {
    // Nothing else can be done about a socket that the runtime does not take.
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            _ = &mut stopped => return,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    shared.connections.fetch_add(1, Ordering::Relaxed);
                    connections.spawn(connection(stream, Arc::clone(&shared)));
                }
                // Out of files, most likely: others must close first.
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            },
        }
    }
}

/// Answers the requests of one connection, one after the other.
async fn connection(stream: TcpStream, shared: Arc<Shared>) {
    // Without it the kernel holds small events back.
    let _ = stream.set_nodelay(true);
    let (reader, mut writer) = stream.into_split();
    let mut reader = RequestReader::new(reader);
    while let Ok(Some(incoming)) = reader.next(&mut writer).await {
        let Incoming { request, authorization, keep_alive } = incoming;
        let (request, recorder) = shared.log.begin(request);
        let steps = shared.answer(&request, authorization.as_deref()).steps();
        let played = tokio::select! {
            biased;
            played = play(steps, keep_alive, &mut writer, &recorder) => played.ok(),
            () = reader.closed() => None,
        };
        recorder.end(match played {
            Some(Played::Complete) => End::Complete,
            Some(Played::Close | Played::Reset) => End::Cut,
            None => End::ClientClosed,
        });
        match played {
            Some(Played::Complete) if keep_alive => {}
            Some(Played::Reset) => {
                let _ = writer.as_ref().set_zero_linger();
                // Dropped as they are: an orderly shutdown would come first otherwise.
                writer.forget();
                return;
            }
            _ => return,
        }
    }
}
