//! What an adaptation changed, as a picture: the rate of each session in the order of time, and both
//! groups with their intervals. The words are those of `unspool reflect verify`.

use maud::{Markup, html};
use unspool_export::html::text::safe;
use unspool_query::adaptations::{ArmDocument, Verification};

use crate::pages::chart::{ChartBar, Series, columns};
use crate::pages::shell::shell;
use crate::url_query::UrlQuery;

const SERIES: &[Series] = &[
    Series { name: "without it", class: "arm-without" },
    Series { name: "with it", class: "arm-with" },
];

/// The page of its own, for a browser without scripts.
pub fn page(
    id: &str,
    title: &str,
    verified: Option<&Verification>,
    project: Option<&str>,
) -> Markup {
    let address = UrlQuery::default().with("project", project).at(&format!("/adaptations/{id}"));
    let main = html! {
        div.stats.findings.adaptation {
            p.kicker { a href=(address) { (safe(title)) } }
            h1 { "Did it help?" }
            (panel(verified))
        }
    };
    shell(&format!("Effect: {}", safe(title)), "list.js", main)
}

/// The section in the page of the adaptation.
pub fn panel(verified: Option<&Verification>) -> Markup {
    let Some(verified) = verified else {
        return html! {
            p.dim {
                "It does not say which rule of findings it is against: "
                code { "unspool reflect verify ID --rule RULE" } " compares sessions by any rule."
            }
        };
    };
    let tone = match verified.verdict {
        "fewer" => "tone-success",
        "more" => "tone-warning",
        _ => "",
    };
    let of = [&verified.agent, &verified.project, &verified.model];
    let of: Vec<&str> = of.into_iter().flatten().map(String::as_str).collect();
    html! {
        p.verdict { strong.(tone) { (verified.verdict) } " " (safe(&verified.because)) }
        p.dim {
            a href={ "/findings?rule=" (verified.rule) } { (verified.rule) } ", "
            @if !of.is_empty() { "of " (safe(&of.join(", "))) ", " }
            (verified.design_words())
        }
        @if verified.arms().iter().any(|(_, arm)| !arm.session_counts.is_empty()) {
            (rates(verified))
            div.arms {
                @for ((name, arm), series) in verified.arms().into_iter().zip(SERIES) {
                    (interval(name, arm, series, &verified.arm_words(arm)))
                }
            }
        }
        ul.notes-list {
            @for (name, note) in verified.notes() {
                li { @if !name.is_empty() { span.dim { (name) ": " } } (safe(&note)) }
            }
        }
    }
}

/// A bar for each session, the oldest first.
fn rates(verified: &Verification) -> Markup {
    let mut sessions = Vec::new();
    for (nth, (name, arm)) in verified.arms().into_iter().enumerate() {
        for (id, count) in arm.session_ids.iter().zip(&arm.session_counts) {
            if count.opportunities == 0 {
                continue;
            }
            let rate =
                100.0 * count.events.min(count.opportunities) as f64 / count.opportunities as f64;
            let at = count.started_at.as_deref().unwrap_or_default();
            let mut values = vec![0.0; SERIES.len()];
            if let Some(value) = values.get_mut(nth) {
                *value = rate;
            }
            let (events, of) = (count.events, count.opportunities);
            let bar = ChartBar {
                label: at.get(..10).unwrap_or_default().to_owned(),
                values,
                hint: format!("{name} it: {events} of {of} {}, {at}", verified.unit),
                address: Some(format!("/s/{id}")),
            };
            sessions.push((at.to_owned(), bar));
        }
    }
    sessions.sort_by(|(one, _), (other, _)| one.cmp(other));
    let bars: Vec<ChartBar> = sessions.into_iter().map(|(_, bar)| bar).collect();
    columns("effect", "Share in each session, oldest first", SERIES, &bars, |share| {
        format!("{share:.0} %")
    })
}

/// A group: its rate as a bar, and the interval in which the rate is with 95 %.
fn interval(name: &str, arm: &ArmDocument, series: &Series, words: &str) -> Markup {
    let place = |share: f64| format!("{:.2}", share.clamp(0.0, 1.0) * 1000.0);
    html! {
        div.arm {
            span.name { (name) }
            svg viewBox="0 0 1000 24" preserveAspectRatio="none" role="img" aria-label=(safe(words)) {
                rect.ground x="0" y="8" width="1000" height="8" {}
                @if let (Some(rate), Some([low, high])) = (arm.rate, arm.interval) {
                    rect.(series.class) x="0" y="8" width=(place(rate)) height="8" {}
                    line.whisker x1=(place(low)) x2=(place(high)) y1="12" y2="12" {}
                    line.whisker x1=(place(low)) x2=(place(low)) y1="5" y2="19" {}
                    line.whisker x1=(place(high)) x2=(place(high)) y1="5" y2="19" {}
                }
            }
            span.dim { (safe(words)) }
        }
    }
}
