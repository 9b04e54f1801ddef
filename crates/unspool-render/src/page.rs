//! The templates of the web pages: view data in, HTML out. `shell` is the frame of all pages.

mod filters;
mod login;
mod raw;
mod search;
mod session;
mod sessions;
mod stats;
mod thoughtflow;
mod welcome;

use maud::{DOCTYPE, Markup, html};

pub use filters::{FilterMenu, FilterOption, since_label};
pub use login::login;
pub use raw::{RawRecord, raw};
pub use search::{HitRow, SearchPage, found, search};
pub use session::{
    Choice, Prompt, SessionPage, TranscriptWindow, inline, outline_entry, session, session_head,
    tasks, window,
};
pub use sessions::{Project, Row, SessionsPage, Sum, more, row, sessions, suggestions};
pub use stats::{FailureRow, SlowCall, Spent, StatsPage, ToolStats, Totals, UsageBar, stats};
pub use thoughtflow::{Flow, thoughtflow};
pub use welcome::{Demo, SearchedFolder, WelcomePage, demo, welcome};

/// A complete page around its main content.
pub fn shell(title: &str, module: &str, main: Markup) -> Markup {
    shell_with(title, module, "", main)
}

/// The same with text in the search box.
pub fn shell_with(title: &str, module: &str, query: &str, main: Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="dark light";
                meta name="referrer" content="no-referrer";
                title { (crate::text::safe(title)) " · Unspool" }
                link rel="icon" type="image/svg+xml" href="/assets/icon.svg";
                link rel="stylesheet" href="/assets/style.css";
                script type="module" src="/assets/app.js" {}
                script type="module" src={ "/assets/" (module) } {}
            }
            body {
                a.skip href="#main" { "Skip to the content" }
                header.top {
                    a.brand href="/" { span.mark aria-hidden="true" { "◐" } span { "Unspool" } }
                    nav.pages aria-label="Pages" {
                        a href="/" { "Sessions" }
                        a href="/stats" { "Stats" }
                    }
                    form.find action="/" method="get" role="search" {
                        input type="search" name="q" value=(crate::text::safe(query)) placeholder="Search everything" autocomplete="off"
                            aria-label="Search all sessions";
                    }
                    span.link-state role="status" {}
                    button.keys type="button" title="Keys (?)" aria-label="Keys" { "?" }
                    button.theme type="button" title="Light or dark" aria-label="Light or dark" { "◑" }
                }
                main id="main" { (main) }
            }
        }
    }
}

/// An error page: what failed, and what to do next.
pub fn trouble(title: &str, what: &str, next: &str) -> Markup {
    let main = html! {
        div.trouble {
            h1 { (title) }
            p { (crate::text::safe(what)) }
            p.dim { (next) }
            p { a href="/" { "All sessions" } }
        }
    };
    shell(title, "list.js", main)
}
