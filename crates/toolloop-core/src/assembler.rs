//! [`ReplyAssembler`]: stream events in, one whole or broken reply out.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::arguments::parse_arguments;
use crate::chat::{ChatResponse, ContentBlock, ProviderData, StopReason, ToolCall};
use crate::effect::{Outcome, Reply};
use crate::error::{Failure, LlmError};
use crate::event::LoopEvent;
use crate::params::ChatParams;
use crate::schema::ReducedSchema;
use crate::stream::StreamEvent;
use crate::usage::Usage;

/// Turns the events of one model call into a reply.
///
/// A driver pushes every event and forwards the [`LoopEvent`] it gets back; the run itself sees
/// only the outcome, so the path of a delta touches no machine. Ids that repeat in the
/// conversation, or are missing, are replaced on arrival.
#[derive(Debug)]
pub struct ReplyAssembler {
    iteration: u32,
    /// Ids of all calls before this reply.
    taken: Arc<BTreeSet<String>>,
    /// What is answered, for an estimate of its tokens should the reply be cut.
    request: Option<Arc<ChatParams>>,
    /// Reduced schemas that the run has told of before.
    told: Arc<BTreeSet<ReducedSchema>>,
    /// Those it tells of now.
    reduced: Vec<ReducedSchema>,
    response: ChatResponse,
    calls: Vec<CallInProgress>,
    usage: Option<Usage>,
    /// Whether `usage` was reported behind all that the model has said.
    is_counted: bool,
    /// Tokens of attempts that were given up.
    discarded: Usage,
    done: bool,
}

#[derive(Debug)]
struct CallInProgress {
    index: u32,
    /// Where the call stands in `response.content`.
    block: usize,
    raw: String,
    complete: bool,
}

impl ReplyAssembler {
    pub(crate) fn new(
        iteration: u32,
        taken: Arc<BTreeSet<String>>,
        told: Arc<BTreeSet<ReducedSchema>>,
        request: Option<Arc<ChatParams>>,
    ) -> Self {
        Self {
            iteration,
            taken,
            told,
            reduced: Vec::new(),
            request,
            response: ChatResponse::default(),
            calls: Vec::new(),
            usage: None,
            is_counted: false,
            discarded: Usage::default(),
            done: false,
        }
    }

    /// An assembler outside any run, for a single reply. What a cut attempt read is unknown to it.
    pub fn detached() -> Self {
        Self::new(1, Arc::default(), Arc::default(), None)
    }

    /// The same for the reply to a known request, whose tokens it can estimate.
    pub fn of_request(request: Arc<ChatParams>) -> Self {
        Self::new(1, Arc::default(), Arc::default(), Some(request))
    }

