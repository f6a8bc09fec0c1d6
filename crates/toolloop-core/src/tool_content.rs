//! [`ToolContent`]: what a tool's result holds. It reads as text and may carry more.

use std::fmt;
use std::ops::Deref;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::chat::ImageSource;

/// The content of a tool's result.
///
/// It derefs to its text, so most code treats it as a `&str`. Pictures and structured data go to
/// the model where its API takes them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub struct ToolContent {
    /// What the model reads.
    pub text: String,
    /// Pictures that belong to the text.
    pub images: Vec<ToolImage>,
    /// The same result as data, for programs.
    pub structured: Option<Value>,
}

/// A picture in a tool's result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolImage {
    /// For example `image/png`.
    pub media_type: String,
    /// The picture itself or where it is.
    pub data: ImageSource,
}

impl ToolContent {
    /// The text, as a slice.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl Deref for ToolContent {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl AsRef<str> for ToolContent {
    fn as_ref(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for ToolContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<String> for ToolContent {
    fn from(text: String) -> Self {
        Self { text, ..Self::default() }
    }
}

impl From<&str> for ToolContent {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<ToolContent> for String {
    fn from(content: ToolContent) -> Self {
        content.text
    }
}

impl PartialEq<str> for ToolContent {
    fn eq(&self, other: &str) -> bool {
        self.text == other
    }
}

impl PartialEq<&str> for ToolContent {
    fn eq(&self, other: &&str) -> bool {
        self.text == *other
    }
}

impl PartialEq<String> for ToolContent {
    fn eq(&self, other: &String) -> bool {
        self.text == *other
    }
}

/// How it is stored: a plain string where there is only text.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Stored {
    Text(String),
    Rich {
        text: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        images: Vec<ToolImage>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        structured: Option<Value>,
    },
}

impl From<Stored> for ToolContent {
    fn from(stored: Stored) -> Self {
        match stored {
            Stored::Text(text) => text.into(),
            Stored::Rich { text, images, structured } => Self { text, images, structured },
        }
    }
}

impl From<ToolContent> for Stored {
    fn from(content: ToolContent) -> Self {
        match content {
            ToolContent { text, images, structured: None } if images.is_empty() => Self::Text(text),
            ToolContent { text, images, structured } => Self::Rich { text, images, structured },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_alone_is_stored_as_a_string() {
        let content = ToolContent::from("ok");
        assert_eq!(serde_json::to_string(&content).unwrap(), r#""ok""#);
        assert_eq!(serde_json::from_str::<ToolContent>(r#""ok""#).unwrap(), content);
    }

    #[test]
    fn structured_data_survives_storage() {
        let content =
            ToolContent { structured: Some(serde_json::json!({"n": 1})), ..ToolContent::from("1") };
        let stored = serde_json::to_string(&content).unwrap();
        assert_eq!(serde_json::from_str::<ToolContent>(&stored).unwrap(), content);
    }
}
