//! [`walk`]: the files below a folder, in the order of their paths.

use std::ffi::OsString;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use cap_std::fs::FileType;
use globset::{GlobBuilder, GlobMatcher};
use toolloop_core::ToolError;

use super::ignore_rules::IgnoreRules;
use crate::Root;
use crate::blocking::Patience;

/// How a walk ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Walked {
    /// All files were visited.
    Whole,
    /// The visitor had enough.
    Stopped,
    /// There was no more time.
    OutOfTime,
}

/// Which files are visited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ignored {
    LeftOut,
    Included,
}

/// Visits the regular files below `folder`, by their paths from the root. Links are not followed,
/// `.git` and what cannot be read is passed over.
pub(crate) fn walk(
    root: &Root,
    folder: &Path,
    ignored: Ignored,
    patience: &Patience<'_>,
    mut visit: impl FnMut(&Path) -> ControlFlow<()>,
) -> Walked {
    let rules = (ignored == Ignored::LeftOut).then(|| IgnoreRules::above(root, folder));
    let mut walk = Walk { root, rules, patience, visit: &mut visit };
    match walk.folder(folder) {
        ControlFlow::Continue(()) => Walked::Whole,
        ControlFlow::Break(()) if patience.is_over() => Walked::OutOfTime,
        ControlFlow::Break(()) => Walked::Stopped,
    }
}

/// The pattern of a model as a matcher of paths from the folder that is searched.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn path_pattern(pattern: &str) -> Result<GlobMatcher, ToolError> {
    let relative = pattern.strip_prefix("./").unwrap_or(pattern);
    if relative.starts_with('/') || relative.split('/').any(|part| part == "..") {
        return Err(ToolError::new(format!(
            "The pattern `{pattern}` must be relative to the folder that is searched, without \
             `..`. Name that folder in path."
        )));
    }
    // As people mean it: a name alone is looked for at any depth.
    let anywhere = if relative.contains('/') { "" } else { "**/" };
    GlobBuilder::new(&format!("{anywhere}{relative}"))
        .literal_separator(true)
        .build()
        .map(|glob| glob.compile_matcher())
        .map_err(|error| {
            ToolError::new(format!(
                "`{pattern}` is no pattern for paths: {}. Examples: *.rs, src/**/*.{{js,ts}}.",
                error.kind()
            ))
        })
}

struct Walk<'a> {
    root: &'a Root,
    /// `None`: nothing is left out.
    rules: Option<IgnoreRules<'a>>,
    patience: &'a Patience<'a>,
    visit: &'a mut dyn FnMut(&Path) -> ControlFlow<()>,
}

impl Walk<'_> {
    fn folder(&mut self, folder: &Path) -> ControlFlow<()> {
        let Ok(entries) = self.entries(folder) else { return ControlFlow::Continue(()) };
        let before = self.rules.as_mut().map(|rules| rules.enter(folder));
        if self.patience.is_over() {
            return ControlFlow::Break(());
        }
        for (name, kind) in entries {
            let path = folder.join(name);
            if self.rules.as_ref().is_some_and(|rules| rules.leave_out(&path, kind.is_dir())) {
                continue;
            }
            match kind.is_dir() {
                true => self.folder(&path)?,
                false => (self.visit)(&path)?,
            }
            if self.patience.is_over() {
                return ControlFlow::Break(());
            }
        }
        if let Some((rules, before)) = self.rules.as_mut().zip(before) {
            rules.leave(before);
        }
        ControlFlow::Continue(())
    }

    /// The files and folders in a folder, by name.
    fn entries(&self, folder: &Path) -> io::Result<Vec<(OsString, FileType)>> {
        let mut found = Vec::new();
        for entry in self.root.dir().read_dir(or_dot(folder))? {
            if self.patience.is_over() {
                break;
            }
            let entry = entry?;
            let (name, kind) = (entry.file_name(), entry.file_type()?);
            if (kind.is_dir() && name != ".git") || kind.is_file() {
                found.push((name, kind));
            }
        }
        found.sort_by(|(a, _), (b, _)| a.cmp(b));
        Ok(found)
    }
}

fn or_dot(folder: &Path) -> PathBuf {
    match folder.as_os_str().is_empty() {
        true => PathBuf::from("."),
        false => folder.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_mean_what_people_mean() {
        let fits = |pattern: &str, path: &str| path_pattern(pattern).unwrap().is_match(path);
        assert!(fits("*.rs", "a.rs") && fits("*.rs", "src/a/b.rs") && fits("./*.rs", "x/a.rs"));
        assert!(fits("src/*.rs", "src/a.rs") && !fits("src/*.rs", "src/a/b.rs"));
        assert!(fits("src/**/*.{js,ts}", "src/a/b.ts") && fits("**/x", "x"));
        assert!(!fits("*.rs", "a.rsx") && !fits("src", "src/a"));
    }

    #[test]
    fn patterns_that_lead_out_or_are_none_are_refused() {
        for pattern in ["/etc/*", "../*", "a/../../b", "{a", "[", "a**{"] {
            let fault = path_pattern(pattern).unwrap_err().message;
            assert!(fault.contains(pattern), "{fault}");
        }
    }
}
