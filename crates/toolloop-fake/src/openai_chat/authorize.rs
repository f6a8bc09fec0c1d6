//! [`authorize`]: who may ask.

use crate::refusal::Refusal;

/// Compares the `authorization` header with the key.
pub(crate) fn authorize(key: &str, authorization: Option<&str>) -> Result<(), Refusal> {
    match authorization.and_then(|value| value.strip_prefix("Bearer ")).map(str::trim) {
        Some(given) if given == key => Ok(()),
        Some(given) if !given.is_empty() => {
            let message = format!(
                "Incorrect API key provided: {}. You can find your API key at \
                 https://platform.openai.com/account/api-keys.",
                echoed(given)
            );
            Err(Refusal::openai(401, message, None, Some("invalid_api_key")))
        }
        _ => Err(Refusal::openai(401, MISSING, None, None)),
    }
}

/// A wrong key as the API repeats it: a short one whole, of a longer one the first eight and the
/// last four characters.
fn echoed(key: &str) -> String {
    let chars: Vec<char> = key.chars().collect();
    let Some(hidden) = chars.len().checked_sub(8 + 4).filter(|hidden| *hidden > 0) else {
        return key.to_owned();
    };
    let first: String = chars[..8].iter().collect();
    let last: String = chars[8 + hidden..].iter().collect();
    format!("{first}{}{last}", "*".repeat(hidden))
}

const MISSING: &str = "You didn't provide an API key. You need to provide your API key in an \
    Authorization header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY), or as the \
    password field (with blank username) if you're accessing the API from your browser and are \
    prompted for a username and password. You can obtain an API key from \
    https://platform.openai.com/account/api-keys.";

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(authorization: Option<&str>) -> (u16, String) {
        let refusal = authorize("sk-right", authorization).unwrap_err();
        (refusal.status, refusal.body["error"]["message"].as_str().unwrap().to_owned())
    }

    #[test]
    fn the_right_key_passes() {
        assert_eq!(authorize("sk-right", Some("Bearer sk-right")), Ok(()));
    }

    #[test]
    fn a_wrong_key_is_repeated_in_part() {
        let expected = "Incorrect API key provided: test-con****-key. You can find your API key \
            at https://platform.openai.com/account/api-keys.";
        assert_eq!(refusal(Some("Bearer test-context-key")), (401, expected.to_owned()));
        assert!(refusal(Some("Bearer wrong")).1.contains("provided: wrong."));
    }

    #[test]
    fn no_key_is_told_how_to_give_one() {
        for none in [None, Some("Bearer "), Some("Basic dXNlcg==")] {
            assert_eq!(refusal(none), (401, MISSING.to_owned()));
        }
    }
}
