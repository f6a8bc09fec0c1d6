//! The command `toolloop`.
fn main() {}
