//! Flat history of applications that store no parts: one row per line, which is a message, a
//! thought, a tool call, or a prompt with its result. `docs/rows.md` lists the field names. Rows
//! become turns by the rule of `unspool_model::legacy`: a user row starts a turn, and all rows that
//! follow belong to it (R-004-21 to R-004-23). A live application pushes frames instead
//! (`frames.rs`).

mod blocks;
mod decoder;
mod frame_streams;
mod frames;
mod pair;
mod row;

use row::NAME;
use unspool_model::provenance::Feed;

use super::{Fields, Format, Precedence, RecordOwner, SessionsPerFile, resume};
use crate::agents::Agent;

pub const AGENT: Agent = Agent::new(NAME, "Rows of flat history", &[ROWS, FRAMES]);

pub const ROWS: Format = Format {
    agent: NAME,
    feed: Feed::Log,
    sessions_per_file: SessionsPerFile::Several,
    name: "rows",
    recognise,
    decoder: || Box::new(decoder::RowsDecoder::default()),
    resume: resume::<decoder::RowsDecoder>,
    precedence: Precedence::Fallback,
    samples: &[r#"{"role":"user","content":"hi"}"#],
};

pub const FRAMES: Format = Format {
    agent: NAME,
    feed: Feed::Log,
    sessions_per_file: SessionsPerFile::Several,
    name: "frames",
    recognise: frames::recognise,
    decoder: || Box::new(frames::FramesDecoder::default()),
    resume: resume::<frames::FramesDecoder>,
    precedence: Precedence::Specific,
    samples: &[
        r#"{"type":"channel.start","seq":1,"session":"s"}"#,
        r#"{"type":"message.delta","seq":2,"kind":"thinking","text":"Hm."}"#,
    ],
};

fn recognise<'a>(fields: &Fields<'a>) -> Option<RecordOwner<'a>> {
    if !row::is_row(fields) {
        return None;
    }
    let session = row::any_text(fields, &row::SESSION_FIELDS);
    Some(session.map_or(RecordOwner::Format, RecordOwner::Session))
}

#[cfg(test)]
mod recognition_tests;
