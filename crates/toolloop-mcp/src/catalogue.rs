//! [`Catalogue`]: the tools of all servers, in an order that stays.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rmcp::model::{Tool, ToolAnnotations};
use serde_json::{Map, Value, json};
use toolloop_core::{EffectClass, JsonSchema, ToolDefinition};

use crate::name::tool_name;

/// The tools of all servers.
///
/// A changed order would void the prompt caches of providers, so a tool keeps its place, also
/// while its server is away. At first they stand server by server, then by name; what comes
/// later stands behind.
#[derive(Default)]
pub(crate) struct Catalogue(Mutex<Tools>);

#[derive(Default)]
struct Tools {
    entries: Vec<Entry>,
    /// Counts the lists that came after all servers had started.
    wave: u32,
}

/// A tool of a server.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// By position among the servers.
    pub(crate) server: usize,
    /// 0: was there at the start.
    wave: u32,
    /// Its name at the server.
    pub(crate) remote: String,
    pub(crate) definition: ToolDefinition,
    pub(crate) effect_class: EffectClass,
    /// Whether the server's last list has it.
    pub(crate) offered: bool,
}

impl Catalogue {
    /// Takes a server's list of tools. Of two tools with the same name the first counts.
    pub(crate) fn take(&self, server: usize, server_name: &str, mut tools: Vec<Tool>) {
        // A server's own order may change between starts, and with it who gets a taken name.
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        let mut this = self.lock();
        let wave = this.wave;
        for entry in this.entries.iter_mut().filter(|entry| entry.server == server) {
            entry.offered = false;
        }
        for tool in tools {
            let known = |entry: &&mut Entry| entry.server == server && entry.remote == tool.name;
            match this.entries.iter_mut().find(known) {
                Some(entry) if entry.offered => {}
                Some(entry) => {
                    let name = entry.definition.name.clone();
                    (entry.effect_class, entry.definition) = described(tool, name);
                    entry.offered = true;
                }
                None => {
                    let is_taken =
                        |name: &str| this.entries.iter().any(|entry| entry.definition.name == name);
                    let name = tool_name(server_name, &tool.name, is_taken);
                    let remote = tool.name.to_string();
                    let (effect_class, definition) = described(tool, name);
                    let offered = true;
                    this.entries.push(Entry {
                        server,
                        wave,
                        remote,
                        definition,
                        effect_class,
                        offered,
                    });
                }
            }
        }
        this.entries
            .sort_by(|a, b| (a.wave, a.server, &a.remote).cmp(&(b.wave, b.server, &b.remote)));
        if wave > 0 {
            this.wave += 1;
        }
    }

    /// All servers have started: what comes from now on stands behind.
    pub(crate) fn settle(&self) {
        self.lock().wave = 1;
    }

    /// The tools that servers offer, in order.
    pub(crate) fn offered(&self) -> Vec<Entry> {
        self.lock().entries.iter().filter(|entry| entry.offered).cloned().collect()
    }

    pub(crate) fn is_offered(&self, server: usize, remote: &str) -> bool {
        let this = self.lock();
        let mut of_server = this.entries.iter().filter(|entry| entry.server == server);
        of_server.any(|entry| entry.remote == remote && entry.offered)
    }

    /// Nothing here can panic half-way, so a poisoned lock holds a whole value.
    fn lock(&self) -> MutexGuard<'_, Tools> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn described(tool: Tool, name: String) -> (EffectClass, ToolDefinition) {
    let effect_class = effect_class(tool.annotations.as_ref());
    let title = tool.title.or(tool.annotations.and_then(|annotations| annotations.title));
    let mut description: String = tool.description.map(Into::into).or(title).unwrap_or_default();
    let mut parameters = parameters(tool.input_schema.as_ref().clone());
    if !is_usable(&parameters) {
        // One such schema would have every request of the run refused. The model can still read
        // it, and the server checks its arguments itself.
        let schema: String = parameters.to_string().chars().take(LONGEST_SCHEMA).collect();
        let gap = if description.is_empty() { "" } else { "\n\n" };
        description.push_str(&format!("{gap}Its server describes the arguments as: {schema}"));
        parameters = json!({"type": "object", "properties": {}});
    }
    let parameters = JsonSchema::new(parameters);
    (effect_class, ToolDefinition { name, description, parameters, retry: None })
}

/// Whether an API can be told of it, and arguments held against it. No `$ref` is ever loaded: the
/// crate is built without that.
fn is_usable(schema: &Value) -> bool {
    schema["type"] == "object"
        && schema["properties"].is_object()
        && jsonschema::validator_for(schema).is_ok()
}

