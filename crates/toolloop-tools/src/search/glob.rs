//! [`Glob`]: the tool `glob`.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use toolloop_core::{EffectClass, ToolDefinition, ToolError, ToolFuture, ToolHandler};

use super::walk::{Ignored, Walked, path_pattern, walk};
use crate::Root;
use crate::blocking::{Cut, Patience, on_thread};
use crate::output::{counted, printable};

/// Finds files under a [`Root`] by a pattern for their paths, sorted by path.
///
/// What `.gitignore` files leave out is passed over unless asked for; links are not followed.
/// 200 files are shown at once, and a last line says how to see the next ones.
#[derive(Debug, Clone)]
pub struct Glob {
    root: Root,
}

impl Glob {
    /// Finds files under `root`.
    pub fn new(root: Root) -> Self {
        Self { root }
    }
}

impl<Ctx> ToolHandler<Ctx> for Glob {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition::from_type::<Arguments>(
            NAME,
            "Finds files of the project by a pattern for their paths, such as *.rs or \
             src/**/*.{js,ts}. Files that .gitignore names are left out.",
        )
    }

    fn execute<'a>(&'a self, input: Value, _: &'a Ctx) -> ToolFuture<'a> {
        let root = self.root.clone();
        on_thread(NAME, input, move |arguments, cut| find(&root, arguments, cut))
    }

    fn effect_class(&self) -> EffectClass {
        EffectClass::ReadOnly
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The pattern, relative to path. Without a slash it is looked for at any depth.
    pattern: String,
    /// The folder to look in; default the project folder.
    path: Option<String>,
    /// Whether files that .gitignore names are shown; default false.
    #[serde(default)]
    include_ignored: bool,
    /// How many files to pass over; for the next part of a long list.
    #[serde(default)]
    offset: usize,
}

fn find(root: &Root, arguments: &Arguments, cut: &Cut) -> Result<String, ToolError> {
    let pattern = path_pattern(&arguments.pattern)?;
    let folder = root.folder(arguments.path.as_deref().unwrap_or("."))?;
    let ignored = if arguments.include_ignored { Ignored::Included } else { Ignored::LeftOut };
    let patience = Patience::new(cut, TIME_LIMIT);
    let (mut text, mut found, mut visited) = (String::new(), 0, 0);
    let walked = walk(root, &folder, ignored, &patience, |path: &Path| {
        visited += 1;
        if pattern.is_match(path.strip_prefix(&folder).unwrap_or(path)) {
            if found == arguments.offset.saturating_add(MAX_SHOWN) {
                return ControlFlow::Break(());
            }
            found += 1;
            if found > arguments.offset {
                text.push_str(&printable(path));
                text.push('\n');
            }
        }
        ControlFlow::Continue(())
    });
    match walked {
        Walked::Stopped => text.push_str(&format!(
            "[files {} to {found}, and there are more: go on with offset {found}, or narrow the \
             pattern]",
            arguments.offset + 1
        )),
        Walked::OutOfTime => text.push_str(&format!(
            "[stopped after {} s and {}: look in a folder further down]",
            TIME_LIMIT.as_secs(),
            counted(visited, "file")
        )),
        Walked::Whole if text.is_empty() && found > 0 => {
            text = format!("[only {} match; offset is behind the last]", counted(found, "file"));
        }
        Walked::Whole if text.is_empty() => {
            let ignored = if arguments.include_ignored { "" } else { ", ignored ones left out" };
            text = format!("[none of {} matches{ignored}]", counted(visited, "file"));
        }
        Walked::Whole => {}
    }
    Ok(text)
}

const NAME: &str = "glob";
const MAX_SHOWN: usize = 200;
const TIME_LIMIT: Duration = Duration::from_secs(20);
