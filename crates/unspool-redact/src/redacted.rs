//! [`Redacted`]: the type of everything that leaves Unspool (law 12). Projections take only this
//! type and only a [`Redactor`] makes one, so that no code can forget to redact.

use std::ops::Deref;

use unspool_model::json::Json;
use unspool_model::note::PlacedNote;
use unspool_model::part::{Body, Part};
use unspool_model::prompt::RecordedPrompts;
use unspool_model::session::{Session, Transcript, Turn, TurnState};
use unspool_model::summary::Summary;

use super::Redactor;

/// A value that went through a [`Redactor`].
///
/// ```compile_fail
/// use unspool_redact::Redacted;
///
/// let skipped_the_redactor = Redacted("export DB_PASSWORD=correct7horse");
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Redacted<T>(T);

impl<T> Redacted<T> {
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> Deref for Redacted<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl Redactor<'_> {
    pub fn release_transcript(&mut self, mut transcript: Transcript) -> Redacted<Transcript> {
        self.transcript(&mut transcript);
        Redacted(transcript)
    }

    pub fn release_session(&mut self, mut session: Session) -> Redacted<Session> {
        self.session(&mut session);
        Redacted(session)
    }

    pub fn release_summary(&mut self, mut summary: Summary) -> Redacted<Summary> {
        self.session(&mut summary.session);
        for text in summary.title.iter_mut().chain(&mut summary.tags).chain(&mut summary.models) {
            *text = self.text(text).into_owned();
        }
        Redacted(summary)
    }

    /// A turn. The unfinished end of what is still being written is left out: it may be the
    /// beginning of a secret, which no rule recognises before it is complete.
    pub fn release_turn(&mut self, mut turn: Turn) -> Redacted<Turn> {
        // A source without times does not say whether its turn runs.
        let may_go_on = matches!(turn.state, TurnState::Running | TurnState::Unknown);
        if self.rules.is_some() && may_go_on {
            turn.parts.iter_mut().for_each(drop_unfinished_words);
        }
        self.turn(&mut turn);
        Redacted(turn)
    }

    /// The closed parts of a turn that is sent while it runs. An open part may end in the middle of
    /// a secret, which no rule recognises then. Parts are sent in order, so the ones after an open
    /// part wait for it too. A redactor that is off keeps them all.
    pub fn release_live_turn(&mut self, mut turn: Turn) -> Redacted<Turn> {
        if self.rules.is_some() && turn.state == TurnState::Running {
            let open = turn.parts.iter().position(is_open_prose);
            turn.parts.truncate(open.unwrap_or(turn.parts.len()));
            turn.parts.iter_mut().for_each(drop_partial_call);
        }
        self.release_turn(turn)
    }

    /// The user's notes on a session.
    pub fn release_notes(&mut self, mut notes: Vec<PlacedNote>) -> Redacted<Vec<PlacedNote>> {
        for placed in &mut notes {
            placed.note.text = self.text(&placed.note.text).into_owned();
        }
        Redacted(notes)
    }

    /// The prompts of a session.
    pub fn release_prompts(&mut self, mut prompts: RecordedPrompts) -> Redacted<RecordedPrompts> {
        self.prompts(&mut prompts);
        Redacted(prompts)
    }

    pub fn release_json(&mut self, json: &Json) -> Redacted<Json> {
        Redacted(self.json(json))
    }
}

fn is_open_prose(part: &Part) -> bool {
    if let Body::Text(text) = &part.body {
        text.open
    } else if let Body::Reasoning(reasoning) = &part.body {
        reasoning.open
    } else {
        false
    }
}

/// Cuts the last word of every text that is still being written.
fn drop_unfinished_words(part: &mut Part) {
    if let Body::Text(text) = &mut part.body
        && text.open
    {
        drop_last_word(&mut text.text);
    } else if let Body::Reasoning(reasoning) = &mut part.body
        && reasoning.open
    {
        drop_last_word(&mut reasoning.text);
    } else if let Body::Tool(tool) = &mut part.body
        && !tool.state.is_terminal()
    {
        drop_last_word(&mut tool.input_text);
        tool.output.iter_mut().for_each(drop_last_word);
    }
}

/// Replaces what follows the last white space by an ellipsis. A private key has several words, and is
/// recognised without its end.
fn drop_last_word(text: &mut String) {
    let kept = text.trim_end_matches(|c: char| !c.is_whitespace()).len();
    if kept < text.len() {
        text.truncate(kept);
        text.push('…');
    }
}

/// Removes the input and output of a call that are still being written.
fn drop_partial_call(part: &mut Part) {
    if let Body::Tool(tool) = &mut part.body
        && !tool.state.is_terminal()
    {
        tool.input_text.clear();
        (tool.output, tool.result) = (None, None);
    }
}
