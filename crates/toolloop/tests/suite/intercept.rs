//! Interceptors: code around the calls of models and tools.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;
use toolloop::intercept::{
    ModelInterceptor, ModelInterceptors, ModelNext, ToolInterceptor, ToolInterceptors, ToolNext,
    ToolRequest, as_stream,
};
use toolloop::provider::BoxFuture;
use toolloop::tool::{EffectClass, ToolFuture, ToolHandler};
use toolloop::{
    ChatMessage, ChatParams, ChatResponse, ChatStream, DynProvider, LlmError, StreamExt, ToolCall,
};

use super::support::{Ledger, Sim, act, call, reply, says};

type Log = Arc<Mutex<Vec<String>>>;

/// Notes what passes it, and how long it took.
struct Notes(&'static str, Log);

impl Notes {
    fn note(&self, what: &str, started: Instant) {
        let (name, ms) = (self.0, started.elapsed().as_millis());
        self.1.lock().unwrap().push(format!("{name} {what} {ms}"));
    }
}

impl ModelInterceptor for Notes {
    fn call<'a>(
        &'a self,
        params: &'a ChatParams,
        next: ModelNext<'a>,
    ) -> BoxFuture<'a, Result<ChatStream, LlmError>> {
        Box::pin(async move {
            let started = Instant::now();
            self.note("in", started);
            let response = next.response(params).await;
            self.note(response.as_ref().map_or("failed", |_| "out"), started);
            response.map(as_stream)
        })
    }
}

impl ToolInterceptor for Notes {
    fn call<'a>(&'a self, request: ToolRequest<'a>, next: ToolNext<'a>) -> ToolFuture<'a> {
        Box::pin(async move {
            let started = Instant::now();
            self.note(&format!("{} {}", request.name, request.call.call_id()), started);
            let output = next.run(request).await;
            self.note(output.as_ref().map_or("failed", |_| "out"), started);
            output
        })
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_sees_the_call_first_and_the_answer_last() {
    let log = Log::default();
    let mut sim = Sim::new([reply([call("c1", "read", json!({"ms": 5}))]), says("done")])
        .pace(Duration::from_millis(1));
    sim.tools = ToolInterceptors::new()
        .with(Notes("outer", Arc::clone(&log)))
        .with(Notes("inner", Arc::clone(&log)))
        .around(&sim.tools);
    let model = ModelInterceptors::new()
        .with(Notes("first", Arc::clone(&log)))
        .with(Notes("second", Arc::clone(&log)));
    sim.other_model = Some(model.around(sim.provider()));
    let told = sim.run().await;
    assert_eq!(told.result().response.text(), Some("done"));
    assert_eq!(
        log.lock().unwrap().join("\n"),
        "first in 0\nsecond in 0\nsecond out 3\nfirst out 3\n\
         outer read c1 0\ninner read c1 0\ninner out 5\nouter out 5\n\
         first in 0\nsecond in 0\nsecond out 3\nfirst out 3"
    );
}

/// Answers a request that it has seen before without the model.
#[derive(Default)]
struct Cache(Mutex<Vec<(Vec<ChatMessage>, ChatResponse)>>);

impl ModelInterceptor for Cache {
    fn call<'a>(
        &'a self,
        params: &'a ChatParams,
        next: ModelNext<'a>,
    ) -> BoxFuture<'a, Result<ChatStream, LlmError>> {
        Box::pin(async move {
            let known =
                self.0.lock().unwrap().iter().find(|(asked, _)| *asked == params.messages).cloned();
            let response = match known {
                Some((_, response)) => response,
                None => next.response(params).await?,
            };
            self.0.lock().unwrap().push((params.messages.clone(), response.clone()));
            Ok(as_stream(response))
        })
    }
}

#[tokio::test]
async fn a_call_may_be_answered_without_the_model() {
    let sim = Sim::new([says("once")]);
    let model = ModelInterceptors::new().with(Cache::default()).around(sim.provider());
    let whole = model.generate_boxed(&sim.params).await.unwrap();
    assert_eq!(whole.text(), Some("once"));
    let mut stream = model.stream_boxed(&sim.params).await.unwrap();
    let mut events = Vec::new();
    while let Some(event) = stream.next().await {
        events.push(event.unwrap());
    }
    assert_eq!(events, says("once"));
    assert_eq!(sim.model.recorded_calls().len(), 1);
    assert_eq!(DynProvider::metadata(&*model).name, "mock");
}

