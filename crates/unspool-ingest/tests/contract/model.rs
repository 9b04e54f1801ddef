//! The model: applies the same events in memory, without interruption. Tests compare the archive
//! with it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use proptest::test_runner::TestCaseError;
use unspool_model::assemble::{Assembler, Cursor};
use unspool_model::change::{Change, SkipReason};
use unspool_model::event::Event;
use unspool_model::id::{PartId, SessionId, TurnId};
use unspool_model::part::Body;
use unspool_model::provenance::Feed;
use unspool_model::session::{Parent, Transcript, Turn};
use unspool_model::summary::{Completeness, Summary};
use unspool_model::transcript::TranscriptBuilder;
use unspool_store::rows::user_part_id;
use unspool_store::searchable::texts;

pub type Outcome = Result<(), TestCaseError>;

/// One session, in memory.
#[derive(Clone)]
pub struct Model {
    pub id: SessionId,
    pub assembler: Assembler,
    pub builder: TranscriptBuilder,
    pub seq: u64,
}

impl Model {
    pub fn new(agent: &str, session: &str) -> Model {
        let id = SessionId::of(agent, session);
        let (assembler, builder) = (Assembler::new(id), TranscriptBuilder::new(agent, session));
        Model { id, assembler, builder, seq: 0 }
    }

    pub fn take(&mut self, event: Event) -> Vec<Change> {
        self.seq += 1;
        let changes = self.assembler.apply(event);
        self.builder.apply_all(changes.clone());
        changes
    }

    /// All turns in order, with hidden parts.
    pub fn rows(&self) -> Vec<Turn> {
        let mut turns = self.builder.rows().turns;
        turns.sort_by_key(|turn| turn.number);
        turns
    }

    pub fn transcript(&self) -> Transcript {
        self.builder.transcript()
    }

    pub fn cursors(&self) -> BTreeSet<Cursor> {
        self.assembler.cursors().collect()
    }

    pub fn unsettled(&self) -> BTreeSet<TurnId> {
        self.builder.turn_ids().filter(|turn| !self.assembler.is_settled(*turn)).collect()
    }

    /// Skipped events by reason. Duplicates come from re-reading a file and do not count.
    pub fn skip_counts(&self) -> BTreeMap<String, u64> {
        let odd = self.builder.skip_counts().filter(|(reason, _)| *reason != SkipReason::Duplicate);
        odd.map(|(reason, count)| (reason.name().to_owned(), count)).collect()
    }

    fn agents(&self) -> Vec<(SessionId, String)> {
        let session = self.builder.session();
        let mut agents = Vec::new();
        for part in self.rows().into_iter().flat_map(|turn| turn.parts) {
            let Body::Agent(reported) = part.body else { continue };
            for agent in reported.agents.iter().filter(|agent| !agent.id.starts_with("temp_")) {
                let id = SessionId::of(&session.agent, &agent.id);
                agents.push((id, reported.call_id.clone()));
            }
        }
        agents
    }

    /// The expected summary of the session, given all stored sessions.
    pub fn summary(&self, all: &[&Model]) -> Summary {
        let strongest = self.assembler.cursors().map(|cursor| cursor.feed).max();
        let full = strongest >= Some(Feed::Stream);
        let completeness = if full { Completeness::Full } else { Completeness::Partial };
        let mut below = BTreeSet::from([self.id]);
        let mut agents = Vec::new();
        let mut open = vec![self.id];
        while let Some(id) = open.pop() {
            let Some(model) = all.iter().find(|model| model.id == id) else { continue };
            if id != self.id {
                agents.push(model.transcript());
            }
            let named = model.agents().into_iter().map(|(agent, _)| agent);
            open.extend(named.filter(|agent| below.insert(*agent)));
        }
        let mut summary = self.transcript().summary(completeness, &agents);
        let mut parents = all.iter().filter(|model| model.id != self.id).collect::<Vec<_>>();
        parents.sort_by_key(|model| (model.transcript().started(), model.id.to_string()));
        summary.session.parent = parents.into_iter().find_map(|model| {
            let mut calls = model.agents();
            calls.retain(|(agent, _)| *agent == self.id);
            let call_id = calls.into_iter().map(|(_, call)| call).next()?;
            Some(Parent { session: model.id, call_id: Some(call_id), kind: None })
        });
        summary
    }

    /// The searchable texts of all visible parts and user messages.
    pub fn texts(&self) -> HashMap<PartId, Vec<String>> {
        let mut found = HashMap::new();
        let owned = |body: &Body| texts(body).iter().map(|text| text.to_string()).collect();
        for turn in self.transcript().turns {
            for (nth, body) in turn.user.iter().enumerate() {
                found.insert(user_part_id(turn.id, nth), owned(body));
            }
            for part in &turn.parts {
                found.insert(part.id, owned(&part.body));
            }
        }
        found
    }
}

/// Compares two values. On failure reports only the differing lines.
pub fn same<T: PartialEq + std::fmt::Debug>(reason: &str, stored: &T, model: &T) -> Outcome {
    if stored == model {
        return Ok(());
    }
    let (stored, model) = (format!("{stored:#?}"), format!("{model:#?}"));
    let lines = stored.lines().zip(model.lines());
    let mut differ: Vec<String> = lines
        .filter(|(a, b)| a != b)
        .take(6)
        .map(|(a, b)| format!("{} ≠ {}", a.trim(), b.trim()))
        .collect();
    let (stored, model) = (stored.lines().count(), model.lines().count());
    if stored != model {
        differ.push(format!("{stored} lines, not {model}"));
    }
    Err(TestCaseError::fail(format!("{reason}: stored ≠ model\n{}", differ.join("\n"))))
}

/// Which of the words a part contains as whole words, and which at least inside others.
pub fn words_in(
    texts: &[String],
    words: &[&'static str],
) -> (Vec<&'static str>, Vec<&'static str>) {
    let (mut whole, mut inside) = (Vec::new(), Vec::new());
    for word in words {
        let mut hits = texts.iter().flat_map(|text| {
            text.match_indices(word).map(move |(at, _)| {
                let (before, behind) =
                    (text[..at].chars().next_back(), text[at + word.len()..].chars().next());
                let ends = |side: Option<char>| side.is_none_or(|c| !c.is_alphanumeric());
                ends(before) && ends(behind)
            })
        });
        let hits: Vec<bool> = hits.by_ref().take(64).collect();
        inside.extend((!hits.is_empty()).then_some(*word));
        whole.extend(hits.contains(&true).then_some(*word));
    }
    (whole, inside)
}