/// The hints are the server's own word. They decide what happens to a call that a crash cut off,
/// and must not decide whether anybody is asked.
fn effect_class(hints: Option<&ToolAnnotations>) -> EffectClass {
    match hints {
        Some(hints) if hints.read_only_hint == Some(true) => EffectClass::ReadOnly,
        Some(hints) if hints.idempotent_hint == Some(true) => EffectClass::Idempotent,
        _ => EffectClass::Once,
    }
}

/// APIs want to see that arguments are an object, and its properties.
fn parameters(mut schema: Map<String, Value>) -> Value {
    schema.entry("type").or_insert_with(|| "object".into());
    if schema.get("properties").is_none_or(Value::is_null) {
        schema.insert("properties".to_owned(), Map::new().into());
    }
    Value::Object(schema)
}

/// So much of a schema that cannot be used is told, in characters.
const LONGEST_SCHEMA: usize = 4_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(tool: Value) -> Tool {
        let mut tool = tool;
        tool["inputSchema"] = json!({});
        serde_json::from_value(tool).unwrap()
    }

    fn named(names: &[&str]) -> Vec<Tool> {
        names.iter().map(|name| tool(json!({"name": name}))).collect()
    }

    fn names(catalogue: &Catalogue) -> Vec<String> {
        catalogue.offered().into_iter().map(|entry| entry.definition.name).collect()
    }

    #[test]
    fn the_order_is_that_of_servers_and_names_whoever_starts_first() {
        let catalogue = Catalogue::default();
        catalogue.take(1, "two", named(&["z", "y"]));
        catalogue.take(0, "one", named(&["b", "a", "b"]));
        assert_eq!(names(&catalogue), ["one__a", "one__b", "two__y", "two__z"]);
    }

    #[test]
    fn a_changed_list_moves_nothing() {
        let catalogue = Catalogue::default();
        catalogue.take(0, "one", named(&["a", "b"]));
        catalogue.take(1, "two", named(&["c"]));
        catalogue.settle();
        catalogue.take(0, "one", named(&["b", "new"]));
        assert_eq!(names(&catalogue), ["one__b", "two__c", "one__new"]);
        assert!(!catalogue.is_offered(0, "a"));
        catalogue.take(1, "two", named(&["also", "c"]));
        catalogue.take(0, "one", named(&["new", "a", "b"]));
        assert_eq!(names(&catalogue), ["one__a", "one__b", "two__c", "one__new", "two__also"]);
    }

    #[test]
    fn hints_become_an_effect_class() {
        let class = |annotations: Value| {
            let tool = tool(json!({"name": "x", "annotations": annotations}));
            effect_class(tool.annotations.as_ref())
        };
        assert_eq!(class(json!({"readOnlyHint": true})), EffectClass::ReadOnly);
        assert_eq!(class(json!({"idempotentHint": true})), EffectClass::Idempotent);
        assert_eq!(class(json!({"destructiveHint": false})), EffectClass::Once);
        assert_eq!(effect_class(None), EffectClass::Once);
    }

    #[test]
    fn a_definition_has_what_apis_want() {
        let tool = tool(json!({"name": "x", "title": "The x"}));
        let (_, definition) = described(tool, "s__x".into());
        assert_eq!(definition.description, "The x");
        let parameters = json!({"type": "object", "properties": {}});
        assert_eq!(*definition.parameters.as_value(), parameters);
    }

    #[test]
    fn a_schema_that_nobody_can_use_is_told_in_words() {
        for schema in [
            json!({"type": "object", "properties": {"a": {"type": "strin"}}}),
            json!({"type": "object", "properties": {"a": {"$ref": "#/definitions/gone"}}}),
            json!({"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:1/a"}}}),
            json!({"type": "object", "properties": {"a": {"pattern": "^[)$"}}}),
            json!({"type": "string", "properties": {}}),
            json!({"type": "object", "properties": []}),
            json!({"$schema": "urn:nobody", "type": "object", "properties": {}}),
        ] {
            let tool: Tool = serde_json::from_value(
                json!({"name": "x", "description": "Does x.", "inputSchema": schema}),
            )
            .unwrap();
            let (_, definition) = described(tool, "s__x".into());
            let open = json!({"type": "object", "properties": {}});
            assert_eq!(*definition.parameters.as_value(), open);
            let told = format!("Does x.\n\nIts server describes the arguments as: {schema}");
            assert_eq!(definition.description, told);
        }
        let (_, empty) = described(
            serde_json::from_value(json!({"name": "x", "inputSchema": {"properties": null}}))
                .unwrap(),
            "s__x".into(),
        );
        assert_eq!(empty.description, "");
    }
}
