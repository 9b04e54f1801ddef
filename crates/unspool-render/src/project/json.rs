//! Our own JSON: the session and its turns under the names that `show --json` and the REST API
//! have. Its schema is in the documentation.

use std::io::Write;

use unspool_core::document::{SessionDocument, TurnDocument};
use unspool_core::json::mended;

use super::{Options, ProjectError, Projection, Story, Way};

pub const PROJECTION: Projection = Projection {
    name: "json",
    title: "JSON",
    extension: "json",
    media_type: "application/json",
    about: "the session and its turns as `show --json` has them; docs/session.schema.json says how",
    way: Way::Told(write),
};

fn write(mut story: Story<'_>, options: &Options, out: &mut dyn Write) -> Result<(), ProjectError> {
    let prices = &options.prices;
    out.write_all(b"{\"session\":")?;
    let session = SessionDocument { summary: &story.head, prices };
    serde_json::to_writer(&mut *out, &session).map_err(std::io::Error::from)?;
    out.write_all(b",\n\"turns\":[")?;
    let mut between = "\n";
    while let Some(turn) = story.next_turn()? {
        out.write_all(between.as_bytes())?;
        let agent = &story.head.session.agent;
        let document = TurnDocument { agent, turn: &turn, prices };
        let text = serde_json::to_string(&document).map_err(std::io::Error::from)?;
        // Half a surrogate pair is no text, and readers stop at it.
        out.write_all(mended(&text).as_bytes())?;
        between = ",\n";
    }
    out.write_all(b"\n]}\n")?;
    Ok(())
}
