//! [`call`]: a call as the model would write it.

use serde_json::Value;

use crate::dialect::Dialect;
use crate::dialect::escape::{escape_lines, escape_result, escape_value};
use crate::dialect::unread_call;

/// A call with these arguments as the model would write it. Scanned again it is the same call.
pub fn call(dialect: Dialect, name: &str, arguments: &Value) -> String {
    let parameters = match arguments {
        // As the model wrote it, which nobody could read.
        Value::String(raw) if unread_call(raw).is_some() => return raw.clone(),
        Value::String(raw) => vec![escape_result(raw)],
        Value::Object(fields) => {
            let parameter = match dialect {
                Dialect::Caret => caret_parameter,
                _ => xml_parameter,
            };
            fields.iter().map(|(name, value)| parameter(name, value)).collect()
        }
        other => vec![other.to_string()],
    };
    let (first, last) = match dialect {
        Dialect::Caret => (format!("^^^{name}"), "^^^".to_owned()),
        _ => (format!("<tool:{name}>"), format!("</tool:{name}>")),
    };
    let lines = [vec![first], parameters, vec![last]].concat();
    lines.join("\n")
}

fn xml_parameter(name: &str, value: &Value) -> String {
    let tagged = |text: &str| {
        let text = escape_value(text);
        match text.contains('\n') {
            true => format!("<param:{name}>\n{text}\n</param:{name}>"),
            false => format!("<param:{name}>{text}</param:{name}>"),
        }
    };
    match value {
        Value::String(text) => tagged(text),
        Value::Array(elements) => match plain_elements(elements) {
            Some(elements) => elements.into_iter().map(tagged).collect::<Vec<_>>().join("\n"),
            None => tagged(&value.to_string()),
        },
        other => tagged(&other.to_string()),
    }
}

fn caret_parameter(name: &str, value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Array(elements) => {
            let is_line = |line: &&str| is_plain_line(line) && *line != "]" && !line.is_empty();
            return match plain_elements(elements).filter(|all| all.iter().all(is_line)) {
                Some(elements) => format!("{name}: [\n{}\n]", elements.join("\n")),
                None => format!("{name}: {value}"),
            };
        }
        other => other.to_string(),
    };
    if is_plain_line(&text) && text != "[" {
        return format!("{name}: {text}");
    }
    let closer = format!("--- {name}");
    format!("{name} ---\n{}\n{closer}", escape_lines(&text, &closer))
}

/// Whether a text is one line that trimming leaves as it is.
fn is_plain_line(text: &str) -> bool {
    text.trim() == text && !text.contains(['\n', '\r']) && !text.starts_with("^^^")
}

/// The elements of a list that can be written one by one.
fn plain_elements(elements: &[Value]) -> Option<Vec<&str>> {
    let plain: Option<Vec<&str>> = elements.iter().map(Value::as_str).collect();
    // One element that begins like a list would be read as one.
    plain.filter(|plain| match plain.as_slice() {
        [] => false,
        [alone] => !alone.trim_start().starts_with('['),
        _ => true,
    })
}
