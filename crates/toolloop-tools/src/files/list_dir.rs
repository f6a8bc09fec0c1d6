//! [`ListDir`]: the tool `list_dir`.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};

use cap_std::fs::{Dir, DirEntry};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use toolloop_core::{EffectClass, ToolDefinition, ToolError, ToolFuture, ToolHandler};

use crate::Root;
use crate::blocking::{Cut, on_thread};
use crate::output::{printable, size};

/// Lists a folder under a [`Root`], one entry a line, sorted by path.
///
/// A folder ends with `/` and is followed by its contents as deep as asked; a file is followed
/// by two spaces and its size; a symbolic link by `->` and its target. Hidden entries are shown,
/// the contents of `.git` are not. Of more than 500 entries the ones nearest to the top are
/// shown, and a last line says how many more there are.
#[derive(Debug, Clone)]
pub struct ListDir {
    root: Root,
}

impl ListDir {
    /// Lists folders under `root`.
    pub fn new(root: Root) -> Self {
        Self { root }
    }
}

impl<Ctx> ToolHandler<Ctx> for ListDir {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition::from_type::<Arguments>(
            NAME,
            "Lists a folder of the project: one entry a line, folders end with /, files are \
             followed by their size.",
        )
    }

    fn execute<'a>(&'a self, input: Value, _: &'a Ctx) -> ToolFuture<'a> {
        let root = self.root.clone();
        on_thread(NAME, input, move |arguments, cut| list(&root, arguments, cut))
    }

    fn effect_class(&self) -> EffectClass {
        EffectClass::ReadOnly
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The folder, relative to the project folder; default the project folder itself.
    path: Option<String>,
    /// How many levels to list; default 1, only the folder's own entries.
    #[schemars(range(min = 1))]
    depth: Option<u32>,
}

fn list(root: &Root, arguments: &Arguments, cut: &Cut) -> Result<String, ToolError> {
    let path = arguments.path.as_deref().unwrap_or(".");
    let depth = arguments.depth.unwrap_or(1);
    let dir = root.open_dir(path)?;
    let mut listing = Listing::default();
    // Level by level, so that what is nearest to the top is shown.
    let mut folders = VecDeque::from([(PathBuf::new(), 1)]);
    while let Some((folder, level)) = folders.pop_front() {
        match listing.add_folder(&dir, &folder, cut) {
            Ok(found) if level < depth => {
                folders.extend(found.into_iter().map(|folder| (folder, level + 1)));
            }
            Ok(_) => {}
            Err(error) if level == 1 => return Err(root.explain(path, &error)),
            Err(_) => listing.mark_unreadable(&folder),
        }
    }
    Ok(listing.into_text())
}

/// What was found so far.
#[derive(Default)]
struct Listing {
    /// Path from the listed folder, and how it is shown.
    lines: Vec<(PathBuf, String)>,
    /// Entries that were read, shown or not.
    read: usize,
}

impl Listing {
    /// Adds what `folder` holds, and gives the folders among it.
    fn add_folder(&mut self, dir: &Dir, folder: &Path, cut: &Cut) -> io::Result<Vec<PathBuf>> {
        let entries = match folder.as_os_str().is_empty() {
            true => dir.entries()?,
            false => dir.read_dir(folder)?,
        };
        let mut found = Vec::new();
        for entry in entries.take(MAX_READ.saturating_sub(self.read)) {
            cut.check()?;
            let entry = entry?;
            found.push((folder.join(entry.file_name()), entry));
            self.read += 1;
        }
        // Only the first are shown, so which ones must not depend on the disk.
        found.sort_by(|(a, _), (b, _)| a.cmp(b));
        let mut folders = Vec::new();
        for (path, entry) in found.into_iter().take(MAX_SHOWN - self.lines.len()) {
            let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
            self.lines.push((path.clone(), line(dir, &path, &entry)));
            if is_dir && entry.file_name() != ".git" {
                folders.push(path);
            }
        }
        Ok(folders)
    }

    fn mark_unreadable(&mut self, folder: &Path) {
        if let Some((_, line)) = self.lines.iter_mut().find(|(path, _)| path == folder) {
            line.push_str("  (cannot be read)");
        }
    }

    fn into_text(mut self) -> String {
        if self.lines.is_empty() {
            return "[empty folder]".to_owned();
        }
        // Paths compare by component: what a folder holds follows it at once.
        self.lines.sort_by(|(a, _), (b, _)| a.cmp(b));
        let shown = self.lines.len();
        let mut text: String = self.lines.into_iter().map(|(_, line)| line + "\n").collect();
        if self.read > shown {
            let at_least = if self.read >= MAX_READ { "at least " } else { "" };
            let more = self.read - shown;
            text.push_str(&format!("[{at_least}{more} more entries; list a folder further down]"));
        }
        text
    }
}

fn line(dir: &Dir, path: &Path, entry: &DirEntry) -> String {
    let name = printable(path);
    match entry.file_type() {
        Ok(kind) if kind.is_dir() => format!("{name}/"),
        Ok(kind) if kind.is_symlink() => match dir.read_link_contents(path) {
            Ok(target) => format!("{name} -> {}", printable(&target)),
            Err(_) => format!("{name} -> ?"),
        },
        Ok(kind) if kind.is_file() => match entry.metadata() {
            Ok(metadata) => format!("{name}  {}", size(metadata.len())),
            Err(_) => name,
        },
        _ => format!("{name}  (pipe, socket or device)"),
    }
}

const NAME: &str = "list_dir";
const MAX_SHOWN: usize = 500;
/// Entries to read at most; they are held to be sorted.
const MAX_READ: usize = 100_000;
