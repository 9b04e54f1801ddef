//! Markdown for an issue or a pull request: reasoning and the output of tools folded, diffs fenced
//! as diffs.

use std::io::Write;

use unspool_core::present;

use super::turn_views::TurnViews;
use super::{Options, ProjectError, Projection, SessionStream, WriteMethod};
use crate::markdown;

pub const PROJECTION: Projection = Projection {
    name: "markdown",
    title: "Markdown",
    extension: "md",
    media_type: "text/markdown; charset=utf-8",
    about: "Markdown to be read in a pull request, with reasoning and tool output folded",
    method: WriteMethod::Projected(write),
};

fn write(
    stream: SessionStream<'_>,
    options: &Options,
    out: &mut dyn Write,
) -> Result<(), ProjectError> {
    let head = present::session(&stream.head, &options.prices);
    out.write_all(markdown::session(&head).as_bytes())?;
    out.write_all(b"\n\n")?;
    let mut views = TurnViews { stream };
    while let Some(view) = views.next_turn()? {
        out.write_all(markdown::turn(&view).as_bytes())?;
        out.write_all(b"\n")?;
    }
    Ok(())
}
