use toolloop_macros::tool;

/// Borrows a string.
#[tool]
fn string(/** City */ city: &str) {}

/// Borrows a slice.
#[tool]
fn slice(/** Cities */ cities: &[String]) {}

/// Takes the context last.
#[tool]
fn last(/** City */ city: String, context: &u32) {}

/// Changes the context.
#[tool]
fn change(context: &mut u32) {}

fn main() {}
