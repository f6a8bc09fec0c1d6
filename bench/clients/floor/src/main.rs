//! Lower bounds, on hyper alone:
//!
//! ```text
//! --mode floor           posts bodies of the same sizes and drains the bytes, unparsed
//! --mode floor-parse     a tool loop written by hand: in-place SSE split, borrowed serde structs,
//!                        and a request body that only grows (each message serialised once)
//! --mode floor-template  the same, but a text delta whose chunk differs from the last parsed
//!                        one only in the text is read without a JSON parser
//! ```

mod answer;
mod body;
mod chunk;
mod http;

use std::fmt::Display;
use std::sync::{Arc, OnceLock};

use benchkit::{Conv, Options};
use bytes::Bytes;
use http_body_util::BodyExt;

use answer::Answer;
use http::Http;

struct Client {
    http: Http,
    model: String,
    mode: Mode,
    /// What a conversation posts (floor mode).
    recorded: OnceLock<Recorded>,
}

enum Mode {
    Floor,
    Parse,
    Template,
}

/// The bodies of one conversation. Each is, but for its last two bytes, the beginning of the
/// next, so the longest one's beginnings stand for all: same sizes, and no memory to read but
/// what a client that builds its bodies in place would read.
struct Recorded {
    lengths: Vec<usize>,
    longest: Bytes,
}

fn main() {
    benchkit::main(Client::new, |client: Arc<Client>, conv: Conv| async move {
        match client.mode {
            Mode::Floor => drained(&client, conv).await,
            Mode::Parse => parsed(&client, false, conv).await.map(drop),
            Mode::Template => parsed(&client, true, conv).await.map(drop),
        }
    });
}

impl Client {
    fn new(options: &Options) -> Self {
        let mode = match options.mode.as_str() {
            "floor" => Mode::Floor,
            "floor-parse" => Mode::Parse,
            "floor-template" => Mode::Template,
            other => panic!("unknown mode {other}"),
        };
        let http = Http::new(&options.base_url);
        Self { http, model: options.model.clone(), mode, recorded: OnceLock::new() }
    }
}

/// A whole conversation.
async fn parsed(client: &Client, use_template: bool, mut conv: Conv) -> Result<Recorded, String> {
    let mut connection = client.http.connection().await?;
    let mut lengths = Vec::new();
    let mut open = body::open(&client.model);
    loop {
        let body = body::close(open);
        lengths.push(body.len());
        let response = client.http.post(&mut connection, body.clone()).await?;
        let answer = Answer::read(response.into_body(), use_template, &mut conv).await?;
        conv.usage(answer.output_tokens);
        if !answer.tool_calls {
            client.http.rest(connection);
            return Ok(Recorded { lengths, longest: body });
        }
        open = body::reopen(body);
        body::append(&mut open, &answer)?;
    }
}

/// Posts what a parsed conversation posts, and reads nothing of the answers. The first
/// conversation, in the warm-up, is a parsed one.
async fn drained(client: &Client, mut conv: Conv) -> Result<(), String> {
    let Some(recorded) = client.recorded.get() else {
        let recorded = parsed(client, false, conv).await?;
        return client.recorded.set(recorded).map_err(|_| "needs a warm-up".to_owned());
    };
    let mut connection = client.http.connection().await?;
    for (i, length) in recorded.lengths.iter().enumerate() {
        if i > 0 {
            benchkit::count_tool_call();
        }
        let body = recorded.longest.slice(..*length);
        let mut response = client.http.post(&mut connection, body).await?.into_body();
        while let Some(frame) = response.frame().await {
            if let Some(data) = frame.map_err(text)?.data_ref() {
                conv.raw(data.len());
            }
        }
    }
    client.http.rest(connection);
    Ok(())
}

fn text(e: impl Display) -> String {
    e.to_string()
}
