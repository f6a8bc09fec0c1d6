//! [`open`]: the folder a command works in.

use std::io;
use std::path::{Path, PathBuf};

use crate::origin::short_path;
use crate::report::Report;

/// The folder that was named, else the one this process is in, with all links resolved.
pub(crate) fn open(dir: Option<&Path>) -> Result<PathBuf, Report> {
    let named = dir.unwrap_or(Path::new("."));
    let report = match named.canonicalize() {
        Ok(folder) if folder.is_dir() => return Ok(folder),
        Ok(file) => Report::usage(format!("{} is no folder", short_path(&file))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Report::usage(match dir {
            Some(dir) => format!("the folder {} does not exist", short_path(dir)),
            None => "the folder this was started in does not exist any more".to_owned(),
        }),
        Err(error) => Report::usage(format!("cannot open {}: {error}", short_path(named))),
    };
    Err(match dir {
        Some(_) => report.advice("Give the folder to work in: --dir DIR"),
        None => report.advice("Go to another one: cd DIR"),
    })
}