    /// Takes the next event; gives what followers of the run should see of it.
    ///
    /// # Errors
    /// When the event contradicts those before it; the reply is then broken.
    pub fn push(&mut self, event: StreamEvent) -> Result<Option<LoopEvent>, Failure> {
        if self.done {
            return Ok(None);
        }
        Ok(match event {
            StreamEvent::TextDelta(text) => {
                self.add_text(&text).then_some(LoopEvent::TextDelta(text))
            }
            StreamEvent::ReasoningDelta(text) => {
                self.add_thought(&text).then_some(LoopEvent::ReasoningDelta(text))
            }
            StreamEvent::ToolCallStart { index, id, name } => {
                let id = self.start_call(index, id, name.clone());
                Some(LoopEvent::ToolCallStart { index, id, name })
            }
            StreamEvent::ToolCallDelta { index, json_chunk } => {
                let call = self.call(index).ok_or_else(|| broken(index))?;
                call.raw.push_str(&json_chunk);
                self.is_counted = false;
                Some(LoopEvent::ToolCallDelta { index, json_chunk })
            }
            StreamEvent::ToolCallComplete { index, call } => {
                let call = self.complete_call(index, call);
                Some(LoopEvent::ToolCallComplete { index, call })
            }
            StreamEvent::ToolCallRescued { index, text } => {
                Some(LoopEvent::ToolCallRescued { index, text })
            }
            StreamEvent::Usage(usage) => {
                self.usage = Some(usage);
                self.is_counted = !self.response.content.is_empty();
                None
            }
            StreamEvent::Model(model) => {
                self.response.model = model;
                None
            }
            StreamEvent::RequestId(id) => {
                self.response.metadata.insert("request_id".into(), Value::String(id.clone()));
                Some(LoopEvent::RequestId(id))
            }
            StreamEvent::RateLimits(limits) => Some(LoopEvent::RateLimits(limits)),
            StreamEvent::ProviderData { index, data } => {
                self.keep_data(index, data);
                None
            }
            StreamEvent::SchemasReduced(schemas) => self.tell_of(schemas),
            StreamEvent::RetryScheduled(notice) => {
                if notice.may_have_cost {
                    self.give_up_attempt();
                }
                Some(LoopEvent::RetryScheduled(notice))
            }
            StreamEvent::AttemptDiscarded { attempt } => {
                self.give_up_attempt();
                self.response = ChatResponse::default();
                self.calls.clear();
                Some(LoopEvent::AttemptDiscarded { attempt })
            }
            StreamEvent::Done { stop_reason } => {
                self.response.stop_reason = stop_reason;
                self.done = true;
                None
            }
        })
    }

    /// Whether the proper end has arrived.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// The stream is over: a whole reply, or a failure where its end is missing.
    pub fn finish(mut self) -> Outcome {
        if !self.done {
            let message = "the stream ended without its end marker".into();
            return self.fail(Failure::StreamInterrupted { message });
        }
        let mut cut_calls = BTreeSet::new();
        let limited = self.response.stop_reason == StopReason::MaxTokens;
        for (position, progress) in self.calls.iter().enumerate() {
            let Some(ContentBlock::ToolCall(call)) = self.response.content.get_mut(progress.block)
            else {
                continue;
            };
            if !progress.complete {
                call.arguments = parse_arguments(&progress.raw);
            }
            // Complete JSON before the limit is a call the model finished saying.
            let has_begun = progress.complete || !progress.raw.trim().is_empty();
            if limited && !(has_begun && call.arguments.is_object()) {
                cut_calls.insert(position);
            }
        }
        self.response.usage = self.discarded + self.usage.unwrap_or_else(Usage::unknown);
        let (response, reduced_schemas) = (self.response, self.reduced);
        Outcome::Reply(Reply { response, cut_calls, reduced_schemas, ..Reply::default() })
    }

    /// The call failed: keeps what arrived, without its calls.
    pub fn fail(self, failure: Failure) -> Outcome {
        let nothing_came = self.usage.is_none() && self.response.content.is_empty();
        // A request that was refused before its first token costs nothing.
        let refused = nothing_came && !LlmError::from(failure.clone()).may_have_cost();
        let refused_usage = refused.then_some(self.discarded);
        let mut partial = self.into_partial();
        partial.usage = refused_usage.unwrap_or(partial.usage);
        Outcome::ReplyFailed { failure, partial }
    }

    /// The stream is over, and its reply is wanted outside any run.
    ///
    /// # Errors
    /// When the reply broke off.
    pub fn into_response(self) -> Result<ChatResponse, LlmError> {
        match self.finish() {
            Outcome::Reply(reply) => Ok(reply.response),
            Outcome::ReplyFailed { failure, .. } => Err(failure.into()),
            // `finish` has no other outcome.
            other => unreachable!("a reply ended as {other:?}"),
        }
    }

    /// What arrived so far, as text without calls, with the tokens as far as they are known.
    pub fn into_partial(mut self) -> ChatResponse {
        self.give_up_attempt();
        self.response.usage = self.discarded;
        self.response.stop_reason = StopReason::Other;
        // Thought without its whole signature cannot be returned to any provider.
        self.response.content.retain(|block| matches!(block, ContentBlock::Text(_)));
        self.response
    }

