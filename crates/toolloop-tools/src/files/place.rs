//! [`Place`]: a file's name in its open folder, where the file is read and replaced as one step.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use cap_std::fs::{Dir, File, Metadata, MetadataExt, OpenOptions};
use toolloop_core::ToolError;

use super::root::{non_blocking, refuse_special};
use crate::Root;
use crate::output::size;

/// A name in a folder that is held open: whatever happens to the path meanwhile, a link put in
/// the folder's place for example, a write goes to the folder that was found.
///
/// A file is replaced by a rename, so that nobody sees a half of it. Who reads it and then
/// replaces it takes the [`turn`](Self::turn) first: within the process the file's turns come one
/// after the other. A change from outside is noticed, and nothing is written.
#[derive(Debug)]
pub(crate) struct Place<'a> {
    root: &'a Root,
    /// As the caller named it.
    path: &'a str,
    dir: Dir,
    name: PathBuf,
}

impl<'a> Place<'a> {
    /// The place that `relative` names under `root`. The file need not exist.
    pub(crate) fn open(
        root: &'a Root,
        path: &'a str,
        relative: &Path,
        parents: Parents,
    ) -> Result<Self, ToolError> {
        let explain = |error| root.explain(path, &error);
        let is_link = root.dir().symlink_metadata(relative).is_ok_and(|found| found.is_symlink());
        // The link stays, and what it leads to is written.
        let file = match is_link {
            true => root.dir().canonicalize(relative).map_err(explain)?,
            false => relative.to_owned(),
        };
        let name = file.file_name().filter(|_| !path.ends_with('/'));
        let Some(name) = name.map(PathBuf::from) else {
            return Err(ToolError::new(format!(
                "`{path}` names a folder. Give the path of a file."
            )));
        };
        let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new("."));
        let dir = match root.dir().open_dir(parent) {
            Err(error) if error.kind() == ErrorKind::NotFound && parents == Parents::Create => {
                root.dir().create_dir_all(parent).and_then(|()| root.dir().open_dir(parent))
            }
            opened => opened,
        };
        let dir = dir.map_err(explain)?;
        Ok(Self { root, path, dir, name })
    }

    /// Waits until nobody else in this process reads and replaces this file.
    pub(crate) fn turn(&self) -> Result<MutexGuard<'static, ()>, ToolError> {
        // Files share locks; two files that share one only wait for each other.
        static TURNS: [Mutex<()>; 64] = [const { Mutex::new(()) }; 64];
        let folder = self.dir.dir_metadata().map_err(|error| self.explain(&error))?;
        let hasher = BuildHasherDefault::<DefaultHasher>::new();
        let hash = hasher.hash_one((folder.dev(), folder.ino(), &self.name));
        let turn = &TURNS[(hash % TURNS.len() as u64) as usize];
        // It guards no data, so a panic left none half-changed.
        Ok(turn.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What is there; `None`: nothing. What is no regular file is refused.
    pub(crate) fn look(&self) -> Result<Option<Metadata>, ToolError> {
        match self.dir.symlink_metadata(&self.name) {
            Ok(found) => refuse_special(self.path, &found).map(|()| Some(found)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.explain(&error)),
        }
    }

    /// Reads the file that was found by [`look`](Self::look), at most `limit` bytes of it.
    pub(crate) fn read(&self, limit: u64) -> Result<Vec<u8>, ToolError> {
        let explain = |error| self.explain(&error);
        let mut options = OpenOptions::new();
        let file = self.dir.open_with(&self.name, non_blocking(options.read(true)));
        let mut bytes = Vec::new();
        file.and_then(|file| file.take(limit + 1).read_to_end(&mut bytes)).map_err(explain)?;
        match bytes.len() as u64 > limit {
            false => Ok(bytes),
            true => Err(ToolError::new(format!(
                "`{}` is larger than {}, the most that can be edited here. Edit it with bash.",
                self.path,
                size(limit)
            ))),
        }
    }

    /// Puts `content` in the place of what was `seen`, all of it or nothing.
    pub(crate) fn replace(&self, content: &[u8], seen: Option<&Metadata>) -> Result<(), ToolError> {
        if seen.is_some() {
            self.check_writable()?;
        }
        let mut draft = Draft::create(&self.dir).map_err(|error| self.explain(&error))?;
        draft.fill(content, seen).map_err(|error| self.explain(&error))?;
        if self.look()?.as_ref().map(Stamp::of) != seen.map(Stamp::of) {
            return Err(ToolError::new(format!(
                "`{}` was changed by somebody else meanwhile; nothing was written. Read it again, \
                 and repeat the change on what it holds now.",
                self.path
            )));
        }
        draft.publish(&self.name).map_err(|error| self.explain(&error))
    }

    /// A rename needs no permission for the file that it replaces, so that is asked for here.
    fn check_writable(&self) -> Result<(), ToolError> {
        let mut options = OpenOptions::new();
        let file = self.dir.open_with(&self.name, non_blocking(options.write(true)));
        let metadata = file.and_then(|file| file.metadata());
        // The superuser may write anything, but the mark means something all the same.
        match metadata.map_err(|error| self.explain(&error))?.permissions().readonly() {
            false => Ok(()),
            true => Err(ToolError::new(format!(
                "`{}` is marked as read-only. If it is to be changed, `chmod u+w` it first.",
                self.path
            ))),
        }
    }

    fn explain(&self, error: &io::Error) -> ToolError {
        self.root.explain(self.path, error)
    }
}

