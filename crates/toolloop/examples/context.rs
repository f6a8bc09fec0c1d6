//! A conversation that a program keeps itself, cut to what fits:
//! `cargo run -p toolloop --example context`

use toolloop::ChatMessage;
use toolloop::context::{ContextWindow, Overfull, Weight};

fn main() -> Result<(), Overfull> {
    // A small model: 60 tokens, of which 20 are for its reply.
    let mut window = ContextWindow::new(60, 20);
    window.push_estimated(ChatMessage::system("You are a tour guide."));
    window.push_weighted(ChatMessage::user("I cannot walk far."), 5, Weight::High);
    for city in ["Paris", "Rome", "Lisbon", "Vienna"] {
        window.push_estimated(ChatMessage::user(format!("What is there to see in {city}?")));
        window.push_estimated(ChatMessage::assistant(format!("Much: {city} is old.")));
    }
    println!("{} of {} tokens", window.total_tokens(), window.budget());
    for message in window.fit()? {
        println!("{:?}: {:?}", message.role, message.content);
    }
    Ok(())
}
