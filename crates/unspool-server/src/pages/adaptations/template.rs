//! Adaptations as HTML. A script saves what is edited and loads the preview; without it the page shows
//! everything and changes nothing.

use jiff::Timestamp;
use maud::{Markup, html};
use unspool_export::html::text::safe;
use unspool_query::adaptations::{Change, Current, Facts, Proposal, ProposalState, VersionedItem};
use unspool_view::present::format;

use crate::pages::shell::shell;
use crate::url_query::UrlQuery;

/// Agents whose preview is offered.
const AGENTS: &[&str] = &["claude-code", "codex", "gemini", "copilot", "opencode"];

/// The data of the list.
pub struct ListPage<'a> {
    pub current: &'a Current,
    pub proposals: &'a [Proposal],
    pub project: Option<&'a str>,
    pub is_editable: bool,
}

/// The data of the page of one.
pub struct ItemPage<'a> {
    pub versioned: &'a VersionedItem,
    pub facts: &'a Facts,
    pub history: &'a [Change],
    pub project: Option<&'a str>,
    pub is_editable: bool,
}

fn state(versioned: &VersionedItem) -> &'static str {
    match (versioned.item.enabled, versioned.item.trial) {
        (false, _) => "off",
        (true, None) => "on",
        (true, Some(_)) => "in half of the sessions",
    }
}

fn link(id: &str, project: Option<&str>) -> String {
    UrlQuery::default().with("project", project).at(&format!("/adaptations/{id}"))
}

pub fn list(page: &ListPage<'_>) -> Markup {
    let open: Vec<&Proposal> =
        page.proposals.iter().filter(|one| one.state == ProposalState::Open).collect();
    let main = html! {
        div.stats.findings {
            header.stats-head { h1 { "Adaptations" } }
            p.dim {
                "Texts that agents get in their prompts. An enabled one is delivered by the hooks ("
                code { "unspool hooks install --agent AGENT --adapt" } "); whether it arrived is seen in the prompts."
            }
            (problems(page.current))
            @if !open.is_empty() {
                section.calls {
                    h2 { "Proposals " span.dim { (open.len()) } }
                    ol.proposals { @for proposal in open { (proposed(proposal, page.is_editable)) } }
                }
            }
            section.calls {
                h2 { "All " span.dim { (page.current.state.items.len()) } }
                ol {
                    @for versioned in &page.current.state.items {
                        li {
                            a href=(link(&versioned.item.id, page.project)) {
                                span.took.tone-success[versioned.item.enabled] { (state(versioned)) }
                                span.what { (safe(&versioned.item.title)) }
                                span.dim {
                                    (safe(&versioned.item.id)) " · version " (versioned.version)
                                    @if let Some(rule) = &versioned.item.rule { " · against " (safe(rule)) }
                                    @if versioned.origin != "shipped" { " · " (safe(&versioned.origin)) }
                                }
                            }
                        }
                    }
                }
            }
            @if !page.is_editable {
                p.dim { "They can be changed on the machine of the server: " code { "unspool adapt" } "." }
            }
        }
    };
    shell("Adaptations", "adaptations.js", main)
}

fn problems(current: &Current) -> Markup {
    html! {
        @for problem in &current.problems {
            p.tone-warning role="alert" { (safe(&problem.to_string())) }
        }
        @if current.is_pending {
            p.tone-warning role="status" {
                "Files were changed by hand. Agents get that after " code { "unspool adapt reload" } "."
            }
        }
    }
}

fn proposed(proposal: &Proposal, is_editable: bool) -> Markup {
    html! {
        li.proposal {
            a href=(link(&proposal.id, proposal.project.as_ref().and_then(|path| path.to_str()))) {
                span.took { (proposal.number) }
                span.what { (safe(&proposal.id)) }
                span.dim { (safe(&proposal.why)) " · " (safe(&proposal.who)) " · " (proposal.chars) " characters in each prompt" }
            }
            @if let Some(content) = &proposal.patch.content { pre { (safe(content)) } }
            @if is_editable {
                div.decide data-number=(proposal.number) {
                    button.primary type="button" data-decision="apply" { "Apply" }
                    button type="button" data-decision="apply" data-trial="half"
                        title="In every other session, so that both can be compared" { "Try in half of the sessions" }
                    button type="button" data-decision="dismiss" { "Dismiss" }
                    span.error role="alert" {}
                }
            } @else {
                p.dim { code { "unspool adapt apply " (proposal.number) } }
            }
        }
    }
}

