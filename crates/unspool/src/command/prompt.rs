//! `unspool prompt`: what the model calls of a session were sent.

use std::collections::HashSet;
use std::io;

use anyhow::{Result, bail};
use clap::Args;
use unspool_model::prompt::{PromptGrade, PromptKnowledge};
use unspool_query::prompts::{
    ContextDocument, PromptDocument, PromptsDocument, SessionPrompts, prompts,
};
use unspool_store::blocking::block_on;
use unspool_store::store::View;
use unspool_view::block::{Block, Span};
use unspool_view::present::format;
use unspool_view::present::prompt::{
    self, CONTEXT_ROWS, Call, PromptContext, PromptDifference, ShownPiece,
};

use crate::archive::{Archive, find};
use crate::paint;

/// Show what a model call was sent: instructions, tools, and the messages of the conversation
#[derive(Args)]
pub struct Prompt {
    /// A session of the archive, one of its turns (SESSION:2), or one call of it (SESSION:2.1).
    /// Without a turn: all calls, and what fills their prompts
    #[arg(value_name = "SESSION[:TURN[.STEP]]")]
    session: String,
    /// Only the pieces that the call before was not sent
    #[arg(long)]
    diff: bool,
    /// Only the calls, or the pieces of a call, that have this text
    #[arg(long, value_name = "TEXT", conflicts_with = "diff")]
    find: Option<String>,
    /// What all calls were sent together: which kinds, files, hooks and tools took the most, and the
    /// tools that were never called
    #[arg(long, conflicts_with_all = ["diff", "find"])]
    context: bool,
    /// Write the prompts as JSON, with all pieces if a turn is given
    #[arg(long)]
    json: bool,
    /// Write plain text without colours
    #[arg(long)]
    plain: bool,
    /// Width in columns, at least 20; the terminal's width by default
    #[arg(long, value_name = "COLUMNS", value_parser = clap::value_parser!(u16).range(20..))]
    width: Option<u16>,
}

/// A turn, and one of its steps.
type Place = (u32, Option<u32>);

impl Prompt {
    pub fn run(self, archive: &Archive) -> Result<()> {
        let (session, place) = split(&self.session)?;
        let view = archive.view()?;
        let stored = find(&view, session)?;
        let prompts = block_on(prompts(&view, &stored))?;
        if prompts.is_empty() {
            let session = &stored.summary.session;
            return self.without_calls(PromptKnowledge::of(&session.agent));
        }
        match place {
            Some(_) if self.context => bail!(
                "--context is about all calls of a session; leave the turn out: unspool prompt \
                 {session} --context"
            ),
            None if self.context && !self.json => self.context(&view, &prompts),
            Some(place) => self.calls_of(&view, &prompts, place),
            None => self.all_calls(&view, &prompts),
        }
    }

    /// Says what is known of a session whose source has no single calls.
    fn without_calls(&self, knowledge: PromptKnowledge) -> Result<()> {
        if knowledge.grade != PromptGrade::Part {
            bail!("{}", knowledge.sentences().join("\n"));
        }
        if self.json {
            let (prompts, context) = (Vec::new(), None);
            let knowledge = Some(knowledge);
            return super::write_json(&PromptsDocument { prompts, context, knowledge });
        }
        let paragraph = |text| Block::Paragraph { spans: vec![Span::plain(text)] };
        self.paint(&knowledge.sentences().map(paragraph))
    }

    /// All calls of a session, or those that were sent a text.
    fn all_calls<V: View>(&self, view: &V, all: &SessionPrompts) -> Result<()> {
        let mut calls = all.differences();
        if let Some(text) = &self.find {
            let found = block_on(all.find(view, text))?;
            let found: HashSet<&str> =
                found.iter().map(|call| &*call.prompt.call().request).collect();
            let count = calls.len();
            calls.retain(|(call, _)| found.contains(&*call.prompt.call().request));
            stderr_line!(
                "unspool: the text is in the prompts of {} of {}",
                calls.len(),
                format::count(count, "call")
            );
        }
        if self.json {
            let prompts = calls.iter().map(|(call, _)| PromptDocument::new(call, None)).collect();
            let context = block_on(all.context(view))?;
            let context = self.find.is_none().then(|| ContextDocument::new(&context));
            return super::write_json(&PromptsDocument { prompts, context, knowledge: None });
        }
        if calls.is_empty() {
            return Ok(());
        }
        self.paint(&[prompt::calls(&calls)])
    }

