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
use std::sync::{Arc, Mutex};

use benchkit::{Conv, Options};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;

use answer::Answer;
use http::Http;

struct Client {
    http: Http,
    /// The bodies a conversation posts (floor mode).
    recorded: Mutex<Option<Arc<Recorded>>>,
}

impl Client {
    fn record(&self, recorded: Recorded) -> Arc<Recorded> {
        let recorded = Arc::new(recorded);
        *self.recorded.lock().expect("no panic under the lock") = Some(recorded.clone());
        recorded
    }
}

fn main() {
    benchkit::main(
        |o| Client { http: Http::new(&o.base_url), recorded: Mutex::default() },
        |client: Arc<Client>, o: Arc<Options>, conv: Conv| async move {
            match o.mode.as_str() {
                "floor" => floor(&client, &o.model, conv).await,
                mode => {
                    parsed(&client.http, &o.model, mode == "floor-template", conv).await.map(|_| ())
                }
            }
        },
    );
}

/// A whole conversation; gives the lengths of the bodies posted, and the last of them.
async fn parsed(
    http: &Http,
    model: &str,
    use_template: bool,
    mut conv: Conv,
) -> Result<(Vec<usize>, Bytes), String> {
    let mut connection = http.connection().await?;
    let mut lengths = Vec::new();
    let mut open = body::open(model);
    loop {
        let body = body::close(open);
        lengths.push(body.len());
        let response = http.post(&mut connection, body.clone()).await?;
        let answer = Answer::read(response.into_body(), use_template, &mut conv).await?;
        conv.usage(answer.output_tokens);
        if !answer.tool_calls {
            http.rest(connection);
            return Ok((lengths, body));
        }
        open = body::reopen(body);
        body::append(&mut open, &answer)?;
    }
}

/// Posts what a parsed conversation posts, and reads nothing of the answers. The very first
/// conversation, in the warm-up, is a parsed one that records the bodies.
async fn floor(client: &Client, model: &str, mut conv: Conv) -> Result<(), String> {
    let known = client.recorded.lock().expect("no panic under the lock").clone();
    let recorded = match known {
        Some(recorded) if recorded.model == model => recorded,
        Some(recorded) => client.record(recorded.renamed(model)),
        None => {
            let (lengths, longest) = parsed(&client.http, model, false, conv).await?;
            client.record(Recorded { model: model.to_owned(), longest, lengths });
            return Ok(());
        }
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

/// The bodies of one conversation. Each is, but for its last two bytes, the beginning of the
/// next, so the longest one's beginnings stand for all: same sizes, and no memory to read but
/// what a client that builds its bodies in place would read.
struct Recorded {
    model: String,
    longest: Bytes,
    lengths: Vec<usize>,
}

impl Recorded {
    /// The same bodies for another model name (the warm-up's lacks the hold of scenario D).
    fn renamed(&self, model: &str) -> Self {
        let old = format!("{{\"model\":\"{}\"", self.model).len();
        let new = format!("{{\"model\":\"{model}\"");
        let mut longest = BytesMut::from(new.as_bytes());
        longest.extend_from_slice(&self.longest[old..]);
        Self {
            model: model.to_owned(),
            longest: longest.freeze(),
            lengths: self.lengths.iter().map(|n| n + new.len() - old).collect(),
        }
    }
}

fn text(e: impl Display) -> String {
    e.to_string()
}
