//! [`Offered`]: the tools a reply may call.

use serde_json::Value;

use crate::params::ToolDefinition;

/// The tools a reply may call, with the schemas of their arguments.
#[derive(Debug, Default)]
pub(super) struct Offered {
    tools: Vec<(String, Value)>,
}

impl Offered {
    pub(super) fn new(tools: &[ToolDefinition]) -> Self {
        let tool = |tool: &ToolDefinition| (tool.name.clone(), tool.parameters.as_value().clone());
        Self { tools: tools.iter().map(tool).collect() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.schema(name).is_some()
    }

    /// The tool that a leaked call names; some models put the namespace of their training before it.
    pub(super) fn leaked<'a>(&self, name: &'a str) -> Option<&'a str> {
        [Some(name), name.strip_prefix("functions.")].into_iter().flatten().find(|n| self.has(n))
    }

    pub(super) fn schema(&self, name: &str) -> Option<&Value> {
        self.tools.iter().find(|(known, _)| known == name).map(|(_, schema)| schema)
    }
}
