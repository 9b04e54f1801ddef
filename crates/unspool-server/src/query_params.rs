//! Query parameters of the list, search and stats pages, and the `SessionFilter` they make.
//! All pages use the same parameter names.

use jiff::Timestamp;
use serde::Deserialize;
use unspool_model::id::SessionId;
use unspool_query::times::{NotATime, parse_end_at, parse_time_at};
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
    /// Search only calls of this tool.
    pub tool: Option<String>,
    /// Any time that `unspool_query::times` reads: `today`, `7d`, a date.
    pub since: Option<String>,
    /// Likewise. A day is included.
    pub until: Option<String>,
    pub errors: Option<String>,
    /// Include the sessions of sub-agents.
    pub agents: Option<String>,
    /// `project`.
    pub by: Option<String>,
    /// Of the charts: `day`, `week` or `month`.
    pub period: Option<String>,
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

    /// True if it asks for parts, not sessions.
    pub fn is_search(&self) -> bool {
        [&self.q, &self.kind, &self.tool].into_iter().any(|value| non_empty(value).is_some())
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
            ("tool", &self.tool),
            ("since", &self.since),
            ("until", &self.until),
            ("errors", &self.errors),
            ("agents", &self.agents),
            ("by", &self.by),
            ("period", &self.period),
        ] {
            query = query.with(name, non_empty(value));
        }
        query
    }

    pub fn by_project(&self) -> bool {
        non_empty(&self.by) == Some("project")
    }

    pub fn period(&self) -> Option<&str> {
        non_empty(&self.period)
    }

    pub fn filter(&self, now: Timestamp, limit: u64) -> Result<SessionFilter, NotATime> {
        let owned = |value: &Option<String>| non_empty(value).map(str::to_owned);
        Ok(SessionFilter {
            agent: owned(&self.agent),
            project: owned(&self.project),
            model: owned(&self.model),
            tag: owned(&self.tag),
            with_errors: non_empty(&self.errors).is_some(),
            without_agents: non_empty(&self.agents).is_none(),
            since: non_empty(&self.since).map(|text| parse_time_at(text, now)).transpose()?,
            until: non_empty(&self.until).map(|text| parse_end_at(text, now)).transpose()?,
            after: non_empty(&self.after).and_then(decode_cursor),
            limit: Some(limit),
            ..SessionFilter::default()
        })
    }
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
        let between = |since: &str, until: &str| {
            let (since, until) = (Some(since.to_owned()), Some(until.to_owned()));
            ListParams { since, until, ..ListParams::default() }.filter(now, 1)
        };
        let filter = between("yesterday", "2026-05-31").unwrap();
        assert_eq!(filter.since, at("2026-05-30T00:00:00Z"));
        assert_eq!(filter.until, at("2026-06-01T00:00:00Z"), "that day too");
        let filter = between("7d", "2 hours ago").unwrap();
        assert_eq!(filter.since, at("2026-05-24T13:14:15Z"));
        assert_eq!(filter.until, at("2026-05-31T11:14:15Z"));
        assert_eq!(between("", " ").unwrap().since, None);
        let error = between("soon", "").unwrap_err().to_string();
        assert!(error.contains("soon") && error.contains("yesterday"), "{error}");
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
        assert!(params.filter(Timestamp::now(), 1).unwrap().agent.is_none());
    }
}
