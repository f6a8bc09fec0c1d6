use toolloop_macros::tool;

#[tool]
fn undocumented(city: String, /** Days */ days: u32, country: String) -> String {
    String::new()
}

/// Has a doc comment.
#[tool]
fn empty(
    ///
    city: String,
) {
}

fn main() {}
