//! `unspool show`: prints one session in order, from the archive or directly from its file or
//! folder.

mod file;
mod follow;

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Result, anyhow, bail};
use clap::{Args, ValueEnum};
use jiff::Timestamp;
use serde::Serialize;
use unspool_model::context::ContextUse;
use unspool_model::document::{SessionDocument, TurnDocument};
use unspool_model::id::{NotAnId, PartId};
use unspool_model::session::{Transcript, Turn};
use unspool_model::summary::Summary;
use unspool_query::context::context;
use unspool_query::subagents::subagents;
use unspool_sources::decode::Warning;
use unspool_sources::read::rows;
use unspool_store::blocking::block_on;
use unspool_store::database::DatabaseView;
use unspool_store::store::{StoredSession, TurnWindow, View};
use unspool_view::present::notes::NoteViews;
use unspool_view::segment::SegmentRule;

use crate::archive::{Archive, find, no_turn};
use crate::paint::Joined;
use crate::{config, paint};

/// Number of turns loaded at once, so that output starts at once even for a long session.
const TURNS_PER_LOAD: u32 = 16;

/// Show a session in the order in which it happened
#[derive(Args)]
pub struct Show {
    /// A session of the archive: its id, a unique prefix of it, or the agent's own id. Or a path: a
    /// session's log, a stream or hook capture, a folder with several captures of one session,
    /// or - for standard input
    #[arg(value_name = "SESSION|PATH")]
    what: PathBuf,
    /// Write the session as JSON
    #[arg(long, conflicts_with = "plain")]
    json: bool,
    /// Write plain text without colours
    #[arg(long)]
    plain: bool,
    /// Show only the turn with this number; 0 is everything before the first prompt
    #[arg(long, value_name = "N")]
    turn: Option<u32>,
    /// Show only the part with this id, in full
    #[arg(long, value_name = "ID", conflicts_with_all = ["turn", "json"])]
    part: Option<String>,
    /// Keep printing new parts, each when it is complete, until the session has ended or is idle,
    /// or you press Ctrl-C. Reads agents' logs meanwhile, unless another unspool does
    #[arg(long, conflicts_with_all = ["json", "turn", "part"])]
    follow: bool,
    /// Show reasoning, folded parts and outputs in full
    #[arg(long)]
    full: bool,
    /// How calls are grouped into reasoning blocks. until-text keeps calls in a block until the next
    /// text, for models that call several tools at once
    #[arg(long, value_name = "RULE", default_value = "default")]
    blocks: BlockRule,
    /// A prefix of the session's id, if the file or folder holds several sessions
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Width in columns, at least 20; the terminal's width by default
    #[arg(long, value_name = "COLUMNS", value_parser = clap::value_parser!(u16).range(20..))]
    width: Option<u16>,
}

#[derive(Serialize)]
struct Document<'a, R: Serialize> {
    session: SessionDocument<'a>,
    turns: Vec<TurnDocument<'a>>,
    /// Of a session of the archive.
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<ContextUse>,
    records: &'a R,
    warnings: &'a [Warning],
}

/// The names of [`SegmentRule`].
#[derive(Clone, Copy, ValueEnum)]
enum BlockRule {
    Default,
    UntilText,
}

impl Show {
    fn style(&self) -> paint::Style {
        let rule = match self.blocks {
            BlockRule::Default => SegmentRule::Default,
            BlockRule::UntilText => SegmentRule::UntilText,
        };
        paint::Style { rule, ..super::style(self.width, self.plain, self.full) }
    }

    pub fn run(self, archive: &Archive) -> Result<()> {
        match self.id() {
            Some(id) if self.follow => follow::follow(archive, &id, &self.style()),
            None if self.follow => bail!(
                "--follow needs a session of the archive, not a path; `unspool list` shows all \
                 sessions"
            ),
            Some(id) => match &self.part {
                Some(part) => self.show_part(archive, &id, part),
                None => self.show_stored(archive, &id),
            },
            None if self.part.is_some() => bail!(
                "--part needs a session of the archive, not a path; `unspool import` adds the \
                 path's sessions to the archive"
            ),
            None => self.show_file(),
        }
    }

    /// The argument if it is a session id: not an existing path and not written like one.
    fn id(&self) -> Option<String> {
        let text = self.what.to_str()?;
        let path = text == "-"
            || text.contains(['/', '\\'])
            || text.ends_with(".jsonl")
            || rows::exists(&self.what);
        (!path).then(|| text.to_owned())
    }

    fn show_file(self) -> Result<()> {
        let file::FromFile { summary, transcript, subagents, records, warnings } =
            file::load(&self.what, self.session.as_deref())?;
        let turns: Vec<Turn> = match self.turn {
            Some(number) => vec![the_turn(transcript, number)?],
            None => transcript.turns,
        };
        if self.json {
            return write(&summary, &turns, None, &records, &warnings);
        }
        super::warn(&warnings);
        let style = self.style();
        let mut out = io::BufWriter::new(io::stdout().lock());
        paint::head(&summary, &config::prices()?, &style, &mut out)?;
        let joined = Joined { subagents, ..Joined::default() };
        paint::turns(&summary.session, &turns, joined, &style, &mut out)?;
        Ok(())
    }

