//! The frame of all pages, and the error page.

use maud::{DOCTYPE, Markup, html};

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
                title { (unspool_export::html::text::safe(title)) " · Unspool" }
                link rel="icon" type="image/svg+xml" href="/assets/icon.svg";
                link rel="stylesheet" href="/assets/style.css";
                link rel="stylesheet" href="/assets/chat.css";
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
                        a href="/findings" { "Findings" }
                        a href="/adaptations" { "Adaptations" }
                    }
                    form.find action="/" method="get" role="search" {
                        input type="search" name="q" value=(unspool_export::html::text::safe(query)) placeholder="Search all sessions" autocomplete="off"
                            aria-label="Search all sessions";
                    }
                    span.link-state role="status" {}
                    button.notify type="button" hidden aria-label="Notifications" {
                        svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" {
                            path d="M8 1a4 4 0 0 0-4 4v3.5L2.5 11v1h11v-1L12 8.500V5a4 4 0 0 0-4-4zM6.500 13a1.500 1.500 0 0 0 3 0z" {}
                        }
                    }
                    button.keys type="button" title="Keyboard shortcuts (?)" aria-label="Keyboard shortcuts" { "?" }
                    button.theme type="button" title="Switch between light and dark" aria-label="Switch between light and dark" { "◑" }
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
            p { (unspool_export::html::text::safe(what)) }
            p.dim { (next) }
            p { a href="/" { "All sessions" } }
        }
    };
    shell(title, "list.js", main)
}
