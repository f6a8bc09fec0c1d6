//! [`EditFile`]: the tool `edit_file`.

use cap_std::fs::Metadata;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use toolloop_core::{EffectClass, ToolDefinition, ToolError, ToolFuture, ToolHandler};

use super::edits::{Edit, Edited, apply};
use super::place::{Parents, Place};
use crate::Root;
use crate::binary::binary_kind;
use crate::blocking::on_thread;
use crate::output::counted;

/// Changes parts of a text file under a [`Root`], named by their exact text.
///
/// The edits of a call are made in order, all of them or none, and the file is replaced in one
/// step; it keeps its mode and its line ends. Calls that edit one file at the same time are made
/// one after the other, each on what the one before has left, and a change from outside in the
/// middle of a call is an error; so no edit is lost.
#[derive(Debug, Clone)]
pub struct EditFile {
    root: Root,
}

impl EditFile {
    /// Edits files under `root`.
    pub fn new(root: Root) -> Self {
        Self { root }
    }
}

impl<Ctx> ToolHandler<Ctx> for EditFile {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition::from_type::<Arguments>(
            NAME,
            "Changes parts of a text file of the project. Each edit names a place by the exact \
             text that stands there; all edits are made, in order, or none.",
        )
    }

    fn execute<'a>(&'a self, input: Value, _: &'a Ctx) -> ToolFuture<'a> {
        let root = self.root.clone();
        on_thread(NAME, input, move |arguments, _| edit(&root, arguments))
    }

    fn effect_class(&self) -> EffectClass {
        EffectClass::Once
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// The file, relative to the project folder.
    path: String,
    /// The changes, in order; each sees what the one before has made.
    #[schemars(length(min = 1))]
    edits: Vec<Edit>,
}

fn edit(root: &Root, arguments: &Arguments) -> Result<String, ToolError> {
    let path = &arguments.path;
    let place = root.place(path, Parents::MustExist)?;
    let _turn = place.turn()?;
    let (seen, text, edited) = change(&place, arguments)?;
    place.replace(edited.text.as_bytes(), Some(&seen))?;
    let lines = |text: &str| counted(text.lines().count(), "line");
    Ok(format!(
        "Edited `{path}` in {}: it had {}, now {}.",
        counted(edited.places, "place"),
        lines(&text),
        lines(&edited.text)
    ))
}

/// The text of the file, and what it would be.
pub(crate) fn planned(root: &Root, arguments: &Arguments) -> Result<(String, String), ToolError> {
    let place = root.place(&arguments.path, Parents::MustExist)?;
    let (_, text, edited) = change(&place, arguments)?;
    Ok((text, edited.text))
}

/// The file as it was seen, its text, and that text with the edits made.
fn change(
    place: &Place<'_>,
    arguments: &Arguments,
) -> Result<(Metadata, String, Edited), ToolError> {
    let Arguments { path, edits } = arguments;
    let Some(seen) = place.look()? else {
        return Err(ToolError::new(format!(
            "`{path}` does not exist. write_file creates it; list_dir shows what there is."
        )));
    };
    let bytes = place.read(MAX_FILE)?;
    if let Some(kind) = binary_kind(&bytes) {
        return Err(ToolError::new(format!(
            "`{path}` is a binary file ({kind}); its text cannot be edited."
        )));
    }
    let text = String::from_utf8(bytes).map_err(|_| {
        ToolError::new(format!(
            "`{path}` is not valid UTF-8, and an edit here could spoil it. Edit it with bash."
        ))
    })?;
    let edited = apply(&text, edits)
        .map_err(|fault| ToolError::new(format!("`{path}` was left as it is. {fault}")))?;
    Ok((seen, text, edited))
}

pub(crate) const NAME: &str = "edit_file";
pub(crate) const MAX_FILE: u64 = 16 * 1024 * 1024;
