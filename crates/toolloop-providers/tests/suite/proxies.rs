//! Proxies that the environment names: used, passed by where it says so, and never shown.

use toolloop_core::{LlmError, Provider};
use toolloop_providers::OpenAiProvider;

use super::connection::hello;
use crate::support::child;
use crate::support::server::{Server, answer, says};

const CREDENTIALS: &str = "me:proxy-password-0123";

#[tokio::test]
async fn a_proxy_is_asked_where_the_environment_names_one() {
    let refused = answer("407 Proxy Authentication Required", &[], "who are you?");
    let proxy = Server::start([says("by proxy"), refused]).await;
    let (address, other) = (
        proxy.url.replace("//", &format!("//{CREDENTIALS}@")),
        Server::start([says("direct")]).await,
    );
    let variables =
        [("HTTP_PROXY", &*address), ("NO_PROXY", "near.invalid"), ("OTHER", &*other.url)]
            .map(|(name, value)| (name, value.to_owned()));
    let run = tokio::task::spawn_blocking(move || {
        let variables = variables.each_ref().map(|(name, value)| (*name, value.as_str()));
        child::run("suite::proxies::in_its_environment", &variables)
    });
    let told = run.await.unwrap();
    let lines: Vec<_> =
        told.lines().filter_map(|line| line.split_once("> ")).map(|l| l.1).collect();
    let near = "cannot connect to http://near.invalid: ";
    assert_eq!(lines.len(), 4, "{told}");
    assert_eq!(lines[..2], ["by proxy", "HTTP 407: who are you?"]);
    assert!(lines[2].starts_with(near), "{told}");
    assert_eq!(lines[3], "direct");
    assert!(!told.contains("proxy-password"), "{told}");

    let requests = proxy.requests();
    assert_eq!(requests.len(), 2);
    assert!(
        requests[0].starts_with("POST http://far.invalid/v1/chat/completions HTTP/1.1\r\n"),
        "{}",
        requests[0]
    );
    let authorization = "proxy-authorization: Basic bWU6cHJveHktcGFzc3dvcmQtMDEyMw==\r\n";
    assert!(requests[0].contains(authorization), "{}", requests[0]);
    assert_eq!(other.requests().len(), 1);
}

#[tokio::test]
#[ignore = "runs in the environment that another test makes"]
async fn in_its_environment() {
    let local = std::env::var("OTHER").unwrap();
    for server in ["http://far.invalid", "http://far.invalid", "http://near.invalid", &local] {
        let builder = OpenAiProvider::builder("m").base_url(format!("{server}/v1")).max_retries(0);
        match builder.build().unwrap().generate(&hello()).await {
            Ok(reply) => println!("> {}", reply.text().unwrap()),
            Err(error) => println!("> {error}"),
        }
    }
}

#[tokio::test]
async fn a_proxy_that_is_not_there_is_named_by_its_variable() {
    let port = {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap().port()
    };
    let address = format!("http://{CREDENTIALS}@127.0.0.1:{port}");
    let run = tokio::task::spawn_blocking(move || {
        child::run("suite::proxies::without_its_proxy", &[("ALL_PROXY", &address)])
    });
    let told = run.await.unwrap();
    let line = "nothing answers at http://far.invalid, or at the proxy that ALL_PROXY names (connection refused)";
    assert!(told.contains(line) && !told.contains("proxy-password"), "{told}");
}

#[tokio::test]
#[ignore = "runs in the environment that another test makes"]
async fn without_its_proxy() {
    let builder = OpenAiProvider::builder("m").base_url("http://far.invalid/v1").max_retries(0);
    let error = builder.build().unwrap().generate(&hello()).await.unwrap_err();
    assert!(matches!(error, LlmError::Http { status: None, retryable: true, .. }), "{error:?}");
    println!("{error} {error:?}");
}

/// Where a server wants us to go, no key goes.
#[tokio::test]
async fn a_redirect_carries_no_key_to_another_server() {
    let other = Server::start([says("Hi")]).await;
    let key = crate::support::server::KEY;
    for status in ["301 Moved", "307 Temporary Redirect", "308 Permanent Redirect"] {
        let target = format!("{}/v1?api_key={key}", other.url);
        let server = Server::start([answer(status, &[("location", &target)], "")]).await;
        let error = server.provider().generate(&hello()).await.unwrap_err();
        let shown = format!("{error} {error:?}");
        assert!(shown.contains("has moved to") && !shown.contains(key), "{shown}");
        assert_eq!((server.requests().len(), other.requests().len()), (1, 0));
    }
}
