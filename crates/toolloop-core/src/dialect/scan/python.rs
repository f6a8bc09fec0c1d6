//! [`as_json`]: what a model wrote for JSON, as JSON.

/// The literal of a Python program as JSON: strings in single quotes, `True`, `None`, a comma
/// behind the last element. What is JSON stays as it is.
pub(super) fn as_json(text: &str) -> String {
    let mut json = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['"', '\'', ',', 'T', 'F', 'N']) {
        let (before, from) = rest.split_at(at);
        json.push_str(before);
        let (read, written) = match from.as_bytes()[0] {
            quote @ (b'"' | b'\'') => {
                let len = string_len(from, quote);
                push_string(&from[..len], &mut json);
                (len, "")
            }
            b',' => match from[1..].trim_start().starts_with(['}', ']']) {
                true => (1, ""),
                false => (1, ","),
            },
            _ => match WORDS.iter().find(|(word, _)| from.starts_with(word)) {
                Some((word, json)) => (word.len(), *json),
                None => (1, &from[..1]),
            },
        };
        json.push_str(written);
        rest = &from[read..];
    }
    json + rest
}

/// The length of the string that begins the text, with its quotes as far as they are there.
fn string_len(text: &str, quote: u8) -> usize {
    let mut bytes = text.bytes().enumerate().skip(1);
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'\\' => drop(bytes.next()),
            byte if byte == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// The string with double quotes around it.
fn push_string(string: &str, json: &mut String) {
    if string.starts_with('"') {
        json.push_str(string);
        return;
    }
    json.push('"');
    let mut letters = string[1..].strip_suffix('\'').unwrap_or(&string[1..]).chars();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => json.push_str("\\\""),
            '\\' => match letters.next() {
                Some('\'') => json.push('\''),
                escaped => json.extend(std::iter::once('\\').chain(escaped)),
            },
            letter => json.push(letter),
        }
    }
    json.push('"');
}

const WORDS: [(&str, &str); 3] = [("True", "true"), ("False", "false"), ("None", "null")];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_become_json() {
        for (python, json) in [
            ("{'a': 'b', \"c\": True}", "{\"a\": \"b\", \"c\": true}"),
            ("{'a': [None, False,], }", "{\"a\": [null, false] }"),
            (r#"{'a': 'say \"hi\", it\'s "so"\n'}"#, r#"{"a": "say \"hi\", it's \"so\"\n"}"#),
            ("{\"a\": \"it's ,} None\"}", "{\"a\": \"it's ,} None\"}"),
            ("{'a", "{\"a\""),
            ("['\\", "[\"\\\""),
        ] {
            assert_eq!(as_json(python), json, "{python}");
        }
    }
}
