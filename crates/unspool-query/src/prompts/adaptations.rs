//! Which adaptations are in the prompts of a session. This is what an agent recorded: that a text is
//! enabled, or that a hook printed it, does not count here.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};
use unspool_model::adaptation::is_id;
use unspool_model::part::Body;
use unspool_model::prompt::{
    AdaptationFrame, CallPrompt, MessageDigest, PromptGap, adaptation_frames,
};
use unspool_model::session::Turn;
use unspool_store::store::{StoreError, View};

use super::SessionPrompts;

/// The adaptations in the prompts of a session.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SeenAdaptations {
    /// Model calls whose prompts are known.
    pub calls: u64,
    /// Adaptations would be in what is known.
    pub shows_all: bool,
    /// By id.
    pub items: BTreeMap<String, SeenAdaptation>,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SeenAdaptation {
    /// Model calls that were sent it.
    pub calls: u64,
    /// The versions of the state in the frames.
    pub versions: Vec<u64>,
    /// The text of a frame is not the one of its digest.
    pub is_altered: bool,
    /// The first turn with it; `None` if its call got no reply.
    pub turn: Option<u32>,
}

/// Agents whose logs have what hooks added to the user's words.
const RECORD_HOOKS: &[&str] = &["gemini", "copilot"];

impl SeenAdaptations {
    /// Adds what a frame names. Whoever writes a frame may write anything into it.
    fn add(
        &mut self,
        frame: &AdaptationFrame<'_>,
        mut also: impl FnMut(&str, &mut SeenAdaptation),
    ) {
        for id in frame.ids.iter().flatten().filter(|id| is_id(id)) {
            let seen = self.items.entry((*id).to_owned()).or_default();
            seen.is_altered |= frame.is_altered();
            let version = frame.version.and_then(|version| version.parse::<u64>().ok());
            if let Some(version) = version.filter(|version| !seen.versions.contains(version)) {
                seen.versions.push(version);
            }
            also(id, seen);
        }
    }
}

impl SessionPrompts {
    /// The adaptations in its prompts.
    pub async fn adaptations<V: View>(&self, view: &V) -> Result<SeenAdaptations, StoreError> {
        // What a tool printed is no adaptation.
        let messages = || self.tree.messages().filter(|message| !message.is_conversation());
        let texts = self.texts(view, &messages().collect::<Vec<_>>()).await?;
        let mut seen = SeenAdaptations::default();
        let mut carriers: FxHashMap<String, FxHashSet<MessageDigest>> = FxHashMap::default();
        for message in messages() {
            for piece in message.pieces.iter().filter(|piece| !piece.is_conversation()) {
                let Some(text) = texts.text(piece) else { continue };
                for frame in adaptation_frames(&text) {
                    seen.add(&frame, |id, _| {
                        carriers.entry(id.to_owned()).or_default().insert(message.digest);
                    });
                }
            }
        }
        for (id, messages) in &carriers {
            let with = self.tree.calls_with(messages);
            let Some(item) = seen.items.get_mut(id) else { continue };
            item.calls = with.len() as u64;
            let turns = with.iter().filter_map(|call| Some(self.calls.step(call)?.turn));
            item.turn = turns.min();
        }
        let hides = |gap: &PromptGap| {
            matches!(
                gap,
                PromptGap::MostOfIt
                    | PromptGap::EarlierMessages
                    | PromptGap::Instructions
                    | PromptGap::HookContext
            )
        };
        let shows = |call: CallPrompt<'_>| {
            call.unknown_messages() == 0 && !call.call().gaps.iter().any(hides)
        };
        seen.calls = self.tree.calls().len() as u64;
        seen.shows_all = seen.calls > 0 && self.tree.calls().all(shows);
        Ok(seen)
    }
}

/// The same for agents that do not record prompts but the context that hooks added to the user's
/// words, which is in every later call of the session.
#[derive(Debug, Default)]
pub struct ContextFrames(SeenAdaptations);

impl ContextFrames {
    /// Adds the next turn.
    pub fn add(&mut self, turn: &Turn) {
        let parts = turn.parts.iter().map(|part| &part.body);
        for body in turn.user.iter().chain(parts) {
            let Body::ContextInfo(context) = body else { continue };
            for frame in adaptation_frames(&context.text) {
                self.0.add(&frame, |_, seen| _ = seen.turn.get_or_insert(turn.number));
            }
        }
        let calls = turn.steps.len() as u64;
        self.0.calls += calls;
        self.0.items.values_mut().for_each(|seen| seen.calls += calls);
    }

    pub fn finish(self, agent: &str) -> SeenAdaptations {
        SeenAdaptations { shows_all: RECORD_HOOKS.contains(&agent), ..self.0 }
    }
}
