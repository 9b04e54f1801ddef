use super::*;

/// A Wednesday.
const NOW: &str = "2026-05-27T13:14:15Z";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

fn read(text: &str) -> String {
    let at = parse_time_at(text, now()).unwrap_or_else(|error| panic!("{error}"));
    Timestamp::from_millisecond(at).unwrap().to_string()
}

#[test]
fn times_are_what_people_say() {
    for (text, expected) in [
        ("2026-05-31T12:00:00Z", "2026-05-31T12:00:00Z"),
        ("2026-05-31", "2026-05-31T00:00:00Z"),
        ("36h", "2026-05-26T01:14:15Z"),
        ("7d", "2026-05-20T13:14:15Z"),
        ("2w", "2026-05-13T13:14:15Z"),
        ("0h", NOW),
        ("now", NOW),
        ("today", "2026-05-27T00:00:00Z"),
        ("Yesterday", "2026-05-26T00:00:00Z"),
        ("monday", "2026-05-25T00:00:00Z"),
        ("last monday", "2026-05-25T00:00:00Z"),
        ("wednesday", "2026-05-20T00:00:00Z"),
        ("Thu", "2026-05-21T00:00:00Z"),
        ("3 days ago", "2026-05-24T13:14:15Z"),
        ("  2  hours ago ", "2026-05-27T11:14:15Z"),
        ("an hour ago", "2026-05-27T12:14:15Z"),
        ("90 minutes ago", "2026-05-27T11:44:15Z"),
        ("a month ago", "2026-04-27T13:14:15Z"),
        ("last week", "2026-05-20T13:14:15Z"),
        ("last month", "2026-04-27T13:14:15Z"),
    ] {
        assert_eq!(read(text), expected, "{text}");
    }
    assert!(parse_time("4294967295w").unwrap() < 0, "a very long time ago is a time");
    assert!(parse_time("4294967295 years ago").unwrap() < 0);
}

#[test]
fn an_end_is_the_end_of_a_day() {
    let end = |text: &str| parse_end_at(text, now()).unwrap();
    assert_eq!(end("yesterday"), parse_time_at("today", now()).unwrap());
    assert_eq!(end("2026-05-01"), parse_time_at("2026-05-02", now()).unwrap());
    assert_eq!(end("2 hours ago"), parse_time_at("2 hours ago", now()).unwrap());
    assert_eq!(end("9999-12-31"), i64::MAX, "there is no day after it");
}

#[test]
fn what_is_no_time_says_what_is() {
    for bad in [
        "",
        "soon",
        "5",
        "d",
        "7m",
        "-3d",
        "3.5d",
        "2026-13-01",
        "2026-02-30",
        "7 d",
        "é",
        "日",
        "99999999999d",
        "last",
        "last year ago",
        "three days ago",
        "ago",
        "-1 days ago",
        "next week",
    ] {
        let error = parse_time(bad).expect_err(bad).to_string();
        assert!(error.contains("yesterday") && error.contains("2026-05-31"), "{error}");
    }
    let error = parse_time("7m").expect_err("minutes or months").to_string();
    assert!(error.contains("“7 minutes ago” or “7 months ago”"), "{error}");
}
