//! [`output`]: the result of a server's tool as toolloop's.

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use toolloop_core::{ImageSource, ToolContent, ToolError, ToolImage, ToolOutput};

/// What the model reads of a result; a result that says it is an error is one.
pub(crate) fn output(result: CallToolResult) -> Result<ToolOutput, ToolError> {
    let mut text: Vec<String> = Vec::new();
    let mut images = Vec::new();
    for block in result.content {
        match block {
            ContentBlock::Text(block) => text.push(block.text),
            ContentBlock::Image(image) => images.push(ToolImage {
                media_type: image.mime_type,
                data: ImageSource::Base64(image.data),
            }),
            ContentBlock::Audio(audio) => {
                text.push(left_out("sound", Some(&audio.mime_type), &audio.data));
            }
            ContentBlock::Resource(block) => match block.resource {
                ResourceContents::TextResourceContents { uri, text: inside, .. } => {
                    text.push(format!("[{uri}]\n{inside}"));
                }
                ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                    match mime_type.filter(|kind| kind.starts_with("image/")) {
                        Some(media_type) => {
                            images.push(ToolImage { media_type, data: ImageSource::Base64(blob) })
                        }
                        None => text.push(left_out(&uri, None, &blob)),
                    }
                }
                _ => text.push("[a resource of an unknown kind]".to_owned()),
            },
            ContentBlock::ResourceLink(link) => {
                let kind = link.mime_type.map(|kind| format!(", {kind}")).unwrap_or_default();
                let about = link.description.or(link.title);
                let about = about.map(|about| format!(": {about}")).unwrap_or_default();
                text.push(format!("[resource {} ({}{kind}){about}]", link.uri, link.name));
            }
            _ => text.push("[content of an unknown kind]".to_owned()),
        }
    }
    let structured = result.structured_content;
    let mut text = text.join("\n");
    if text.is_empty() {
        text = match &structured {
            Some(data) => data.to_string(),
            // APIs refuse an empty text.
            None if images.is_empty() => "done".to_owned(),
            None => format!("{} image(s)", images.len()),
        };
    }
    match result.is_error {
        Some(true) => Err(ToolError::new(text)),
        _ => Ok(ToolOutput::new(ToolContent { text, images, structured })),
    }
}

/// A line in place of bytes that no model can read.
fn left_out(what: &str, kind: Option<&str>, base64: &str) -> String {
    let kind = kind.map(|kind| format!(", {kind}")).unwrap_or_default();
    format!("[{what}{kind}, {} bytes, left out]", base64.len() / 4 * 3)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(result: Value) -> Result<ToolContent, String> {
        let result = serde_json::from_value(result).unwrap();
        output(result).map(|output| output.content).map_err(|error| error.message)
    }

    #[test]
    fn every_kind_of_content_is_carried_or_named() {
        let content = read(json!({
            "content": [
                {"type": "text", "text": "one"},
                {"type": "image", "data": "aaaa", "mimeType": "image/png"},
                {"type": "audio", "data": "aaaa", "mimeType": "audio/wav"},
                {"type": "resource_link", "uri": "file:///x", "name": "x", "mimeType": "text/plain",
                 "description": "the x"},
                {"type": "resource", "resource": {"uri": "mem://a", "text": "inside"}},
                {"type": "resource", "resource": {"uri": "mem://b", "blob": "aaaaaaaa"}},
                {"type": "resource",
                 "resource": {"uri": "mem://c", "blob": "bbbb", "mimeType": "image/gif"}}
            ],
            "structuredContent": {"n": 1}
        }));
        let image = |media_type: &str, data: &str| ToolImage {
            media_type: media_type.into(),
            data: ImageSource::Base64(data.into()),
        };
        assert_eq!(
            content.unwrap(),
            ToolContent {
                text: "one\n[sound, audio/wav, 3 bytes, left out]\n\
                       [resource file:///x (x, text/plain): the x]\n[mem://a]\ninside\n\
                       [mem://b, 6 bytes, left out]"
                    .into(),
                images: vec![image("image/png", "aaaa"), image("image/gif", "bbbb")],
                structured: Some(json!({"n": 1})),
            }
        );
    }

    #[test]
    fn there_is_always_a_text() {
        assert_eq!(read(json!({"content": []})).unwrap().text, "done");
        let structured = read(json!({"content": [], "structuredContent": {"n": 1}}));
        assert_eq!(structured.unwrap().text, r#"{"n":1}"#);
        let image = json!({"type": "image", "data": "aaaa", "mimeType": "image/png"});
        assert_eq!(read(json!({"content": [image]})).unwrap().text, "1 image(s)");
    }

    #[test]
    fn an_error_result_is_an_error() {
        let result =
            json!({"content": [{"type": "text", "text": "no such file"}], "isError": true});
        assert_eq!(read(result).unwrap_err(), "no such file");
    }
}
