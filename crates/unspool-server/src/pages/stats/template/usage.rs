//! Usage over time and by agent, model or project, as charts and tables.

use maud::{Markup, html};
use unspool_export::html::text::safe;
use unspool_model::session::Usage;
use unspool_view::present::format;

use super::super::periods::Period;
use super::{StatsPage, UsageBar, VISIBLE_ROWS, cost_text, token_sum};
use crate::pages::chart::{self, ChartBar, Series, compact, dollars};
use crate::pages::filters::last_segment;

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
                Some(token_sum(bar.spent.tokens))
                    .filter(|sum| !sum.is_empty())
                    .as_deref()
                    .unwrap_or("no"),
                format::count(bar.turns as usize, "turn")
            ),
            address: bar.address.clone(),
        })
        .collect();
    let costs: Vec<ChartBar> = page
        .periods
        .iter()
        .map(|bar| ChartBar {
            label: label(bar),
            values: vec![bar.spent.spent_usd.unwrap_or(0.0)],
            hint: format!("{}: {}", label(bar), cost_text(&bar.spent)),
            address: bar.address.clone(),
        })
        .collect();
    let cost = [Series { name: "Cost", class: "kind-cost" }];
    let name = page.period.name();
    html! {
        section aria-label={ "By " (name) } {
            div.by.periods role="group" aria-label="Period of the charts" {
                @for period in Period::ALL {
                    a href=(page.chosen.clone().with("period", Some(period.name())).at("/stats"))
                        aria-current=[(period == page.period).then_some("true")] { "By " (period.name()) }
                }
            }
            (chart::columns("tokens-by-day", &format!("Tokens by {name}"), &KINDS, &tokens, compact))
            (chart::columns("cost-by-day", &format!("Cost by {name}"), &cost, &costs, dollars))
            details.table {
                summary { "As a table" }
                (table(name, &page.periods))
            }
        }
    }
}

/// A table of bars by agent, model or project.
pub(super) fn groups(title: &str, kind: &'static str, bars: &[UsageBar]) -> Markup {
    let most = bars.iter().map(|bar| bar.spent.tokens.total()).max().unwrap_or(0);
    let row = |bar: &UsageBar| {
        let unnamed = format!("no {kind}");
        let shown = bar.name.as_deref().unwrap_or(&unnamed);
        let end = last_segment(shown);
        let same =
            |other: &&UsageBar| other.name.as_deref().is_some_and(|name| last_segment(name) == end);
        let short =
            if kind == "project" && bars.iter().filter(same).count() == 1 { end } else { shown };
        html! {
            tr {
                th scope="row" title=(safe(shown)) {
                    @match &bar.address {
                        Some(address) => a href=(address) { (safe(short)) },
                        None => span.dim { (safe(short)) },
                    }
                }
                td.bar-cell { (chart::share_bar(bar.spent.tokens.total() as f64, most as f64, "kind-bar")) }
                td { data value=(bar.spent.tokens.total()) { (token_sum(bar.spent.tokens)) } }
                td { (cost_text(&bar.spent)) }
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

/// All figures as a table, latest first.
fn table(title: &str, bars: &[UsageBar]) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label={ "By " (title) } {
            table.figures-table {
                thead {
                    tr {
                        th scope="col" { "By " (title) }
                        @for name in ["Sessions", "Turns", "Calls", "Input", "Output", "Cache read", "Cache write", "Reported", "Estimated", "Cost"] {
                            th scope="col" { (name) }
                        }
                    }
                }
                tbody {
                    @for bar in bars.iter().rev().filter(|bar| bar.address.is_some()) {
                        @let Usage { input, output, cache_read, cache_write, .. } = bar.spent.tokens;
                        tr {
                            th scope="row" {
                                a href=[bar.address.as_ref()] { (safe(bar.name.as_deref().unwrap_or("no date"))) }
                            }
                            @for count in [bar.sessions, bar.turns, bar.steps, input, output, cache_read, cache_write] {
                                td { (format::number(count)) }
                            }
                            @for cost in [bar.spent.cost_usd, bar.spent.estimated_cost_usd] {
                                td { @if let Some(cost) = cost { (dollars(cost)) } }
                            }
                            td { (cost_text(&bar.spent)) }
                        }
                    }
                }
            }
        }
    }
}
