//! Servers behind TLS: HTTP/2 where they speak it, and a clear word where nobody vouches for them.
//!
//! Certificate and key are for `localhost` and good for a hundred years; nothing but this test
//! trusts who signed them.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use h2::Reason;
use http::{Response, Version};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use toolloop_core::{LlmError, Provider};
use toolloop_providers::OpenAiProvider;

use super::connection::hello;
use crate::support::child;
use crate::support::server::{STOP, delta};

#[tokio::test]
async fn calls_share_a_connection_of_http_2() {
    let server = start().await;
    let root = file("ca.pem").to_str().unwrap().to_owned();
    let address = server.address.clone();
    let run = tokio::task::spawn_blocking(move || {
        let variables = [("SSL_CERT_FILE", &*root), ("SERVER", &*address)];
        child::run("suite::tls::in_its_trust", &variables)
    });
    let told = run.await.unwrap();
    let lines: Vec<_> =
        told.lines().filter_map(|line| line.split_once("> ")).map(|l| l.1).collect();
    let reset = "hung up before it answered: stream error received: unexpected internal error \
                 encountered";
    let reset = format!("{} {reset}", server.address);
    assert_eq!(lines, ["Hi", "Hi", "Hi", "Hi", &*reset], "{told}");
    assert_eq!(server.connections.load(Ordering::Relaxed), 1);
    assert_eq!(server.requests.load(Ordering::Relaxed), 5);
}

#[tokio::test]
#[ignore = "runs in the environment that another test makes"]
async fn in_its_trust() {
    let address = std::env::var("SERVER").unwrap();
    let builder = OpenAiProvider::builder("m").base_url(address).max_retries(0);
    let provider = builder.build().unwrap();
    let said = |reply: Result<toolloop_core::ChatResponse, LlmError>| match reply {
        Ok(reply) => println!("> {}", reply.text().unwrap()),
        Err(error) => println!("> {error}"),
    };
    // The first shows that the server speaks it; those after it wait for nothing.
    said(provider.generate(&hello()).await);
    let params = hello();
    let calls = futures_util::future::join_all((0..3).map(|_| provider.generate(&params)));
    calls.await.into_iter().for_each(said);
    said(provider.generate(&hello()).await);
}

#[tokio::test]
async fn a_server_that_nobody_vouches_for_is_not_trusted() {
    let server = start().await;
    let builder = OpenAiProvider::builder("m").base_url(&server.address);
    let error = builder.build().unwrap().generate(&hello()).await.unwrap_err();
    let shown = error.to_string();
    let begin = format!("no secure connection to {}: invalid peer certificate: ", server.address);
    assert!(shown.starts_with(&begin), "{shown}");
    assert!(shown.ends_with("(are the system's root certificates there?)"), "{shown}");
    assert_eq!(server.requests.load(Ordering::Relaxed), 0);
}

/// A server that speaks nothing but HTTP/2. The fifth call is reset, the others go on.
struct Server {
    address: String,
    connections: Arc<AtomicUsize>,
    requests: Arc<AtomicUsize>,
}

async fn start() -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("https://127.0.0.1:{}", listener.local_addr().unwrap().port());
    let server = Server { address, connections: Arc::default(), requests: Arc::default() };
    let (connections, requests) = (Arc::clone(&server.connections), Arc::clone(&server.requests));
    let acceptor = acceptor();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let (acceptor, requests) = (acceptor.clone(), Arc::clone(&requests));
            connections.fetch_add(1, Ordering::Relaxed);
            tokio::spawn(serve(socket, acceptor, requests));
        }
    });
    server
}

async fn serve(socket: TcpStream, acceptor: TlsAcceptor, requests: Arc<AtomicUsize>) {
    let Ok(socket) = acceptor.accept(socket).await else { return };
    let mut connection = h2::server::handshake(socket).await.unwrap();
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        assert_eq!(request.version(), Version::HTTP_2);
        let is_last = requests.fetch_add(1, Ordering::Relaxed) == 4;
        let head = Response::builder().header("content-type", "text/event-stream");
        let mut body = respond.send_response(head.body(()).unwrap(), false).unwrap();
        if is_last {
            body.send_reset(Reason::INTERNAL_ERROR);
        } else {
            body.send_data(Bytes::from(delta("Hi") + STOP), true).unwrap();
        }
    }
}

fn acceptor() -> TlsAcceptor {
    let chain = vec![CertificateDer::from_pem_file(file("server.pem")).unwrap()];
    let key = PrivateKeyDer::from_pem_file(file("server.key.pem")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    let mut config = builder.with_no_client_auth().with_single_cert(chain, key).unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    TlsAcceptor::from(Arc::new(config))
}

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tls").join(name)
}