    /// What took the room, over all calls.
    fn context<V: View>(&self, view: &V, prompts: &SessionPrompts) -> Result<()> {
        let context = block_on(prompts.context(view))?;
        self.paint(&context_blocks(&context, CONTEXT_ROWS))
    }

    /// The calls of a turn, each with its pieces.
    fn calls_of<V: View>(
        &self,
        view: &V,
        prompts: &SessionPrompts,
        (turn, step): Place,
    ) -> Result<()> {
        let calls = prompts.calls_of(turn, step);
        if calls.is_empty() {
            let what = step.map_or_else(String::new, |step| format!(" with step {step}"));
            bail!(
                "no call of turn {turn}{what} has a known prompt; `unspool prompt SESSION` lists \
                 the calls"
            );
        }
        let mut shown = Vec::new();
        for call in &calls {
            shown.push(self.wanted(prompts, call, block_on(prompts.pieces(view, call))?));
        }
        if self.json {
            let document = |(call, pieces)| PromptDocument::new(call, Some(pieces));
            let prompts = calls.iter().zip(shown.iter().map(Vec::as_slice)).map(document).collect();
            let (context, knowledge) = (None, None);
            return super::write_json(&PromptsDocument { prompts, context, knowledge });
        }
        for (call, pieces) in calls.iter().zip(&shown) {
            let mut blocks = prompt::head(call, pieces);
            if let Some(before) = prompts.before(call).filter(|_| self.diff) {
                let words = PromptDifference::between(&before.prompt, &call.prompt).words();
                let text = format!("Since call {}: {words}.", prompt::place(&before));
                blocks.push(Block::Paragraph { spans: vec![Span::plain(text)] });
            }
            blocks.extend(pieces.iter().map(|piece| prompt::piece(piece, true)));
            self.paint(&blocks)?;
        }
        Ok(())
    }

    /// The pieces that are asked for.
    fn wanted<'a>(
        &self,
        prompts: &SessionPrompts,
        call: &Call<'a>,
        mut pieces: Vec<ShownPiece<'a>>,
    ) -> Vec<ShownPiece<'a>> {
        if let Some(text) = &self.find {
            pieces.retain(|piece| piece.text.as_ref().is_some_and(|held| held.contains(text)));
        }
        if let Some(before) = prompts.before(call).filter(|_| self.diff) {
            let difference = PromptDifference::between(&before.prompt, &call.prompt);
            pieces.retain(|piece| difference.has_added(piece));
        }
        pieces
    }

    fn paint(&self, blocks: &[Block]) -> Result<()> {
        let style = super::style(self.width, self.plain, true);
        paint::blocks(blocks, &style, &mut io::BufWriter::new(io::stdout().lock()))?;
        Ok(())
    }
}

/// What calls were sent, as tables of at most this many rows.
pub fn context_blocks(context: &PromptContext, limit: usize) -> Vec<Block> {
    let heading = |text: &str| Block::Heading { level: 2, spans: vec![Span::plain(text)] };
    let mut blocks = vec![heading("By kind"), context.kinds_table()];
    if let Some(servers) = context.servers_table(limit) {
        blocks.extend([heading("By MCP server"), servers]);
    }
    blocks.extend([heading("By source"), context.sources_table(limit)]);
    if let Some(unused) = context.unused_table(limit) {
        blocks.extend([heading("Tools that were never called"), unused]);
    }
    blocks
}

/// Splits `SESSION:TURN.STEP`.
fn split(text: &str) -> Result<(&str, Option<Place>)> {
    let Some((session, place)) = text.split_once(':') else { return Ok((text, None)) };
    let (turn, step) = match place.split_once('.') {
        Some((turn, step)) => (turn, Some(step)),
        None => (place, None),
    };
    let number = |text: &str| text.parse::<u32>().ok();
    match (number(turn), step.map(number)) {
        (Some(turn), None) => Ok((session, Some((turn, None)))),
        (Some(turn), Some(Some(step))) => Ok((session, Some((turn, Some(step))))),
        (_, _) => bail!("{place:?} is not a turn or a call; write SESSION:2 or SESSION:2.1"),
    }
}
