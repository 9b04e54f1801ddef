//! Query parameters shared by the command line and the REST API: part kinds, tool states, times.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use thiserror::Error;
use unspool_model::part::{Kind, ToolState};

/// Every kind of part.
pub const PART_KINDS: &[&str] = &{
    let mut names = [""; Kind::ALL.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = Kind::ALL[at].name();
        at += 1;
    }
    names
};

/// What a search can be limited to: user messages, titles, and every kind of part.
pub const SEARCH_KINDS: &[&str] = &{
    let mut names = [""; Kind::ALL.len() + 2];
    (names[0], names[1]) = ("user", "title");
    let mut at = 0;
    while at < PART_KINDS.len() {
        names[at + 2] = PART_KINDS[at];
        at += 1;
    }
    names
};

/// The states of a tool call.
pub const TOOL_STATES: &[&str] = &{
    let mut names = [""; ToolState::ALL.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = ToolState::ALL[at].name();
        at += 1;
    }
    names
};

#[derive(Debug, Error)]
#[error("invalid time `{0}`: expected 2026-05-31, 2026-05-31T12:00:00Z, 36h, 7d or 2w")]
pub struct NotATime(String);

/// Parses a date, a timestamp or an age such as `36h` into milliseconds since the epoch.
pub fn parse_time(text: &str) -> Result<i64, NotATime> {
    time_of(text).ok_or_else(|| NotATime(text.to_owned()))
}

fn time_of(text: &str) -> Option<i64> {
    if let Ok(at) = text.parse::<Timestamp>() {
        return Some(at.as_millisecond());
    }
    if let Ok(date) = text.parse::<Date>() {
        return Some(date.to_zoned(TimeZone::UTC).ok()?.timestamp().as_millisecond());
    }
    let (count, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let hours = match unit {
        "h" => 1,
        "d" => 24,
        "w" => 24 * 7,
        _ => return None,
    };
    let ago = i64::from(count.parse::<u32>().ok()?).saturating_mul(hours).saturating_mul(3_600_000);
    Some(Timestamp::now().as_millisecond().saturating_sub(ago))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_dates_times_or_how_long_ago() {
        assert_eq!(parse_time("2026-05-31T12:00:00Z").unwrap(), 1_780_228_800_000);
        assert_eq!(parse_time("2026-05-31").unwrap(), 1_780_185_600_000);
        let now = Timestamp::now().as_millisecond();
        for (ago, hours) in [("36h", 36), ("7d", 168), ("2w", 336), ("0h", 0)] {
            let past = now - parse_time(ago).unwrap();
            assert!((past - hours * 3_600_000).abs() < 60_000, "{ago}: {past}");
        }
        for wrong in ["", "d", "7", "7y", "yesterday", "2026-13-01", "7 d", "7日", "-1d"] {
            assert!(parse_time(wrong).is_err(), "{wrong}");
        }
    }
}
