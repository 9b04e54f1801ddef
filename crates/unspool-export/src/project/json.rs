//! Our own JSON: the session and its turns, with the field names of `show --json` and the REST API.
//! Schema: docs/session.schema.json.

use std::io::Write;

use unspool_model::document::{SessionDocument, TurnDocument};
use unspool_model::json::replace_lone_surrogates;
use unspool_model::note::NoteDocument;

use super::{Options, ProjectError, Projection, SessionStream, WriteMethod};

pub const PROJECTION: Projection = Projection {
    name: "json",
    title: "JSON",
    extension: "json",
    media_type: "application/json",
    about: "the session and its turns, as in `show --json`; schema: docs/session.schema.json",
    has_notes: true,
    has_turns: false,
    method: WriteMethod::Projected(write),
};

fn write(
    mut stream: SessionStream<'_>,
    options: &Options,
    out: &mut dyn Write,
) -> Result<(), ProjectError> {
    let prices = &options.prices;
    out.write_all(b"{\"session\":")?;
    let session = SessionDocument { summary: &stream.head, prices };
    serde_json::to_writer(&mut *out, &session).map_err(std::io::Error::from)?;
    if options.notes {
        out.write_all(b",\n\"notes\":")?;
        let notes: Vec<NoteDocument<'_>> = stream.notes.iter().map(NoteDocument).collect();
        serde_json::to_writer(&mut *out, &notes).map_err(std::io::Error::from)?;
    }
    out.write_all(b",\n\"turns\":[")?;
    let mut between = "\n";
    while let Some(turn) = stream.next_turn()? {
        out.write_all(between.as_bytes())?;
        let agent = &stream.head.session.agent;
        let document = TurnDocument { agent, turn: &turn, prices };
        let text = serde_json::to_string(&document).map_err(std::io::Error::from)?;
        // Readers reject lone surrogates.
        out.write_all(replace_lone_surrogates(&text).as_bytes())?;
        between = ",\n";
    }
    out.write_all(b"\n]}\n")?;
    Ok(())
}
