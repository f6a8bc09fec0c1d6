//! [`inherited`]: the variables of this process that a server gets to see.

use std::ffi::OsString;

/// The variables but those that look like a secret: a server is somebody else's program, and gets
/// the keys it is given by name.
pub(crate) fn inherited(
    variables: impl IntoIterator<Item = (OsString, OsString)>,
) -> impl Iterator<Item = (OsString, OsString)> {
    variables.into_iter().filter(|(name, value)| {
        !is_secret(&name.to_string_lossy()) && !holds_password(&value.to_string_lossy())
    })
}

/// Whether a variable of this name holds a secret, by the look of it.
pub(crate) fn is_secret(name: &str) -> bool {
    let name = name.to_uppercase();
    SECRET.iter().any(|part| name.contains(part)) && !HARMLESS.contains(&name.as_str())
}

/// Whether the value is an address with a password: `scheme://user:password@host`.
fn holds_password(value: &str) -> bool {
    let Some((_, rest)) = value.split_once("://") else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'))
}

/// Parts of the names of variables that are dropped.
const SECRET: [&str; 9] =
    ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "AUTH", "COOKIE"];

/// Names that only look secret. The agent behind the socket signs, but gives no key away.
const HARMLESS: [&str; 1] = ["SSH_AUTH_SOCK"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_dropped_and_what_programs_need_stays() {
        let variables = [
            ("PATH", "/bin"),
            ("OPENAI_API_KEY", "x"),
            ("HTTPS_PROXY", "http://proxy:8080"),
            ("DATABASE_URL", "postgres://me:hunter2@db/app"),
            ("github_token", "x"),
            ("GOOGLE_APPLICATION_CREDENTIALS", "x"),
            ("SSH_AUTH_SOCK", "/s"),
            ("NODE_EXTRA_CA_CERTS", "/etc/ca"),
        ];
        let kept = inherited(variables.map(|(name, value)| (name.into(), value.into())));
        let kept: Vec<_> = kept.map(|(name, _)| name.into_string().unwrap()).collect();
        assert_eq!(kept, ["PATH", "HTTPS_PROXY", "SSH_AUTH_SOCK", "NODE_EXTRA_CA_CERTS"]);
    }
}
