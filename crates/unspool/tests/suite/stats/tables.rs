//! The tables of the statistics over time, and CSV.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use super::archive::{Archive, list, milliseconds, number, sum, turns};
use super::{CASES, GROUPS};

#[test]
fn weeks_months_and_hours_are_those_of_the_turns() {
    let archive = Archive::of(&CASES);
    let (stats, shown) = (archive.json(&["stats"]), archive.shown());
    let mut hours: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    for turn in turns(&shown) {
        let Some(at) = milliseconds(&turn["started_at"]) else { continue };
        let at = Timestamp::from_millisecond(at).unwrap().to_zoned(TimeZone::UTC);
        let weekday = at.weekday().to_monday_one_offset() as u64;
        *hours.entry((weekday, at.hour() as u64)).or_default() += 1;
    }
    let counted: BTreeMap<(u64, u64), u64> = list(&stats["by_hour"])
        .iter()
        .map(|hour| ((number(&hour["weekday"]), number(&hour["hour"])), number(&hour["turns"])))
        .collect();
    for (hour, turns) in &hours {
        assert!(counted.get(hour).is_some_and(|counted| counted >= turns), "{hour:?}: {counted:?}");
    }
    let timed = list(&stats["by_day"]).iter().filter(|day| !day["name"].is_null());
    assert_eq!(sum(list(&stats["by_hour"]), "turns"), sum(timed, "turns"));
    for week in list(&stats["by_week"]).iter().filter_map(|week| week["name"].as_str()) {
        let monday: Date = week.parse().unwrap();
        assert_eq!(monday.weekday().to_monday_zero_offset(), 0, "{week}");
    }
    let months: Vec<&str> =
        list(&stats["by_month"]).iter().filter_map(|month| month["name"].as_str()).collect();
    let days = list(&stats["by_day"]).iter().filter_map(|day| day["name"].as_str());
    assert!(days.into_iter().all(|day| months.contains(&&day[..7])), "{months:?}");
}

/// The cells of a line. Only the first may be quoted.
fn cells(line: &str) -> Vec<&str> {
    line.split(',').map(|cell| cell.trim_matches('"')).collect()
}

#[test]
fn csv_has_the_figures_of_the_json() {
    let archive = Archive::of(&CASES);
    let stats = archive.json(&["stats"]);
    for name in GROUPS {
        let by = name.strip_prefix("by_").unwrap();
        let text = archive.text(&["stats", "--csv", "--by", by]);
        let mut lines = text.split("\r\n").filter(|line| !line.is_empty());
        let columns = cells(lines.next().unwrap());
        assert_eq!(columns[..4], [by, "sessions", "turns", "steps"]);
        let groups = list(&stats[name]);
        let rows: Vec<Vec<&str>> = lines.map(cells).collect();
        assert_eq!(rows.len(), groups.len(), "{text}");
        for (row, group) in rows.iter().zip(groups) {
            assert_eq!(row.len(), columns.len());
            assert_eq!(row[0], group["name"].as_str().unwrap_or_default());
            assert_eq!(row[2], group["turns"].to_string());
            let read = columns.iter().position(|column| *column == "cache_read").unwrap();
            assert_eq!(row[read], group["usage"]["cache_read"].to_string());
        }
    }
    let days = archive.text(&["stats", "--csv"]);
    assert_eq!(days, archive.text(&["stats", "--csv", "--by", "day"]));
    assert!(archive.text(&["stats", "--csv", "--by", "tool"]).contains("\"Bash\","));
    assert!(archive.text(&["stats", "--csv", "--by", "hour"]).starts_with("weekday,hour,turns,"));
    assert!(archive.text(&["stats", "--csv", "--by", "session"]).starts_with("session,title,"));
    let both = archive.run(&["stats", "--csv", "--json"]);
    assert_eq!(both.status.code(), Some(2));
    let none = archive.text(&["stats", "--csv", "--agent", "nobody"]);
    assert_eq!(none.lines().count(), 1, "{none}");
}

#[test]
fn the_most_expensive_sessions_include_their_agents() {
    let archive = Archive::of(&CASES);
    let stats = archive.json(&["stats"]);
    let sessions = archive.json(&["list"]);
    let expensive = list(&stats["most_expensive"]);
    let costs: Vec<f64> =
        expensive.iter().map(|one| one["usage"]["spent_usd"].as_f64().unwrap()).collect();
    assert!(costs.is_sorted_by(|one, next| one >= next), "{costs:?}");
    assert!(expensive.iter().any(|one| number(&one["sub_agents"]) > 0));
    for one in expensive {
        let listed = list(&sessions).iter().find(|listed| listed["id"] == one["session"]).unwrap();
        assert!(listed["parent"].is_null(), "{one}");
        let family = &listed["usage_with_agents"];
        let of = |usage: &serde_json::Value, kind: &str| number(&usage[kind]);
        assert_eq!(of(&one["usage"], "output"), of(family, "output"), "{one}");
        let known = family["cost_usd"].as_f64().or(family["estimated_cost_usd"].as_f64());
        let spent = one["usage"]["spent_usd"].as_f64().unwrap();
        if let Some(known) = known {
            assert!((known - spent).abs() < 1e-9, "{one}: {known}");
        }
    }
}
