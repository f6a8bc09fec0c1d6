//! [`ResultStore`]: the folder that holds results too long for a conversation.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::output::HeadTail;

/// A folder that holds results too long for a conversation, each under a short handle.
///
/// A model reads the beginning and the end of such a result with the handle between them, and
/// opens the rest with [`ReadResult`](crate::ReadResult). Only the user may open the files: they
/// hold what tools have read. Clones share the folder.
///
/// ```
/// use toolloop_tools::ResultStore;
///
/// let store = ResultStore::temporary();
/// let long = "line\n".repeat(1000);
/// let shown = store.spill(&long, 20)?;
/// assert_eq!(
///     shown,
///     "line\nline\n\
///      [... 4985 bytes left out; read_result shows them: {\"handle\":\"r1\",\"start\":10} ...]\n\
///      line\n"
/// );
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct ResultStore(Arc<Folder>);

#[derive(Debug)]
struct Folder {
    path: PathBuf,
    is_temporary: bool,
    /// The number of the last result.
    last: AtomicU32,
}

impl ResultStore {
    /// Keeps results in a folder, which is made with the first of them. A store opened there
    /// later finds them under their handles.
    pub fn in_folder(path: impl Into<PathBuf>) -> Self {
        Self(Arc::new(Folder { path: path.into(), is_temporary: false, last: AtomicU32::new(0) }))
    }

    /// Keeps results in a new folder for temporary files, until the last clone is dropped.
    pub fn temporary() -> Self {
        let name = format!("toolloop-results-{:016x}", fastrand::u64(..));
        let path = std::env::temp_dir().join(name);
        Self(Arc::new(Folder { path, is_temporary: true, last: AtomicU32::new(0) }))
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Stores a result and gives its handle.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn store(&self, text: &str) -> io::Result<String> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.0.path)?;
        loop {
            let number = self.0.last.fetch_add(1, Ordering::Relaxed) + 1;
            let handle = format!("r{number}");
            let path = self.0.path.join(&handle);
            // Another process may have the number already.
            match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
                Ok(mut file) => match file.write_all(text.as_bytes()) {
                    Ok(()) => return Ok(handle),
                    // Half a result must not pass for one.
                    Err(error) => return fs::remove_file(&path).and(Err(error)),
                },
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Stores a result and gives its beginning and its end, about `keep` bytes together, with a
    /// line between them that says how to read the rest.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn spill(&self, text: &str, keep: usize) -> io::Result<String> {
        let handle = self.store(text)?;
        let mut kept = HeadTail::new(keep);
        kept.push(text.as_bytes());
        Ok(kept.into_text_with(|start, dropped| {
            format!(
                "[... {dropped} bytes left out; read_result shows them: \
                 {{\"handle\":\"{handle}\",\"start\":{start}}} ...]"
            )
        }))
    }

    /// Opens a result; `None`: there is none under this handle.
    pub(crate) fn open(&self, handle: &str) -> io::Result<Option<File>> {
        let digits = handle.strip_prefix('r').unwrap_or_default();
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Ok(None);
        }
        match File::open(self.0.path.join(handle)) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// A text as a result shows it: of one above `keep` bytes the middle is stored or, where that is
/// not possible, left out.
pub(crate) fn shorten(text: String, keep: usize, store: Option<&ResultStore>) -> String {
    if text.len() <= keep {
        return text;
    }
    store.and_then(|store| store.spill(&text, keep).ok()).unwrap_or_else(|| {
        let mut kept = HeadTail::new(keep);
        kept.push(text.as_bytes());
        kept.into_text()
    })
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.is_temporary {
            // What cannot be removed is left to whoever clears temporary files.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}
