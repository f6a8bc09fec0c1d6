//! [`Effect`]: what a run asks of the world. [`Outcome`]: what the world answers, once per key.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::chat::{ChatResponse, ToolCall, ToolResult};
use crate::error::Failure;
use crate::policy::detection::LoopDetection;
use crate::policy::stop::StopDecision;
use crate::schema::ReducedSchema;
use crate::tool_content::ToolContent;
use crate::usage::Usage;

/// Something a driver must do for a run, and answer with an [`Outcome`] for its key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// Names this effect in the run; the same after every replay.
    pub key: EffectKey,
    /// What to do.
    pub action: Action,
}

/// What an [`Effect`] asks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Action {
    /// Ask the model with [`Run::params`](crate::Run::params), assembling its reply with
    /// [`Run::assembler`](crate::Run::assembler).
    CallModel,
    /// Read which iterations' results are to be masked whatever their age.
    ReadForceMask,
    /// Ask a model with [`Run::summary_params`](crate::Run::summary_params), assembling its reply
    /// with [`Run::assembler`](crate::Run::assembler). The answer is a reply, whole or failed;
    /// followers see nothing of it.
    Summarize,
    /// Ask the stop condition, with [`Run::stop_context`](crate::Run::stop_context).
    DecideStop,
    /// Ask whether the run goes on though the model goes in circles.
    DecideLoop(Vec<LoopDetection>),
    /// Ask whether this call may run.
    Approve(ToolCall),
    /// Run this call; the arguments are those an approval left.
    RunTool(ToolCall),
    /// Send this result of the tool through the result pipeline.
    ProcessResult {
        /// Name of the tool.
        tool_name: String,
        /// What it gave back.
        result: ToolResult,
    },
}

/// The deterministic name of an effect, written `m/3`, `t/3/0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EffectKey {
    /// The iteration it belongs to, from 1.
    pub iteration: u32,
    /// What it is.
    pub kind: EffectKind,
    /// Which call of the reply, from 0; for a model call, how often it was asked before; 1 for
    /// the summary before a final answer.
    pub index: u32,
}

/// The kind of an effect, in the order in which a turn passes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EffectKind {
    /// `f`: read the force-mask set.
    ForceMask,
    /// `c`: summary of what the request no longer shows.
    Compaction,
    /// `m`: model call.
    Model,
    /// `s`: stop decision.
    Stop,
    /// `l`: decision about circles, with index 0 in the calls and 1 in their results.
    Loop,
    /// `a`: approval of a call.
    Approval,
    /// `t`: the tool of a call.
    Tool,
    /// `p`: pipeline of a result.
    Pipeline,
}

impl EffectKey {
    pub(crate) fn new(kind: EffectKind, iteration: u32, index: usize) -> Self {
        // No reply holds four billion calls: a reply is bounded by the transport's buffers.
        Self { iteration, kind, index: u32::try_from(index).unwrap_or(u32::MAX) }
    }
}

impl fmt::Display for EffectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use EffectKind::{Approval, Compaction, ForceMask, Loop, Model, Pipeline, Stop, Tool};
        let letter = match self.kind {
            ForceMask => 'f',
            Compaction => 'c',
            Model => 'm',
            Stop => 's',
            Loop => 'l',
            Approval => 'a',
            Tool => 't',
            Pipeline => 'p',
        };
        write!(f, "{letter}/{}", self.iteration)?;
        match (self.kind, self.index) {
            (ForceMask | Compaction | Model | Stop | Loop, 0) => Ok(()),
            (_, index) => write!(f, "/{index}"),
        }
    }
}

impl FromStr for EffectKey {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("{text:?} is no effect key: expected a form like m/3 or t/3/0");
        let mut parts = text.split('/');
        let kind = match parts.next() {
            Some("f") => EffectKind::ForceMask,
            Some("c") => EffectKind::Compaction,
            Some("m") => EffectKind::Model,
            Some("s") => EffectKind::Stop,
            Some("l") => EffectKind::Loop,
            Some("a") => EffectKind::Approval,
            Some("t") => EffectKind::Tool,
            Some("p") => EffectKind::Pipeline,
            _ => return Err(bad()),
        };
        let iteration = parts.next().and_then(|n| n.parse().ok()).ok_or_else(bad)?;
        let index = parts.next().map_or(Ok(0), str::parse).map_err(|_| bad())?;
        if parts.next().is_some() {
            return Err(bad());
        }
        Ok(Self { iteration, kind, index })
    }
}

