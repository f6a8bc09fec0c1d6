//! [`Root`]: the folder that file tools work in and cannot leave.

use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, Metadata, OpenOptions};
use rustix::io::Errno;
use toolloop_core::ToolError;

use super::place::{Parents, Place};

/// A folder that file tools work in. No path leads out of it: not by `..`, not by a symbolic
/// link, not by racing a rename, because every look-up starts from the open folder.
///
/// Paths are relative to it; an absolute path is taken when it lies inside. A symbolic link with
/// an absolute target counts as leading outside, wherever it points.
#[derive(Debug, Clone)]
pub struct Root(Arc<Opened>);

#[derive(Debug)]
struct Opened {
    dir: Dir,
    /// As the caller named it, made absolute.
    path: PathBuf,
    real_path: PathBuf,
}

impl Root {
    /// Opens a folder.
    ///
    /// # Errors
    /// When there is no such folder, or it may not be opened.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = std::path::absolute(path)?;
        let real_path = path.canonicalize()?;
        let dir = Dir::open_ambient_dir(&real_path, ambient_authority())?;
        Ok(Self(Arc::new(Opened { dir, path, real_path })))
    }

    /// The folder's absolute path.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// The folder without symbolic links in its path: what `pwd -P` and compilers print.
    pub(crate) fn real_path(&self) -> &Path {
        &self.0.real_path
    }

    /// The open folder.
    pub(crate) fn dir(&self) -> &Dir {
        &self.0.dir
    }

    /// The place of a file inside, which may not exist yet.
    pub(crate) fn place<'a>(
        &'a self,
        path: &'a str,
        parents: Parents,
    ) -> Result<Place<'a>, ToolError> {
        Place::open(self, path, &self.relative(path)?, parents)
    }

    /// Opens a folder inside.
    pub(crate) fn open_dir(&self, path: &str) -> Result<Dir, ToolError> {
        let relative = self.relative(path)?;
        self.0.dir.open_dir(&relative).map_err(|error| {
            match (error.kind(), self.0.dir.metadata(relative)) {
                (ErrorKind::NotADirectory, Ok(found)) if found.is_file() => {
                    ToolError::new(format!("`{path}` is a file, not a folder. Use read_file."))
                }
                (ErrorKind::NotADirectory, Ok(_)) => {
                    ToolError::new(format!("`{path}` is a pipe, socket or device, not a folder."))
                }
                _ => self.explain(path, &error),
            }
        })
    }

    /// The path of a folder inside from the root; empty for the root itself.
    pub(crate) fn folder(&self, path: &str) -> Result<PathBuf, ToolError> {
        self.open_dir(path)?;
        // "." is no name of a folder: `./src` and `src` are the same path to the one who reads it.
        let relative = self.relative(path)?;
        Ok(relative.components().filter(|part| *part != Component::CurDir).collect())
    }

    /// Opens a regular file inside for reading. Pipes and devices are refused, because reading
    /// them may wait for ever.
    pub(crate) fn open_file(&self, path: &str) -> Result<(File, Metadata), ToolError> {
        let relative = self.relative(path)?;
        let explain = |error| self.explain(path, &error);
        // Opening alone has effects on a pipe or a device, so look first.
        refuse_special(path, &self.0.dir.metadata(&relative).map_err(explain)?)?;
        let mut options = OpenOptions::new();
        let options = non_blocking(options.read(true));
        let file = self.0.dir.open_with(&relative, options).map_err(explain)?;
        let metadata = file.metadata().map_err(explain)?;
        refuse_special(path, &metadata)?;
        Ok((file, metadata))
    }

    /// What went wrong with a path, and what to do.
    pub(crate) fn explain(&self, path: &str, error: &io::Error) -> ToolError {
        let root = self.0.path.display();
        ToolError::new(match error.kind() {
            // cap-std makes this one itself, without a number from the system.
            ErrorKind::PermissionDenied if error.raw_os_error().is_none() => {
                return self.outside(path);
            }
            // Links of /proc as well, which lead to where no path does.
            _ if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => format!(
                "`{path}` goes through symbolic links that have no end or lead outside {root}. Use \
                 the path of the file itself."
            ),
            ErrorKind::PermissionDenied => format!("There is no permission to open `{path}`."),
            ErrorKind::NotFound => {
                format!("`{path}` does not exist under {root}. list_dir shows what does.")
            }
            ErrorKind::NotADirectory => format!("A part of `{path}` is a file, not a folder."),
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => format!(
                "There is no room left on the disk for `{path}`, and nothing was written. Make room, \
                 or write less."
            ),
            _ => format!("`{path}` cannot be opened: {error}."),
        })
    }

    /// The path from the root.
    pub(crate) fn relative(&self, path: &str) -> Result<PathBuf, ToolError> {
        let given = Path::new(path);
        let relative = match given.is_absolute() {
            false => given,
            true => given
                .strip_prefix(&self.0.path)
                .or_else(|_| given.strip_prefix(&self.0.real_path))
                .map_err(|_| self.outside(path))?,
        };
        Ok(match relative.as_os_str().is_empty() {
            true => PathBuf::from("."),
            false => relative.to_owned(),
        })
    }

    pub(crate) fn is_file(&self, path: &str) -> bool {
        self.relative(path).is_ok_and(|relative| self.0.dir.is_file(relative))
    }

    fn outside(&self, path: &str) -> ToolError {
        ToolError::new(format!(
            "`{path}` leads outside the root folder {}. Only what is inside can be \
             reached; neither `..` nor a symbolic link may leave it. Use a path relative to the root.",
            self.0.path.display()
        ))
    }
}

/// A file that has become a pipe since it was looked at must not make its opener wait.
pub(crate) fn non_blocking(options: &mut OpenOptions) -> &OpenOptions {
    use cap_std::fs::OpenOptionsExt;
    options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed())
}

pub(crate) fn refuse_special(path: &str, metadata: &Metadata) -> Result<(), ToolError> {
    if metadata.is_file() {
        return Ok(());
    }
    Err(ToolError::new(match metadata.is_dir() {
        true => format!("`{path}` is a folder. Use list_dir."),
        false => format!("`{path}` is a pipe, socket or device, not a file."),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_not_told_as_a_file_that_cannot_be_opened() {
        let root = Root::open(std::env::temp_dir()).unwrap();
        for errno in [Errno::NOSPC, Errno::DQUOT] {
            let told = root.explain("a", &errno.into()).message;
            assert!(told.starts_with("There is no room left on the disk for `a`"), "{told}");
        }
    }
}
