//! [`ApiError`]: what a provider says of a failure, in the shapes in which providers say it.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

/// A failure in the provider's words.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ApiError {
    /// The sentence.
    pub message: String,
    /// The machine's word for it: the code, else the type, else the status in words.
    pub code: Option<String>,
    /// A status in HTTP's numbers, where the error itself names one.
    pub status: Option<u16>,
    /// How long to wait before the next try, where the error itself says so.
    pub retry_after: Option<Duration>,
}

impl ApiError {
    /// Reads an error body: `{"error": {..}}`, `{"error": ".."}`, `{"message": ..}`,
    /// `{"detail": ..}`, or a list with one of these. `None`: it is none of them.
    pub fn parse(body: &str) -> Option<Self> {
        let one_of_many: Result<Vec<Value>, _> = serde_json::from_str(body);
        let value = match one_of_many {
            Ok(list) => list.into_iter().next()?,
            Err(_) => serde_json::from_str(body).ok()?,
        };
        let envelope = Envelope::deserialize(&value).ok()?;
        let inner = envelope.error.or(envelope.errors).or(envelope.message).or(envelope.detail);
        let outer = envelope.fields;
        inner.map(|error| Self::from_value(&error, outer)).filter(|error| !error.message.is_empty())
    }

    /// Reads what stands under `error`, beside the fields around it.
    pub(crate) fn from_value(error: &Value, outer: Fields) -> Self {
        let mut message = sentence(error);
        let inner = Fields::deserialize(error).unwrap_or_default();
        if let Some(raw) = error.pointer("/metadata/raw").and_then(Value::as_str) {
            // A gateway that only says "Provider returned error" keeps the reason there.
            message = format!("{message}: {raw}");
        }
        let details = error.get("details").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let words = [&inner.code, &inner.kind, &inner.status, &outer.code, &outer.kind];
        let mut words = words.into_iter().filter_map(Value::as_str);
        let code = details.iter().find_map(telling_code).or_else(|| words.next());
        let numbers = [&inner.code, &inner.status, &inner.status_code, &outer.code, &outer.status];
        let status = numbers.into_iter().find_map(http_status);
        let retry_after = details.iter().find_map(retry_delay);
        Self { message, code: code.map(str::to_owned), status, retry_after }
    }

