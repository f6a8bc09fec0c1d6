use toolloop_macros::tool;

/// Unknown.
#[tool(description = "x")]
fn unknown() {}

/// Both.
#[tool(read_only, idempotent)]
fn both() {}

/// No unit.
#[tool(timeout = "30")]
fn timeout() {}

/// Bad name.
#[tool(name = "get weather")]
fn name() {}

fn main() {}
