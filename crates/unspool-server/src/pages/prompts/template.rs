//! What the model calls of a session were sent: how the context filled, call by call, and the pieces
//! of one call.

use std::collections::HashSet;
use std::sync::Arc;

use maud::{Markup, html};
use unspool_export::html::block::blocks;
use unspool_export::html::text::safe;
use unspool_model::prompt::PromptKnowledge;
use unspool_model::summary::Summary;
use unspool_view::present::prompt::{
    self, CONTEXT_ROWS, Call, PromptContext, PromptDifference, Share, ShownPiece, head,
    piece_up_to, place, shares, took,
};
use unspool_view::present::{UNTITLED, format};

use crate::api::percent_encode;
use crate::pages::shell::shell;

/// What all of these pages have.
pub struct PromptsPage<'a> {
    pub summary: &'a Summary,
    /// Only calls or pieces with this text.
    pub find: Option<&'a str>,
}

/// The pieces of a call that its page shows.
pub enum Pieces {
    All,
    /// Those that the call before was not sent.
    New,
    /// The one at this place, with its whole text.
    At(String),
}

/// Characters of a piece that come with its page. A longer text is cut to its beginning.
const PIECE_CHARS: usize = 6_000;
const BEGINNING_CHARS: usize = 1_500;
/// Characters of all pieces that come with a page, before each is cut to its beginning. A prompt may
/// have megabytes, and nobody reads them all.
const PAGE_CHARS: usize = 300_000;

/// The width of the largest bar, in units of the picture.
const BAR_WIDTH: u64 = 1000;

impl PromptsPage<'_> {
    fn title(&self) -> String {
        format::first_line(&safe(self.summary.title.as_deref().unwrap_or(UNTITLED)), 120)
    }

    fn address(&self) -> String {
        format!("/s/{}/prompts", self.summary.session.id)
    }

    /// A link to one call, which keeps what is looked for.
    fn call_address(&self, call: &Call<'_>) -> String {
        let request = percent_encode(&call.prompt.call().request);
        let find = self.find.map(|text| format!("&find={}", percent_encode(text)));
        format!("{}?call={request}{}", self.address(), find.unwrap_or_default())
    }
}

/// The calls that the page of all calls shows.
#[derive(Clone, Copy)]
pub enum Shown<'a> {
    /// All of them, and what they were sent together.
    All(&'a PromptContext),
    /// Those with these requests, which were sent the text that is looked for.
    Found(&'a HashSet<&'a Arc<str>>),
}

