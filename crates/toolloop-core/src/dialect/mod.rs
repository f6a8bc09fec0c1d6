//! Tool calls as text: [`Dialect`] says how a model writes them.
//!
//! A dialect is a pure pair. [`render`] puts the tools into the instructions and the calls and
//! results of the conversation into text; [`StreamProcessor`] turns the text of the reply back
//! into the events of native calls, however it was cut on its way. It holds back only what could
//! still become a call.
//!
//! With native calls the processor looks for those that leaked into the text
//! ([`StreamEvent::ToolCallRescued`](crate::StreamEvent::ToolCallRescued)), and counts calls
//! against a [`ToolLimit`].

mod escape;
mod limit;
mod processor;
pub mod render;
mod scan;
mod schema;

use serde::{Deserialize, Serialize};

pub use limit::{StreamingError, ToolLimit};
pub use processor::StreamProcessor;
pub(crate) use scan::unread_call;
pub use scan::{End, Scanner};

use crate::provider::{Capability, ProviderMetadata};

/// How a model calls tools.
///
/// ```text
///  Xml                                Caret
///  <tool:read_file>                   ^^^read_file
///  <param:path>a.txt</param:path>     path: a.txt
///  </tool:read_file>                  ^^^
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Dialect {
    /// By the provider's API. Calls that a model wrote as text all the same are lifted out of it.
    Native,
    /// [`Native`](Self::Native) where the provider says that its model can, else
    /// [`Xml`](Self::Xml).
    #[default]
    Auto,
    /// As `<tool:name>` blocks in its text.
    Xml,
    /// As `^^^name` blocks in its text; values of several lines need no closing tag to be escaped.
    Caret,
}

impl Dialect {
    /// What [`Auto`](Self::Auto) is for this provider; every other one is itself.
    pub fn resolve(self, metadata: &ProviderMetadata) -> Self {
        match self {
            Self::Auto if metadata.capabilities.contains(&Capability::Tools) => Self::Native,
            Self::Auto => Self::Xml,
            known => known,
        }
    }

    /// Whether calls are text, so that requests have to be rendered.
    pub fn is_text(self) -> bool {
        matches!(self, Self::Xml | Self::Caret)
    }
}
