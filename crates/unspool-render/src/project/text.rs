//! Plain text: what `show --full --plain` prints.

use std::io::Write;

use unspool_core::lines::{LineOptions, MAX_LINE_WIDTH, layout, turn_lines};
use unspool_core::{plain, present};

use super::shown::Shown;
use super::{Options, ProjectError, Projection, Story, Way};

pub const PROJECTION: Projection = Projection {
    name: "text",
    title: "Plain text",
    extension: "txt",
    media_type: "text/plain; charset=utf-8",
    about: "plain text, everything unfolded",
    way: Way::Told(write),
};

fn write(story: Story<'_>, options: &Options, out: &mut dyn Write) -> Result<(), ProjectError> {
    let everything = LineOptions::everything();
    let head = layout(&present::session(&story.head, &options.prices), MAX_LINE_WIDTH, &everything);
    out.write_all(plain::paint(&head).as_bytes())?;
    let mut shown = Shown { story };
    while let Some(view) = shown.next_turn()? {
        out.write_all(b"\n")?;
        out.write_all(plain::paint(&turn_lines(&view, MAX_LINE_WIDTH, &everything)).as_bytes())?;
    }
    Ok(())
}
