use toolloop_core::ToolHandler;

/// A function without the attribute.
fn shout(text: String) -> String {
    text.to_uppercase()
}

fn register(_tool: impl ToolHandler) {}

fn main() {
    register(shout);
}
