//! Usage over time and by agent, model or project, as charts and tables.

use maud::{Markup, html};
use unspool_export::html::text::safe;
use unspool_model::session::Usage;
use unspool_view::present::format;

use super::{StatsPage, UsageBar, VISIBLE_ROWS};
use crate::pages::chart::{self, ChartBar, Series, compact, dollars};
use crate::pages::filters::last_segment;
use crate::url_query::UrlQuery;

const KINDS: [Series; 4] = [
    Series { name: "Cache read", class: "kind-read" },
    Series { name: "Cache write", class: "kind-write" },
    Series { name: "Input", class: "kind-input" },
    Series { name: "Output", class: "kind-output" },
];

fn by_kind(usage: &Usage) -> [u64; 4] {
    [usage.cache_read, usage.cache_write, usage.input, usage.output]
}

pub(super) fn by_time(page: &StatsPage<'_>) -> Markup {
    let label = |bar: &UsageBar| bar.name.clone().unwrap_or_else(|| "no date".to_owned());
    let tokens: Vec<ChartBar> = page
        .periods
        .iter()
        .map(|bar| ChartBar {
            label: label(bar),
            values: by_kind(&bar.spent.tokens).map(|count| count as f64).to_vec(),
            hint: format!(
                "{}: {} tokens in {}",
                label(bar),
                format::number(bar.spent.tokens.total()),
                format::count(bar.turns as usize, "turn")
            ),
        })
        .collect();
    let costs: Vec<ChartBar> = page
        .periods
        .iter()
        .map(|bar| ChartBar {
            label: label(bar),
            values: vec![bar.spent.cost().unwrap_or(0.0)],
            hint: format!("{}: {}", label(bar), bar.spent.cost_text()),
        })
        .collect();
    let cost = [Series { name: "Cost", class: "kind-cost" }];
    html! {
        section aria-label="By day" {
            (chart::columns("tokens-by-day", &format!("Tokens by {}", page.period), &KINDS, &tokens, compact))
            (chart::columns("cost-by-day", &format!("Cost by {}", page.period), &cost, &costs, dollars))
            details.table {
                summary { "As a table" }
                (table("Day", &page.days, None))
            }
        }
    }
}

/// A table of bars by agent, model or project.
pub(super) fn groups(
    title: &str,
    kind: &'static str,
    bars: &[UsageBar],
    name: Option<&'static str>,
    chosen: &UrlQuery,
) -> Markup {
    let most = bars.iter().map(|bar| bar.spent.tokens.total()).max().unwrap_or(0);
    let address = |bar: &UsageBar| {
        let (name, value) = (name?, bar.name.as_deref()?);
        let since = chosen.get("since");
        Some(UrlQuery::default().with(name, Some(value)).with("since", since).at("/"))
    };
    let row = |bar: &UsageBar| {
        let shown = bar.name.as_deref().unwrap_or("not said");
        let end = last_segment(shown);
        let same =
            |other: &&UsageBar| other.name.as_deref().is_some_and(|name| last_segment(name) == end);
        let short =
            if kind == "project" && bars.iter().filter(same).count() == 1 { end } else { shown };
        html! {
            tr {
                th scope="row" title=(safe(shown)) {
                    @match address(bar) {
                        Some(address) => a href=(address) { (safe(short)) },
                        None => span.dim { (safe(short)) },
                    }
                }
                td.bar-cell { (chart::share_bar(bar.spent.tokens.total() as f64, most as f64, "kind-bar")) }
                td { data value=(bar.spent.tokens.total()) { (compact(bar.spent.tokens.total() as f64)) } }
                td { (bar.spent.cost_text()) }
                td.minor { (format::count(bar.sessions as usize, "session")) }
            }
        }
    };
    let head = html! {
        thead.visually-hidden { tr { th { (title) } th { "Share" } th { "Tokens" } th { "Cost" } th { "Sessions" } } }
    };
    html! {
        section.groups data-kind=(kind) {
            h2 { (title) }
            table.bars { (head) tbody { @for bar in bars.iter().take(VISIBLE_ROWS) { (row(bar)) } } }
            @if bars.len() > VISIBLE_ROWS {
                details.table {
                    summary { (format::number((bars.len() - VISIBLE_ROWS) as u64)) " more" }
                    table.bars { (head) tbody { @for bar in bars.iter().skip(VISIBLE_ROWS) { (row(bar)) } } }
                }
            }
        }
    }
}

/// All figures as a table.
fn table(title: &str, bars: &[UsageBar], limit: Option<usize>) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label=(title) {
            table.figures-table {
                thead {
                    tr {
                        th scope="col" { (title) }
                        @for name in ["Sessions", "Turns", "Calls", "Input", "Output", "Cache read", "Cache write", "Reported", "Estimated"] {
                            th scope="col" { (name) }
                        }
                    }
                }
                tbody {
                    @for bar in bars.iter().take(limit.unwrap_or(usize::MAX)) {
                        @let Usage { input, output, cache_read, cache_write, .. } = bar.spent.tokens;
                        tr {
                            th scope="row" { (safe(bar.name.as_deref().unwrap_or("not said"))) }
                            @for count in [bar.sessions, bar.turns, bar.steps, input, output, cache_read, cache_write] {
                                td { (format::number(count)) }
                            }
                            @for cost in [bar.spent.cost_usd, bar.spent.estimated_usd] {
                                td { @if let Some(cost) = cost { (dollars(cost)) } }
                            }
                        }
                    }
                }
            }
        }
    }
}