/// All calls, or those that were sent a text.
pub fn calls(
    page: &PromptsPage<'_>,
    calls: &[(Call<'_>, Option<PromptDifference>)],
    shown: Shown<'_>,
) -> Markup {
    let title = page.title();
    let largest = calls.iter().map(|(call, _)| call.prompt.chars()).max().unwrap_or(0).max(1);
    let is_shown = |call: &Call<'_>| match shown {
        Shown::All(_) => true,
        Shown::Found(found) => found.contains(&call.prompt.call().request),
    };
    let main = html! {
        div.session.prompts-page data-session=(page.summary.session.id) {
            article.transcript {
                header.changes-head {
                    p.kicker { a href={ "/s/" (page.summary.session.id) } { (title) } }
                    h1 { "Prompts" }
                    @if !calls.is_empty() {
                        p {
                            "What each model call was sent. A bar is as long as the prompt; the longest has "
                            (format::number(largest)) " characters."
                        }
                    }
                }
                @if !calls.is_empty() { (find_form(page, None)) }
                @if let Shown::Found(found) = shown {
                    p role="status" {
                        "In the prompts of " (found.len()) " of "
                        (format::count(calls.len(), "call")) "."
                    }
                }
                @if calls.is_empty() {
                    @for sentence in PromptKnowledge::of(&page.summary.session.agent).sentences() {
                        p.dim { (sentence) }
                    }
                } @else {
                    h2 { "Calls" }
                    (legend(calls.iter().map(|(call, _)| call)))
                    table.prompt-calls {
                        thead {
                            tr {
                                th { "Call" } th { "Prompt" } th.number { "Characters" }
                                th.number { "Tokens" } th.number { "Took" } th { "Change" }
                            }
                        }
                        tbody {
                            @for (call, difference) in calls.iter().filter(|(call, _)| is_shown(call)) {
                                (row(page, call, difference.as_ref(), largest))
                            }
                        }
                    }
                    @if let Shown::All(context) = shown { (took_the_most(context)) }
                }
            }
        }
    };
    shell(&format!("Prompts: {title}"), "prompts.js", main)
}

/// What took the room over all calls.
fn took_the_most(context: &PromptContext) -> Markup {
    html! {
        section.prompt-context aria-labelledby="most" {
            h2 #most { "What took the most" }
            p.dim {
                "Over all calls: a text counts once for each call that was sent it. Tokens are the "
                "measured ones of each call, shared out by characters."
            }
            h3 { "By kind" }
            (blocks(&[context.kinds_table()]))
            @if let Some(servers) = context.servers_table(CONTEXT_ROWS) {
                h3 { "By MCP server" }
                (blocks(&[servers]))
            }
            h3 { "By source" }
            (blocks(&[context.sources_table(CONTEXT_ROWS)]))
            @if let Some(unused) = context.unused_table(CONTEXT_ROWS) {
                h3 { "Tools that were never called" }
                p.dim { "Each call was sent their schemas." }
                (blocks(&[unused]))
            }
        }
    }
}

fn row(
    page: &PromptsPage<'_>,
    call: &Call<'_>,
    difference: Option<&PromptDifference>,
    largest: u64,
) -> Markup {
    let tokens = call.usage.prompt();
    html! {
        tr.compacted[difference.is_some_and(|difference| difference.compacted)] {
            td { a href=(page.call_address(call)) { (place(call)) } }
            td.prompt-bar { (bar(call, largest)) }
            td.number { (format::compact(call.prompt.chars())) }
            td.number { @if tokens > 0 { (format::compact(tokens)) } }
            td.number { @if let Some(took) = took(call) { (took) } }
            td { @if let Some(difference) = difference { (difference.words()) } }
        }
    }
}

/// A bar with one stretch for each kind. A style attribute would be refused by the browser.
fn bar(call: &Call<'_>, largest: u64) -> Markup {
    let mut from = 0;
    let mut shares = shares(&call.prompt);
    let words: Vec<String> = shares.iter().take(3).map(words).collect();
    // In one order for all calls, so that bars can be compared.
    shares.sort_unstable_by_key(|share| share.kind);
    let width = |chars: u64| chars.saturating_mul(BAR_WIDTH) / largest;
    html! {
        svg viewBox={ "0 0 " (BAR_WIDTH) " 20" } preserveAspectRatio="none" role="img"
            aria-label=(words.join(", ")) {
            @for share in &shares {
                rect class={ "piece-" (share.kind.name()) } x=(from) y="0"
                    width=(width(share.chars)) height="20" {
                    title { (words_of(share)) }
                }
                @let () = from += width(share.chars);
            }
        }
    }
}

fn words(share: &Share) -> String {
    format!("{} {} %", share.kind.label(), share.percent)
}

fn words_of(share: &Share) -> String {
    format!(
        "{}: {} characters, {} %",
        share.kind.label(),
        format::number(share.chars),
        share.percent
    )
}

/// The colours of the kinds that occur.
fn legend<'a, 'c: 'a>(calls: impl Iterator<Item = &'a Call<'c>>) -> Markup {
    let mut kinds = Vec::new();
    for (kind, _) in calls.flat_map(|call| call.prompt.chars_by_kind()) {
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    kinds.sort_unstable();
    html! {
        ul.prompt-legend {
            @for kind in kinds {
                li {
                    svg viewBox="0 0 10 10" aria-hidden="true" {
                        rect class={ "piece-" (kind.name()) } width="10" height="10" {}
                    }
                    (kind.label())
                }
            }
        }
    }
}

fn find_form(page: &PromptsPage<'_>, call: Option<&Call<'_>>) -> Markup {
    let placeholder = match call {
        Some(_) => "Find in this prompt",
        None => "Which calls had this text?",
    };
    html! {
        form.prompt-find action=(page.address()) method="get" role="search" {
            @if let Some(call) = call {
                input type="hidden" name="call" value=(call.prompt.call().request);
            }
            input type="search" name="find" value=(safe(page.find.unwrap_or_default()))
                placeholder=(placeholder) aria-label=(placeholder) autocomplete="off";
            button type="submit" { "Find" }
        }
    }
}

/// How many characters of a piece its page shows.
fn limit(shown: &ShownPiece<'_>, whole: bool, room: &mut usize) -> usize {
    let chars = shown.piece.chars as usize;
    if whole || chars <= PIECE_CHARS.min(*room) {
        *room = room.saturating_sub(chars);
        return usize::MAX;
    }
    *room = room.saturating_sub(BEGINNING_CHARS);
    BEGINNING_CHARS
}

/// One call and its pieces.
pub fn call(
    page: &PromptsPage<'_>,
    call: &Call<'_>,
    pieces: &[ShownPiece<'_>],
    before: Option<(&Call<'_>, &PromptDifference)>,
    wanted: &Pieces,
) -> Markup {
    let mut room = PAGE_CHARS;
    let title = page.title();
    let address = page.call_address(call);
    let turn = call.step.map(|(turn, _)| turn);
    let main = html! {
        div.session.prompts-page data-session=(page.summary.session.id) {
            article.transcript {
                header.changes-head {
                    p.kicker { a href={ "/s/" (page.summary.session.id) } { (title) } }
                    h1 { "Prompt of call " (place(call)) }
                }
                div.actions role="toolbar" aria-label="Prompt" {
                    a href=(page.address()) { "All calls" }
                    @if let Some(turn) = turn {
                        a href={ "/s/" (page.summary.session.id) "?turn=" (turn) } { "Transcript" }
                    }
                    @if !matches!(wanted, Pieces::All) {
                        a href=(address) { "Whole prompt" }
                    } @else if before.is_some() {
                        a href={ (address) "&new=1" } { "Only what is new" }
                    }
                }
                div.prompt-bar { (bar(call, call.prompt.chars().max(1))) }
                (legend(std::iter::once(call)))
                (blocks(&head(call, pieces)))
                @if let Some((before, difference)) = before {
                    p {
                        "Since call " a href=(page.call_address(before)) { (place(before)) } ": "
                        (difference.words()) "."
                    }
                }
                (find_form(page, Some(call)))
                h2 { "Pieces" }
                @if pieces.is_empty() { p.dim role="status" { "No piece of this prompt has that text." } }
                @for shown in pieces {
                    @let whole = page.find.is_some() || matches!(wanted, Pieces::At(_));
                    @let (block, rest) = piece_up_to(shown, whole, limit(shown, whole, &mut room));
                    section.prompt-piece {
                        (blocks(&[block]))
                        @if rest > 0 {
                            p {
                                a.whole-piece href={ (address) "&piece=" (percent_encode(&shown.at)) } {
                                    "Show " (format::number(rest as u64)) " more characters"
                                }
                            }
                        }
                        @if let Some(text) = prompt::findable(shown) {
                            p.dim {
                                a href={ (page.address()) "?find=" (percent_encode(text)) }
                                    aria-label={ "Which calls had this? " (shown.piece.kind.label()) " at " (shown.at) } {
                                    "Which calls had this?"
                                }
                            }
                        }
                    }
                }
            }
        }
    };
    shell(&format!("Prompt {}: {title}", place(call)), "prompts.js", main)
}
