//! Query parameters of the list, search and stats pages, and the `SessionFilter` they make.
//! All pages use the same parameter names.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan};
use serde::Deserialize;
use unspool_model::id::SessionId;
use unspool_store::store::{ListPosition, SessionFilter};

use crate::url_query::UrlQuery;

/// The query of a page. An empty value counts as absent: forms submit every field.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ListParams {
    pub q: Option<String>,
    pub agent: Option<String>,
    pub project: Option<String>,
    pub model: Option<String>,
    pub tag: Option<String>,
    pub kind: Option<String>,
    /// `today`, `7d`, `30d`, or a date.
    pub since: Option<String>,
    /// A date: up to the end of that day.
    pub until: Option<String>,
    pub errors: Option<String>,
    /// Include the sessions of sub-agents.
    pub agents: Option<String>,
    /// `project`.
    pub by: Option<String>,
    /// Cursor: start time and id of the last listed session, `1716823465000~kgh9…`.
    pub after: Option<String>,
}

fn non_empty(value: &Option<String>) -> Option<&str> {
    value.as_deref().map(str::trim).filter(|value| !value.is_empty())
}

impl ListParams {
    pub fn words(&self) -> Option<&str> {
        non_empty(&self.q)
    }

    /// The active filters, for links to the next page.
    pub fn query(&self) -> UrlQuery {
        let mut query = UrlQuery::default();
        for (name, value) in [
            ("q", &self.q),
            ("agent", &self.agent),
            ("project", &self.project),
            ("model", &self.model),
            ("tag", &self.tag),
            ("kind", &self.kind),
            ("since", &self.since),
            ("until", &self.until),
            ("errors", &self.errors),
            ("agents", &self.agents),
            ("by", &self.by),
        ] {
            query = query.with(name, non_empty(value));
        }
        query
    }

    pub fn by_project(&self) -> bool {
        non_empty(&self.by) == Some("project")
    }

    pub fn since(&self, now: Timestamp) -> Option<i64> {
        since(non_empty(&self.since)?, now)
    }

    pub fn filter(&self, now: Timestamp, limit: u64) -> SessionFilter {
        let owned = |value: &Option<String>| non_empty(value).map(str::to_owned);
        SessionFilter {
            agent: owned(&self.agent),
            project: owned(&self.project),
            model: owned(&self.model),
            tag: owned(&self.tag),
            with_errors: non_empty(&self.errors).is_some(),
            without_agents: non_empty(&self.agents).is_none(),
            since: self.since(now),
            until: non_empty(&self.until).and_then(|until| day_start(until, 1)),
            after: non_empty(&self.after).and_then(decode_cursor),
            limit: Some(limit),
            ..SessionFilter::default()
        }
    }
}

/// Milliseconds since 1970. An invalid value does not filter.
pub fn since(value: &str, now: Timestamp) -> Option<i64> {
    let days_ago = |days: i64| now - SignedDuration::from_hours(24 * days);
    match value {
        "today" => day_start(&now.to_zoned(TimeZone::UTC).date().to_string(), 0),
        "7d" => Some(days_ago(7).as_millisecond()),
        "30d" => Some(days_ago(30).as_millisecond()),
        date => day_start(date, 0),
    }
}

/// Midnight UTC of a date plus `later` days.
fn day_start(date: &str, later: i64) -> Option<i64> {
    let date: Date = date.parse().ok()?;
    let date = date.checked_add(later.days()).ok()?;
    Some(date.to_zoned(TimeZone::UTC).ok()?.timestamp().as_millisecond())
}

/// A position in the session list, as a URL parameter.
pub fn encode_cursor((started, id): &ListPosition) -> String {
    let started = started.map(|started| started.to_string()).unwrap_or_default();
    format!("{started}~{id}")
}

fn decode_cursor(text: &str) -> Option<ListPosition> {
    let (started, id) = text.split_once('~')?;
    let started = if started.is_empty() { None } else { Some(started.parse().ok()?) };
    Some((started, SessionId(id.parse().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_what_people_say() {
        let now: Timestamp = "2026-05-31T13:14:15Z".parse().unwrap();
        let at = |text: &str| Some(text.parse::<Timestamp>().unwrap().as_millisecond());
        assert_eq!(since("today", now), at("2026-05-31T00:00:00Z"));
        assert_eq!(since("7d", now), at("2026-05-24T13:14:15Z"));
        assert_eq!(since("2026-05-01", now), at("2026-05-01T00:00:00Z"));
        assert_eq!(since("soon", now), None);
        let params = ListParams { until: Some("2026-05-01".to_owned()), ..ListParams::default() };
        assert_eq!(params.filter(now, 1).until, at("2026-05-02T00:00:00Z"), "that day too");
        let last = ListParams { until: Some("9999-12-31".to_owned()), ..ListParams::default() };
        assert_eq!(last.filter(now, 1).until, None, "there is no day after it");
    }

    #[test]
    fn a_place_comes_back() {
        let id = SessionId::of("codex", "x");
        for after in [(Some(1_716_823_465_000), id), (None, id), (Some(-5), id)] {
            assert_eq!(decode_cursor(&encode_cursor(&after)), Some(after));
        }
        for none in ["", "~", "x~y", "12", "12~not an id"] {
            assert_eq!(decode_cursor(none), None, "{none}");
        }
    }

    #[test]
    fn what_a_form_leaves_empty_is_not_chosen() {
        let params = ListParams {
            agent: Some(" ".to_owned()),
            tag: Some("a b".to_owned()),
            ..ListParams::default()
        };
        assert_eq!(params.query().text(), "tag=a%20b");
        assert!(params.filter(Timestamp::now(), 1).agent.is_none());
    }
}
