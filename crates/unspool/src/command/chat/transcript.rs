//! What the archive has of the turns of a chat. The host writes a capture; here the recorder is
//! made to read it, in this process or in the one that records, and new parts are taken from the
//! archive, as every other view does.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::{Value, json};
use unspool_ingest::report::Progress;
use unspool_model::document::{PartDocument, UsageDocument};
use unspool_model::id::PartId;
use unspool_model::part::{Kind, Part, Place};
use unspool_model::session::{Turn, TurnState};
use unspool_query::request::{ReadReason, Request};
use unspool_store::blocking::block_on;
use unspool_store::database::DatabaseView;
use unspool_store::store::{StoredSession, View};

use crate::archive::{Archive, Writer};
use crate::config;

/// Reads the turns of a chat.
pub struct ChatTranscript {
    archive: Archive,
    writer: Writer,
    view: Option<DatabaseView>,
    agent: String,
    session: String,
    /// The turns up to this one are older than the chat.
    before: u32,
    printed: HashSet<PartId>,
}

/// What a turn came to.
pub struct ChatEnd {
    pub session: String,
    pub turn: Option<u32>,
    pub state: Option<TurnState>,
    pub usage: Value,
    /// The last text of the reply.
    pub text: Option<String>,
}

impl ChatTranscript {
    /// `resumes`: the session had turns before the chat.
    pub fn new(
        archive: &Archive,
        agent: &str,
        session: &str,
        resumes: bool,
    ) -> Result<ChatTranscript> {
        let mut transcript = ChatTranscript {
            archive: archive.clone(),
            writer: archive.writer()?,
            view: None,
            agent: agent.to_owned(),
            session: session.to_owned(),
            before: 0,
            printed: HashSet::new(),
        };
        if resumes && let Some(stored) = transcript.stored()? {
            let sizes = block_on(transcript.view()?.sizes(stored.row))?;
            transcript.before = sizes.last().map_or(0, |size| size.number);
        }
        Ok(transcript)
    }

    /// Has the recorder read what is new in the capture.
    pub fn read(&mut self, capture: &Path) -> Result<()> {
        let paths: Vec<PathBuf> = vec![capture.to_owned()];
        let request = Request::ReadFiles { paths, reason: ReadReason::Scan };
        self.writer.submit(request, &Progress::default())?;
        // Between two reads another process may record.
        self.writer.release();
        Ok(())
    }

    fn view(&mut self) -> Result<&DatabaseView> {
        if self.view.is_none() {
            self.view = Some(self.archive.view()?);
        }
        self.view.as_ref().ok_or_else(|| anyhow::anyhow!("the archive cannot be read"))
    }

    fn stored(&mut self) -> Result<Option<StoredSession>> {
        let folder = self.archive.folder()?;
        if self.archive.server().is_none() && !folder.database().is_file() {
            return Ok(None);
        }
        let (agent, session) = (self.agent.clone(), self.session.clone());
        let found = block_on(self.view()?.find(session.clone()))?;
        Ok(found.into_iter().find(|stored| {
            let head = &stored.summary.session;
            head.agent == agent && head.agent_session_id == session
        }))
    }

    /// The turns of the chat, without their parts.
    fn turns(&mut self, stored: &StoredSession) -> Result<Vec<Turn>> {
        let before = self.before;
        let view = self.view()?;
        let sizes = block_on(view.sizes(stored.row))?;
        let mut turns = Vec::new();
        for size in sizes.iter().filter(|size| size.number > before) {
            turns.extend(block_on(view.head(stored.row, size.number))?);
        }
        Ok(turns)
    }

    /// A turn's parts and their places, from columns alone.
    fn part_places(&mut self, stored: &StoredSession, number: u32) -> Result<Vec<(PartId, Place)>> {
        let skeleton = block_on(self.view()?.skeleton(stored.row, number))?;
        let parts = skeleton.iter().flat_map(|skeleton| &skeleton.parts);
        Ok(parts.map(|part| (part.id, part.place)).collect())
    }

    fn parts(
        &mut self,
        stored: &StoredSession,
        number: u32,
        places: Vec<Place>,
    ) -> Result<Vec<Part>> {
        Ok(block_on(self.view()?.parts(stored.row, number, places))?)
    }

    /// The parts that are complete and were not returned before, in order, as JSON.
    pub fn new_parts(&mut self) -> Result<Vec<Value>> {
        let Some(stored) = self.stored()? else { return Ok(Vec::new()) };
        let agent = self.agent.clone();
        let mut new = Vec::new();
        for turn in self.turns(&stored)? {
            let running = turn.state == TurnState::Running;
            // By id: a part may move when another feed tells what was before it.
            let mut places = self.part_places(&stored, turn.number)?;
            places.retain(|(id, _)| !self.printed.contains(id));
            let places = places.into_iter().map(|(_, place)| place).collect();
            let parts = self.parts(&stored, turn.number, places)?;
            // Nothing is returned before the parts that come before it.
            let open = parts.iter().position(|part| running && part.body.is_open());
            for part in &parts[..open.unwrap_or(parts.len())] {
                if self.printed.insert(part.id) {
                    let document = PartDocument::new(&agent, &turn, part);
                    let mut document = serde_json::to_value(document)?;
                    document["turn"] = json!(turn.number);
                    new.push(document);
                }
            }
        }
        Ok(new)
    }

    /// What the last turn came to. None if the archive has no turn of the chat.
    pub fn end(&mut self) -> Result<Option<ChatEnd>> {
        let Some(stored) = self.stored()? else { return Ok(None) };
        let turns = self.turns(&stored)?;
        let prices = config::prices()?;
        let mut text = None;
        for turn in turns.iter().rev() {
            let places = self.part_places(&stored, turn.number)?;
            let places = places.into_iter().map(|(_, place)| place).collect();
            let parts = self.parts(&stored, turn.number, places)?;
            let texts = parts.iter().rev().filter(|part| part.body.kind() == Kind::Text);
            let mut texts = texts.filter_map(|part| part.body.prose());
            let last = texts.find(|text| !text.trim().is_empty()).map(str::to_owned);
            text = text.or(last);
            if text.is_some() {
                break;
            }
        }
        let last = turns.last();
        let usage = last.map(|turn| UsageDocument {
            usage: turn.usage(),
            cost_usd: None,
            partial_cost_usd: None,
            estimated_cost_usd: turn.spending().estimated_usd(&prices),
        });
        Ok(Some(ChatEnd {
            session: stored.summary.session.id.to_string(),
            turn: last.map(|turn| turn.number),
            state: last.map(|turn| turn.state),
            usage: serde_json::to_value(usage)?,
            text,
        }))
    }
}
