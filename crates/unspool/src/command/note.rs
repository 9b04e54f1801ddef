//! `unspool note`: the user's own notes and bookmarks on a session, a turn or a part.

use std::collections::HashMap;
use std::io::{self, BufWriter, Write};

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use serde::Serialize;
use unspool_ingest::report::Progress;
use unspool_model::id::{Id, PartId, SessionId};
use unspool_model::note::{NoteDocument, NoteTarget, PlacedNote};
use unspool_query::request::Request;
use unspool_store::blocking::block_on;
use unspool_store::database::DatabaseView;
use unspool_store::store::{StoredSession, View};
use unspool_view::lines::make_visible;
use unspool_view::present::UNTITLED;
use unspool_view::present::notes::{note_line, note_place};

use crate::archive::{Archive, find, no_turn};

/// The longest line about a note in a list, in characters.
const LINE_LENGTH: usize = 100;

/// Write a note on a session, a turn or a part, or list notes
///
/// A note is kept in the archive, not in the transcript: `show`, the page and the terminal
/// application show it at its place, and search finds it. Each place has one note; another one
/// replaces it. A note without text is a bookmark.
#[derive(Args)]
pub struct Note {
    /// Its id, a unique prefix of it, or the agent's own id; without one, the notes on all sessions
    /// are listed, newest first
    session: Option<String>,
    /// The text; without one, the notes on the session are listed
    text: Option<String>,
    /// On this turn; 0 is everything before the first prompt
    #[arg(long, value_name = "N", requires = "session")]
    turn: Option<u32>,
    /// On a part: its number in the turn, counted from 1, or its id
    #[arg(long, value_name = "N|ID", requires = "session")]
    part: Option<String>,
    /// Set a bookmark: a note without text
    #[arg(long, requires = "session", conflicts_with_all = ["text", "remove"])]
    bookmark: bool,
    /// Remove the note or bookmark
    #[arg(long, requires = "session", conflicts_with = "text")]
    remove: bool,
    /// Write the notes as JSON
    #[arg(long, conflicts_with_all = ["text", "bookmark", "remove"])]
    json: bool,
}

/// A note of the list, as JSON.
#[derive(Serialize)]
struct ListedNote<'a> {
    session: SessionId,
    #[serde(flatten)]
    note: NoteDocument<'a>,
}

impl Note {
    pub fn run(self, archive: &Archive) -> Result<()> {
        let view = archive.view()?;
        let Some(session) = &self.session else {
            let notes = block_on(view.all_notes())?;
            return list(&view, &notes, self.json);
        };
        let stored = find(&view, session)?;
        let session = stored.summary.session.id;
        let text = match (&self.text, self.bookmark, self.remove) {
            (_, _, true) => None,
            (_, true, _) => Some(String::new()),
            (Some(text), ..) if text.trim().is_empty() => {
                bail!("the note has no text; --bookmark sets a bookmark, --remove removes a note")
            }
            (Some(text), ..) => Some(text.clone()),
            (None, ..) => return self.list_of(&view, &stored),
        };
        let target = self.target(&view, &stored)?;
        let request = Request::Note { session, target, text };
        archive.writer()?.submit(request, &Progress::default())?;
        let notes = block_on(archive.view()?.notes(session))?;
        for placed in notes.iter().filter(|placed| placed.note.target == target) {
            print(&line(placed))?;
        }
        Ok(())
    }

    fn list_of(&self, view: &DatabaseView, stored: &StoredSession) -> Result<()> {
        if self.turn.is_some() || self.part.is_some() {
            bail!("what to note there? Give a text, --bookmark or --remove");
        }
        let session = stored.summary.session.id;
        let notes = block_on(view.notes(session))?;
        if self.json {
            let listed: Vec<ListedNote<'_>> =
                notes.iter().map(|note| ListedNote { session, note: NoteDocument(note) }).collect();
            return super::write_json(&listed);
        }
        notes.iter().try_for_each(|placed| print(&line(placed)))
    }

    fn target(&self, view: &DatabaseView, stored: &StoredSession) -> Result<NoteTarget> {
        let turn = |number: u32| {
            let sizes = block_on(view.sizes(stored.row))?;
            sizes
                .iter()
                .find(|size| size.number == number)
                .map(|size| size.id)
                .with_context(|| no_turn(number, sizes.iter().map(|size| size.number)))
        };
        let Some(part) = &self.part else {
            return Ok(match self.turn {
                None => NoteTarget::Session,
                Some(number) => NoteTarget::Turn(turn(number)?),
            });
        };
        if let Ok(id) = part.parse::<Id>() {
            return Ok(NoteTarget::Part(PartId(id)));
        }
        let nth: usize = part.parse().map_err(|_| {
            anyhow!("invalid part {part}: give its number in the turn, counted from 1, or its id")
        })?;
        let number = self.turn.context("a part's number needs its turn: add --turn N")?;
        turn(number)?;
        let skeleton = block_on(view.skeleton(stored.row, number))?;
        let parts = skeleton.map(|skeleton| skeleton.parts).unwrap_or_default();
        let found = nth.checked_sub(1).and_then(|at| parts.get(at));
        let found = found.with_context(|| {
            format!("there is no part {nth} in turn {number}; the turn has {} parts", parts.len())
        })?;
        Ok(NoteTarget::Part(found.id))
    }
}

/// Lists the notes on all sessions, each with its session.
fn list(view: &DatabaseView, notes: &[(SessionId, PlacedNote)], json: bool) -> Result<()> {
    if json {
        let listed = notes
            .iter()
            .map(|(session, note)| ListedNote { session: *session, note: NoteDocument(note) });
        return super::write_json(&listed.collect::<Vec<_>>());
    }
    let ids: Vec<SessionId> = notes.iter().map(|(session, _)| *session).collect();
    let titles: HashMap<SessionId, Option<String>> = block_on(view.sessions_by_id(ids))?
        .into_iter()
        .map(|stored| (stored.summary.session.id, stored.summary.title))
        .collect();
    for (session, placed) in notes {
        let title = titles.get(session).and_then(Option::as_deref).unwrap_or(UNTITLED);
        let at = placed.note.at.strftime("%Y-%m-%d %H:%M");
        print(&format!("{session}  {at}  {title}\n    {}", line(placed)))?;
    }
    Ok(())
}

/// `turn 3: look here`
fn line(placed: &PlacedNote) -> String {
    format!("{}: {}", note_place(placed), note_line(placed, LINE_LENGTH))
}

/// Titles and notes are untrusted, so control characters are escaped.
fn print(text: &str) -> Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    for line in text.lines() {
        writeln!(out, "{}", make_visible(line))?;
    }
    Ok(out.flush()?)
}