    /// Whether money or quota is used up, which waiting does not cure.
    pub fn is_out_of_quota(&self) -> bool {
        const CODES: [&str; 5] = [
            "insufficient_quota",
            "billing_hard_limit_reached",
            "billing_not_active",
            "quota_exceeded",
            // Moonshot's word.
            "exceeded_current_quota_error",
        ];
        self.code.as_deref().is_some_and(|code| CODES.contains(&code))
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// The fields an error has beside its sentence; any of them may be a word or a number.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct Fields {
    code: Value,
    #[serde(rename = "type")]
    kind: Value,
    status: Value,
    status_code: Value,
}

#[derive(Deserialize)]
struct Envelope {
    error: Option<Value>,
    errors: Option<Value>,
    message: Option<Value>,
    detail: Option<Value>,
    #[serde(flatten)]
    fields: Fields,
}

/// The sentence of an error that is a string, an object with one, or a list of objects.
fn sentence(error: &Value) -> String {
    let text = match error {
        Value::String(text) => Cow::Borrowed(text.as_str()),
        Value::Object(fields) => ["message", "msg", "detail", "error", "type", "code"]
            .iter()
            .find_map(|name| fields.get(*name).filter(|value| !value.is_null()))
            .map(|value| Cow::Owned(sentence(value)))
            .unwrap_or_default(),
        Value::Array(list) => Cow::Owned(list.iter().map(sentence).collect::<Vec<_>>().join("; ")),
        Value::Number(number) => Cow::Owned(number.to_string()),
        Value::Bool(_) | Value::Null => Cow::Borrowed(""),
    };
    text.trim().to_owned()
}

/// The code in a detail of Google's, where it tells what the status does not: a wrong key is a bad
/// request there, and a quota of the day is like one of the minute.
fn telling_code(detail: &Value) -> Option<&str> {
    let violations = detail["violations"].as_array().map_or(&[][..], Vec::as_slice);
    let is_daily = |v: &Value| v["quotaId"].as_str().is_some_and(|id| id.contains("PerDay"));
    match detail["reason"].as_str() {
        Some("API_KEY_INVALID") => Some("invalid_api_key"),
        _ if violations.iter().any(is_daily) => Some("quota_exceeded"),
        _ => None,
    }
}

/// How long to wait, as a detail of Google's says it: `48s`.
fn retry_delay(detail: &Value) -> Option<Duration> {
    let seconds = detail["retryDelay"].as_str()?.strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

fn http_status(value: &Value) -> Option<u16> {
    let number = match value {
        Value::Number(number) => number.as_u64()?,
        Value::String(text) => text.parse().ok()?,
        _ => return None,
    };
    u16::try_from(number).ok().filter(|status| (400..600).contains(status))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(message: &str, code: Option<&str>, status: Option<u16>) -> Option<ApiError> {
        let code = code.map(Into::into);
        Some(ApiError { message: message.into(), code, status, retry_after: None })
    }

    #[test]
    fn every_shape_gives_its_sentence() {
        let full =
            r#"{"error":{"message":"No.","type":"invalid_request_error","code":null,"param":"x"}}"#;
        assert_eq!(ApiError::parse(full), error("No.", Some("invalid_request_error"), None));
        let coded = r#"{"error":{"message":"Full.","type":"tokens","code":"rate_limit_exceeded"}}"#;
        assert_eq!(ApiError::parse(coded), error("Full.", Some("rate_limit_exceeded"), None));
        assert_eq!(ApiError::parse(r#"{"error":"gone"}"#), error("gone", None, None));
        assert_eq!(ApiError::parse(r#"{"message":"m"}"#), error("m", None, None));
        assert_eq!(ApiError::parse(r#"{"detail":"Not Found"}"#), error("Not Found", None, None));
        let fields = r#"{"detail":[{"loc":["body"],"msg":"field required"}]}"#;
        assert_eq!(ApiError::parse(fields), error("field required", None, None));
        let list = r#"[{"error":{"code":400,"message":"bad","status":"INVALID_ARGUMENT"}}]"#;
        assert_eq!(ApiError::parse(list), error("bad", Some("INVALID_ARGUMENT"), Some(400)));
    }

    #[test]
    fn what_is_no_error_gives_none() {
        for body in ["", "<html>", "{}", "[]", "3", r#"{"error":null}"#, r#"{"choices":[]}"#] {
            assert_eq!(ApiError::parse(body), None, "{body}");
        }
    }

    #[test]
    fn the_details_of_google_say_more() {
        let wrong_key = r#"{"error":{"code":400,"message":"Bad key.","status":"INVALID_ARGUMENT",
            "details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}]}}"#;
        assert_eq!(
            ApiError::parse(wrong_key),
            error("Bad key.", Some("invalid_api_key"), Some(400))
        );
        let minute = r#"{"error":{"code":429,"message":"Wait.","status":"RESOURCE_EXHAUSTED",
            "details":[{"violations":[{"quotaId":"TokensPerModelPerMinute"}]},{"retryDelay":"1.5s"}]}}"#;
        let expected = ApiError {
            message: "Wait.".into(),
            code: Some("RESOURCE_EXHAUSTED".into()),
            status: Some(429),
            retry_after: Some(Duration::from_millis(1500)),
        };
        assert_eq!(ApiError::parse(minute), Some(expected));
        let day = minute.replace("PerMinute", "PerDay");
        assert!(ApiError::parse(&day).unwrap().is_out_of_quota());
    }

    #[test]
    fn a_gateway_shows_the_reason_behind_it() {
        let body = r#"{"error":{"message":"Provider returned error","code":502,"metadata":{"raw":"overloaded"}}}"#;
        assert_eq!(
            ApiError::parse(body),
            error("Provider returned error: overloaded", None, Some(502))
        );
    }
}
