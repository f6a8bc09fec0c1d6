//! [`Origin`]: where a setting came from, so that an error can say where to change it.

use std::fmt;
use std::path::{Path, PathBuf};

/// Where a value came from, from strongest to weakest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A flag of the command line, with its dashes.
    Flag(&'static str),
    /// An environment variable.
    Variable(String),
    /// A line of a settings file.
    File {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// Whose file it is.
        owner: Owner,
    },
    /// Built in.
    Default,
}

/// Whose settings file it is.
///
/// A folder's file may come from strangers (a cloned repository), so it must not loosen anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// `~/.config/toolloop/config.toml`.
    Person,
    /// `./toolloop.toml`.
    Folder,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => f.write_str(flag),
            Self::Variable(name) => write!(f, "{name} in the environment"),
            Self::File { path, line, .. } => write!(f, "{}, line {line}", short_path(path)),
            Self::Default => f.write_str("the defaults"),
        }
    }
}

/// A value with where it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sourced<T> {
    pub(crate) value: T,
    pub(crate) origin: Origin,
}

impl<T> Sourced<T> {
    pub(crate) fn new(value: T, origin: Origin) -> Self {
        Self { value, origin }
    }

    pub(crate) fn map<U>(self, f: impl FnOnce(T) -> U) -> Sourced<U> {
        Sourced { value: f(self.value), origin: self.origin }
    }
}

/// A path as people write it: `~` for the home folder.
pub(crate) fn short_path(path: &Path) -> String {
    match std::env::home_dir() {
        Some(home) => shorten(path, &home),
        None => path.display().to_string(),
    }
}

fn shorten(path: &Path, home: &Path) -> String {
    match path.strip_prefix(home) {
        Ok(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
        Ok(rest) if home.parent().is_some() => format!("~/{}", rest.display()),
        _ => path.display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_under_home_are_short() {
        let home = Path::new("/home/ada");
        assert_eq!(shorten(Path::new("/home/ada/proj"), home), "~/proj");
        assert_eq!(shorten(home, home), "~");
        assert_eq!(shorten(Path::new("/home/adam"), home), "/home/adam");
        assert_eq!(shorten(Path::new("/srv"), Path::new("/")), "/srv");
    }

    #[test]
    fn an_origin_reads_in_a_sentence() {
        let file =
            Origin::File { path: "/etc/t.toml".into(), line: 4, owner: Owner::Person }.to_string();
        assert_eq!(file, "/etc/t.toml, line 4");
        assert_eq!(
            Origin::Variable("OPENAI_API_KEY".into()).to_string(),
            "OPENAI_API_KEY in the environment"
        );
        assert_eq!(Origin::Flag("--model").to_string(), "--model");
    }
}
