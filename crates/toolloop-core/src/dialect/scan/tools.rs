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

    pub(super) fn schema(&self, name: &str) -> Option<&Value> {
        self.tools.iter().find(|(known, _)| known == name).map(|(_, schema)| schema)
    }
}
