//! Tool statistics, the slowest calls and recurring failures.

use maud::{Markup, html};
use unspool_export::html::text::safe;
use unspool_view::present::format;

use super::{ExpensiveRow, FailureRow, SlowCallRow, ToolStats, VISIBLE_ROWS, cost_text};
use crate::pages::chart;
use crate::pages::filters::last_segment;

pub(super) fn tools(tools: &[ToolStats]) -> Markup {
    let most = tools.iter().map(|tool| tool.calls).max().unwrap_or(0);
    let duration = |ms: Option<u64>| ms.map(format::duration).unwrap_or_default();
    let rows = |tools: &[ToolStats]| {
        html! {
            @for tool in tools {
                tr {
                    th scope="row" { a href=(tool.address) { (safe(&tool.name)) } }
                    td.bar-cell { (chart::share_bar(tool.calls as f64, most as f64, "kind-bar")) }
                    td { data value=(tool.calls) { (format::number(tool.calls)) } }
                    td.tone-failed[tool.error_rate.is_some_and(|rate| rate >= 0.1)] {
                        @if let Some(rate) = tool.error_rate { (percent(rate)) }
                    }
                    @let waiting = tool.with_waiting > 0;
                    td title=[waiting.then_some(MAY_WAIT)] { (duration(tool.median_ms)) @if waiting { (wait_mark()) } }
                    td.minor { (duration(tool.p95_ms)) }
                    td.minor { (duration(measured(tool))) }
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
                @if tools.iter().any(|tool| tool.with_waiting > 0) {
                    p.dim.note-line aria-hidden="true" { "* " (MAY_WAIT) "; without denied calls and questions" }
                }
            }
        }
    }
}

const MAY_WAIT: &str = "may include waiting for permission";

fn wait_mark() -> Markup {
    html! { span.mark aria-hidden="true" { "*" } span.visually-hidden { " (" (MAY_WAIT) ")" } }
}

fn measured(tool: &ToolStats) -> Option<u64> {
    tool.median_ms.map(|_| tool.total_ms)
}

fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent > 0.0 && percent < 10.0 {
        format!("{percent:.1}%")
    } else {
        format!("{percent:.0}%")
    }
}

/// A call that waited for this long says so.
const NOTED_WAIT_MS: u64 = 1_000;

/// The sessions that cost most.
pub(super) fn expensive(sessions: &[ExpensiveRow]) -> Markup {
    html! {
        @if !sessions.is_empty() {
            section.calls.expensive {
                h2 { "Most expensive sessions" }
                ol {
                    @for one in sessions {
                        li {
                            a href=(one.address) {
                                span.took { (cost_text(&one.spent)) }
                                span.what { strong { (safe(&one.title)) } }
                                span.dim {
                                    (safe(&one.agent))
                                    @if let Some(project) = &one.project { " · " (safe(last_segment(project))) }
                                    @if one.sub_agents > 0 { " · " (format::count(one.sub_agents as usize, "sub-agent")) }
                                    " · " (format::token_phrase(one.spent.tokens.fresh(), one.spent.tokens.cache_read))
                                }
                            }
                        }
                    }
                }
            }
        }
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
                                span.dim {
                                    @if let Some(waited) = call.waited_ms.filter(|waited| *waited >= NOTED_WAIT_MS) {
                                        "waited " (format::duration(waited)) " before it ran · "
                                    }
                                    @if call.may_include_waiting { (MAY_WAIT) " · " }
                                    (safe(&call.title))
                                }
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
                                span.dim { "in " (format::count(failure.sessions as usize, "session")) "; the link opens the latest" }
                            }
                        }
                    }
                }
            }
        }
    }
}
