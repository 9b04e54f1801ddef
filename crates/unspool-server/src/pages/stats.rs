//! The stats page: figures over the archive, with the filters of the list.

pub mod template;

use std::sync::Arc;

use axum::extract::State;
use jiff::civil::Date;
use jiff::{Timestamp, ToSpan};
use template::UsageBar;
use unspool_export::html::dom;
use unspool_store::stats::{CallLocation, GroupFigures, StatsRequest, UsageFigures};
use unspool_store::store::{Store, View};

use super::sessions::uncounted_filters;
use super::{Page, UrlParams, html};
use crate::App;
use crate::query_params::ListParams;

/// More days than this are grouped by week, and more weeks by month. Of more months, those without
/// use are left out: a wrong clock or a forged log may name any year.
const MAX_BARS: usize = 120;

pub async fn stats<S: Store>(
    State(app): State<Arc<App<S>>>,
    UrlParams(params): UrlParams<ListParams>,
) -> Page {
    let filter = params.filter(Timestamp::now(), 0)?;
    let request = StatsRequest {
        agent: filter.agent,
        project: filter.project,
        since: filter.since,
        until: filter.until,
        prices: app.prices.clone(),
    };
    let figures = app.view().stats(request).await?;
    let choices = uncounted_filters(&app).await?;
    let bars = |groups: &[GroupFigures]| groups.iter().map(bar).collect::<Vec<UsageBar>>();
    let (periods, period) = periods(&figures.by_day);
    let totals = &figures.totals;
    let shown = template::StatsPage {
        totals: template::TotalsView {
            sessions: totals.sessions,
            sub_agents: totals.sub_agents,
            turns: totals.turns,
            steps: totals.steps,
            tool_calls: totals.tool_calls,
            errors: totals.errors,
            reasoning_share: totals.reasoning_share,
        },
        spent: spent(&totals.usage),
        periods,
        period,
        days: bars(&figures.by_day),
        agents: bars(&figures.by_agent),
        models: bars(&figures.by_model),
        projects: bars(&figures.by_project),
        tools: figures
            .tools
            .into_iter()
            .map(|tool| template::ToolStats {
                name: tool.name,
                calls: tool.calls,
                error_rate: tool.error_rate,
                median_ms: tool.duration.median_ms,
                p95_ms: tool.duration.p95_ms,
                total_ms: tool.duration.total_ms,
            })
            .collect(),
        slowest: figures
            .slowest
            .into_iter()
            .map(|call| template::SlowCallRow {
                address: address(&call.place),
                tool: call.tool,
                what: call.what,
                duration_ms: call.duration_ms,
                title: call.place.title.unwrap_or_default(),
            })
            .collect(),
        failures: figures
            .failures
            .into_iter()
            .map(|failure| template::FailureRow {
                address: address(&failure.last),
                tool: failure.tool,
                error: failure.error,
                count: failure.count,
                sessions: failure.sessions,
            })
            .collect(),
        chosen: &params.query(),
        choices: &choices,
    };
    Ok(html(&template::stats(&shown)))
}

fn address(place: &CallLocation) -> String {
    format!("/s/{}?part={}#{}", place.session, place.part, dom::part(&place.part))
}

fn spent(spent: &UsageFigures) -> template::Spent {
    template::Spent {
        tokens: spent.tokens,
        cost_usd: spent.cost_usd,
        estimated_usd: spent.estimated_cost_usd,
        unpriced: spent.unpriced_steps,
    }
}

fn bar(group: &GroupFigures) -> UsageBar {
    UsageBar {
        name: group.name.clone(),
        sessions: group.sessions,
        turns: group.turns,
        steps: group.steps,
        spent: spent(&group.usage),
    }
}

