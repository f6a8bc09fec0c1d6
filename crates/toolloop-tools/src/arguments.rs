//! Arguments of a tool from their type: the schema the model sees, and the reading of a call.

use schemars::JsonSchema as Schema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use toolloop_core::{JsonSchema, ToolDefinition, ToolError};

/// The definition of a tool that takes `Args`; the docs of its fields become descriptions.
pub(crate) fn definition<Args: Schema>(name: &str, description: &str) -> ToolDefinition {
    // Only a map with keys that are not strings fails here, and no arguments hold one.
    let schema = JsonSchema::from_type::<Args>().expect("arguments have a JSON schema");
    let mut schema = schema.as_value().clone();
    if let Some(schema) = schema.as_object_mut() {
        // The name of a Rust type means nothing to the model.
        schema.remove("title");
    }
    ToolDefinition {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters: schema.into(),
        retry: None,
    }
}

/// The arguments of a call.
pub(crate) fn parse<Args: DeserializeOwned>(tool: &str, input: Value) -> Result<Args, ToolError> {
    serde_json::from_value(input).map_err(|error| {
        ToolError::new(format!("The arguments of {tool} are not right: {error}. Call it again."))
    })
}
