use toolloop_macros::tool;

#[allow(unused_imports)]
#[path = "../../../toolloop/src/tool/returns.rs"]
mod __private;

struct Opaque;

#[derive(serde::Deserialize)]
struct Shapeless;

/// Returns what no model reads.
#[tool(crate = "crate")]
fn opaque() -> Opaque {
    Opaque
}

/// Fails as no model reads.
#[tool(crate = "crate")]
async fn failing() -> Result<String, Opaque> {
    Err(Opaque)
}

/// Takes what no model writes.
#[tool(crate = "crate")]
fn takes(/** It */ _it: Shapeless) {}

fn main() {}