/// One bar per day from the first to the last, empty days included; per week or month where there
/// are too many days.
fn periods(days: &[GroupFigures]) -> (Vec<UsageBar>, &'static str) {
    let dated: Vec<(Date, &GroupFigures)> = days
        .iter()
        .filter_map(|group| Some((group.name.as_deref()?.parse::<Date>().ok()?, group)))
        .collect();
    let (Some((first, _)), Some((last, _))) = (dated.first(), dated.last()) else {
        return (Vec::new(), "day");
    };
    let span = first.until(*last).map_or(0, |span| span.get_days()).unsigned_abs() as usize + 1;
    let (period, begin): (&str, fn(Date) -> Date) = if span <= MAX_BARS {
        ("day", |date| date)
    } else if span <= MAX_BARS * 7 {
        ("week", |date| {
            let back = i64::from(date.weekday().to_monday_zero_offset());
            date.checked_sub(back.days()).unwrap_or(date)
        })
    } else {
        ("month", |date| date.first_of_month())
    };
    let next = |date: Date| {
        let step = match period {
            "day" => 1.day(),
            "week" => 7.days(),
            _ => 1.month(),
        };
        date.checked_add(step).ok()
    };
    let with_empty = span <= MAX_BARS * 31;
    let mut bars: Vec<UsageBar> = Vec::new();
    let mut at = Some(begin(*first));
    let mut left = dated.as_slice();
    while let Some(date) = at.filter(|date| *date <= *last) {
        let mut bar = UsageBar {
            name: Some(if period == "month" {
                date.strftime("%B %Y").to_string()
            } else {
                date.strftime("%-d %b %Y").to_string()
            }),
            sessions: 0,
            turns: 0,
            steps: 0,
            spent: template::Spent::default(),
        };
        while let Some(((day, group), rest)) =
            left.split_first().filter(|((day, _), _)| begin(*day) == date)
        {
            let _ = day;
            bar.turns += group.turns;
            bar.steps += group.steps;
            let (sum, one) = (&mut bar.spent, spent(&group.usage));
            sum.tokens.add(one.tokens);
            sum.cost_usd = add(sum.cost_usd, one.cost_usd);
            sum.estimated_usd = add(sum.estimated_usd, one.estimated_usd);
            left = rest;
        }
        bars.push(bar);
        at = if with_empty { next(date) } else { left.first().map(|(day, _)| begin(*day)) };
    }
    (bars, period)
}

fn add(sum: Option<f64>, one: Option<f64>) -> Option<f64> {
    match (sum, one) {
        (Some(sum), Some(one)) => Some(sum + one),
        (sum, one) => sum.or(one),
    }
}

#[cfg(test)]
mod tests {
    use unspool_model::session::Usage;

    use super::*;

    fn on(day: &str, input: u64) -> GroupFigures {
        let tokens = Usage { input, ..Usage::default() };
        let usage = UsageFigures { tokens, ..UsageFigures::default() };
        GroupFigures { name: Some(day.to_owned()), turns: 1, usage, ..GroupFigures::default() }
    }

    fn labelled(days: &[GroupFigures]) -> (&'static str, Vec<(String, u64)>) {
        let (bars, period) = periods(days);
        let labelled =
            bars.into_iter().map(|bar| (bar.name.unwrap_or_default(), bar.spent.tokens.input));
        (period, labelled.collect())
    }

    #[test]
    fn days_on_which_nothing_was_done_are_days_too() {
        let (period, bars) =
            labelled(&[on("2026-02-27", 5), on("2026-03-01", 7), GroupFigures::default()]);
        assert_eq!(period, "day");
        let named = |name: &str, count| (name.to_owned(), count);
        assert_eq!(
            bars,
            [named("27 Feb 2026", 5), named("28 Feb 2026", 0), named("1 Mar 2026", 7)]
        );
        assert!(labelled(&[]).1.is_empty() && labelled(&[GroupFigures::default()]).1.is_empty());
    }

    #[test]
    fn many_days_are_weeks_and_many_weeks_are_months() {
        // A Wednesday, the Sunday of its week, the Monday after it.
        let days =
            [on("2026-01-07", 1), on("2026-01-11", 2), on("2026-01-12", 4), on("2026-07-01", 8)];
        let (period, bars) = labelled(&days);
        assert_eq!((period, bars.len()), ("week", 26));
        assert_eq!(bars[0], ("5 Jan 2026".to_owned(), 3));
        assert_eq!(bars[1], ("12 Jan 2026".to_owned(), 4));
        let (period, bars) = labelled(&[on("2020-01-31", 1), on("2026-07-01", 8)]);
        assert_eq!((period, bars.len()), ("month", 79));
        assert_eq!(bars.iter().map(|(_, count)| count).sum::<u64>(), 9, "nothing is lost");
        let days = [on("0001-01-01", 1), on("2026-06-30", 2), on("2026-07-01", 4)];
        let named = |name: &str, count| (name.to_owned(), count);
        let expected = [named("January 0001", 1), named("June 2026", 2), named("July 2026", 4)];
        assert_eq!(labelled(&days), ("month", expected.to_vec()));
    }
}
