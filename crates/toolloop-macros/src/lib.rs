//! The attribute [`tool`](macro@tool): a function becomes a tool that a model can call.
//!
//! Programs take it from the crate `toolloop`. The steps are one file each: `options` reads what
//! stands in the attribute, `function` takes the function apart and refuses what cannot be a
//! tool, `expand` writes the code.

mod expand;
mod function;
mod options;

use proc_macro::TokenStream;

use function::Function;
use options::Options;

/// Makes a function a tool.
///
/// ```ignore
/// /// Current weather of a city.
/// #[tool(read_only, timeout = "10s")]
/// async fn get_weather(
///     /// Name of the city, in English
///     city: String,
///     /// Days to look ahead; today without it
///     days: Option<u32>,
/// ) -> Result<String, reqwest::Error> {
///     // ...
/// }
///
/// Agent::new("openai/gpt-5")?.tool(get_weather);
/// ```
///
/// `get_weather` is then a value that implements `ToolHandler`, and can still be called like the
/// function: `get_weather("Paris".into(), None).await`. As with a constant, no variable of its
/// module can have its name.
///
/// - **Descriptions.** The doc comments of the function and of its arguments are what the model
///   reads; a missing one is an error.
/// - **Arguments** are owned values of types that implement `serde::Deserialize` and
///   `schemars::JsonSchema`; those in `toolloop` will do, with `#[serde(crate = "toolloop::serde")]`
///   and `#[schemars(crate = "toolloop::schemars")]`. An `Option` may be left out. `#[serde(..)]` and `#[schemars(..)]`
///   on an argument work as on a field.
/// - **Context.** A first argument that is a reference is the loop's context; the tool then
///   serves loops with that context only. Without one it serves all. A `&CallContext` tells the
///   call's id and idempotency key, and shows progress.
/// - **Result.** Nothing, any `serde::Serialize`, or `ToolOutput`; or a `Result` of these, whose
///   error's `Display` is what the model reads. Strings are given as they are, other values as
///   JSON.
/// - A function without `async` runs on the thread of the loop. What blocks belongs in
///   `spawn_blocking`.
///
/// Options, separated by commas:
///
/// | option | meaning |
/// |---|---|
/// | `name = "weather"` | name for the model; default: the function's |
/// | `read_only` | changes nothing, so it may be repeated after a crash |
/// | `idempotent` | a second time changes nothing more, so it may be repeated after a crash |
/// | `timeout = "30s"` | longest time of one execution, in `ms`, `s`, `m` or `h` |
/// | `crate = "path"` | where `toolloop` is, when it is not a dependency of that name |
#[proc_macro_attribute]
pub fn tool(options: TokenStream, item: TokenStream) -> TokenStream {
    let tool = || {
        let options = Options::parse(options.into())?;
        let function: Function = syn::parse(item)?;
        Ok(expand::expand(&options, &function))
    };
    tool().unwrap_or_else(|error: syn::Error| error.into_compile_error()).into()
}
