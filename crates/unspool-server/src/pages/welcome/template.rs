//! The page of an empty archive: the searched folders, how to begin, and the demo.

use maud::{Markup, html};
use unspool_export::html::text::safe;

use crate::pages::shell::shell;

/// A folder that is searched for sessions of an agent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SearchedFolder {
    pub agent: String,
    pub folder: String,
    pub exists: bool,
}

/// Whether the demo can be opened from here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Demo {
    Offered,
    None,
}

pub struct WelcomePage {
    pub looked: Vec<SearchedFolder>,
    pub demo: Demo,
}

pub fn welcome(page: &WelcomePage) -> Markup {
    let main = html! {
        div.welcome data-list data-query="" {
            h1 { "No sessions yet" }
            p.lead {
                "Unspool shows what coding agents did on this machine, in the order in which they did it. "
                "It reads the logs that they write anyway; the agents need no setup."
            }
            h2 { "Get started" }
            ol.steps {
                li { "Use an agent as usual. Its session appears here while it runs." }
                li {
                    "Agents write nothing while they wait for you. " code { "unspool hooks install --agent AGENT" }
                    " lets them report it: this page, the tab and the terminal then show what they wait for."
                }
                li { "Import older sessions, or those of another machine: " code { "unspool import FOLDER" } "." }
                li { "Something missing? " code { "unspool doctor" } " lists what Unspool found for each agent and explains problems." }
            }
            @if page.demo == Demo::Offered {
                form.demo action="/demo" method="post" {
                    button.primary type="submit" { "Open the demo sessions" }
                    p.dim { "Recorded sessions of several agents, in an archive separate from yours." }
                    p.said role="status" {}
                }
            }
            @if !page.looked.is_empty() {
                h2 { "Searched folders" }
                table.looked {
                    thead { tr { th scope="col" { "Agent" } th scope="col" { "Folder" } th scope="col" { "State" } } }
                    tbody {
                        @for looked in &page.looked {
                            tr {
                                td { (safe(&looked.agent)) }
                                td.path { (safe(&looked.folder)) }
                                @if looked.exists { td.tone-ok { "exists, no sessions" } } @else { td.dim { "does not exist" } }
                            }
                        }
                    }
                }
            }
        }
    };
    shell("Welcome", "list.js", main)
}

/// The link to the demo, for browsers without scripts.
pub fn demo(address: &str) -> Markup {
    let main = html! {
        div.trouble {
            h1 { "The demo is ready" }
            p { a href=(address) rel="noopener" { "Open the demo sessions" } }
        }
    };
    shell("Demo", "list.js", main)
}
