//! Each fault at every event of a reply, through every API: what came is kept, the stream ends in
//! a typed error, and a reply that lacks anything is never taken for a whole one.

use serde_json::json;
use toolloop::{
    ChatMessage, ChatParams, ChatResponse, ContentBlock, DynProvider, LlmError, StreamExt,
};
use toolloop_core::ReplyAssembler;
use toolloop_fake::{Call, Chunk, FakeServer, Fault, Reply, Script};

use super::support::every_api::every_api;

#[tokio::test]
async fn a_reply_that_is_cut_keeps_what_came() {
    for api in Api::all().await {
        let mut text = String::new();
        for came in api.with(Fault::CutAtEvent).await {
            assert!(came.text.starts_with(&text), "{}: {came:?}", api.name);
            text.clone_from(&came.text);
            match &came.end {
                // The connection was lost behind the end of the reply.
                Ok(whole) => assert_eq!(said(whole), said(&api.whole), "{}", api.name),
                Err(LlmError::StreamInterrupted { .. }) => {}
                Err(other) => panic!("{}: {other}", api.name),
            }
        }
        assert_eq!(text, "one two three", "{}", api.name);
    }
}

#[tokio::test]
async fn what_cannot_be_read_is_an_error_at_once() {
    for api in Api::all().await {
        let broken = api.with(Fault::MalformedJsonAtEvent).await;
        let cut = api.with(Fault::CutAtEvent).await;
        for (came, cut) in broken.into_iter().zip(cut) {
            assert!(matches!(came.end, Err(LlmError::ResponseFormat { .. })), "{came:?}");
            assert_eq!(came.text, cut.text, "{}", api.name);
        }
    }
}

#[tokio::test]
async fn an_error_of_the_server_keeps_what_came_before() {
    let fault = |event| {
        let error = json!({"message": "Overloaded", "code": 529});
        Fault::ErrorAtEvent { event, error }
    };
    for api in Api::all().await {
        let refused = api.with(fault).await;
        let cut = api.with(Fault::CutAtEvent).await;
        for (came, cut) in refused.into_iter().zip(cut) {
            let error = came.end.expect_err(api.name);
            assert_eq!((error.status(), error.is_retryable()), (Some(529), true), "{error}");
            assert_eq!(came.text, cut.text, "{}", api.name);
        }
    }
}

/// A stray line is no event of such a stream; where lines are documents, it is a broken one.
#[tokio::test]
async fn garbage_between_events_hides_none() {
    let fault = |event| Fault::GarbageAtEvent { event, bytes: b"\0\x01 garbage \r\n\r\n".to_vec() };
    for api in Api::all().await {
        for came in api.with(fault).await {
            match &came.end {
                Ok(whole) => assert_eq!(said(whole), said(&api.whole), "{}", api.name),
                Err(LlmError::ResponseFormat { .. }) => assert_eq!(api.name, "ollama"),
                Err(other) => panic!("{}: {other}", api.name),
            }
        }
    }
}

/// Bytes that are no text become the character that stands for such.
#[tokio::test]
async fn invalid_utf8_spoils_only_itself() {
    for api in Api::all().await {
        for came in api.with(Fault::InvalidUtf8AtEvent).await {
            assert_eq!(came.text.replace('\u{fffd}', ""), "one two three", "{}", api.name);
            let whole = came.end.expect(api.name);
            assert_eq!(whole.tool_calls(), api.whole.tool_calls(), "{}", api.name);
        }
    }
}

#[tokio::test]
async fn a_reply_without_its_end_is_not_whole() {
    for api in Api::all().await {
        let came = api.with(|_| Fault::NoEndMarker).await.swap_remove(0);
        assert_eq!(came.text, "one two three", "{}", api.name);
        match &came.end {
            // The reason to finish is the end; many servers send no mark behind it.
            Ok(whole) => {
                assert!(["chat", "anthropic", "aicore"].contains(&api.name), "{}", api.name);
                assert_eq!(said(whole), said(&api.whole), "{}", api.name);
            }
            Err(LlmError::StreamInterrupted { .. }) => {}
            Err(other) => panic!("{}: {other}", api.name),
        }
    }
}

/// An API, and the reply as it comes without a fault.
struct Api {
    at: usize,
    name: &'static str,
    whole: ChatResponse,
    /// How many events it takes.
    events: usize,
}

impl Api {
    async fn all() -> Vec<Self> {
        let server = FakeServer::start(Script::from_fn(|_| reply()));
        let mut apis = Vec::new();
        for (at, (name, provider)) in every_api(&server).into_iter().enumerate() {
            let whole = ask(&*provider).await.end.expect(name);
            server.idle().await;
            let events = server.log().pop().expect("it was asked").events;
            assert!(events > 4, "{name} has {events} events");
            apis.push(Self { at, name, whole, events });
        }
        apis
    }

    /// The reply with a fault at each of its events.
    async fn with(&self, fault: impl Fn(usize) -> Fault) -> Vec<Came> {
        let replies: Vec<_> = (0..self.events).map(|event| reply().fault(fault(event))).collect();
        let server = FakeServer::start(Script::new(replies));
        let (_, provider) = every_api(&server).swap_remove(self.at);
        let mut came = Vec::new();
        for _ in 0..self.events {
            came.push(ask(&*provider).await);
        }
        came
    }
}

fn reply() -> Reply {
    let call = |id: &str, x: i32| Call::new("add", json!({"x": x})).id(id);
    Reply::text("one two three")
        .reasoning("hm hm")
        .call(call("a", 1))
        .call(call("b", 2))
        .chunk(Chunk::Words)
}

/// What the model said; the data beside it has ids of its own in every reply.
fn said(response: &ChatResponse) -> Vec<&ContentBlock> {
    let is_data = |block: &&ContentBlock| matches!(block, ContentBlock::ProviderData(_));
    response.content.iter().filter(|block| !is_data(block)).collect()
}

#[derive(Debug)]
struct Came {
    text: String,
    end: Result<ChatResponse, LlmError>,
}

async fn ask(provider: &dyn DynProvider) -> Came {
    let params = ChatParams { messages: vec![ChatMessage::user("q")], ..ChatParams::default() };
    let mut assembler = ReplyAssembler::detached();
    let mut stream = provider.stream_boxed(&params).await.expect("the request is fine");
    let mut failed = None;
    while let Some(event) = stream.next().await {
        assert!(failed.is_none(), "something came behind the error: {event:?}");
        match event {
            Ok(event) => drop(assembler.push(event).expect("events fit each other")),
            Err(error) => failed = Some(error),
        }
    }
    let text = assembler.text();
    match failed {
        Some(error) => {
            assert!(!assembler.is_done(), "an end and an error: {error}");
            Came { text, end: Err(error) }
        }
        None => Came { text, end: assembler.into_response() },
    }
}
