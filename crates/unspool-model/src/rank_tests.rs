//! The stored form of ranks: what archives hold keeps its meaning.
#![allow(clippy::unwrap_used)]

use super::*;

fn read<F: RankKey>(stored: &str) -> Ranks<F> {
    let ranks: Ranks<F> = serde_json::from_str(stored).unwrap();
    assert_eq!(serde_json::to_string(&ranks).unwrap(), stored);
    ranks
}

#[test]
fn stored_ranks_of_a_session_keep_their_meaning() {
    let ranks = read(r#""32013000000000002""#);
    assert_eq!(ranks.holder(SessionField::Project), Some(Feed::Log));
    assert_eq!(ranks.holder(SessionField::Branch), Some(Feed::Stream));
    assert_eq!(ranks.holder(SessionField::Parent), Some(Feed::Hooks));
    assert_eq!(ranks.holder(SessionField::Version), Some(Feed::Log));
    assert_eq!(ranks.holder(SessionField::ForkedFrom), Some(Feed::Stream));
}

#[test]
fn stored_ranks_of_a_turn_keep_their_meaning() {
    let ranks = read(r#""23000000000000001""#);
    assert_eq!(ranks.holder(TurnField::User), Some(Feed::Stream));
    assert_eq!(ranks.holder(TurnField::Trigger), Some(Feed::Log));
    assert_eq!(ranks.holder(TurnField::Started), Some(Feed::Hooks));
}

#[test]
fn stored_ranks_of_an_agent_keep_their_meaning() {
    let ranks = read(r#""03001021""#);
    assert_eq!(ranks.holder(AgentField::Name), Some(Feed::Log));
    assert_eq!(ranks.holder(AgentField::Task), Some(Feed::Hooks));
    assert_eq!(ranks.holder(AgentField::State), Some(Feed::Stream));
    assert_eq!(ranks.holder(AgentField::Activity), Some(Feed::Hooks));
}

#[test]
fn stored_ranks_of_a_part_keep_their_meaning() {
    let stored = "12310123123123123123";
    let fields = [
        PartField::Body,
        PartField::Name,
        PartField::Input,
        PartField::ParentCall,
        PartField::State,
        PartField::Output,
        PartField::Result,
        PartField::ExitCode,
        PartField::Duration,
        PartField::Question,
        PartField::Answer,
        PartField::Signature,
        PartField::Citations,
        PartField::Step,
        PartField::Started,
        PartField::Ended,
        PartField::InputText,
        PartField::OutputText,
    ];
    let ranks = read(&format!("\"{stored}\""));
    // Digit 4 is the title; digit 5 was never written.
    assert_eq!(ranks.holder(PartField::Title), None);
    let used = stored.bytes().enumerate().filter(|(at, _)| *at != 4 && *at != 5);
    for (field, (_, digit)) in fields.into_iter().zip(used) {
        let feed = Feed::ALL[usize::from(digit - b'1')];
        assert_eq!(ranks.holder(field), Some(feed), "{field:?}");
    }
}

#[test]
fn digits_of_a_newer_version_are_ignored() {
    let ranks: Ranks<PartField> = serde_json::from_str(r#""3000000000000000000033""#).unwrap();
    assert_eq!(ranks.to_string(), "3");
}
