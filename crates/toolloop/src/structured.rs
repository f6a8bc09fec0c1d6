//! [`generate_object`]: an answer of a model as a value of a type.
//!
//! The schema comes from the type, the answer is held against it, and what does not fit goes back
//! to the model with the faults, a few times.

mod answer;

use schemars::JsonSchema as DeriveSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use toolloop_core::{
    Capability, ChatParams, ChatResponse, DynProvider, JsonSchema, LlmError, StopReason, Usage,
};

use answer::{Asking, Fault};

/// How an object is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GenerateObjectConfig {
    /// How often an answer that does not fit goes back to the model.
    pub max_repairs: u32,
    /// The way to ask; `None`: the surest that the model says it has.
    pub mode: Option<ObjectMode>,
}

impl Default for GenerateObjectConfig {
    fn default() -> Self {
        Self { max_repairs: 2, mode: None }
    }
}

/// How a model is brought to answer in a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ObjectMode {
    /// The provider's own structured output: [`Capability::StructuredOutput`].
    Native,
    /// A tool that the model must call, whose arguments are the answer: [`Capability::Tools`].
    Tool,
    /// Words in the instructions.
    Instruction,
}

/// An answer that fits.
#[derive(Debug, Clone, PartialEq)]
pub struct GenerateObjectResult<T> {
    /// The value.
    pub value: T,
    /// Tokens of all attempts.
    pub usage: Usage,
    /// Model calls it took.
    pub attempts: u32,
    /// The reply that held the value.
    pub response: ChatResponse,
}

/// Asks a model for a value of a type.
///
/// The type may be any that derives `Deserialize` and `JsonSchema`; one that is no object is asked
/// for as the only member of one. `params` are those of any request; `tools`, `tool_choice` and
/// `structured_output` are set here, so a model that needs tools on the way runs in a loop first.
///
/// # Errors
/// [`LlmError::SchemaValidation`] when no answer fits, with the last one and its faults;
/// [`LlmError::ResponseFormat`] when the model declines; and those of the provider.
///
/// ```
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use toolloop::mock::MockProvider;
/// use toolloop::structured::{GenerateObjectConfig, generate_object};
/// use toolloop::{ChatMessage, ChatParams};
///
/// #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
/// struct City {
///     name: String,
///     inhabitants: u32,
/// }
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let model = MockProvider::default();
/// model.queue_text(r#"{"name": "Paris", "inhabitants": "many"}"#);
/// model.queue_text(r#"{"name": "Paris", "inhabitants": 2100000}"#);
///
/// let messages = vec![ChatMessage::user("The capital of France?")];
/// let params = ChatParams { messages, ..ChatParams::default() };
/// let found = generate_object::<City>(&model, params, GenerateObjectConfig::default()).await?;
/// assert_eq!(found.value, City { name: "Paris".into(), inhabitants: 2_100_000 });
/// assert_eq!(found.attempts, 2);
/// # Ok::<(), toolloop::LlmError>(())
/// # }).unwrap();
/// ```
pub async fn generate_object<T: DeserializeOwned + DeriveSchema>(
    provider: &dyn DynProvider,
    params: ChatParams,
    config: GenerateObjectConfig,
) -> Result<GenerateObjectResult<T>, LlmError> {
    let schema = JsonSchema::from_type::<T>()?;
    let read = |value| serde_json::from_value(value).map_err(|error| error.to_string());
    generate(provider, schema, params, config, read).await
}

/// The same for a schema that is known only at run time; the value is JSON.
///
/// # Errors
/// Those of [`generate_object`], and [`LlmError::InvalidRequest`] when the schema is unusable.
pub async fn generate_value(
    provider: &dyn DynProvider,
    schema: JsonSchema,
    params: ChatParams,
    config: GenerateObjectConfig,
) -> Result<GenerateObjectResult<Value>, LlmError> {
    generate(provider, schema, params, config, Ok).await
}

async fn generate<T>(
    provider: &dyn DynProvider,
    schema: JsonSchema,
    mut params: ChatParams,
    config: GenerateObjectConfig,
    read: impl Fn(Value) -> Result<T, String>,
) -> Result<GenerateObjectResult<T>, LlmError> {
    let asking = Asking::new(schema, config.mode.unwrap_or_else(|| surest(provider)))?;
    asking.prepare(&mut params);
    let (mut usage, mut attempts) = (Usage::default(), 0);
    loop {
        let response = provider.generate_boxed(&params).await?;
        usage += response.usage;
        attempts += 1;
        if response.stop_reason == StopReason::Refusal {
            let raw = response.text().unwrap_or_default().to_owned();
            let message = "the model declined to answer".to_owned();
            return Err(LlmError::ResponseFormat { message, raw });
        }
        let fault = match asking.read(&response, &read) {
            Ok(value) => return Ok(GenerateObjectResult { value, usage, attempts, response }),
            Err(fault) => fault,
        };
        if attempts > config.max_repairs {
            let Fault { what, actual } = fault;
            let message = match attempts {
                1 => what,
                _ => format!("{what} (the last of {attempts} answers)"),
            };
            let schema = Box::new(asking.into_schema());
            return Err(LlmError::SchemaValidation { message, schema, actual: Box::new(actual) });
        }
        asking.ask_again(&mut params, response, &fault.what);
    }
}

/// The surest way that a model says it has.
fn surest(provider: &dyn DynProvider) -> ObjectMode {
    let capabilities = provider.metadata().capabilities;
    if capabilities.contains(&Capability::StructuredOutput) {
        ObjectMode::Native
    } else if capabilities.contains(&Capability::Tools) {
        ObjectMode::Tool
    } else {
        ObjectMode::Instruction
    }
}