/// What to do about folders that are missing on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parents {
    Create,
    MustExist,
}

/// Tells one state of a file from another.
#[derive(PartialEq, Eq)]
struct Stamp {
    file: (u64, u64),
    size: u64,
    modified: (i64, i64),
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        Self {
            file: (metadata.dev(), metadata.ino()),
            size: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        }
    }
}

/// A new file beside the one it will replace; removed if it never does.
struct Draft<'a> {
    dir: &'a Dir,
    name: String,
    file: File,
    is_published: bool,
}

impl<'a> Draft<'a> {
    fn create(dir: &'a Dir) -> io::Result<Self> {
        let name = format!(".toolloop-{:016x}.tmp", fastrand::u64(..));
        let file = dir.open_with(&name, OpenOptions::new().write(true).create_new(true))?;
        Ok(Self { dir, name, file, is_published: false })
    }

    fn fill(&mut self, content: &[u8], like: Option<&Metadata>) -> io::Result<()> {
        self.file.write_all(content)?;
        if let Some(like) = like {
            let (owner, group) = (rustix::fs::Uid::from_raw(like.uid()), like.gid());
            let group = rustix::fs::Gid::from_raw(group);
            // Only the superuser can give files away; for anybody else the owner stays.
            let _ = rustix::fs::fchown(self.file.as_fd(), Some(owner), Some(group));
            self.file.set_permissions(like.permissions())?;
        }
        self.file.sync_data()
    }

    fn publish(mut self, name: &Path) -> io::Result<()> {
        self.dir.rename(&self.name, self.dir, name)?;
        self.is_published = true;
        Ok(())
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        if !self.is_published {
            // What cannot be removed now stays as a file whose name says what it is.
            let _ = self.dir.remove_file(&self.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_change_from_outside_is_never_overwritten() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("a");
        let root = Root::open(folder.path()).unwrap();
        let place = root.place("a", Parents::MustExist).unwrap();
        let refused = |seen: Option<&Metadata>| place.replace(b"mine", seen).unwrap_err().message;
        let told = "`a` was changed by somebody else meanwhile; nothing was written. Read it again, \
                    and repeat the change on what it holds now.";

        // Created, written in place, replaced, removed.
        fs::write(&path, "theirs").unwrap();
        assert_eq!(refused(None), told);
        let seen = place.look().unwrap().unwrap();
        fs::write(&path, "theirs, longer").unwrap();
        assert_eq!(refused(Some(&seen)), told);
        let seen = place.look().unwrap().unwrap();
        fs::write(folder.path().join("b"), "theirs, longer").unwrap();
        fs::rename(folder.path().join("b"), &path).unwrap();
        assert_eq!(refused(Some(&seen)), told);
        assert_eq!(fs::read_to_string(&path).unwrap(), "theirs, longer");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);

        let seen = place.look().unwrap().unwrap();
        place.replace(b"mine", Some(&seen)).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    }
}
