//! [`preview`]: what a call would change in a file, before it does.

use std::path::Component;

use serde_json::Value;
use similar::TextDiff;
use toolloop_core::{ToolCall, ToolError};

use super::place::Parents;
use super::{Root, edit_file, write_file};

/// What a call of `edit_file` or `write_file` would change, as a unified diff without its head;
/// where it would fail, what it would say. `None` for every other tool, and for arguments that do
/// not fit.
///
/// The file may be another one when the call runs. Reads the file, so it may block.
///
/// ```no_run
/// use toolloop_core::ToolCall;
/// use toolloop_tools::{Root, preview};
///
/// let arguments = serde_json::json!({"path": "new.txt", "content": "Hello\n"});
/// let call = ToolCall { id: "1".into(), name: "write_file".into(), arguments };
/// let diff = preview(&Root::open(".")?, &call);
/// assert_eq!(diff.as_deref(), Some("@@ -0,0 +1 @@\n+Hello\n"));
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn preview(root: &Root, call: &ToolCall) -> Option<String> {
    let changed = match call.name.as_str() {
        edit_file::NAME => {
            edit_file::planned(root, &serde_json::from_value(call.arguments.clone()).ok()?)
        }
        write_file::NAME => {
            let text = |name| call.arguments.get(name).and_then(Value::as_str);
            let (path, new) = (text("path")?, text("content")?);
            current(root, path).map(|old| (old, new.to_owned()))
        }
        _ => return None,
    };
    Some(match changed {
        Ok((old, new)) => {
            TextDiff::from_lines(&old, &new).unified_diff().context_radius(CONTEXT).to_string()
        }
        Err(fault) => fault.message,
    })
}

/// The text of a file; empty where there is none, or not even its folder.
fn current(root: &Root, path: &str) -> Result<String, ToolError> {
    let place = root.place(path, Parents::MustExist);
    if !root.is_file(path) {
        let goes_up = root.relative(path)?.components().any(|part| part == Component::ParentDir);
        return if goes_up { place.map(|_| String::new()) } else { Ok(String::new()) };
    }
    let bytes = place?.read(edit_file::MAX_FILE)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Unchanged lines around a change.
const CONTEXT: usize = 2;