    /// One part, below the header of its turn.
    fn show_part(&self, archive: &Archive, id: &str, part: &str) -> Result<()> {
        let view = archive.view()?;
        let stored = find(&view, id)?;
        let wanted = part.parse().map(PartId).map_err(|why: NotAnId| {
            anyhow!("{part} is no id of a part: {why}; `unspool show {id} --json` has the ids")
        })?;
        let Some((turn, place)) = block_on(view.locate(stored.row, None, wanted))? else {
            bail!("this session has no part {part}; `unspool show {id} --json` has the ids");
        };
        let head = block_on(view.head(stored.row, turn))?;
        let Some(mut head) = head else { bail!("turn {turn} of this session cannot be read") };
        head.parts = block_on(view.parts(stored.row, turn, vec![place]))?;
        let mut turns = [head];
        stored.summary.settle(&mut turns, Timestamp::now());
        let session = &stored.summary.session;
        let subagents = block_on(subagents(&view, &session.agent, &turns))?;
        let joined = Joined { subagents, ..Joined::default() };
        let style = paint::Style { full: true, ..self.style() };
        let mut out = io::BufWriter::new(io::stdout().lock());
        paint::turns(session, &turns, joined, &style, &mut out)?;
        Ok(())
    }

    fn show_stored(self, archive: &Archive, id: &str) -> Result<()> {
        let view = archive.view()?;
        let stored = find(&view, id)?;
        let summary = &stored.summary;
        let warnings: Vec<Warning> = block_on(view.warnings(stored.row))?
            .into_iter()
            .map(|row| Warning {
                file: row.file,
                line: row.line,
                what: row.what,
                bytes: Vec::new(),
            })
            .collect();
        if self.json {
            let window = self.turn.map_or(TurnWindow::All, TurnWindow::Turn);
            let turns = load(&view, &stored, window)?;
            let records = block_on(view.records(stored.row))?;
            let used = block_on(context(&view, &stored))?;
            return write(summary, &turns, used, &records, &warnings);
        }
        // Loaded before the head is printed: the session may have no such turn.
        let only = match self.turn {
            Some(number) => Some(load(&view, &stored, TurnWindow::Turn(number))?),
            None => None,
        };
        super::warn(&warnings);
        let style = self.style();
        let mut out = io::BufWriter::new(io::stdout().lock());
        paint::head(summary, &config::prices()?, &style, &mut out)?;
        let notes = block_on(view.notes(summary.session.id))?;
        paint::head_notes(&notes, &style, &mut out)?;
        let joined = |turns: &[Turn]| -> Result<Joined> {
            let subagents = block_on(subagents(&view, &summary.session.agent, turns))?;
            Ok(Joined { subagents, notes: NoteViews::of(&notes) })
        };
        if let Some(turns) = only {
            paint::turns(&summary.session, &turns, joined(&turns)?, &style, &mut out)?;
            return Ok(());
        }
        out.flush()?;
        let mut number = 0;
        loop {
            let turns = load(&view, &stored, TurnWindow::From { number, count: TURNS_PER_LOAD })?;
            let Some(last) = turns.last() else { break };
            number = last.number + 1;
            paint::turns(&summary.session, &turns, joined(&turns)?, &style, &mut out)?;
        }
        Ok(())
    }
}

/// Loads turns from the archive and settles their states.
fn load(view: &DatabaseView, stored: &StoredSession, window: TurnWindow) -> Result<Vec<Turn>> {
    let mut turns = block_on(view.turns(stored.row, window))?;
    if let TurnWindow::Turn(number) = window
        && turns.is_empty()
    {
        let sizes = block_on(view.sizes(stored.row))?;
        bail!(no_turn(number, sizes.iter().map(|size| size.number)));
    }
    turns.retain(|turn| !turn.is_blank());
    stored.summary.settle(&mut turns, Timestamp::now());
    Ok(turns)
}

fn the_turn(mut transcript: Transcript, number: u32) -> Result<Turn> {
    match transcript.turns.iter().position(|turn| turn.number == number) {
        Some(at) => Ok(transcript.turns.swap_remove(at)),
        None => bail!(no_turn(number, transcript.turns.iter().map(|turn| turn.number))),
    }
}

fn write(
    summary: &Summary,
    turns: &[Turn],
    context: Option<ContextUse>,
    records: &impl Serialize,
    warnings: &[Warning],
) -> Result<()> {
    let agent = &summary.session.agent;
    let prices = &config::prices()?;
    let turns = turns.iter().map(|turn| TurnDocument { agent, turn, prices }).collect();
    let session = SessionDocument { summary, prices };
    super::write_json(&Document { session, turns, context, records, warnings })
}
