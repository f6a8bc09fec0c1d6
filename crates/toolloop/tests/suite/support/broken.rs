//! A reply with text, thought and two calls, and each API that can break in the midst of it.

use serde_json::json;
use toolloop::{
    ChatMessage, ChatParams, ChatResponse, ContentBlock, DynProvider, LlmError, StreamExt,
};
use toolloop_core::ReplyAssembler;
use toolloop_fake::{Call, Chunk, FakeServer, Fault, Reply, Script};

use super::every_api::every_api;

/// An API, and the reply as it comes without a fault.
pub(crate) struct Api {
    /// Where it stands among all.
    pub(crate) at: usize,
    pub(crate) name: &'static str,
    pub(crate) whole: ChatResponse,
    /// How many events it takes.
    pub(crate) events: usize,
}

impl Api {
    pub(crate) async fn all() -> Vec<Self> {
        let server = FakeServer::start_here(Script::from_fn(|_| reply()));
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

    /// The reply with faults at each of its events.
    pub(crate) async fn with<const N: usize>(
        &self,
        faults: impl Fn(usize) -> [Fault; N],
    ) -> Vec<Came> {
        let replies =
            (0..self.events).map(|event| faults(event).into_iter().fold(reply(), Reply::fault));
        let server = FakeServer::start_here(Script::new(replies));
        let (_, provider) = every_api(&server).swap_remove(self.at);
        let mut came = Vec::new();
        for _ in 0..self.events {
            came.push(ask(&*provider).await);
        }
        came
    }
}

pub(crate) fn reply() -> Reply {
    let call = |id: &str, x: i32| Call::new("add", json!({"x": x})).id(id);
    Reply::text("one two three")
        .reasoning("hm hm")
        .call(call("a", 1))
        .call(call("b", 2))
        .chunk(Chunk::Words)
}

/// What the model said; the data beside it has ids of its own in every reply.
pub(crate) fn said(response: &ChatResponse) -> Vec<&ContentBlock> {
    let is_data = |block: &&ContentBlock| matches!(block, ContentBlock::ProviderData(_));
    response.content.iter().filter(|block| !is_data(block)).collect()
}

#[derive(Debug)]
pub(crate) struct Came {
    pub(crate) text: String,
    pub(crate) end: Result<ChatResponse, LlmError>,
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
