//! [`WriteFile`]: the tool `write_file`.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use toolloop_core::{EffectClass, ToolDefinition, ToolError, ToolFuture, ToolHandler};

use super::place::Parents;
use crate::Root;
use crate::blocking::on_thread;
use crate::output::{counted, size};

/// Writes a whole file under a [`Root`], with the folders on the way to it.
///
/// A file that exists is replaced only where the call says so, in one step, and keeps its mode.
/// A link inside the root stays, and the file that it leads to is written.
#[derive(Debug, Clone)]
pub struct WriteFile {
    root: Root,
}

impl WriteFile {
    /// Writes files under `root`.
    pub fn new(root: Root) -> Self {
        Self { root }
    }
}

impl<Ctx> ToolHandler<Ctx> for WriteFile {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition::from_type::<Arguments>(
            NAME,
            "Writes a whole text file of the project, and creates folders that are missing. To \
             change a part of a file use edit_file.",
        )
    }

    fn execute<'a>(&'a self, input: Value, _: &'a Ctx) -> ToolFuture<'a> {
        let root = self.root.clone();
        on_thread(NAME, input, move |arguments, _| write(&root, arguments))
    }

    fn effect_class(&self) -> EffectClass {
        EffectClass::Idempotent
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The file, relative to the project folder.
    path: String,
    /// All that the file is to hold.
    content: String,
    /// Whether a file that exists is replaced; default false.
    #[serde(default)]
    overwrite: bool,
}

fn write(root: &Root, arguments: &Arguments) -> Result<String, ToolError> {
    let Arguments { path, content, overwrite } = arguments;
    let place = root.place(path, Parents::Create)?;
    let _turn = place.turn()?;
    let seen = place.look()?;
    let lines = counted(content.lines().count(), "line");
    let written = format!("{lines}, {}", size(content.len() as u64));
    let Some(old) = &seen else {
        place.replace(content.as_bytes(), None)?;
        return Ok(format!("Created `{path}` ({written})."));
    };
    // Also what a call finds that a crash cut off after it had written.
    let length = content.len() as u64;
    if old.len() == length && place.read(length).is_ok_and(|now| now == content.as_bytes()) {
        return Ok(format!("`{path}` holds exactly this already ({written})."));
    }
    if !overwrite {
        return Err(ToolError::new(format!(
            "`{path}` exists ({}) and was left as it is. To change a part of it use edit_file; to \
             replace all of it, call write_file again with overwrite: true.",
            size(old.len())
        )));
    }
    place.replace(content.as_bytes(), seen.as_ref())?;
    Ok(format!("Replaced `{path}` ({written})."))
}

pub(crate) const NAME: &str = "write_file";
