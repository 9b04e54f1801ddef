//! Tool statistics, the slowest calls and recurring failures.

use maud::{Markup, html};
use unspool_export::html::text::safe;
use unspool_view::present::format;

use super::{FailureRow, SlowCallRow, ToolStats, VISIBLE_ROWS};
use crate::pages::chart;

pub(super) fn tools(tools: &[ToolStats]) -> Markup {
    let most = tools.iter().map(|tool| tool.calls).max().unwrap_or(0);
    let duration = |ms: Option<u64>| ms.map(format::duration).unwrap_or_default();
    let rows = |tools: &[ToolStats]| {
        html! {
            @for tool in tools {
                tr {
                    th scope="row" { (safe(&tool.name)) }
                    td.bar-cell { (chart::share_bar(tool.calls as f64, most as f64, "kind-bar")) }
                    td { data value=(tool.calls) { (format::number(tool.calls)) } }
                    td.tone-failed[tool.error_rate.is_some_and(|rate| rate >= 0.1)] {
                        @if let Some(rate) = tool.error_rate { (percent(rate)) }
                    }
                    td { (duration(tool.median_ms)) }
                    td.minor { (duration(tool.p95_ms)) }
                    td.minor { (format::duration(tool.total_ms)) }
                }
            }
        }
    };
    let head = html! {
        thead {
            tr {
                th scope="col" { "Tool" } th { span.visually-hidden { "Share" } }
                th scope="col" { "Calls" } th scope="col" { "Failed" } th scope="col" { "Median" }
                th.minor scope="col" { "95%" } th.minor scope="col" { "Total" }
            }
        }
    };
    let (open, rest) = tools.split_at(tools.len().min(VISIBLE_ROWS));
    html! {
        @if !tools.is_empty() {
            section.groups data-kind="tool" {
                h2 { "Tools" }
                table.bars { (head) tbody { (rows(open)) } }
                @if !rest.is_empty() {
                    details.table {
                        summary { (format::number(rest.len() as u64)) " more" }
                        table.bars { (head) tbody { (rows(rest)) } }
                    }
                }
            }
        }
    }
}

fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent > 0.0 && percent < 10.0 {
        format!("{percent:.1}%")
    } else {
        format!("{percent:.0}%")
    }
}

pub(super) fn slowest(calls: &[SlowCallRow]) -> Markup {
    html! {
        @if !calls.is_empty() {
            section.calls {
                h2 { "Slowest calls" }
                ol {
                    @for call in calls {
                        li {
                            a href=(call.address) {
                                span.took { (format::duration(call.duration_ms)) }
                                span.what { strong { (safe(&call.tool)) } " " (safe(&call.what)) }
                                span.dim { (safe(&call.title)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

pub(super) fn failures(failures: &[FailureRow]) -> Markup {
    html! {
        @if !failures.is_empty() {
            section.calls {
                h2 { "Recurring failures" }
                ol {
                    @for failure in failures {
                        li {
                            a href=(failure.address) {
                                span.took.tone-failed { (format::number(failure.count)) "×" }
                                span.what { strong { (safe(&failure.tool)) } " " (safe(&failure.error)) }
                                span.dim { "in " (format::count(failure.sessions as usize, "session")) "; opens the latest" }
                            }
                        }
                    }
                }
            }
        }
    }
}
