//! An answer as a value of a type: `cargo run -p toolloop --example structured`
//!
//! The model is a mock whose first answer does not fit, so this runs anywhere.

use toolloop::mock::MockProvider;
use toolloop::schemars::JsonSchema;
use toolloop::serde::Deserialize;
use toolloop::structured::GenerateObjectConfig;
use toolloop::{ChatMessage, ChatParams, LlmError, generate_object};

/// A dish and what goes into it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(crate = "toolloop::serde")]
#[schemars(crate = "toolloop::schemars")]
struct Recipe {
    /// What it is called
    name: String,
    /// What goes in, in the order of use
    ingredients: Vec<String>,
    minutes: u32,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), LlmError> {
    let model = MockProvider::default();
    model.queue_text(r#"{"name": "Omelette", "ingredients": ["eggs", "butter"]}"#);
    model.queue_text(r#"{"name": "Omelette", "ingredients": ["eggs", "butter"], "minutes": 5}"#);

    let messages = vec![ChatMessage::user("Something quick with eggs, please.")];
    let params = ChatParams { messages, ..ChatParams::default() };
    let found = generate_object::<Recipe>(&model, params, GenerateObjectConfig::default()).await?;
    let Recipe { name, ingredients, minutes } = found.value;
    println!("{name} of {}, {minutes} minutes", ingredients.join(" and "));
    println!("after {} attempts, {}", found.attempts, found.usage);
    Ok(())
}
