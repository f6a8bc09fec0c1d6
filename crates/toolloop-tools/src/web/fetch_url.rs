//! [`FetchUrl`]: the tool `fetch_url`.

use std::time::Duration;

use encoding_rs::{Encoding, UTF_8};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use toolloop_core::{
    EffectClass, ToolDefinition, ToolError, ToolFuture, ToolHandler, ToolOutput, read_arguments,
};

use super::client::{Fetched, Web, max_body};
use super::html;
use crate::ResultStore;
use crate::binary::binary_kind;
use crate::output::size;
use crate::results::shorten;

/// Fetches a text or the text of a page from the Internet.
///
/// Addresses of this machine and of private networks are refused, also behind names and
/// redirects; a proxy of the environment is not used. At most 5 redirects are followed, 4 MiB read
/// and 30 seconds waited. A program that has this tool lets its model send what it knows to any
/// server, so it is no part of the built-in tools unless asked for, and not read only.
#[derive(Debug, Clone)]
pub struct FetchUrl {
    web: Web,
    results: Option<ResultStore>,
}

impl FetchUrl {
    /// Fetches from the Internet.
    pub fn new() -> Self {
        Self { web: Web::default(), results: None }
    }

    /// Lets the model reach this host, by its name or address, though it is private.
    #[must_use]
    pub fn allow_private_host(mut self, host: &str) -> Self {
        self.web = self.web.allow_private_host(host);
        self
    }

    /// Stores what does not fit in a result there, for `read_result`.
    #[must_use]
    pub fn with_results(mut self, store: ResultStore) -> Self {
        self.results = Some(store);
        self
    }

    async fn fetch(&self, input: Value) -> Result<ToolOutput, ToolError> {
        let Arguments { url } = read_arguments(NAME, input)?;
        let fetching = tokio::time::timeout(TIME_LIMIT, self.web.fetch(&url));
        let fetched = fetching.await.unwrap_or_else(|_| {
            let limit = TIME_LIMIT.as_secs();
            Err(ToolError::new(format!("{url} did not answer in full within {limit} s.")))
        })?;
        let text = text_of(&fetched).ok_or_else(|| describe(&fetched));
        if !fetched.status.is_success() {
            let said = text.unwrap_or_default();
            let said: String = said.chars().take(MAX_REFUSAL).collect();
            return Err(ToolError::new(format!(
                "{} answered {}. {said}",
                fetched.url, fetched.status
            )));
        }
        let mut text = text.unwrap_or_else(|description| description);
        if fetched.is_cut {
            text.push_str(&format!("\n[the page goes on; only {} were read]", max_body()));
        }
        let text = shorten(text, MAX_TEXT, self.results.as_ref());
        Ok(match fetched.url.as_str() == url {
            true => text.into(),
            false => format!("[from {}]\n{text}", fetched.url).into(),
        })
    }
}

impl Default for FetchUrl {
    fn default() -> Self {
        Self::new()
    }
}

impl<Ctx> ToolHandler<Ctx> for FetchUrl {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition::from_type::<Arguments>(
            NAME,
            "Fetches a page or text file from the Internet with GET and gives its text; a web \
             page comes as simple Markdown.",
        )
    }

    fn execute<'a>(&'a self, input: Value, _: &'a Ctx) -> ToolFuture<'a> {
        Box::pin(self.fetch(input))
    }

    /// Not read only: an address can carry something out.
    fn effect_class(&self) -> EffectClass {
        EffectClass::Idempotent
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The whole address, with https://.
    url: String,
}

/// The text of an answer; `None`: it is none.
fn text_of(fetched: &Fetched) -> Option<String> {
    let (kind, parameters) =
        fetched.content_type.split_once(';').unwrap_or((&fetched.content_type, ""));
    let is_text = match kind.trim() {
        "" | "application/octet-stream" => binary_kind(&fetched.body).is_none(),
        "application/json"
        | "application/xml"
        | "application/javascript"
        | "application/toml"
        | "application/yaml"
        | "application/x-ndjson" => true,
        kind => kind.starts_with("text/") || kind.ends_with("+json") || kind.ends_with("+xml"),
    };
    if !is_text {
        return None;
    }
    let charset = parameters.split(';').find_map(|parameter| {
        let label = parameter.trim().strip_prefix("charset=")?.trim_matches(['"', '\'']);
        Encoding::for_label(label.as_bytes())
    });
    // A byte order mark has the last word.
    let (text, ..) = charset.unwrap_or(UTF_8).decode(&fetched.body);
    let start = text.trim_start().get(..15).unwrap_or_default().to_ascii_lowercase();
    let is_html = kind.contains("html")
        || (kind.is_empty() && (start.starts_with("<!doctype html") || start.starts_with("<html")));
    Some(match is_html {
        true => html::text_of(&text, &fetched.url),
        false => text.into_owned(),
    })
}

fn describe(fetched: &Fetched) -> String {
    let known = binary_kind(&fetched.body);
    let kind = match fetched.content_type.as_str() {
        "" => known.unwrap_or("unknown type"),
        kind => kind,
    };
    let more = if fetched.is_cut { "more than " } else { "" };
    format!("[no text but {kind}, {more}{}]", size(fetched.body.len() as u64))
}

const NAME: &str = "fetch_url";
const TIME_LIMIT: Duration = Duration::from_secs(30);
/// Bytes of a page that are shown at once.
const MAX_TEXT: usize = 48 * 1024;
/// Characters of what a server says with a failure.
const MAX_REFUSAL: usize = 500;