#[tokio::test(start_paused = true)]
async fn requests_and_answers_may_be_changed() {
    let mut sim =
        Sim::new([reply([call("c1", "read", json!({"say": "secret 42"}))]), says("done")]);
    sim.tools = ToolInterceptors::new().with(no_digits).around(&sim.tools);
    sim.other_model = Some(ModelInterceptors::new().with(briefly).around(sim.provider()));
    let told = sim.run().await;
    let sent = told.model.recorded_calls();
    assert_eq!(sent[1].system.as_deref(), Some("Be brief."));
    assert_eq!(sent[1].messages[2], ChatMessage::tool_result("c1", "secret **"));
}

fn briefly<'a>(
    params: &'a ChatParams,
    next: ModelNext<'a>,
) -> BoxFuture<'a, Result<ChatStream, LlmError>> {
    Box::pin(async move {
        let system = Some("Be brief.".to_owned());
        next.stream(&ChatParams { system, ..params.clone() }).await
    })
}

fn no_digits<'a>(request: ToolRequest<'a>, next: ToolNext<'a>) -> ToolFuture<'a> {
    Box::pin(async move {
        let mut output = next.run(request).await?;
        output.content.text = output.content.text.replace(|c: char| c.is_ascii_digit(), "*");
        Ok(output)
    })
}

/// Taken twice, `next` asks twice; what failed first is nobody's error.
#[tokio::test(start_paused = true)]
async fn a_call_may_be_made_again() {
    fn again<'a>(
        params: &'a ChatParams,
        next: ModelNext<'a>,
    ) -> BoxFuture<'a, Result<ChatStream, LlmError>> {
        Box::pin(async move {
            match next.stream(params).await {
                Err(error) if error.is_retryable() => next.stream(params).await,
                opened => opened,
            }
        })
    }
    let mut sim = Sim::new([]);
    sim.model.queue_error(LlmError::Timeout { elapsed_ms: 9 });
    sim.model.queue_text("here");
    sim.other_model = Some(ModelInterceptors::new().with(again).around(sim.provider()));
    let told = sim.run().await;
    assert_eq!(told.result().response.text(), Some("here"));
}

#[tokio::test]
async fn an_intercepted_tool_is_what_it_was() {
    struct Reader;
    impl ToolHandler for Reader {
        fn definition(&self) -> toolloop::ToolDefinition {
            act("read", &Ledger::default()).definition
        }
        fn execute<'a>(&'a self, _: serde_json::Value, (): &'a ()) -> ToolFuture<'a> {
            Box::pin(async { Ok("read".into()) })
        }
        fn effect_class(&self) -> EffectClass {
            EffectClass::ReadOnly
        }
        fn time_limit(&self) -> Option<Duration> {
            Some(Duration::from_secs(7))
        }
    }
    let log = Log::default();
    let interceptors = ToolInterceptors::new().with(Notes("", Arc::clone(&log)));
    let tool = interceptors.around_tool(Arc::new(Reader));
    assert_eq!(tool.effect_class(), EffectClass::ReadOnly);
    assert_eq!(tool.time_limit(), Some(Duration::from_secs(7)));
    assert_eq!(tool.definition(), Reader.definition());
    assert_eq!(tool.execute(json!({}), &()).await.unwrap().content, "read");
    // A tool that fails outside a loop passes through it as well.
    let mut tools = toolloop::ToolRegistry::new();
    tools.register(act("write", &Ledger::default()));
    let tools = interceptors.around(&tools);
    let call = ToolCall { id: "c9".into(), name: "write".into(), arguments: json!({"fail": "no"}) };
    assert!(tools.execute(&call, &()).await.is_error);
    assert_eq!(log.lock().unwrap().join(","), " read read 0, out 0, write c9 0, failed 0");
}