    /// The text that arrived so far.
    pub fn text(&self) -> String {
        let texts = self.response.content.iter().filter_map(|block| match block {
            ContentBlock::Text(text) => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    /// Counts an attempt that ended before its reply did.
    fn give_up_attempt(&mut self) {
        self.discarded += match self.usage.take() {
            Some(reported) if self.is_counted => reported,
            reported => Usage::of_cut(reported, self.request.as_deref(), self.said_bytes()),
        };
    }

    /// Bytes of text, thought and arguments that came.
    fn said_bytes(&self) -> usize {
        let blocks = self.response.content.iter().map(|block| match block {
            ContentBlock::Text(text) | ContentBlock::Reasoning { content: text } => text.len(),
            _ => 0,
        });
        let arguments = self.calls.iter().map(|call| {
            match (&*call.raw, self.response.content.get(call.block)) {
                // It came in one piece.
                ("", Some(ContentBlock::ToolCall(whole))) if call.complete => {
                    whole.arguments.to_string().len()
                }
                (raw, _) => raw.len(),
            }
        });
        blocks.sum::<usize>() + arguments.sum::<usize>()
    }

    /// Adds text; `false` where there is none, as many servers send beside each piece of thought.
    fn add_text(&mut self, text: &str) -> bool {
        if text.is_empty() {
            return false;
        }
        self.is_counted = false;
        match self.response.content.last_mut() {
            Some(ContentBlock::Text(all)) => all.push_str(text),
            _ => self.response.content.push(ContentBlock::Text(text.to_owned())),
        }
        true
    }

    /// Adds thought; `false` where there is none.
    fn add_thought(&mut self, text: &str) -> bool {
        if text.is_empty() {
            return false;
        }
        self.is_counted = false;
        match self.response.content.last_mut() {
            Some(ContentBlock::Reasoning { content }) => content.push_str(text),
            _ => {
                let content = text.to_owned();
                self.response.content.push(ContentBlock::Reasoning { content });
            }
        }
        true
    }

    /// Tells of the reduced schemas that nobody has told of before.
    fn tell_of(&mut self, mut schemas: Vec<ReducedSchema>) -> Option<LoopEvent> {
        schemas.retain(|it| !self.told.contains(it) && !self.reduced.contains(it));
        if schemas.is_empty() {
            return None;
        }
        self.reduced.extend_from_slice(&schemas);
        Some(LoopEvent::SchemasReduced { schemas })
    }

    fn call(&mut self, index: u32) -> Option<&mut CallInProgress> {
        // From the back: some servers use an index twice.
        self.calls.iter_mut().rev().find(|call| call.index == index)
    }

    fn start_call(&mut self, index: u32, id: String, name: String) -> String {
        self.is_counted = false;
        let id = self.unique_id(id);
        let block = self.response.content.len();
        let call = ToolCall { id: id.clone(), name, arguments: json!({}) };
        self.response.content.push(ContentBlock::ToolCall(call));
        self.calls.push(CallInProgress { index, block, raw: String::new(), complete: false });
        id
    }

    fn complete_call(&mut self, index: u32, mut call: ToolCall) -> ToolCall {
        let open = self.call(index).filter(|open| !open.complete).map(|open| {
            open.complete = true;
            (open.block, open.raw.is_empty())
        });
        // Arguments that came in pieces are counted as they came.
        let open = open.map(|(block, says_more)| {
            self.is_counted &= !says_more;
            block
        });
        let block = open.unwrap_or_else(|| {
            self.start_call(index, std::mem::take(&mut call.id), call.name.clone());
            if let Some(started) = self.calls.last_mut() {
                started.complete = true;
            }
            self.response.content.len() - 1
        });
        if let Some(ContentBlock::ToolCall(known)) = self.response.content.get_mut(block) {
            // The id the followers have seen stays.
            call.id.clone_from(&known.id);
            known.clone_from(&call);
        }
        call
    }

    /// Puts data behind the call it belongs to and the data that this has already, or else behind
    /// all that came.
    fn keep_data(&mut self, index: Option<u32>, data: ProviderData) {
        let data = ContentBlock::ProviderData(data);
        let Some(call) = index.and_then(|index| self.call(index)).map(|call| call.block) else {
            self.response.content.push(data);
            return;
        };
        let behind = &self.response.content[call + 1..];
        let known = behind.iter().take_while(|b| matches!(b, ContentBlock::ProviderData(_)));
        let at = call + 1 + known.count();
        self.response.content.insert(at, data);
        for call in self.calls.iter_mut().filter(|call| call.block >= at) {
            call.block += 1;
        }
    }

    /// The id itself, unless it is missing or the conversation has it already.
    fn unique_id(&self, id: String) -> String {
        let position = self.calls.len();
        let base = match id.is_empty() {
            true => format!("call_{}_{position}", self.iteration),
            false => id,
        };
        if !self.is_taken(&base) {
            return base;
        }
        let mut n = 2;
        loop {
            let candidate = format!("{base}_{n}");
            if !self.is_taken(&candidate) {
                return candidate;
            }
            n += 1;
        }
    }

    fn is_taken(&self, id: &str) -> bool {
        self.taken.contains(id) || self.response.tool_calls_iter().any(|call| call.id == id)
    }
}

fn broken(index: u32) -> Failure {
    Failure::ResponseFormat {
        message: format!("arguments came for call {index}, which never began"),
        raw: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::usage::UsageSource;

    fn assemble(taken: &[&str], events: Vec<StreamEvent>) -> (Vec<LoopEvent>, Outcome) {
        let taken = Arc::new(taken.iter().map(|id| (*id).to_owned()).collect());
        let mut assembler = ReplyAssembler::new(4, taken, Arc::default(), None);
        let seen = events.into_iter().filter_map(|e| assembler.push(e).unwrap()).collect();
        (seen, assembler.finish())
    }

    fn start(index: u32, id: &str) -> StreamEvent {
        StreamEvent::ToolCallStart { index, id: id.into(), name: "t".into() }
    }

    fn delta(index: u32, json: &str) -> StreamEvent {
        StreamEvent::ToolCallDelta { index, json_chunk: json.into() }
    }

    fn done(stop_reason: StopReason) -> StreamEvent {
        StreamEvent::Done { stop_reason }
    }

    fn reply(outcome: Outcome) -> Reply {
        match outcome {
            Outcome::Reply(reply) => reply,
            other => panic!("no reply: {other:?}"),
        }
    }

    #[test]
    fn interleaved_calls_are_told_apart_by_index() {
        let events = vec![
            start(0, "a"),
            start(1, "b"),
            delta(1, r#"{"n":"#),
            delta(0, "{}"),
            delta(1, "2}"),
            done(StopReason::ToolUse),
        ];
        let (_, outcome) = assemble(&[], events);
        let reply = reply(outcome);
        let calls: Vec<_> = reply.response.tool_calls_iter().map(ToString::to_string).collect();
        assert_eq!(calls, ["t({})", r#"t({"n":2})"#]);
    }

    #[test]
    fn duplicate_and_missing_ids_are_replaced_everywhere() {
        let call = ToolCall { id: "a".into(), name: "t".into(), arguments: json!({}) };
        let events = vec![
            start(0, "a"),
            StreamEvent::ToolCallComplete { index: 0, call },
            start(1, "a"),
            start(2, ""),
            done(StopReason::ToolUse),
        ];
        let (seen, outcome) = assemble(&["a"], events);
        let ids: Vec<_> = reply(outcome).response.tool_calls_iter().map(|c| c.id.clone()).collect();
        assert_eq!(ids, ["a_2", "a_3", "call_4_2"]);
        let LoopEvent::ToolCallComplete { call, .. } = &seen[1] else { panic!("{seen:?}") };
        assert_eq!(call.id, "a_2");
    }

    #[test]
    fn a_stream_without_its_end_keeps_text_and_drops_calls() {
        let events = vec![StreamEvent::TextDelta("half".into()), start(0, "a"), delta(0, "{}")];
        let (_, outcome) = assemble(&[], events);
        let Outcome::ReplyFailed { failure, partial } = outcome else { panic!("{outcome:?}") };
        assert!(matches!(failure, Failure::StreamInterrupted { .. }));
        assert_eq!(partial.content, [ContentBlock::Text("half".into())]);
        // Nobody knows what was asked; six bytes came.
        assert_eq!(partial.usage, Usage { output_tokens: 2, ..Usage::unknown() });
    }

    #[test]
    fn the_output_limit_cuts_only_calls_that_are_incomplete() {
        let whole = ToolCall { id: "a".into(), name: "t".into(), arguments: json!({"n": 1}) };
        let events = vec![
            start(0, "a"),
            StreamEvent::ToolCallComplete { index: 0, call: whole },
            start(1, "b"),
            delta(1, r#"{"n"#),
            start(2, "c"),
            delta(2, r#"{"n": 2}"#),
            start(3, "d"),
            done(StopReason::MaxTokens),
        ];
        let (_, outcome) = assemble(&[], events);
        let reply = reply(outcome);
        assert_eq!(reply.cut_calls, BTreeSet::from([1, 3]));
        let calls: Vec<_> = reply.response.tool_calls_iter().map(ToString::to_string).collect();
        assert_eq!(calls, [r#"t({"n":1})"#, r#"t("{\"n")"#, r#"t({"n":2})"#, "t({})"]);
    }

    #[test]
    fn a_discarded_attempt_leaves_nothing_but_its_tokens() {
        let usage = Usage { input_tokens: 5, ..Usage::default() };
        let events = vec![
            StreamEvent::TextDelta("wrong".into()),
            start(0, "a"),
            StreamEvent::AttemptDiscarded { attempt: 1 },
            StreamEvent::TextDelta("right".into()),
            StreamEvent::Usage(usage),
            done(StopReason::EndTurn),
        ];
        let (_, outcome) = assemble(&[], events);
        let response = reply(outcome).response;
        assert_eq!(response.content, [ContentBlock::Text("right".into())]);
        assert_eq!((response.usage.input_tokens, response.usage.source), (5, UsageSource::Unknown));
    }

    #[test]
    fn an_empty_text_does_not_break_a_thought_in_two() {
        let thought = |text: &str| StreamEvent::ReasoningDelta(text.into());
        let events = vec![
            thought("to "),
            StreamEvent::TextDelta(String::new()),
            thought("be"),
            done(StopReason::EndTurn),
        ];
        let (_, outcome) = assemble(&[], events);
        let whole = ContentBlock::Reasoning { content: "to be".into() };
        assert_eq!(reply(outcome).response.content, [whole]);
    }

    #[test]
    fn data_stays_in_order_behind_its_call() {
        let data = |data: &str| ProviderData { api: "x".into(), data: data.into() };
        let event = |index, text| StreamEvent::ProviderData { index, data: data(text) };
        let events = vec![
            start(0, "a"),
            start(1, "b"),
            event(Some(0), "1"),
            event(Some(1), "2"),
            event(Some(0), "3"),
            done(StopReason::ToolUse),
        ];
        let (_, outcome) = assemble(&[], events);
        let blocks = reply(outcome).response.content;
        let texts = blocks.iter().map(|block| match block {
            ContentBlock::ToolCall(call) => call.id.clone(),
            ContentBlock::ProviderData(data) => data.data.clone(),
            other => panic!("neither call nor data: {other:?}"),
        });
        assert_eq!(texts.collect::<Vec<_>>(), ["a", "1", "3", "b", "2"]);
    }
}
