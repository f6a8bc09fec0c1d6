//! What the headers of an answer say: rate limits, request id, when to come again.

use std::time::{Duration, SystemTime};

use http::HeaderMap;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use toolloop_core::RateLimits;

/// The limits of the window, if the provider says any.
pub(super) fn rate_limits(headers: &HeaderMap) -> Option<RateLimits> {
    let either = |name, other| text(headers, name).or_else(|| text(headers, other));
    let number = |name, other| either(name, other)?.parse().ok();
    let time = |name, other| {
        let text = either(name, other)?;
        duration(text).or_else(|| until(text, SystemTime::now()))
    };
    let limits = RateLimits {
        remaining_requests: number(
            "x-ratelimit-remaining-requests",
            "anthropic-ratelimit-requests-remaining",
        ),
        remaining_tokens: number(
            "x-ratelimit-remaining-tokens",
            "anthropic-ratelimit-tokens-remaining",
        ),
        reset_requests: time("x-ratelimit-reset-requests", "anthropic-ratelimit-requests-reset"),
        reset_tokens: time("x-ratelimit-reset-tokens", "anthropic-ratelimit-tokens-reset"),
    };
    (limits != RateLimits::default()).then_some(limits)
}

/// The provider's id of the request.
pub(super) fn request_id(headers: &HeaderMap) -> Option<String> {
    ["x-request-id", "request-id", "apim-request-id"]
        .into_iter()
        .find_map(|name| text(headers, name))
        .map(str::to_owned)
}

/// When to come again: in milliseconds, in seconds, or at a date.
pub(super) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    if let Some(millis) = text(headers, "retry-after-ms").and_then(|text| text.parse().ok()) {
        return Duration::try_from_secs_f64(f64::max(millis, 0.0) / 1000.0).ok();
    }
    let text = text(headers, RETRY_AFTER.as_str())?;
    match text.parse::<f64>() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds.max(0.0)).ok(),
        // A date that is past means now.
        Err(_) => httpdate::parse_http_date(text)
            .ok()
            .map(|at| at.duration_since(SystemTime::now()).unwrap_or_default()),
    }
}

/// What the server itself says of another try, which counts more than its status.
pub(super) fn should_retry(headers: &HeaderMap) -> Option<bool> {
    text(headers, "x-should-retry")?.parse().ok()
}

/// Whether the body is one JSON document and no stream.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    media_type(headers) == "application/json"
}

/// Whether the body is a page for people.
pub(super) fn is_html(headers: &HeaderMap) -> bool {
    media_type(headers) == "text/html"
}

fn media_type(headers: &HeaderMap) -> String {
    let value = text(headers, CONTENT_TYPE.as_str()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().map(str::trim).filter(|text| !text.is_empty())
}

/// A time as `6m0s`, `1h2m3.5s`, `20ms`, or in seconds.
fn duration(text: &str) -> Option<Duration> {
    if let Ok(seconds) = text.parse() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let mut total = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let unit = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..unit].parse().ok()?;
        rest = &rest[unit..];
        let end = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let seconds = match &rest[..end] {
            "ns" => 1e-9,
            "us" | "µs" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            "d" => 86_400.0,
            _ => return None,
        };
        total = total.checked_add(Duration::try_from_secs_f64(number * seconds).ok()?)?;
        rest = &rest[end..];
    }
    Some(total)
}

/// The time from now until a moment such as `2026-01-31T23:59:00Z`; none where it is past.
fn until(text: &str, now: SystemTime) -> Option<Duration> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let whole = time.split('.').next()?;
    let numbers = |text: &str, separator| {
        let parts: Option<Vec<u64>> = text.split(separator).map(|n| n.parse().ok()).collect();
        <[u64; 3]>::try_from(parts?).ok()
    };
    let [year, month, day] = numbers(date, '-')?;
    let [hour, minute, second] = numbers(whole, ':')?;
    let is_date =
        (1970..=9999).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    // A leap second may be told.
    if !is_date || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    // Years begin in March here, so that a leap day is the last of its year.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day;
    let seconds = (days - DAYS_BEFORE_1970) * 86_400 + hour * 3600 + minute * 60 + second;
    let at = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    Some(at.duration_since(now).unwrap_or_default())
}

/// From the first of March of the year 0.
const DAYS_BEFORE_1970: u64 = 719_469;

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn times_are_read_in_all_their_forms() {
        for (text, millis) in
            [("6m0s", 360_000), ("20ms", 20), ("1h2m3.5s", 3_723_500), ("1.5", 1500), ("0s", 0)]
        {
            assert_eq!(duration(text), Some(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "s", "5x", "-1", "1e400s", "NaN", "2026-01-01T00:00:00Z"] {
            assert_eq!(duration(text).filter(|d| !d.is_zero()), None, "{text}");
        }
    }

    #[test]
    fn retry_after_is_seconds_milliseconds_or_a_date() {
        let after = |name, value: &str| retry_after(&headers(&[(name, value)]));
        assert_eq!(after("retry-after", "2"), Some(Duration::from_secs(2)));
        assert_eq!(after("retry-after-ms", "250"), Some(Duration::from_millis(250)));
        assert_eq!(after("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT"), Some(Duration::ZERO));
        let soon = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(100));
        let wait = after("retry-after", &soon).unwrap();
        assert!((95..=100).contains(&wait.as_secs()), "{wait:?}");
        assert_eq!(after("retry-after", "soon"), None);
    }

    #[test]
    fn limits_are_kept_as_far_as_they_are_said() {
        let said = headers(&[
            ("x-ratelimit-remaining-requests", "59"),
            ("x-ratelimit-reset-tokens", "1m12s"),
        ]);
        let expected = RateLimits {
            remaining_requests: Some(59),
            reset_tokens: Some(Duration::from_secs(72)),
            ..RateLimits::default()
        };
        assert_eq!(rate_limits(&said), Some(expected));
        assert_eq!(rate_limits(&HeaderMap::new()), None);
    }

    #[test]
    fn a_moment_is_read_to_the_second() {
        for (text, unix) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2000-02-29T12:00:00Z", 951_825_600),
            ("2024-12-31T23:59:59.123Z", 1_735_689_599),
            ("2026-03-01T00:00:01Z", 1_772_323_201),
        ] {
            let wait = until(text, SystemTime::UNIX_EPOCH).map(|wait| wait.as_secs());
            assert_eq!(wait, Some(unix), "{text}");
        }
        // No clock can hold the second of these.
        let never = ["2026-01-01T24:00:00Z", "2026-01-01T5000000000000000:00:00Z"];
        let odd = ["", "2026-01-01", "2026-13-01T00:00:00Z", "soonTnowZ", "2026-01-01T00:00Z"];
        for text in never.into_iter().chain(odd) {
            assert_eq!(until(text, SystemTime::UNIX_EPOCH), None, "{text}");
        }
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 31);
        assert_eq!(until("2026-01-01T00:00:00Z", now), Some(Duration::ZERO));
    }

    #[test]
    fn anthropic_has_names_of_its_own() {
        let said = headers(&[
            ("anthropic-ratelimit-requests-remaining", "49"),
            ("anthropic-ratelimit-tokens-remaining", "8000"),
            ("anthropic-ratelimit-tokens-reset", "1999-01-01T00:00:00Z"),
        ]);
        let expected = RateLimits {
            remaining_requests: Some(49),
            remaining_tokens: Some(8000),
            reset_tokens: Some(Duration::ZERO),
            ..RateLimits::default()
        };
        assert_eq!(rate_limits(&said), Some(expected));
    }
}
