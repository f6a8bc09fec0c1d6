//! [`expand`]: `${NAME}` and `${NAME:-default}` in the values of `.mcp.json`.

/// The text with its variables replaced.
///
/// # Errors
/// A sentence that names the variable that is not set, or the `${` that has no end.
pub(crate) fn expand(
    text: &str,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<String, String> {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((inside, behind)) = after.split_once('}') else {
            return Err(format!("has a ${{ without }} in {text:?}. Close it"));
        };
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        expanded += before;
        // As in a shell, `:-` also stands in for a variable that is empty.
        match (variable(name), default) {
            (Some(value), None) => expanded += &value,
            (Some(value), Some(_)) if !value.is_empty() => expanded += &value,
            (_, Some(default)) => expanded += default,
            (None, None) => {
                return Err(format!(
                    "needs the variable {name}, which is not set. Set it, or give a default: \
                     ${{{name}:-...}}"
                ));
            }
        }
        rest = behind;
    }
    Ok(expanded + rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(text: &str) -> Result<String, String> {
        expand(text, &|name| match name {
            "HOME" => Some("/home/ada".into()),
            "EMPTY" => Some(String::new()),
            _ => None,
        })
    }

    #[test]
    fn variables_and_defaults_are_replaced() {
        assert_eq!(expanded("${HOME}/x and ${HOME}").unwrap(), "/home/ada/x and /home/ada");
        assert_eq!(expanded("${PORT:-80}${HOME:-/}").unwrap(), "80/home/ada");
        assert_eq!(expanded("[${EMPTY}][${EMPTY:-x}][${NONE:-}]").unwrap(), "[][x][]");
    }

    #[test]
    fn what_is_no_variable_stays() {
        for text in ["", "$HOME", "a $ {b}", "}{"] {
            assert_eq!(expanded(text).unwrap(), text);
        }
    }

    #[test]
    fn a_value_is_not_expanded_again() {
        let value = expand("${A}", &|_| Some("${B}".into()));
        assert_eq!(value.unwrap(), "${B}");
    }

    #[test]
    fn a_missing_variable_is_named_with_the_cure() {
        assert_eq!(
            expanded("${TOKEN}").unwrap_err(),
            "needs the variable TOKEN, which is not set. Set it, or give a default: ${TOKEN:-...}"
        );
        assert_eq!(expanded("a${B").unwrap_err(), "has a ${ without } in \"a${B\". Close it");
    }
}
