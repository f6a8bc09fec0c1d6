//! [`inherited`]: the variables of this process that a program it starts gets to see.

use std::ffi::OsString;

/// `variables` without those that look like a secret, by their name or because the value is an
/// address with a password in it.
///
/// Keeps a key from leaking where a program prints its environment. It does not stop a program
/// that goes looking, for example in files or in `/proc`.
pub fn inherited(
    variables: impl IntoIterator<Item = (OsString, OsString)>,
) -> impl Iterator<Item = (OsString, OsString)> {
    variables.into_iter().filter(|(name, value)| {
        !names_a_secret(&name.to_string_lossy()) && !holds_password(&value.to_string_lossy())
    })
}

/// Whether a variable of this name holds a secret, by the look of it.
pub fn names_a_secret(name: &str) -> bool {
    let name = name.to_uppercase();
    SECRET.iter().any(|part| name.contains(part)) && !HARMLESS.contains(&name.as_str())
}

/// Whether the value is an address with a password: `scheme://user:password@host`.
fn holds_password(value: &str) -> bool {
    let Some((_, rest)) = value.split_once("://") else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'))
}

/// Parts of the names of variables that hold secrets.
const SECRET: [&str; 9] =
    ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "AUTH", "COOKIE"];

/// Names that only look secret, and without which git stops working as its user is used to.
/// The agent behind the socket signs, but gives no key away.
const HARMLESS: [&str; 4] =
    ["SSH_AUTH_SOCK", "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE"];

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(variables: &[(&str, &str)]) -> Vec<String> {
        let variables = variables.iter().map(|(name, value)| (name.into(), value.into()));
        inherited(variables).map(|(name, _)| name.into_string().unwrap()).collect()
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
            ("NODE_EXTRA_CA_CERTS", "/etc/ca"),
        ];
        assert_eq!(kept(&variables), variables.map(|(name, _)| name));
    }
}
