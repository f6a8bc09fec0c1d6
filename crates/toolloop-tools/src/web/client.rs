//! [`Web`]: fetches pages of the Internet, and nothing of this machine or its network.

use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{Client, Response, Url, header, redirect};
use toolloop_core::ToolError;
use toolloop_platform::http_client;

use super::addresses::is_public;
use crate::output::size;

/// A client whose every connection is checked: addresses in a URL here, those behind a name when
/// they have been looked up, so that what was checked is what is connected to.
#[derive(Debug, Clone, Default)]
pub(crate) struct Web(Arc<Settings>);

#[derive(Debug, Default)]
struct Settings {
    /// Hosts that may have private addresses.
    private_hosts: Vec<String>,
    client: OnceLock<Result<Client, String>>,
}

/// What a server has answered.
pub(crate) struct Fetched {
    /// Where it came from, after redirects.
    pub(crate) url: Url,
    pub(crate) status: reqwest::StatusCode,
    /// In small letters; empty where the server said nothing.
    pub(crate) content_type: String,
    pub(crate) body: Vec<u8>,
    /// Whether the body went on.
    pub(crate) is_cut: bool,
}

impl Web {
    pub(crate) fn allow_private_host(&self, host: &str) -> Self {
        let mut private_hosts = self.0.private_hosts.clone();
        private_hosts.push(host.to_ascii_lowercase());
        Self(Arc::new(Settings { private_hosts, client: OnceLock::new() }))
    }

    /// Fetches a page, with its redirects.
    pub(crate) async fn fetch(&self, url: &str) -> Result<Fetched, ToolError> {
        let mut url = self.check(url.trim())?;
        let client = self.0.client().map_err(ToolError::new)?;
        for _ in 0..=MAX_REDIRECTS {
            let asked = client.get(url.clone()).header(header::ACCEPT, ACCEPT);
            let response = asked.send().await.map_err(|error| explain(&url, &error))?;
            let location = response.headers().get(header::LOCATION);
            let Some(location) = location.filter(|_| response.status().is_redirection()) else {
                return read(url, response).await;
            };
            let target = location.to_str().ok().and_then(|target| url.join(target).ok());
            let Some(target) = target else {
                let message = format!("{url} redirects to what is no address.");
                return Err(ToolError::new(message));
            };
            url = self.check(target.as_str())?;
        }
        Err(ToolError::new(format!("There were more than {MAX_REDIRECTS} redirects, up to {url}.")))
    }

    /// An address that may be connected to, as far as it can be told from itself.
    fn check(&self, text: &str) -> Result<Url, ToolError> {
        let url = Url::parse(text).map_err(|error| {
            ToolError::new(format!("`{text}` is no address ({error}). Example: https://docs.rs/."))
        })?;
        let refuse = |why: &str| Err(ToolError::new(format!("{url} is not fetched: {why}.")));
        if !matches!(url.scheme(), "http" | "https") {
            return refuse("only http and https are");
        }
        if !url.username().is_empty() || url.password().is_some() {
            return refuse("it has a name or password in it");
        }
        let host = url.host_str().unwrap_or_default();
        let literal = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        match literal {
            Ok(address) if !is_public(address) && !self.0.allows(host) => refuse(PRIVATE),
            _ => Ok(url),
        }
    }
}

impl Settings {
    fn allows(&self, host: &str) -> bool {
        self.private_hosts.iter().any(|allowed| allowed == host)
    }

    fn client(&self) -> Result<&Client, String> {
        let client = self.client.get_or_init(|| {
            http_client()
                .map_err(|error| error.to_string())?
                .dns_resolver(PublicNames { private_hosts: self.private_hosts.clone() })
                // A proxy would look names up itself, where nothing can be checked.
                .no_proxy()
                // Each target is checked here first.
                .redirect(redirect::Policy::none())
                .connect_timeout(Duration::from_secs(10))
                .build()
                .map_err(|error| root_cause(&error))
        });
        client.as_ref().map_err(|error| format!("There is no HTTP client: {error}."))
    }
}

/// Looks names up, and gives only addresses of the Internet.
struct PublicNames {
    private_hosts: Vec<String>,
}

impl Resolve for PublicNames {
    fn resolve(&self, name: Name) -> Resolving {
        let is_allowed = self.private_hosts.iter().any(|host| host == name.as_str());
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let found: Vec<SocketAddr> =
                found.filter(|address| is_allowed || is_public(address.ip())).collect();
            match found.is_empty() {
                true => Err(PRIVATE.into()),
                false => Ok(Box::new(found.into_iter()) as Addrs),
            }
        })
    }
}

async fn read(url: Url, mut response: Response) -> Result<Fetched, ToolError> {
    let status = response.status();
    let content_type = response.headers().get(header::CONTENT_TYPE);
    let content_type = content_type.and_then(|value| value.to_str().ok()).unwrap_or_default();
    let content_type = content_type.to_ascii_lowercase();
    let (mut body, mut is_cut) = (Vec::new(), false);
    while let Some(chunk) = response.chunk().await.map_err(|error| explain(&url, &error))? {
        let room = MAX_BODY - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if chunk.len() > room {
            is_cut = true;
            break;
        }
    }
    Ok(Fetched { url, status, content_type, body, is_cut })
}

fn explain(url: &Url, error: &reqwest::Error) -> ToolError {
    let cause = root_cause(error);
    ToolError::new(match cause == PRIVATE {
        true => format!("{url} is not fetched: {PRIVATE}."),
        false => format!("{url} cannot be fetched: {cause}."),
    })
}

fn root_cause(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

/// The size above which a page is cut, for people.
pub(crate) fn max_body() -> String {
    size(MAX_BODY as u64)
}

const PRIVATE: &str = "it leads to this machine or a private network";
const ACCEPT: &str = "text/html, text/*, application/json, */*;q=0.1";
const MAX_REDIRECTS: usize = 5;
const MAX_BODY: usize = 4 * 1024 * 1024;
