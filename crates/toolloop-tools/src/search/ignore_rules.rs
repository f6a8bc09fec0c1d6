//! [`IgnoreRules`]: what the `.gitignore` files on the way to a folder leave out.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use cap_std::fs::OpenOptions;
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::Root;
use crate::files::non_blocking;

/// The rules that hold in a folder, from the outermost `.gitignore` to the folder's own. The
/// innermost that has an opinion decides.
pub(crate) struct IgnoreRules<'a> {
    root: &'a Root,
    rules: Vec<Gitignore>,
}

impl<'a> IgnoreRules<'a> {
    /// The rules that hold in `folder`, but not its own.
    pub(crate) fn above(root: &'a Root, folder: &Path) -> Self {
        let mut this = Self { root, rules: above_root(root.real_path()) };
        let mut outer: Vec<&Path> = folder.ancestors().skip(1).collect();
        outer.reverse();
        for folder in outer {
            this.enter(folder);
        }
        this
    }

    /// Adds the rules of a folder; gives back what [`leave`](Self::leave) needs.
    pub(crate) fn enter(&mut self, folder: &Path) -> usize {
        let before = self.rules.len();
        let own = FILES.iter().filter_map(|name| {
            let mut options = OpenOptions::new();
            let options = non_blocking(options.read(true));
            let file = self.root.dir().open_with(folder.join(name), options).ok()?;
            let is_file = file.metadata().ok()?.is_file();
            parse(self.root.real_path().join(folder), is_file.then_some(file)?)
        });
        let own: Vec<_> = own.collect();
        self.rules.extend(own);
        before
    }

    pub(crate) fn leave(&mut self, before: usize) {
        self.rules.truncate(before);
    }

    /// Whether a path, relative to the root, is left out.
    pub(crate) fn leave_out(&self, path: &Path, is_dir: bool) -> bool {
        if self.rules.is_empty() {
            return false;
        }
        let path = self.root.real_path().join(path);
        let mut opinions = self.rules.iter().rev().map(|rules| rules.matched(&path, is_dir));
        matches!(opinions.find(|opinion| !opinion.is_none()), Some(Match::Ignore(_)))
    }
}

/// Rules of the repository that the root lies in: a root that is a part of a repository leaves
/// out what the whole does. Nobody is shown what these files hold.
fn above_root(root: &Path) -> Vec<Gitignore> {
    let is_repository = |folder: &&Path| folder.join(".git").exists();
    let Some(repository) = root.ancestors().find(is_repository) else { return Vec::new() };
    let inside = |folder: &&Path| folder.starts_with(repository);
    let mut folders: Vec<&Path> = root.ancestors().skip(1).take_while(inside).collect();
    folders.reverse();
    let files = folders.into_iter().flat_map(|folder| FILES.map(|name| (folder, name)));
    files
        .filter_map(|(folder, name)| {
            let path: PathBuf = folder.join(name);
            let is_file = fs::metadata(&path).is_ok_and(|found| found.is_file());
            parse(folder.to_owned(), fs::File::open(is_file.then_some(path)?).ok()?)
        })
        .collect()
}

fn parse(folder: PathBuf, file: impl Read) -> Option<Gitignore> {
    let mut bytes = Vec::new();
    file.take(MAX_FILE).read_to_end(&mut bytes).ok()?;
    let mut builder = GitignoreBuilder::new(folder);
    for line in String::from_utf8_lossy(&bytes).lines() {
        // A line that is no pattern leaves nothing out; git passes over it as well.
        let _ = builder.add_line(None, line);
    }
    builder.build().ok()
}

/// The later has the last word.
const FILES: [&str; 2] = [".gitignore", ".ignore"];
const MAX_FILE: u64 = 1024 * 1024;
