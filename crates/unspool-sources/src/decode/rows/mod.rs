//! Flat history of applications that keep no parts: one row a line, each something that was said,
//! thought or called, or a prompt with its result. The names of fields are many; `docs/rows.md`
//! lists them. Rows become turns by the rule of `unspool_core::legacy`: a row of the user opens
//! one, and all that follows joins it (R-004-21 to R-004-23).

mod decoder;
mod row;

use unspool_core::telling::Telling;

use super::{Fields, Format, Recognised, Tells, resume};

pub use row::AGENT;

pub const ROWS: Format = Format {
    agent: AGENT,
    telling: Telling::Log,
    tells: Tells::Several,
    name: "rows",
    recognise,
    decoder: || Box::new(decoder::RowsDecoder::default()),
    resume: resume::<decoder::RowsDecoder>,
};

fn recognise<'a>(fields: &Fields<'a>) -> Option<Recognised<'a>> {
    if !row::is_row(fields) {
        return None;
    }
    let session = row::any_text(fields, &row::SESSION);
    Some(session.map_or(Recognised::Format, Recognised::Session))
}

#[cfg(test)]
mod tests;
