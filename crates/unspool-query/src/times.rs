//! Times as people write them: dates, timestamps, days by name, and how long ago. All in UTC, like
//! the times that every surface shows.

use jiff::civil::{Date, Weekday};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};
use thiserror::Error;

/// What is accepted, for help texts.
pub const ACCEPTED_TIMES: &str =
    "2026-05-31, 2026-05-31T12:00:00Z, yesterday, monday, last week, 36h, 7d, 2w, 3 days ago";

#[derive(Debug, Error)]
#[error("cannot read “{text}” as a time; {hint}write it like one of these: {ACCEPTED_TIMES}")]
pub struct NotATime {
    text: String,
    hint: String,
}

/// Milliseconds since the epoch. A day is its beginning.
pub fn parse_time(text: &str) -> Result<i64, NotATime> {
    parse_time_at(text, Timestamp::now())
}

/// Like [`parse_time`], at another time than now.
pub fn parse_time_at(text: &str, now: Timestamp) -> Result<i64, NotATime> {
    let time = time_of(text, now).and_then(|time| time.start());
    time.ok_or_else(|| not_a_time(text))
}

/// Like [`parse_time_at`], but a day is its end.
pub fn parse_end_at(text: &str, now: Timestamp) -> Result<i64, NotATime> {
    let time = time_of(text, now).and_then(|time| time.end());
    time.ok_or_else(|| not_a_time(text))
}

fn not_a_time(text: &str) -> NotATime {
    let text: String = text.chars().take(80).collect();
    let hint = match text.trim().strip_suffix('m') {
        Some(count) if !count.is_empty() && count.chars().all(|it| it.is_ascii_digit()) => {
            format!("m is ambiguous: write “{count} minutes ago” or “{count} months ago”, or ")
        }
        Some(_) | None => String::new(),
    };
    NotATime { text, hint }
}

enum Time {
    Day(Date),
    Instant(Timestamp),
}

impl Time {
    fn start(self) -> Option<i64> {
        match self {
            Time::Day(date) => midnight(date),
            Time::Instant(at) => Some(at.as_millisecond()),
        }
    }

    /// The last day that there is has no end.
    fn end(self) -> Option<i64> {
        match self {
            Time::Day(date) => Some(date.tomorrow().ok().and_then(midnight).unwrap_or(i64::MAX)),
            Time::Instant(at) => Some(at.as_millisecond()),
        }
    }
}

fn midnight(date: Date) -> Option<i64> {
    Some(date.to_zoned(TimeZone::UTC).ok()?.timestamp().as_millisecond())
}

fn time_of(text: &str, now: Timestamp) -> Option<Time> {
    let text = text.trim();
    if let Ok(at) = text.parse::<Timestamp>() {
        return Some(Time::Instant(at));
    }
    if let Ok(date) = text.parse::<Date>() {
        return Some(Time::Day(date));
    }
    let text = text.to_lowercase();
    let words: Vec<&str> = text.split_whitespace().collect();
    let today = now.to_zoned(TimeZone::UTC).date();
    match words.as_slice() {
        ["now"] => Some(Time::Instant(now)),
        ["today"] => Some(Time::Day(today)),
        ["yesterday"] => today.yesterday().ok().map(Time::Day),
        ["last", unit] | [unit] if weekday(unit).is_some() => {
            // The one before today: who means today says so.
            today.nth_weekday(-1, weekday(unit)?).ok().map(Time::Day)
        }
        ["last", unit] => ago("1", unit, now),
        [count, unit, "ago"] => ago(count, unit, now),
        [short] => short_age(short, now),
        _ => None,
    }
}

/// `36h`, `7d`, `2w`, and the same with `ago` left out of `3 days ago`.
fn short_age(text: &str, now: Timestamp) -> Option<Time> {
    let (count, unit) = text.split_at(text.find(|it: char| !it.is_ascii_digit())?);
    matches!(unit, "h" | "d" | "w").then(|| ago(count, unit, now)).flatten()
}

fn ago(count: &str, unit: &str, now: Timestamp) -> Option<Time> {
    let count = match count {
        "a" | "an" | "one" => 1,
        number => i64::from(number.parse::<u32>().ok()?),
    };
    let span = match unit {
        "minute" | "minutes" | "min" | "mins" => Span::new().try_minutes(count),
        "hour" | "hours" | "h" => Span::new().try_hours(count),
        "day" | "days" | "d" => Span::new().try_days(count),
        "week" | "weeks" | "w" => Span::new().try_weeks(count),
        "month" | "months" => Span::new().try_months(count),
        "year" | "years" => Span::new().try_years(count),
        _ => return None,
    };
    // Longer ago than there is time: nothing is older.
    let oldest = Some(Time::Instant(Timestamp::MIN));
    let Ok(span) = span else { return oldest };
    let at = now.to_zoned(TimeZone::UTC).checked_sub(span);
    at.map_or(oldest, |at| Some(Time::Instant(at.timestamp())))
}

fn weekday(name: &str) -> Option<Weekday> {
    Some(match name {
        "monday" | "mon" => Weekday::Monday,
        "tuesday" | "tue" => Weekday::Tuesday,
        "wednesday" | "wed" => Weekday::Wednesday,
        "thursday" | "thu" => Weekday::Thursday,
        "friday" | "fri" => Weekday::Friday,
        "saturday" | "sat" => Weekday::Saturday,
        "sunday" | "sun" => Weekday::Sunday,
        _ => return None,
    })
}

#[cfg(test)]
#[path = "times_tests.rs"]
mod tests;
