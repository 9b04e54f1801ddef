//! The law of blame, over random changes: a line that a person wrote is never given to an agent.

use proptest::prelude::*;

use super::*;

/// Texts that say nothing about who wrote them, the hardest ones.
const TEXTS: [&str; 4] = ["}", "", "return None", "end"];

/// Somebody replaces some lines: a session by its number, or a person.
#[derive(Clone, Debug)]
struct Change {
    by: Option<usize>,
    at: usize,
    removed: usize,
    texts: Vec<usize>,
    /// A commit follows.
    is_committed: bool,
}

fn change() -> impl Strategy<Value = Change> {
    let texts = prop::collection::vec(0..TEXTS.len(), 0..=4);
    let by = prop::option::of(0..3usize);
    (by, 0..40usize, 0..=4usize, texts, prop::bool::weighted(0.7)).prop_map(
        |(by, at, removed, texts, is_committed)| Change { by, at, removed, texts, is_committed },
    )
}

type TrueLine = (usize, Option<usize>);

/// Lines that a change repeats at its ends are not of its author.
fn replace(lines: &[TrueLine], change: &Change) -> Vec<TrueLine> {
    let from = change.at.min(lines.len());
    let to = (from + change.removed).min(lines.len());
    let (old, new) = (&lines[from..to], &change.texts);
    let same = |(old, new): &(&TrueLine, &usize)| old.0 == **new;
    let start = old.iter().zip(new).take_while(same).count();
    let ends = old[start..].iter().rev().zip(new[start..].iter().rev());
    let end = ends.take_while(same).count();
    let written = new[start..new.len() - end].iter().map(|text| (*text, change.by));
    let mut after = lines[..from + start].to_vec();
    after.extend(written);
    after.extend(&lines[to - end..]);
    after
}

fn whole(lines: &[TrueLine]) -> Vec<VersionLine> {
    lines.iter().map(|(text, _)| VersionLine::of(TEXTS[*text])).collect()
}

fn text(lines: &[TrueLine]) -> String {
    lines.iter().map(|(text, _)| format!("{}\n", TEXTS[*text])).collect()
}

proptest! {
    #[test]
    fn a_line_of_a_person_is_never_given_to_an_agent(changes in prop::collection::vec(change(), 1..14)) {
        let mut lines: Vec<TrueLine> = Vec::new();
        let (mut edits, mut versions) = (Vec::new(), Vec::new());
        for (time, change) in (0i64..).step_by(5).zip(&changes) {
            let after = replace(&lines, change);
            if let Some(writer) = change.by {
                let step = Step::Whole {
                    before: Some(whole(&lines)),
                    after: whole(&after),
                    text: text(&after).into(),
                };
                edits.push(VersionEdit { at: Some(time), writer, step });
            }
            lines = after;
            // A person commits what they wrote before an agent goes on.
            if change.is_committed || change.by.is_none() {
                let base = versions.len().checked_sub(1).map_or(Base::Empty, Base::Version);
                let content = Content::Whole(whole(&lines));
                versions.push(Version { base, content, added: Vec::new(), time: time + 2, reflow: None });
            }
        }
        let base = versions.len().checked_sub(1).map_or(Base::Empty, Base::Version);
        let content = Content::Whole(whole(&lines));
        versions.push(Version { base, content, added: Vec::new(), time: i64::MAX, reflow: None });
        let found = writers(&edits, &versions);
        prop_assert_eq!(found.len(), lines.len());
        for (at, ((_, truth), writer)) in lines.iter().zip(found).enumerate() {
            if truth.is_none() {
                prop_assert!(writer.is_none(), "line {} of {:?}", at, lines);
            }
        }
    }
}

#[test]
fn a_line_of_an_agent_is_found_among_others() {
    let step = |before: &str, after: &str| Step::Whole {
        before: Some(before.lines().map(VersionLine::of).collect()),
        after: after.lines().map(VersionLine::of).collect(),
        text: after.into(),
    };
    let edits = [
        VersionEdit { at: Some(1), writer: 0, step: step("", "a\n}\n") },
        VersionEdit { at: Some(2), writer: 1, step: step("a\n}\n", "a\nb\n}\n") },
    ];
    let content = Content::Whole(["a", "b", "}", "c"].map(VersionLine::of).to_vec());
    let version = Version { base: Base::Empty, content, added: Vec::new(), time: 9, reflow: None };
    let found = writers(&edits, &[version]);
    let found: Vec<Option<usize>> = found.into_iter().map(|it| it.map(|it| it.edit)).collect();
    assert_eq!(found, [Some(0), Some(1), Some(0), None]);
}