pub fn item(page: &ItemPage<'_>) -> Markup {
    let item = &page.versioned.item;
    let title = safe(&item.title);
    let main = html! {
        div.stats.findings.adaptation data-id=(item.id) data-version=(page.versioned.version)
            data-project=[page.project] {
            p.kicker { a href=(UrlQuery::default().with("project", page.project).at("/adaptations")) { "Adaptations" } }
            h1 { (title) }
            p.dim {
                (safe(&item.id)) " · version " span.version { (page.versioned.version) }
                " · " span.state { (state(page.versioned)) }
                @if let Some(rule) = &item.rule { " · against " a href={ "/findings?rule=" (safe(rule)) } { (safe(rule)) } }
            }
            (editor(page))
            section {
                h2 { "Preview" }
                label {
                    "What this agent gets: "
                    select.preview-agent { @for agent in AGENTS { option { (agent) } } }
                }
                pre.preview aria-live="polite" {}
            }
            (seen(page.facts))
            section.effect {
                h2 { "Did it help?" }
                p { a href=(UrlQuery::default().with("project", page.project).at(&format!("/adaptations/{}/effect", item.id))) {
                    "Compare sessions with it and without it"
                } }
            }
            (versions(page.history))
        }
    };
    shell(&format!("Adaptation: {title}"), "adaptations.js", main)
}

fn editor(page: &ItemPage<'_>) -> Markup {
    let item = &page.versioned.item;
    html! {
        @if page.is_editable {
            form.adaptation-edit {
                label.field { "Title" input name="title" value=(safe(&item.title)) maxlength="120"; }
                label.field {
                    "Text"
                    textarea name="content" rows="8" { "\n" (safe(&item.content)) }
                }
                div.delivery {
                    label { input type="checkbox" name="enabled" checked[item.enabled]; " Enabled" }
                    label {
                        "in "
                        select name="trial" {
                            option value="all" { "all sessions" }
                            option value="half" selected[item.trial.is_some()] { "half of the sessions" }
                        }
                    }
                }
                div.submit { button.primary type="submit" { "Save" } span.saved role="status" {} }
                p.error role="alert" {}
            }
        } @else {
            pre { (safe(&item.content)) }
        }
    }
}

/// Three facts, of which none follows from another.
fn seen(facts: &Facts) -> Markup {
    html! {
        section.calls {
            h2 { "Where it was seen" }
            p.dim {
                "Delivered in " (format::count(facts.delivered_sessions, "session"))
                @if let Some(at) = &facts.delivered_last_at { ", last at " (minute(at)) }
                "; seen in the prompts of " (format::count(facts.seen_sessions, "session")) ", "
                (facts.seen_calls) " calls."
                @if facts.delivered_not_seen > 0 {
                    " Delivered and not seen in " (format::count(facts.delivered_not_seen, "session")) "."
                }
            }
            ol {
                @for session in &facts.sessions {
                    li {
                        a href={ "/s/" (session.session) } {
                            span.took {
                                @match session.seen {
                                    Some(true) => { (session.calls) " of " (session.of_calls) }
                                    Some(false) => { "not seen" }
                                    None => { "not known" }
                                }
                            }
                            span.what { (safe(&session.title)) }
                            span.dim {
                                (safe(&session.agent))
                                @if session.delivered { " · delivered" }
                                @for version in &session.versions { " · version " (version) }
                                @if session.altered { " · altered on the way" }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The minute of a time in RFC 3339, for people.
fn minute(at: &str) -> String {
    at.parse::<Timestamp>()
        .map_or_else(|_| safe(at).to_string(), |at| at.strftime("%Y-%m-%d %H:%M UTC").to_string())
}

fn changed_by(who: &str) -> String {
    match who {
        "cli" => "by unspool adapt".to_owned(),
        "api" => "in the browser or through REST".to_owned(),
        "mcp" => "by an agent".to_owned(),
        "file" => "in the file".to_owned(),
        other => safe(other).to_string(),
    }
}

fn versions(history: &[Change]) -> Markup {
    html! {
        @if !history.is_empty() {
            section {
                h2 { "Versions" }
                @for change in history.iter().rev() {
                    details {
                        summary {
                            "Version " (change.version) ", "
                            time datetime=(change.at) { (change.at.strftime("%Y-%m-%d %H:%M UTC")) }
                            ", " (changed_by(&change.who))
                            ", " @if change.enabled { "on" } @else { "off" }
                            @if let Some(why) = &change.why { ": " (safe(why)) }
                        }
                        pre { (safe(&change.content)) }
                    }
                }
            }
        }
    }
}
