//! Numbers as people write and read them: durations (`90s`), counts (`2,468`), plurals.

use std::time::Duration;

/// Reads `500ms`, `90s`, `5m`, `1h`, or plain seconds.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let seconds = match unit.trim() {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(bad_duration(text)),
    };
    let duration = number
        .parse::<f64>()
        .ok()
        .and_then(|number| Duration::try_from_secs_f64(number * seconds).ok())
        .ok_or_else(|| bad_duration(text))?;
    if duration.is_zero() {
        return Err(format!("{text:?} leaves no time at all: give more, for example 90s"));
    }
    Ok(duration)
}

fn bad_duration(text: &str) -> String {
    format!("{text:?} is no duration: write it like 90s, 5m or 1h")
}

/// A duration in the shortest exact form [`parse_duration`] reads.
pub(crate) fn duration_flag(duration: Duration) -> String {
    let ms = duration.as_millis();
    match () {
        () if !ms.is_multiple_of(1000) => format!("{ms}ms"),
        () if ms.is_multiple_of(3_600_000) => format!("{}h", ms / 3_600_000),
        () if ms.is_multiple_of(60_000) => format!("{}m", ms / 60_000),
        () => format!("{}s", ms / 1000),
    }
}

/// How long something took: `0.1 s`, `2.9 s`, `1 min 12 s`.
pub(crate) fn elapsed(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..60 => format!("{:.1} s", (duration.as_secs_f64() * 10.0).floor() / 10.0),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// How long something is still to take: `2 s`, `0.5 s`.
pub(crate) fn pause(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    if seconds < 0.95 { format!("{seconds:.1} s") } else { format!("{seconds:.0} s") }
}

/// A count with separators: `2,468`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 step`, `4 steps`.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    format!("{} {noun}{}", grouped(count as u64), if count == 1 { "" } else { "s" })
}

/// `$1.20`, `$0.012`, `$0.0023`: with the digits that matter.
pub(crate) fn dollars(amount: f64) -> String {
    match amount {
        0.0 => "$0".to_owned(),
        ..0.0001 => "below $0.0001".to_owned(),
        ..0.01 => format!("${amount:.4}"),
        ..1.0 => format!("${amount:.3}"),
        _ => format!("${amount:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dollars_have_the_digits_that_matter() {
        let shown = [0.0, 0.00001, 0.00123, 0.0456, 0.5, 12.345].map(dollars);
        assert_eq!(shown, ["$0", "below $0.0001", "$0.0012", "$0.046", "$0.500", "$12.35"]);
    }

    #[test]
    fn durations_are_read_with_their_units() {
        for (text, ms) in
            [("90s", 90_000), ("500ms", 500), ("5m", 300_000), ("1h", 3_600_000), ("1.5", 1500)]
        {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for text in ["", "s", "90 parsecs", "-1s", "1e400s"] {
            assert_eq!(parse_duration(text), Err(bad_duration(text)), "{text}");
        }
        assert!(parse_duration("0s").unwrap_err().contains("leaves no time"));
    }

    #[test]
    fn a_duration_is_written_as_it_is_read() {
        for text in ["90s", "500ms", "5m", "1h", "61s"] {
            assert_eq!(duration_flag(parse_duration(text).unwrap()), text);
        }
    }

    #[test]
    fn times_and_counts_are_short() {
        assert_eq!(elapsed(Duration::from_millis(2_960)), "2.9 s");
        assert_eq!(elapsed(Duration::from_secs(72)), "1 min 12 s");
        assert_eq!(pause(Duration::from_millis(980)), "1 s");
        assert_eq!(pause(Duration::from_millis(640)), "0.6 s");
        assert_eq!(pause(Duration::from_secs(20)), "20 s");
        assert_eq!(elapsed(Duration::from_secs(7260)), "2 h 1 min");
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(counted(1, "step"), "1 step");
        assert_eq!(counted(0, "tool"), "0 tools");
    }
}
