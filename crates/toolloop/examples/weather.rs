//! A tool, an agent, and its events as they happen:
//! `OPENAI_API_KEY=... cargo run -p toolloop --example weather`

use toolloop::{Agent, LlmError, LoopEvent::*, StreamExt, tool};

/// Current weather of a city.
#[tool]
async fn get_weather(
    /** City name */
    city: String,
) -> String {
    format!("18 degrees in {city}")
}

#[tokio::main]
async fn main() -> Result<(), LlmError> {
    let agent = Agent::new("openai/gpt-5")?.tool(get_weather);
    let mut events = agent.stream("What is the weather in Paris?");
    while let Some(event) = events.next().await {
        match event? {
            TextDelta(text) => print!("{text}"),
            ToolExecutionStart { tool_name, arguments, .. } => {
                println!("-> {tool_name} {arguments}")
            }
            ToolExecutionEnd { result, duration, .. } => {
                println!("<- {} ({duration:?})", result.content)
            }
            Done(result) => println!("\n{}", result.total_usage),
            _ => {}
        }
    }
    Ok(())
}
