//! toolloop: `tool_loop_stream` over `OpenAiProvider`, as a program would use them.

use std::sync::Arc;

use benchkit::{AddArgs, Conv, Options};
use toolloop::provider::OpenAiProvider;
use toolloop::tool::{
    LoopEvent, ToolError, ToolLoopConfig, ToolRegistry, tool_fn, tool_loop_stream,
};
use toolloop::{ChatMessage, ChatParams, DynProvider, JsonSchema, StreamExt, ToolDefinition};

struct Client {
    provider: Arc<dyn DynProvider>,
    registry: Arc<ToolRegistry>,
}

fn setup(options: &Options) -> Client {
    let provider = OpenAiProvider::builder(&options.model)
        .base_url(&options.base_url)
        .api_key("none")
        .build()
        .expect("a provider");
    let definition = ToolDefinition {
        name: benchkit::TOOL_NAME.into(),
        description: benchkit::TOOL_DESCRIPTION.into(),
        parameters: JsonSchema::new(benchkit::tool_schema()),
        retry: None,
    };
    let mut registry = ToolRegistry::new();
    registry.register(tool_fn(definition, |args| async move {
        let args: AddArgs =
            serde_json::from_value(args).map_err(|e| ToolError::new(e.to_string()))?;
        Ok(benchkit::add(&args))
    }));
    Client { provider: Arc::new(provider), registry: Arc::new(registry) }
}

fn main() {
    benchkit::main(setup, |client: Arc<Client>, conv: Conv| async move {
        converse(&client, conv).await
    });
}

async fn converse(client: &Client, mut conv: Conv) -> Result<(), String> {
    let params = ChatParams {
        messages: vec![ChatMessage::user(benchkit::PROMPT)],
        system: Some(benchkit::SYSTEM.into()),
        ..ChatParams::default()
    };
    let config =
        ToolLoopConfig { max_iterations: benchkit::MAX_ITERATIONS, ..ToolLoopConfig::default() };
    let (provider, registry) = (client.provider.clone(), client.registry.clone());
    let mut events = tool_loop_stream(provider, registry, params, config, Arc::new(()));
    let mut done = false;
    while let Some(event) = events.next().await {
        match event.map_err(|e| e.to_string())? {
            LoopEvent::TextDelta(text) => conv.text(&text),
            LoopEvent::Usage(usage) => conv.usage(usage.output_tokens),
            LoopEvent::Done(_) => done = true,
            _ => {}
        }
    }
    done.then_some(()).ok_or_else(|| "the stream ended without Done".to_owned())
}
