//! What the settings say of the sandbox of `bash`, and what this machine makes of it.

use std::path::{Path, PathBuf};

use toolloop::tools::Sandbox;
use toolloop::tools::sandbox::enforceable;

use crate::args::SandboxMode;
use crate::settings::Settings;

/// The sandbox of a run; `None`: commands do what the user can.
pub(crate) fn sandbox(settings: &Settings) -> Option<Sandbox> {
    let sandbox = match mode(settings) {
        SandboxMode::Strict => Sandbox::new(),
        SandboxMode::Network => Sandbox::new().allow_network(),
        SandboxMode::Off => return None,
    };
    let writable = settings.writable.iter().flat_map(|paths| &paths.value);
    Some(writable.fold(sandbox, |sandbox, path| sandbox.allow_writing(absolute(path))))
}

/// What the header of a run says where commands can do more than usual.
pub(crate) fn note(settings: &Settings, folder: &Path) -> Option<&'static str> {
    let mode = mode(settings);
    if mode == SandboxMode::Off {
        return Some("no sandbox");
    }
    let held = enforceable();
    match (held.landlock, held.seccomp, mode) {
        (None, false, _) => Some("no sandbox: this system has none"),
        (None, true, _) => Some("files open to bash: no Landlock here"),
        (Some(_), false, _) => Some("network open to bash: no seccomp here"),
        (Some(_), true, _) if holds_home(folder) => Some("your home, keys and all, open to bash"),
        (Some(_), true, SandboxMode::Network) => Some("network open to bash"),
        (Some(_), true, _) => None,
    }
}

/// Whether the user's folder is in `folder`, and with it what the sandbox hides elsewhere.
fn holds_home(folder: &Path) -> bool {
    let home = std::env::home_dir().and_then(|home| home.canonicalize().ok());
    home.is_some_and(|home| home.starts_with(folder))
}

fn mode(settings: &Settings) -> SandboxMode {
    settings.sandbox.as_ref().map_or(SandboxMode::Strict, |mode| mode.value)
}

/// A path of the settings; `~/` is the user's folder.
fn absolute(path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), std::env::home_dir()) {
        (Some(inside), Some(home)) => home.join(inside),
        _ => PathBuf::from(path),
    }
}