impl Serialize for EffectKey {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for EffectKey {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// The answer to an effect.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Outcome {
    /// The model's whole reply.
    Reply(Reply),
    /// The model call failed; what arrived before is kept.
    ReplyFailed {
        /// Why.
        failure: Failure,
        /// What arrived, without calls.
        partial: ChatResponse,
    },
    /// Iterations whose results are to be masked.
    ForceMask(BTreeSet<u32>),
    /// The stop condition's decision.
    Stop(StopDecision),
    /// Whether a run goes on in circles.
    Loop(LoopVerdict),
    /// The approval of a call.
    Approval(ApprovalOutcome),
    /// What the tool gave back.
    Tool(ToolOutcome),
    /// What the pipeline made of a result.
    Pipeline(PipelineOutcome),
    /// The effect was aborted, as [`Output::Abort`](crate::run::Output::Abort) asked.
    Cut {
        /// Of a model call: what arrived, without calls.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        partial: Option<ChatResponse>,
        /// Of a tool or a pipeline: tokens its nested loops used.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
        /// Of a tool: how long it ran.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        duration: Option<Duration>,
    },
    /// The effect was aborted before anything of it began.
    NotBegun,
}

/// A whole reply, with what was found out about its calls.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Reply {
    /// The reply; ids of calls are unique in the run.
    pub response: ChatResponse,
    /// Calls (by position among the reply's calls) that the output limit cut.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub cut_calls: BTreeSet<usize>,
    /// Calls (by position) whose arguments do not fit the tool's schema, with what is wrong.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub invalid_calls: BTreeMap<usize, String>,
    /// Schemas of which the provider was told less than they say, as far as the run has not told
    /// of them before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reduced_schemas: Vec<ReducedSchema>,
}

/// Whether a run goes on though the model goes in circles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoopVerdict {
    /// It goes on, and the model is not told.
    GoOn,
    /// It ends.
    Terminate,
}

/// Whether a call may run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalOutcome {
    /// It may.
    Approved,
    /// It may not, for this reason.
    Denied(String),
    /// It may, with these arguments.
    Modified(Value),
    /// It may, but the changed arguments do not fit the tool's schema.
    ModifiedInvalid(String),
    /// It does not run: this is its result.
    Answered(ToolContent),
}

/// What running a tool gave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolOutcome {
    /// What the model reads.
    pub content: ToolContent,
    /// Whether the tool failed.
    #[serde(default)]
    pub is_error: bool,
    /// How long it ran.
    pub duration: Duration,
    /// Tokens its nested loops used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// What the result pipeline made of a result.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct PipelineOutcome {
    /// The new text; `None`: unchanged.
    pub text: Option<String>,
    /// Which stages changed it, in order.
    pub stages: Vec<StageReport>,
    /// Tokens of models that the stages asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// What one stage of the pipeline did, in estimated tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StageReport {
    /// The processor changed the text.
    Processed {
        /// Tokens before.
        original: u32,
        /// Tokens after.
        now: u32,
    },
    /// The extractor took a part.
    Extracted {
        /// Tokens before.
        original: u32,
        /// Tokens after.
        now: u32,
    },
    /// The cacher left a summary.
    Cached {
        /// Tokens before.
        original: u32,
        /// Tokens after.
        now: u32,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_read_as_they_are_written() {
        for text in [
            "m/3", "m/3/1", "s/3", "l/3", "l/3/1", "a/3/0", "t/3/12", "p/1/0", "f/9", "c/2",
            "c/2/1",
        ] {
            assert_eq!(text.parse::<EffectKey>().unwrap().to_string(), text);
        }
        for text in ["", "x/1", "m", "m/x", "t/1/2/3", "t/1/-1"] {
            assert!(text.parse::<EffectKey>().is_err(), "{text}");
        }
    }
}
