//! mockllm: a deterministic mock of a streaming model API, built only for speed.
//!
//! ```text
//! POST /v1/chat/completions   OpenAI Chat Completions, SSE
//! GET  /ctl/stats             counters since the last reset (JSON)
//! POST /ctl/reset/N           zero the counters; the next N holds are passed over
//! POST /ctl/release           let held streams go on
//! GET  /ctl/expect/MODEL      what one conversation with MODEL must yield (JSON)
//! ```
//!
//! The model name is the whole configuration:
//!
//! ```text
//! bench-i{I}-t{T}-c{C}-a{A}[-g{G}][-d{D}][-h{H}][-s{S}]
//! I  requests of a conversation that end in tool calls (then comes one final answer)
//! T  text deltas in every answer          C  parallel tool calls in each of the I answers
//! A  fragments per tool call's arguments  G  SSE events per socket write (default 32)
//! D  microseconds between writes          H  in the final answer, hold after H text deltas
//!                                            until /ctl/release
//! S  tear the stream into HTTP chunks of S bytes, across events and characters
//! ```
//!
//! Every answer is rendered once and cached, so that serving it costs only the socket writes.

mod script;
mod server;
mod spec;

use std::io::Write;
use std::net::SocketAddr;
use std::rc::Rc;

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::TcpListener;

use server::Server;

/// Listens on the address given, or on a free port, and prints where.
fn main() -> std::io::Result<()> {
    let listen = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:0".to_owned());
    let addr: SocketAddr = listen.parse().expect("usage: mockllm [ADDR:PORT]");
    let rt = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    tokio::task::LocalSet::new().block_on(&rt, async move {
        let listener = listener(addr)?;
        println!("{}", listener.local_addr()?);
        std::io::stdout().flush()?;
        let server = Rc::new(Server::default());
        loop {
            let (sock, _) = listener.accept().await?;
            let server = server.clone();
            tokio::task::spawn_local(async move {
                // A peer that goes away is not an error of the server.
                let _ = server.serve(sock).await;
            });
        }
    })
}

/// With a backlog for a thousand clients that come at once, which tokio's own `bind` lacks.
fn listener(addr: SocketAddr) -> std::io::Result<TcpListener> {
    let sock =
        Socket::new(Domain::for_address(addr), Type::STREAM.nonblocking(), Some(Protocol::TCP))?;
    sock.set_reuse_address(true)?;
    sock.bind(&addr.into())?;
    sock.listen(4096)?;
    TcpListener::from_std(sock.into())
}
