//! [`scrubbed`]: the environment that commands see, without what looks like a secret.

use std::ffi::{OsStr, OsString};

/// The variables that a command gets of `variables`.
///
/// Keeps a key from leaking where a command prints its environment. It does not stop a command
/// that goes looking, for example in files or in `/proc`.
pub(crate) fn scrubbed(
    variables: impl IntoIterator<Item = (OsString, OsString)>,
) -> impl Iterator<Item = (OsString, OsString)> {
    let fixed = FIXED.map(|(name, value)| (name.into(), value.into()));
    variables.into_iter().filter(|(name, value)| !is_secret(name, value)).chain(fixed)
}

fn is_secret(name: &OsStr, value: &OsStr) -> bool {
    let name = name.to_string_lossy().to_uppercase();
    let secret_name =
        SECRET_NAMES.iter().any(|part| name.contains(part)) && !HARMLESS.contains(&name.as_str());
    secret_name || holds_password(&value.to_string_lossy())
}

/// Whether the value is an address with a password: `scheme://user:password@host`.
fn holds_password(value: &str) -> bool {
    let Some((_, rest)) = value.split_once("://") else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'))
}

/// Parts of the names of variables that are dropped.
const SECRET_NAMES: [&str; 9] =
    ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "AUTH", "COOKIE"];

/// Names that only look secret, and without which git stops working as its user is used to.
/// The agent behind the socket signs, but gives no key away.
const HARMLESS: [&str; 4] =
    ["SSH_AUTH_SOCK", "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE"];

/// Nobody sits at a terminal: no colours, no pager, no question.
const FIXED: [(&str, &str); 5] = [
    ("TERM", "dumb"),
    ("NO_COLOR", "1"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(variables: &[(&str, &str)]) -> Vec<String> {
        let variables = variables.iter().map(|(name, value)| (name.into(), value.into()));
        let fixed = FIXED.len();
        let all: Vec<_> =
            scrubbed(variables).map(|(name, _)| name.into_string().unwrap()).collect();
        all[..all.len() - fixed].to_vec()
    }

    #[test]
    fn names_that_look_secret_are_dropped_in_any_case() {
        let secrets = [
            ("OPENAI_API_KEY", "x"),
            ("github_token", "x"),
            ("AWS_SECRET_ACCESS_KEY", "x"),
            ("PGPASSWORD", "x"),
            ("GOOGLE_APPLICATION_CREDENTIALS", "x"),
            ("HTTP_AUTHORIZATION", "x"),
        ];
        assert_eq!(kept(&secrets), [""; 0]);
    }

    #[test]
    fn addresses_with_a_password_are_dropped() {
        let variables = [
            ("DATABASE_URL", "postgres://me:hunter2@db/app"),
            ("HTTPS_PROXY", "http://proxy:8080"),
            ("HOMEPAGE", "https://example.org/a:b@c"),
        ];
        assert_eq!(kept(&variables), ["HTTPS_PROXY", "HOMEPAGE"]);
    }

    #[test]
    fn what_programs_need_stays() {
        let variables = [
            ("PATH", "/bin"),
            ("HOME", "/root"),
            ("SSH_AUTH_SOCK", "/s"),
            ("GIT_AUTHOR_NAME", "A"),
        ];
        assert_eq!(kept(&variables), ["PATH", "HOME", "SSH_AUTH_SOCK", "GIT_AUTHOR_NAME"]);
    }
}
