//! [`FileRules`]: where a command may write and what it may read, as Landlock takes it.

use std::io;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, BitFlags, LandlockStatus, PathBeneath, PathFd, RestrictionStatus,
    Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use rustix::fs::{FileType, fstat};

use super::secrets::{hidden_paths, homes, readable_paths};

/// The rules of one command. Paths are looked up when the rules are made, so what a folder of
/// secrets is called later does not matter.
pub(super) struct FileRules(Vec<(PathBuf, BitFlags<AccessFs>)>);

impl FileRules {
    /// Nothing at all.
    pub(super) fn nothing() -> Self {
        Self(Vec::new())
    }

    /// Writing under `writable`, reading everything that is no secret.
    pub(super) fn new(writable: &[PathBuf]) -> Self {
        let mut rules = vec![
            // Names may be listed everywhere; what is in a file is another matter.
            (PathBuf::from("/"), AccessFs::ReadDir.into()),
        ];
        let hidden = hidden_paths(&homes(), |name| std::env::var_os(name));
        let readable = readable_paths(Path::new("/"), &hidden);
        rules.extend(readable.into_iter().map(|path| (path, AccessFs::from_read(KNOWN))));
        rules.extend(writable.iter().map(|path| (path.clone(), everything())));
        rules.extend(DEVICES.map(|path| (path.into(), device())));
        // Where `shm_open` and `sem_open` keep their files.
        rules.push(("/dev/shm".into(), everything()));
        Self(rules)
    }

    /// Binds this thread, and what it starts, for good. Gives the version of Landlock.
    pub(super) fn restrict_thread(&self) -> Result<Option<u32>, RulesetError> {
        let mut ruleset = Ruleset::default()
            .handle_access(AccessFs::from_all(KNOWN))?
            .scope(Scope::from_all(KNOWN))?
            .create()?;
        for (path, access) in &self.0 {
            // What is not there needs no rule.
            let Ok(opened) = PathFd::new(path) else { continue };
            // Asked of what was opened: the path may lead elsewhere by now.
            let is_dir = fstat(&opened)
                .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory);
            let access = match is_dir {
                true => *access,
                false => *access & AccessFs::from_file(KNOWN),
            };
            ruleset = ruleset.add_rule(PathBeneath::new(opened, access))?;
        }
        Ok(version(&ruleset.restrict_self()?))
    }
}

/// Keeps this thread, and what it starts, from sending signals to any other process. Gives
/// whether the kernel does so.
pub(super) fn keep_signals_in() -> io::Result<bool> {
    let everywhere = PathFd::new("/").map_err(io::Error::other)?;
    bind_signals(everywhere).map_err(io::Error::other)
}

fn bind_signals(everywhere: PathFd) -> Result<bool, RulesetError> {
    // Moving files between folders is denied by every ruleset that does not allow it.
    let ruleset = Ruleset::default()
        .handle_access(AccessFs::Refer)?
        .scope(Scope::Signal)?
        .create()?
        .add_rule(PathBeneath::new(everywhere, AccessFs::Refer))?;
    let status = ruleset.restrict_self()?;
    Ok(status.ruleset == RulesetStatus::FullyEnforced)
}

fn version(status: &RestrictionStatus) -> Option<u32> {
    match status.landlock {
        _ if status.ruleset == RulesetStatus::NotEnforced => None,
        LandlockStatus::Available { effective_abi, .. } => Some(effective_abi as u32),
        _ => None,
    }
}

/// All but making devices: whoever runs as root would reach the disk through one.
fn everything() -> BitFlags<AccessFs> {
    AccessFs::from_all(KNOWN) & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev)
}

fn device() -> BitFlags<AccessFs> {
    AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev
}

/// The newest version that these rules were written for; an older kernel enforces what it knows.
const KNOWN: ABI = ABI::V9;

/// Devices that lead nowhere. Terminals are not among them: another one of the user's would be.
const DEVICES: [&str; 6] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];
