//! The tools, one file each. To add one, write its file and its line here.

mod adaptation_changes;
mod adaptations;
mod get_findings;
mod get_part;
mod get_prompt;
mod get_session;
mod get_stats;
mod get_thoughtflow;
mod get_turn;
mod list_failures;
mod list_sessions;
mod search_sessions;

use unspool_store::store::View;

use crate::tool::Tool;

pub(crate) use get_session::outline;
pub(crate) use get_turn::turn_answer;

/// All tools, in the order in which clients list them.
pub fn tools<V: View>() -> Vec<Tool<V>> {
    vec![
        search_sessions::tool(),
        list_sessions::tool(),
        get_session::tool(),
        get_turn::tool(),
        get_part::tool(),
        list_failures::tool(),
        get_findings::tool(),
        get_prompt::tool(),
        get_thoughtflow::tool(),
        get_stats::tool(),
        adaptations::list(),
        adaptations::get(),
        adaptations::preview(),
        adaptation_changes::propose(),
        adaptation_changes::update(),
        adaptation_changes::reload(),
    ]
}

/// Tools that need a client that may change adaptations.
pub const EDITS: &[&str] = &["update_adaptation", "reload_adaptations"];
/// Tools that change something: a proposal is written down.
pub const WRITES: &[&str] = &["propose_adaptation", "update_adaptation", "reload_adaptations"];
/// Tools of servers that have adaptations.
pub const OF_ADAPTATIONS: &[&str] =
    &["list_adaptations", "get_adaptation", "preview_adaptations", "propose_adaptation"];
