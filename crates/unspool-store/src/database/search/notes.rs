//! The user's notes in a search. They are few: all are scanned, with the matcher of parts.

use crate::sql::OptionalExtension;
use unspool_index::{TextQuery, snippet};
use unspool_model::note::{NoteTarget, PlacedNote};
use unspool_model::part::Place;

use super::super::notes;
use super::Search;
use crate::search::{Hit, verify_fields};
use crate::store::StoreError;

impl Search<'_, '_> {
    /// The notes that match, newest first; without words, all that pass the filters.
    pub(super) fn notes(&self, query: &TextQuery) -> Result<Vec<Hit>, StoreError> {
        let request = self.request;
        let about_parts =
            [&request.tool, &request.state, &request.model].into_iter().any(Option::is_some);
        if about_parts || request.kind.as_deref().is_some_and(|kind| kind != "note") {
            return Ok(Vec::new());
        }
        let mut session = self.connection.prepare_cached(
            "SELECT agent, project, coalesce(name, title, prompt) FROM session WHERE id = ?1
                 AND (agent = ?2 OR ?2 IS NULL) AND (instr(project, ?3) > 0 OR ?3 IS NULL)",
        )?;
        let mut hits = Vec::new();
        for (id, placed) in notes::all(self.connection)? {
            let at = placed.note.at.as_millisecond();
            let is_wanted = request.session.is_none_or(|wanted| wanted == id)
                && request.since.is_none_or(|since| at >= since)
                && request.until.is_none_or(|until| at < until);
            if !is_wanted {
                continue;
            }
            let text = placed.note.text.as_str();
            let found = match (query.is_empty(), text) {
                (true, "") if placed.about.is_empty() => {
                    Some(snippet("bookmark", &[], request.width))
                }
                (true, "") => Some(snippet(&placed.about, &[], request.width)),
                (true, text) => Some(snippet(text, &[], request.width)),
                (false, text) => verify_fields(query, &[text], request.width),
            };
            let Some(snippet) = found else { continue };
            let head = session
                .query_row((id.to_string(), &request.agent, &request.project), |row| {
                    Ok((row.get(0)?, row.get(1)?, row.get(2)?))
                })
                .optional()?;
            let Some((agent, project, title)) = head else { continue };
            let PlacedNote { note, turn, place, .. } = placed;
            let (turn_id, part, place) = match note.target {
                NoteTarget::Session => (None, None, None),
                // Where the user's message is, which has no part of the reply.
                NoteTarget::Turn(id) => (Some(id), None, turn.map(|_| Place(-1))),
                NoteTarget::Part(id) => (None, turn.map(|_| id), place),
            };
            hits.push(Hit {
                session: id,
                agent,
                project,
                title,
                turn,
                turn_id,
                place,
                part,
                kind: "note".to_owned(),
                tool: None,
                state: None,
                at: Some(at),
                snippet,
            });
        }
        Ok(hits)
    }
}
