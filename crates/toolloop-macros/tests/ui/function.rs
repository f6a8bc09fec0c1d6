use toolloop_macros::tool;

/// Generic.
#[tool]
fn generic<T>(/** Value */ value: T) {}

/// Unsafe.
#[tool]
unsafe fn dangerous() {}

/// Nameless type.
#[tool]
fn nameless() -> impl Sized {}

/// Nameless argument.
#[tool]
fn pair(/** Pair */ (a, b): (u32, u32)) {}

/// Not a function.
#[tool]
struct Weather;

struct Client;

impl Client {
    /// A method.
    #[tool]
    fn get(&self) {}
}

fn main() {}
