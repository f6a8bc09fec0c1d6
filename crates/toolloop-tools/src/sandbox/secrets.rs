//! [`hidden_paths`]: what commands may not read, because it usually holds a secret.
//!
//! Landlock only knows permission, and permission for a folder covers all that is in it. So
//! [`readable_paths`] names what lies beside the secrets, folder by folder on the way to them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The user's folder, and under root, who reads them all, everybody's.
pub(super) fn homes() -> Vec<PathBuf> {
    let mut homes: Vec<PathBuf> = std::env::home_dir().into_iter().collect();
    if rustix::process::geteuid().is_root() {
        let others = std::fs::read_dir("/home").into_iter().flatten().flatten();
        homes.extend(others.map(|entry| entry.path()));
    }
    homes
}

/// The secrets that exist in these folders and in the system, links followed.
pub(super) fn hidden_paths(
    homes: &[PathBuf],
    variable: impl Fn(&str) -> Option<OsString>,
) -> Vec<PathBuf> {
    let mut hidden: Vec<PathBuf> = OF_THE_SYSTEM.iter().map(PathBuf::from).collect();
    let config = variable("XDG_CONFIG_HOME").map(PathBuf::from);
    for config in homes.iter().map(|home| home.join(".config")).chain(config) {
        hidden.extend(IN_CONFIG.iter().map(|path| config.join(path)));
    }
    for home in homes {
        hidden.extend(IN_HOME.iter().map(|path| home.join(path)));
    }
    for value in NAMED_BY.iter().filter_map(|name| variable(name)) {
        hidden.extend(std::env::split_paths(&value));
    }
    hidden.retain(|path| path.is_absolute());
    let mut real: Vec<PathBuf> =
        hidden.iter().filter_map(|path| path.canonicalize().ok()).collect();
    real.sort();
    real.dedup();
    real
}

/// The fewest paths that cover everything under `folder` except what is hidden.
pub(super) fn readable_paths(folder: &Path, hidden: &[PathBuf]) -> Vec<PathBuf> {
    let mut readable = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(path) = open.pop() {
        if hidden.contains(&path) {
            continue;
        }
        if !hidden.iter().any(|secret| secret.starts_with(&path)) {
            readable.push(path);
            continue;
        }
        let Ok(entries) = std::fs::read_dir(&path) else { continue };
        // Permission for a link would be one for its target, which has its own.
        let kept = entries
            .flatten()
            .filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink()));
        open.extend(kept.map(|entry| entry.path()));
    }
    readable
}

const OF_THE_SYSTEM: [&str; 7] = [
    "/etc/shadow",
    "/etc/gshadow",
    "/etc/ssl/private",
    "/etc/kubernetes",
    "/run/secrets",
    "/var/run/secrets",
    "/var/lib/kubelet",
];

const IN_HOME: [&str; 45] = [
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".oci",
    ".netrc",
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".pgpass",
    ".my.cnf",
    ".s3cfg",
    ".boto",
    ".databrickscfg",
    ".git-credentials",
    ".vault-token",
    ".terraform.d",
    ".terraformrc",
    ".password-store",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".m2/settings.xml",
    ".m2/settings-security.xml",
    ".gradle/gradle.properties",
    ".composer/auth.json",
    ".nuget/NuGet/NuGet.Config",
    ".claude.json",
    ".claude/.credentials.json",
    ".codex/auth.json",
    ".gemini/oauth_creds.json",
    ".local/share/keyrings",
    ".local/share/opencode/auth.json",
    ".mozilla",
    ".thunderbird",
    ".bash_history",
    ".zsh_history",
    ".python_history",
    ".psql_history",
    ".mysql_history",
    ".node_repl_history",
    ".local/share/fish/fish_history",
    "snap/firefox",
];

const IN_CONFIG: [&str; 17] = [
    "toolloop",
    "gcloud",
    "gh",
    "glab-cli",
    "hub",
    "op",
    "rclone",
    "doctl",
    "heroku",
    "sops",
    "git/credentials",
    "pip/pip.conf",
    "containers/auth.json",
    "github-copilot",
    "google-chrome",
    "chromium",
    "BraveSoftware",
];

/// Variables that name a file or folder of secrets.
const NAMED_BY: [&str; 9] = [
    "AWS_CONFIG_FILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "DOCKER_CONFIG",
    "GNUPGHOME",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "KUBECONFIG",
    "NETRC",
    "NPM_CONFIG_USERCONFIG",
    "PGPASSFILE",
];

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn touch(path: PathBuf) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "x").unwrap();
    }

    #[test]
    fn what_lies_beside_a_secret_can_be_read_and_the_secret_not() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        for file in [".ssh/id", ".config/gh/hosts.yml", ".config/app/a", ".profile", "src/a/b"] {
            touch(home.join(file));
        }
        std::os::unix::fs::symlink(home.join(".ssh"), home.join("keys")).unwrap();
        let hidden = hidden_paths(std::slice::from_ref(&home), |_| None);
        let mut readable = readable_paths(&home, &hidden);
        readable.sort();
        assert_eq!(readable, [".config/app", ".profile", "src"].map(|path| home.join(path)));
    }

    #[test]
    fn a_secret_is_found_where_its_link_and_where_a_variable_points() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        touch(home.join("dotfiles/ssh/id"));
        touch(home.join("cloud.json"));
        std::os::unix::fs::symlink(home.join("dotfiles/ssh"), home.join(".ssh")).unwrap();
        let cloud = home.join("cloud.json");
        let hidden = hidden_paths(std::slice::from_ref(&home), |name| {
            (name == "GOOGLE_APPLICATION_CREDENTIALS").then(|| cloud.clone().into())
        });
        let hidden: Vec<_> = hidden.iter().filter(|path| path.starts_with(&home)).collect();
        assert_eq!(hidden, [&cloud, &home.join("dotfiles/ssh")]);
    }

    #[test]
    fn without_secrets_one_path_is_enough() {
        assert_eq!(readable_paths(Path::new("/usr"), &["/etc/shadow".into()]), [Path::new("/usr")]);
    }
}
