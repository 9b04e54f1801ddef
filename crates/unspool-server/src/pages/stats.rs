//! The stats page: figures over the archive, with the filters of the list. `periods` makes the bars
//! of its charts.

mod periods;
pub mod template;

use std::sync::Arc;

use axum::extract::State;
use jiff::Timestamp;
use periods::{Period, periods};
use template::UsageBar;
use unspool_export::html::dom;
use unspool_store::stats::{
    CallLocation, GroupFigures, SessionFigures, Stats, StatsRequest, ToolFigures, Totals,
};
use unspool_store::store::{Store, View};

use super::sessions::uncounted_filters;
use super::{Page, UrlParams, html};
use crate::App;
use crate::query_params::ListParams;
use crate::url_query::UrlQuery;

pub async fn stats<S: Store>(
    State(app): State<Arc<App<S>>>,
    UrlParams(params): UrlParams<ListParams>,
) -> Page {
    let filter = params.filter(Timestamp::now(), 0)?;
    let request = StatsRequest {
        agent: filter.agent,
        project: filter.project,
        folder: None,
        since: filter.since,
        until: filter.until,
        without_tag: None,
        prices: app.settings.prices.clone(),
    };
    let figures = app.view().stats(request).await?;
    let choices = uncounted_filters(&app).await?;
    let chosen = params.query();
    let links = list_filters(&chosen);
    let bars = |groups: &[GroupFigures], name: &'static str| -> Vec<UsageBar> {
        let link = |group: &GroupFigures| {
            let value = group.name.as_deref()?;
            Some(links.clone().with(name, Some(value)).at("/"))
        };
        groups.iter().map(|group| UsageBar::of(group, link(group))).collect()
    };
    let period = params
        .period()
        .and_then(Period::of_name)
        .unwrap_or_else(|| Period::for_days(&figures.by_day));
    let totals = &figures.totals;
    let shown = template::StatsPage {
        totals: totals_view(totals),
        spent: totals.usage,
        periods: periods(period, period_groups(&figures, period), &links),
        period,
        hours: figures.by_hour.clone(),
        agents: bars(&figures.by_agent, "agent"),
        models: bars(&figures.by_model, "model"),
        projects: bars(&figures.by_project, "project"),
        expensive: figures.most_expensive.iter().map(expensive).collect(),
        tools: figures.tools.into_iter().map(|tool| tool_stats(tool, &links)).collect(),
        slowest: figures
            .slowest
            .into_iter()
            .map(|call| template::SlowCallRow {
                address: address(&call.place),
                tool: call.tool,
                what: call.what,
                duration_ms: call.duration_ms,
                waited_ms: call.waited_ms,
                may_include_waiting: call.may_include_waiting,
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
        chosen: &chosen,
        choices: &choices,
    };
    Ok(html(&template::stats(&shown)))
}

fn tool_stats(tool: ToolFigures, links: &UrlQuery) -> template::ToolStats {
    template::ToolStats {
        address: links.clone().with("tool", Some(&tool.name)).at("/"),
        name: tool.name,
        calls: tool.calls,
        error_rate: tool.error_rate,
        median_ms: tool.duration.median_ms,
        p95_ms: tool.duration.p95_ms,
        total_ms: tool.duration.total_ms,
        with_waiting: tool.duration.with_waiting,
    }
}

fn address(place: &CallLocation) -> String {
    format!("/s/{}?part={}#{}", place.session, place.part, dom::part(&place.part))
}

/// The filters of the page that the list has too.
fn list_filters(chosen: &UrlQuery) -> UrlQuery {
    let names = ["agent", "project", "since", "until"];
    names.into_iter().fold(UrlQuery::default(), |query, name| query.with(name, chosen.get(name)))
}

fn period_groups(figures: &Stats, period: Period) -> &[GroupFigures] {
    match period {
        Period::Day => &figures.by_day,
        Period::Week => &figures.by_week,
        Period::Month => &figures.by_month,
    }
}

fn expensive(session: &SessionFigures) -> template::ExpensiveRow {
    template::ExpensiveRow {
        address: format!("/s/{}", session.session),
        title: session.title.clone().unwrap_or_else(|| session.session.clone()),
        agent: session.agent.clone(),
        project: session.project.clone(),
        sub_agents: session.sub_agents,
        spent: session.usage,
    }
}

fn totals_view(totals: &Totals) -> template::TotalsView {
    template::TotalsView {
        sessions: totals.sessions,
        sub_agents: totals.sub_agents,
        sessions_with_cost: totals.sessions_with_cost,
        turns: totals.turns,
        steps: totals.steps,
        tool_calls: totals.tool_calls,
        errors: totals.errors,
        reasoning_share: totals.reasoning_share,
    }
}
