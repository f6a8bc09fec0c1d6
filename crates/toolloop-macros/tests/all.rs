//! What `#[tool]` makes of a function, and what it says when it cannot.

mod suite {
    mod arguments;
    mod calling;
    mod errors;
    mod results;
    mod support;
}

/// What `toolloop` holds for the attribute, so that these tests need no other part of it.
#[allow(unreachable_pub)]
#[path = "../../toolloop/src/tool/returns.rs"]
mod __private;
