//! The text of a search hit, taken from the redacted part.

use unspool_model::session::Turn;
use unspool_store::blocking::block_on;
use unspool_store::search::{Hit, TextQuery, beginning, verify, verify_fields};
use unspool_store::store::{StoredSession, View};

use crate::exit::Exit;
use crate::reader::Reader;
use crate::tool::ToolError;

/// The ways in which a query may have been read: as it is, and its pieces.
pub struct HitTexts {
    readings: Vec<TextQuery>,
}

impl HitTexts {
    pub fn new(query: &str) -> HitTexts {
        let others = TextQuery::other_readings(query);
        let others = others.iter().map(|other| TextQuery::parse(&other.query));
        let readings = std::iter::once(TextQuery::parse(query)).chain(others);
        HitTexts { readings: readings.filter(|reading| !reading.is_empty()).collect() }
    }
}

/// What a hit shows, or `None` if only redacted text matches.
pub fn hit_text<V: View>(
    reader: &Reader<V>,
    exit: &mut Exit<'_>,
    stored: &StoredSession,
    hit: &Hit,
    texts: &HitTexts,
    width: usize,
) -> Result<Option<String>, ToolError> {
    let fields: Vec<String> = match (hit.kind.as_str(), hit.turn, hit.place) {
        ("title", _, _) => {
            let facts = &stored.summary.session.facts;
            let title = hit.title.as_ref().or(stored.summary.title.as_ref());
            [title, facts.project.as_ref(), facts.branch.as_ref()]
                .into_iter()
                .flatten()
                .map(|field| exit.text(field))
                .collect()
        }
        ("note", _, _) => {
            let notes = block_on(reader.view.notes(stored.summary.session.id))?;
            notes.iter().map(|placed| exit.text(&placed.note.text)).collect()
        }
        (_, Some(number), Some(place)) => {
            let Some(turn) = block_on(reader.view.head(stored.row, number))? else {
                return Ok(None);
            };
            // The user's messages come with their turn.
            let is_user = place.0 < 0;
            let loaded = match is_user {
                true => Vec::new(),
                false => block_on(reader.view.parts(stored.row, number, vec![place]))?,
            };
            let turn = exit.turn(Turn { parts: loaded, ..turn });
            let bodies = turn.parts.iter().map(|part| &part.body);
            let said = turn.user.iter().filter(|_| is_user);
            let found = bodies.chain(said).find_map(|body| {
                if texts.readings.is_empty() {
                    return Some(beginning(body, width).text);
                }
                let mut readings = texts.readings.iter();
                readings.find_map(|reading| verify(reading, body, || None, width)).map(|it| it.text)
            });
            return Ok(found);
        }
        (_, _, _) => return Ok(None),
    };
    let each = fields.iter().map(String::as_str);
    if texts.readings.is_empty() {
        return Ok(each.map(str::to_owned).next());
    }
    let found = texts.readings.iter().find_map(|reading| {
        if hit.kind == "title" {
            let fields: Vec<&str> = each.clone().collect();
            verify_fields(reading, &fields, width)
        } else {
            each.clone().find_map(|field| verify_fields(reading, &[field], width))
        }
    });
    Ok(found.map(|snippet| snippet.text))
}
