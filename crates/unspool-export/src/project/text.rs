//! Plain text: what `show --full --plain` prints.

use std::io::Write;

use unspool_view::lines::{LineOptions, MAX_LINE_WIDTH, layout, turn_lines};
use unspool_view::present::notes::head_blocks;
use unspool_view::{plain, present};

use super::turn_views::TurnViews;
use super::{Options, ProjectError, Projection, SessionStream, WriteMethod};

pub const PROJECTION: Projection = Projection {
    name: "text",
    title: "Plain text",
    extension: "txt",
    media_type: "text/plain; charset=utf-8",
    about: "plain text, everything unfolded",
    has_notes: true,
    has_turns: true,
    method: WriteMethod::Projected(write),
};

fn write(
    stream: SessionStream<'_>,
    options: &Options,
    out: &mut dyn Write,
) -> Result<(), ProjectError> {
    let everything = LineOptions::everything();
    let head =
        layout(&present::session(&stream.head, &options.prices), MAX_LINE_WIDTH, &everything);
    out.write_all(plain::paint(&head).as_bytes())?;
    let notes = layout(&head_blocks(&stream.notes), MAX_LINE_WIDTH, &everything);
    if !notes.is_empty() {
        write!(out, "\n{}", plain::paint(&notes))?;
    }
    let mut views = TurnViews { stream };
    while let Some(view) = views.next_turn()? {
        out.write_all(b"\n")?;
        out.write_all(plain::paint(&turn_lines(&view, MAX_LINE_WIDTH, &everything)).as_bytes())?;
    }
    Ok(())
}
