//! [`Sim`]: a loop in virtual time. A scripted model, tools that do what their arguments say and
//! keep a ledger, and the run told as text.

pub(crate) mod broken;
pub(crate) mod every_api;
mod model;
mod story;
mod tools;

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use tokio::time::Instant;
use toolloop::mock::MockProvider;
use toolloop::tool::{ToolLoopConfig, ToolLoopHandle, ToolRegistry, tool_loop_stream};
use toolloop::{
    ChatMessage, ChatParams, DynProvider, LlmError, LoopEvent, StreamEvent, ToolLoopResult,
};

pub(crate) use model::{Mute, Paced, call, reply, reply_ending, says, text, thought};
pub(crate) use story::{Moment, one_event, requests, story, timed_story, transcript};
pub(crate) use tools::{Ledger, act};

/// A loop that has everything but its run.
pub(crate) struct Sim {
    pub(crate) model: Arc<MockProvider>,
    /// Asked instead of `model`, where there is one.
    pub(crate) other_model: Option<Arc<dyn DynProvider>>,
    pub(crate) tools: ToolRegistry,
    pub(crate) ledger: Ledger,
    pub(crate) params: ChatParams,
    pub(crate) config: ToolLoopConfig,
    /// Pause before each event of the model.
    pub(crate) pace: Duration,
}

/// A run that is over.
pub(crate) struct Told {
    pub(crate) moments: Vec<Moment>,
    pub(crate) ended: Result<ToolLoopResult, LlmError>,
    pub(crate) ledger: Ledger,
    pub(crate) model: Arc<MockProvider>,
    pub(crate) took: Duration,
}

impl Sim {
    /// A model that gives these replies, asked "Go", with the act tools `read` and `write`.
    pub(crate) fn new(replies: impl IntoIterator<Item = Vec<StreamEvent>>) -> Self {
        let model = Arc::new(MockProvider::default());
        for reply in replies {
            model.queue_stream(reply);
        }
        let ledger = Ledger::default();
        let mut tools = ToolRegistry::new();
        tools.register(act("read", &ledger)).register(act("write", &ledger));
        let params =
            ChatParams { messages: vec![ChatMessage::user("Go")], ..ChatParams::default() };
        let (config, pace) = (ToolLoopConfig::default(), Duration::ZERO);
        Self { model, other_model: None, tools, ledger, params, config, pace }
    }

    pub(crate) fn config(mut self, config: ToolLoopConfig) -> Self {
        self.config = config;
        self
    }

    pub(crate) fn pace(mut self, pace: Duration) -> Self {
        self.pace = pace;
        self
    }

    pub(crate) fn provider(&self) -> Arc<dyn DynProvider> {
        let scripted = Paced { model: Arc::clone(&self.model), pace: self.pace };
        self.other_model.clone().unwrap_or_else(|| Arc::new(scripted))
    }

    pub(crate) fn handle(&self) -> ToolLoopHandle {
        ToolLoopHandle::new(
            self.provider(),
            Arc::new(self.tools.clone()),
            self.params.clone(),
            self.config.clone(),
            Arc::new(()),
        )
        .unwrap()
    }

    pub(crate) fn stream(&self) -> toolloop::tool::LoopStream {
        tool_loop_stream(
            self.provider(),
            Arc::new(self.tools.clone()),
            self.params.clone(),
            self.config.clone(),
            Arc::new(()),
        )
    }

    /// Runs to the end.
    pub(crate) async fn run(self) -> Told {
        self.run_watched(|_| {}).await
    }

    /// Runs to the end, showing each event to `watch` as it comes.
    pub(crate) async fn run_watched(self, mut watch: impl FnMut(&LoopEvent)) -> Told {
        let started = Instant::now();
        let mut stream = self.stream();
        let mut moments = Vec::new();
        let ended = loop {
            match stream.next().await.expect("the last item is Done or an error") {
                Ok(LoopEvent::Done(result)) => break Ok(result),
                Ok(event) => {
                    watch(&event);
                    moments.push(Moment { at: started.elapsed(), event });
                }
                Err(error) => break Err(error),
            }
        };
        assert!(stream.next().await.is_none(), "nothing follows the end");
        let took = started.elapsed();
        Told { moments, ended, ledger: self.ledger, model: self.model, took }
    }
}

impl Told {
    /// All that happened, a line each.
    pub(crate) fn story(&self) -> String {
        story(&self.moments, &self.ended)
    }

    /// The same with the time in milliseconds before each line.
    pub(crate) fn timed_story(&self) -> String {
        timed_story(&self.moments, &self.ended)
    }

    pub(crate) fn result(&self) -> &ToolLoopResult {
        self.ended.as_ref().unwrap()
    }

    /// The conversation it left.
    pub(crate) fn transcript(&self) -> String {
        transcript(&self.result().messages)
    }
}
