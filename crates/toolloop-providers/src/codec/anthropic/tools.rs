//! [`Tools`]: what the model may call, and whether it must.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::Serialize;
use serde::ser::{SerializeMap, SerializeSeq, Serializer};
use serde_json::{Value, json};
use toolloop_core::{ChatParams, ChatRole, ContentBlock, ToolChoice, ToolDefinition};

use super::blocks::NAMES;
use super::request::Options;
use crate::codec::schema::{Form, Sent};

/// The tools of a request.
///
/// A conversation with calls needs tools; where none are offered, those it has called stand in,
/// and the model is told to call none.
pub(super) struct Tools<'a> {
    offered: &'a [ToolDefinition],
    server: &'a [Value],
    called: BTreeSet<Cow<'a, str>>,
    caching: bool,
}

impl<'a> Tools<'a> {
    pub(super) fn new(
        params: &'a ChatParams,
        options: &'a Options,
        paused: &'a [ContentBlock],
    ) -> Self {
        let offered = params.tools.as_deref().unwrap_or_default();
        let server = options.server_tools.as_slice();
        let called = match (offered, server) {
            ([], []) => {
                let said = params.messages.iter().filter(|m| m.role == ChatRole::Assistant);
                let blocks = said.flat_map(|message| &message.content).chain(paused);
                // They are few, and each is called many times.
                let names: BTreeSet<&str> = blocks.filter_map(called).collect();
                names.into_iter().map(|name| NAMES.legal(name)).collect()
            }
            _ => BTreeSet::new(),
        };
        Self { offered, server, called, caching: options.caching }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.offered.is_empty() && self.server.is_empty() && self.called.is_empty()
    }
}

fn called(block: &ContentBlock) -> Option<&str> {
    match block {
        ContentBlock::ToolCall(call) => Some(&call.name),
        _ => None,
    }
}

/// The member `tool_choice`, where it says anything.
pub(super) fn choice(params: &ChatParams, tools: &Tools<'_>) -> Option<Value> {
    if !tools.called.is_empty() {
        return Some(json!({"type": "none"}));
    }
    params.tool_choice.as_ref().map(|choice| match choice {
        ToolChoice::None => json!({"type": "none"}),
        ToolChoice::Required => json!({"type": "any"}),
        ToolChoice::Specific(name) => json!({"type": "tool", "name": NAMES.legal(name)}),
        _ => json!({"type": "auto"}),
    })
}

impl Serialize for Tools<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        for tool in self.server {
            list.serialize_element(tool)?;
        }
        for (at, tool) in self.offered.iter().enumerate() {
            let cached = self.caching && at + 1 == self.offered.len();
            list.serialize_element(&Tool { tool, cached })?;
        }
        for name in &self.called {
            list.serialize_element(&json!({"name": name, "input_schema": {"type": "object"}}))?;
        }
        list.end()
    }
}

struct Tool<'a> {
    tool: &'a ToolDefinition,
    cached: bool,
}

impl Serialize for Tool<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ToolDefinition { name, description, parameters, .. } = self.tool;
        let mut tool = serializer.serialize_map(None)?;
        tool.serialize_entry("name", &NAMES.legal(name))?;
        if !description.is_empty() {
            tool.serialize_entry("description", description)?;
        }
        tool.serialize_entry("input_schema", Sent::new(parameters, &TOOLS).schema())?;
        if self.cached {
            tool.serialize_entry("cache_control", &json!({"type": "ephemeral"}))?;
        }
        tool.end()
    }
}

pub(super) const TOOLS: [Form; 1] = [Form::Object];
