//! Interceptors: code of a program around every call of a model and of a tool.
//!
//! An interceptor gets the call and what comes next, and decides: hand it on, change it, answer
//! in its place, look at what came back. The first one that is added is the outermost: it sees
//! the call first and the answer last. [`ModelInterceptors`] wrap a provider, [`ToolInterceptors`]
//! wrap tools; a loop sees a provider and tools as always.

mod model;
mod tool;

pub use crate::reply_stream::as_stream;
pub use model::{ModelInterceptor, ModelInterceptors, ModelNext};
pub use tool::{ToolInterceptor, ToolInterceptors, ToolNext, ToolRequest};
