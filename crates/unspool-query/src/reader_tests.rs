//! The command that resumes a session: its id comes from an untrusted log.

use unspool_model::session::{Facts, SessionState};

use super::*;

fn command(agent: &str, id: &str) -> Option<String> {
    resume(&Session {
        id: SessionId::of(agent, id),
        agent: agent.to_owned(),
        agent_session_id: id.to_owned(),
        facts: Facts::default(),
        state: SessionState::Idle,
        parent: None,
        forked_from: None,
    })
}

// Law 8: what is copied into a shell is neither an option nor shell syntax.
#[test]
fn no_id_is_read_as_an_option_or_by_the_shell() {
    let agents = ["claude-code", "codex", "opencode", "copilot", "gemini"];
    for agent in agents {
        let harmless = command(agent, "0a1b-c2_D3").unwrap_or_else(|| panic!("{agent}"));
        assert!(harmless.ends_with(" 0a1b-c2_D3"), "{harmless}");
        for id in ["--dangerously-skip-permissions", "-p", "-", "_-x", "", "a b", "a;b", "$(a)"] {
            assert_eq!(command(agent, id), None, "{agent} {id}");
        }
    }
}
