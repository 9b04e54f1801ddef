//! The page that begins a chat.

use maud::{Markup, html};
use unspool_export::html::text::safe;
use unspool_live::agents::Choice;

use crate::pages::session::template::composer;
use crate::pages::shell::shell;

pub struct NewChatPage<'a> {
    /// The agents that can be started.
    pub agents: &'a [Choice],
    /// The folders in which an agent may work, the one used last first.
    pub projects: &'a [String],
    /// What is chosen at first.
    pub agent: Option<&'a str>,
    pub project: Option<&'a str>,
}

pub fn new_chat(page: &NewChatPage<'_>) -> Markup {
    let main = html! {
        div.new-chat {
            h1 { "New chat" }
            @if page.agents.is_empty() {
                p { "No agent that speaks the Agent Client Protocol was found. " code { "unspool chat --agents" } " says how to install one." }
            } @else {
                div.new-choice {
                    label {
                        span { "Agent" }
                        select name="agent" {
                            @for agent in page.agents {
                                option value=(safe(&agent.name)) selected[page.agent == Some(agent.name.as_str())] { (safe(&agent.title)) }
                            }
                        }
                    }
                    label {
                        span { "Folder" }
                        input name="project" list="projects" required autocomplete="off" spellcheck="false"
                            value=(safe(page.project.or(page.projects.first().map(String::as_str)).unwrap_or_default()));
                        datalist id="projects" { @for project in page.projects { option value=(safe(project)) {} } }
                    }
                }
                (composer())
            }
        }
    };
    shell("New chat", "new.js", main)
}
