//! The filters of the list, search and stats pages: a form that works without scripts, and the
//! active filters as removable chips.

use maud::{Markup, html};
use unspool_export::html::text::safe;
use unspool_view::present::format;

use crate::url_query::UrlQuery;

/// One value of a filter and its count.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FilterOption {
    pub value: String,
    pub label: String,
    pub count: Option<u64>,
}

/// The menu of one query parameter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FilterMenu {
    pub name: &'static str,
    pub label: &'static str,
    /// The label of "no filter".
    pub any: &'static str,
    pub list: Vec<FilterOption>,
}

/// A filter that is on or off.
pub struct Switch {
    pub name: &'static str,
    pub label: &'static str,
    pub count: u64,
}

/// Values per menu; longer menus are not usable.
const MAX_OPTIONS: usize = 60;

/// The form. Parameters it has no field for are passed on as hidden inputs.
pub fn form(
    action: &str,
    chosen: &UrlQuery,
    choices: &[FilterMenu],
    switches: &[Switch],
) -> Markup {
    let asked = |name: &str| {
        choices.iter().any(|choices| choices.name == name)
            || switches.iter().any(|switch| switch.name == name)
    };
    html! {
        form.filters action=(action) method="get" autocomplete="off" aria-label="Filters" {
            @for (name, value) in chosen.pairs().filter(|(name, _)| !asked(name)) {
                input type="hidden" name=(name) value=(safe(value));
            }
            @for choices in choices {
                @if !choices.list.is_empty() { (select(chosen, choices)) }
            }
            @for switch in switches {
                @if switch.count > 0 || chosen.get(switch.name).is_some() {
                    label.switch {
                        input type="checkbox" name=(switch.name) value="1"
                            checked[chosen.get(switch.name).is_some()];
                        (switch.label) " " span.count { (format::number(switch.count)) }
                    }
                }
            }
            button.apply type="submit" { "Apply filters" }
        }
    }
}

fn select(chosen: &UrlQuery, choices: &FilterMenu) -> Markup {
    let now = chosen.get(choices.name);
    let is_listed = now.is_none_or(|now| choices.list.iter().any(|choice| choice.value == now));
    html! {
        label {
            span.visually-hidden { (choices.label) }
            select name=(choices.name) {
                option value="" { (choices.any) }
                @if let Some(now) = now && !is_listed {
                    option value=(safe(now)) selected { (safe(now)) }
                }
                @for choice in choices.list.iter().take(MAX_OPTIONS) {
                    option value=(safe(&choice.value)) selected[now == Some(choice.value.as_str())] {
                        (safe(&choice.label))
                        @if let Some(count) = choice.count { " (" (format::number(count)) ")" }
                    }
                }
            }
        }
    }
}

/// The active filters; each chip links to the page without it.
pub fn chips(path: &str, chosen: &UrlQuery, labels: &[(&'static str, &str)]) -> Markup {
    let shown: Vec<(&'static str, &str, &str)> = chosen
        .pairs()
        .filter_map(|(name, value)| {
            let label = labels.iter().find(|(held, _)| *held == name)?.1;
            Some((name, label, value))
        })
        .collect();
    let none = shown.iter().fold(chosen.clone(), |query, (name, _, _)| query.without(name));
    html! {
        @if !shown.is_empty() {
            ul.chips aria-label="Active filters" {
                @for (name, label, value) in &shown {
                    li {
                        a.chip href=(chosen.without(name).at(path)) data-without=(name) {
                            span.name { (label) }
                            @if *value != "1" { span.value { (safe(&chip_value(name, value))) } }
                            span.off aria-hidden="true" { "×" }
                            span.visually-hidden { "remove" }
                        }
                    }
                }
                @if shown.len() > 1 { li { a.chip.all href=(none.at(path)) { "Clear all" } } }
            }
        }
    }
}

fn chip_value(name: &str, value: &str) -> String {
    match name {
        "since" => since_label(value),
        "project" => last_segment(value).to_owned(),
        _ => value.to_owned(),
    }
}

/// How far back: `today`, `the last 7 days`, `since 2026-05-31`.
pub fn since_label(value: &str) -> String {
    match value {
        "today" => "today".to_owned(),
        "7d" => "the last 7 days".to_owned(),
        "30d" => "the last 30 days".to_owned(),
        other => format!("since {other}"),
    }
}

/// The last segment of a path.
pub fn last_segment(path: &str) -> &str {
    path.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next().unwrap_or(path)
}
