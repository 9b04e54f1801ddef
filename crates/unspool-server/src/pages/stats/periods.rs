//! The bars of the charts: days, weeks or months, each with a link to its sessions.

use jiff::civil::Date;
use jiff::{Span, ToSpan};
use unspool_store::stats::GroupFigures;

use super::template::UsageBar;
use crate::url_query::UrlQuery;

/// More days than this are shown by week, and more weeks by month, unless the reader chooses.
const MAX_BARS: usize = 120;
/// Of more bars than this, those without use are left out: a wrong clock or a forged log may name
/// any year. If there are still more, the last ones are shown.
const MAX_CHOSEN_BARS: usize = 400;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Period {
    Day,
    Week,
    Month,
}

impl Period {
    pub const ALL: [Period; 3] = [Period::Day, Period::Week, Period::Month];

    pub fn name(self) -> &'static str {
        match self {
            Period::Day => "day",
            Period::Week => "week",
            Period::Month => "month",
        }
    }

    pub fn of_name(name: &str) -> Option<Period> {
        Period::ALL.into_iter().find(|period| period.name() == name)
    }

    /// The finest period with few enough bars.
    pub fn for_days(days: &[GroupFigures]) -> Period {
        let mut dates = days.iter().filter_map(|day| Period::Day.start(day));
        let Some(first) = dates.next() else { return Period::Day };
        let last = dates.next_back().unwrap_or(first);
        let days = first.until(last).map_or(0, |span| span.get_days()).unsigned_abs() as usize + 1;
        match days {
            ..=MAX_BARS => Period::Day,
            _ if days <= MAX_BARS * 7 => Period::Week,
            _ => Period::Month,
        }
    }

    fn length(self) -> Span {
        match self {
            Period::Day => 1.day(),
            Period::Week => 7.days(),
            Period::Month => 1.month(),
        }
    }

    /// The first day of a group, from its name.
    fn start(self, group: &GroupFigures) -> Option<Date> {
        let name = group.name.as_deref()?;
        match self {
            Period::Day | Period::Week => name.parse().ok(),
            Period::Month => format!("{name}-01").parse().ok(),
        }
    }

    fn label(self, start: Date) -> String {
        match self {
            Period::Day => start.strftime("%-d %b %Y"),
            Period::Week => start.strftime("week of %-d %b %Y"),
            Period::Month => start.strftime("%B %Y"),
        }
        .to_string()
    }
}

/// One bar per period from the first to the last, empty ones included. Groups without a date have
/// no bar.
pub fn periods(period: Period, groups: &[GroupFigures], links: &UrlQuery) -> Vec<UsageBar> {
    let mut dated: Vec<(Date, &GroupFigures)> =
        groups.iter().filter_map(|group| Some((period.start(group)?, group))).collect();
    dated.drain(..dated.len().saturating_sub(MAX_CHOSEN_BARS));
    let (Some((first, _)), Some((last, _))) = (dated.first().copied(), dated.last().copied())
    else {
        return Vec::new();
    };
    let mut starts: Vec<Date> = Vec::new();
    let mut at = Some(first);
    while let Some(start) = at.filter(|at| *at <= last && starts.len() <= MAX_CHOSEN_BARS) {
        starts.push(start);
        at = start.checked_add(period.length()).ok();
    }
    if starts.len() > MAX_CHOSEN_BARS {
        starts = dated.iter().map(|(start, _)| *start).collect();
    }
    let mut left = dated.into_iter().peekable();
    let bar = |start: Date| {
        let group = left.next_if(|(date, _)| *date == start).map(|(_, group)| group.clone());
        let label = Some(period.label(start));
        let group = GroupFigures { name: label, ..group.unwrap_or_default() };
        let is_used = group.turns > 0 || group.sessions > 0;
        UsageBar::of(&group, is_used.then(|| sessions_of(period, start, links)))
    };
    starts.into_iter().map(bar).collect()
}

/// The list of the sessions that were active in a period. Both ends of the list's filter are
/// included.
fn sessions_of(period: Period, start: Date, links: &UrlQuery) -> String {
    let end = start.checked_add(period.length()).and_then(|end| end.checked_sub(1.day()));
    let (since, until) = (start.to_string(), end.unwrap_or(start).to_string());
    links.clone().with("since", Some(&since)).with("until", Some(&until)).at("/")
}

#[cfg(test)]
mod tests {
    use unspool_model::session::Usage;
    use unspool_store::stats::UsageFigures;

    use super::*;

    fn on(name: &str, input: u64) -> GroupFigures {
        let tokens = Usage { input, ..Usage::default() };
        let usage = UsageFigures { tokens, ..UsageFigures::default() };
        GroupFigures { name: Some(name.to_owned()), turns: 1, usage, ..GroupFigures::default() }
    }

    fn labelled(period: Period, groups: &[GroupFigures]) -> Vec<(String, u64)> {
        let bars = periods(period, groups, &UrlQuery::default());
        bars.into_iter().map(|bar| (bar.name.unwrap_or_default(), bar.spent.tokens.input)).collect()
    }

    #[test]
    fn days_on_which_nothing_was_done_are_days_too() {
        let days = [on("2026-02-27", 5), on("2026-03-01", 7), GroupFigures::default()];
        let named = |name: &str, count| (name.to_owned(), count);
        assert_eq!(Period::for_days(&days), Period::Day);
        assert_eq!(
            labelled(Period::Day, &days),
            [named("27 Feb 2026", 5), named("28 Feb 2026", 0), named("1 Mar 2026", 7)]
        );
        assert!(labelled(Period::Day, &[]).is_empty());
        assert!(labelled(Period::Week, &[GroupFigures::default()]).is_empty());
    }

    #[test]
    fn many_days_are_weeks_and_many_weeks_are_months() {
        let between = |first, last| Period::for_days(&[on(first, 1), on(last, 1)]);
        assert_eq!(between("2026-01-01", "2026-04-30"), Period::Day);
        assert_eq!(between("2026-01-01", "2026-05-01"), Period::Week);
        assert_eq!(between("2020-01-31", "2026-07-01"), Period::Month);
        assert_eq!(labelled(Period::Week, &[on("2026-01-05", 3), on("2026-06-29", 4)]).len(), 26);
        let months = labelled(Period::Month, &[on("2020-01", 1), on("2026-07", 8)]);
        assert_eq!((months.len(), months[1].0.as_str()), (79, "February 2020"));
        let far = [on("0001-01", 1), on("2026-06", 2), on("2026-07", 4)];
        let named = |name: &str, count| (name.to_owned(), count);
        let expected = [named("January 0001", 1), named("June 2026", 2), named("July 2026", 4)];
        assert_eq!(labelled(Period::Month, &far), expected);
    }

    #[test]
    fn a_bar_leads_to_its_sessions() {
        let links = UrlQuery::default().with("agent", Some("codex")).with("since", Some("30d"));
        let address = |period, name: &str| {
            periods(period, &[on(name, 1)], &links).remove(0).address.unwrap_or_default()
        };
        let of = |since: &str, until: &str| format!("/?agent=codex&since={since}&until={until}");
        assert_eq!(address(Period::Day, "2026-02-27"), of("2026-02-27", "2026-02-27"));
        assert_eq!(address(Period::Week, "2026-02-23"), of("2026-02-23", "2026-03-01"));
        assert_eq!(address(Period::Month, "2026-02"), of("2026-02-01", "2026-02-28"));
    }
}
