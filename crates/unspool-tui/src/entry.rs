//! The entries of a transcript: a turn's header, the user's text, a part, a reasoning block, a
//! turn's footer. An entry is made from a `TurnView` and laid out as lines when it is first
//! visible; the layout is cached until its content, its width or its fold state changes.

mod turn_lines;

use std::cell::RefCell;
use std::rc::Rc;

use jiff::Timestamp;
use rustc_hash::FxHashMap;
use unspool_model::id::{PartId, SessionId, TurnId};
use unspool_model::part::{Kind, Place};
use unspool_model::session::TurnState;
use unspool_query::window::Position;
use unspool_view::block::{Block, Card, Node, Tone};
use unspool_view::lines::{self, Highlighter, Line, LineOptions, Style};
use unspool_view::present::notes::NoteView;
use unspool_view::present::{Item, PartView, TurnHeader, TurnView};

use turn_lines::{foot_line, turn_line};

/// The identity of an entry, stable when its content changes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum EntryKey {
    Head,
    Turn(TurnId),
    User(TurnId),
    Item(PartId),
    Foot(TurnId),
}

#[derive(Clone, PartialEq, Debug)]
pub enum EntryContent {
    /// The head of the session.
    Head(Vec<Block>),
    Turn(TurnHeader, Option<NoteView>),
    User(Vec<Block>),
    Item(Item),
    /// The duration and tokens of a finished turn (R-003-25).
    Foot(TurnHeader),
}

/// How much of an entry is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FoldState {
    /// One line.
    Closed,
    /// Long output is cut.
    Short,
    Open,
}

/// The lines of output shown in a `Short` entry.
const SHORT_OUTPUT_LINES: usize = 8;

pub struct Entry {
    pub key: EntryKey,
    pub position: Position,
    pub content: EntryContent,
    /// No blank line above it.
    pub dense: bool,
    layout: RefCell<Option<CachedLayout>>,
}

/// What the layout needs beside the entry itself.
pub struct LayoutContext<'a> {
    pub colours: Option<&'a dyn Highlighter>,
    pub inlines: &'a Inlines,
}

/// The transcripts of sub-agents that are shown inline.
pub type Inlines = FxHashMap<SessionId, Inline>;

/// The end of a sub-agent's transcript.
pub struct Inline {
    pub turns: Vec<TurnView>,
    /// The beginning is omitted.
    pub truncated: bool,
}

impl Inline {
    fn lines(&self, name: &str, width: usize, colours: Option<&dyn Highlighter>) -> Vec<Line> {
        let options =
            LineOptions { expand: false, output_lines: Some(SHORT_OUTPUT_LINES), colours };
        let mut all = vec![Line::of(name, Style { strong: true, ..Style::default() })];
        if self.truncated {
            all.push(Line::of("… its beginning is in its own transcript: a", Style::gutter()));
        }
        let room = width.saturating_sub(RAIL.len()).max(1);
        for turn in &self.turns {
            all.push(Line::default());
            all.extend(lines::turn_lines(turn, room, &options));
        }
        let railed = all.into_iter().map(|line| {
            let mut out = Line::of(RAIL, Style::tone(Tone::Accent));
            line.runs.into_iter().for_each(|run| out.push(&run.text, run.style));
            lines::clip(out, width)
        });
        railed.collect()
    }
}

const RAIL: &str = "  ┃ ";

struct CachedLayout {
    width: usize,
    fold: FoldState,
    lines: Rc<Vec<Line>>,
}

impl Entry {
    fn new(key: EntryKey, position: Position, content: EntryContent) -> Entry {
        Entry { key, position, content, dense: false, layout: RefCell::default() }
    }

    pub fn head(blocks: Vec<Block>) -> Entry {
        Entry::new(
            EntryKey::Head,
            Position { turn: 0, place: Place(i64::MIN) },
            EntryContent::Head(blocks),
        )
    }

    /// The entries of a turn.
    pub fn of_turn(view: TurnView) -> Vec<Entry> {
        let TurnView { id, header, note, user, items, after, .. } = view;
        let number = header.number;
        // The header and the user's text precede all parts: places -2 and -1.
        let before = |place: i64| Position { turn: number, place: Place(place) };
        let ended = !matches!(header.state, TurnState::Running | TurnState::Unknown);
        let foot = (ended && after == 0 && !items.is_empty()).then(|| header.clone());
        let mut entries =
            vec![Entry::new(EntryKey::Turn(id), before(-2), EntryContent::Turn(header, note))];
        if !user.is_empty() {
            entries.push(Entry::new(EntryKey::User(id), before(-1), EntryContent::User(user)));
        }
        let mut last_dense = false;
        for item in items {
            let Some((key, place)) = place_of(&item) else { continue };
            let dense = lines::is_dense(&item);
            let position = Position { turn: number, place };
            let continues = lines::continues_group(&item);
            let mut entry = Entry::new(key, position, EntryContent::Item(item));
            entry.dense = (dense && last_dense) || continues;
            // A call that is shown as its agents has no lines of its own.
            if !entry.parts().iter().all(|part| part.blocks.is_empty()) {
                last_dense = dense;
            }
            entries.push(entry);
        }
        if let Some(header) = foot {
            entries.push(Entry::new(
                EntryKey::Foot(id),
                Position::end_of(number),
                EntryContent::Foot(header),
            ));
        }
        entries
    }

    /// Takes over the cached layout of the old entry if its content is unchanged.
    pub fn inherit(&mut self, old: Entry) {
        if self.content == old.content && self.dense == old.dense {
            self.layout = old.layout;
        }
    }

    /// Drops the cached layout: highlights arrived, or an inline transcript changed.
    pub fn invalidate(&self) {
        self.layout.replace(None);
    }

    /// The fold state unless the user chose another. The presenter decides which calls are more
    /// than one line.
    pub fn default_fold(&self) -> FoldState {
        let EntryContent::Item(item) = &self.content else { return FoldState::Open };
        match item {
            Item::Reasoning(_) => FoldState::Closed,
            Item::Part(part) => match part.kind {
                Kind::Tool => match card(part) {
                    Some(card) if !card.open => FoldState::Closed,
                    Some(_) | None => FoldState::Short,
                },
                Kind::Reasoning
                | Kind::Agent
                | Kind::Compaction
                | Kind::SkillLoad
                | Kind::McpSnapshot
                | Kind::ContextInfo
                | Kind::Data => FoldState::Short,
                Kind::Text
                | Kind::Interjection
                | Kind::TaskList
                | Kind::File
                | Kind::Source
                | Kind::Patch
                | Kind::Notice
                | Kind::Error => FoldState::Open,
            },
        }
    }

    /// Its kind, for folding and seeking by kind.
    pub fn kind(&self) -> Option<Kind> {
        match &self.content {
            EntryContent::Item(Item::Part(part)) => Some(part.kind),
            EntryContent::Item(Item::Reasoning(_)) => Some(Kind::Reasoning),
            EntryContent::Head(_)
            | EntryContent::Turn(..)
            | EntryContent::User(_)
            | EntryContent::Foot(_) => None,
        }
    }

    /// The parts that it shows.
    pub fn parts(&self) -> &[PartView] {
        match &self.content {
            EntryContent::Item(Item::Part(part)) => std::slice::from_ref(part),
            EntryContent::Item(Item::Reasoning(block)) => &block.parts,
            EntryContent::Head(_)
            | EntryContent::Turn(..)
            | EntryContent::User(_)
            | EntryContent::Foot(_) => &[],
        }
    }

    /// When it started.
    pub fn time(&self) -> Option<Timestamp> {
        match &self.content {
            EntryContent::Turn(header, _) => header.started,
            EntryContent::Foot(header) => header.ended,
            EntryContent::Item(_) => self.parts().iter().find_map(|part| part.started),
            EntryContent::Head(_) | EntryContent::User(_) => None,
        }
    }

    /// Still growing or running.
    pub fn is_open(&self) -> bool {
        self.parts().iter().any(|part| part.open)
    }

    /// The sub-agents that are shown in it and have sessions of their own.
    pub fn agents(&self) -> Vec<(String, SessionId)> {
        let mut found = Vec::new();
        for block in self.parts().iter().flat_map(|part| &part.blocks) {
            if let Block::Tree(tree) = block {
                tree.nodes.iter().for_each(|node| agents_of(node, &mut found));
            }
        }
        found
    }

    /// Its lines at a width, from the cache if possible.
    pub fn lines(
        &self,
        width: usize,
        fold: FoldState,
        context: &LayoutContext<'_>,
    ) -> Rc<Vec<Line>> {
        let mut layout = self.layout.borrow_mut();
        if let Some(layout) =
            layout.as_ref().filter(|layout| layout.width == width && layout.fold == fold)
        {
            return Rc::clone(&layout.lines);
        }
        let lines = Rc::new(self.lay_out(width, fold, context));
        *layout = Some(CachedLayout { width, fold, lines: Rc::clone(&lines) });
        lines
    }

    /// Its lines without the questions of its calls: they can be answered, and are drawn below.
    pub fn lines_without_question(
        &self,
        width: usize,
        fold: FoldState,
        context: &LayoutContext<'_>,
    ) -> Vec<Line> {
        let mut content = self.content.clone();
        let parts = match &mut content {
            EntryContent::Item(Item::Part(part)) => std::slice::from_mut(part),
            EntryContent::Item(Item::Reasoning(block)) => block.parts.as_mut_slice(),
            EntryContent::Head(_)
            | EntryContent::Turn(..)
            | EntryContent::User(_)
            | EntryContent::Foot(_) => &mut [],
        };
        for block in parts.iter_mut().flat_map(|part| &mut part.blocks) {
            if let Block::Card(card) = block {
                card.question = None;
            }
        }
        let mut entry = Entry::new(self.key, self.position, content);
        entry.dense = self.dense;
        entry.lay_out(width, fold, context)
    }

    /// The line at which a part begins while its reasoning block is open.
    pub fn line_of_part(&self, nth: usize, width: usize) -> usize {
        let EntryContent::Item(Item::Reasoning(block)) = &self.content else { return 0 };
        let options = LineOptions { expand: true, output_lines: None, colours: None };
        usize::from(!self.dense) + lines::lines_before(block, nth, width, &options)
    }

    fn lay_out(&self, width: usize, fold: FoldState, context: &LayoutContext<'_>) -> Vec<Line> {
        let output_lines = match fold {
            FoldState::Closed | FoldState::Short => Some(SHORT_OUTPUT_LINES),
            FoldState::Open => None,
        };
        let options =
            LineOptions { expand: fold == FoldState::Open, output_lines, colours: context.colours };
        let mut layout = match &self.content {
            EntryContent::Head(blocks) => lines::layout(blocks, width, &options),
            EntryContent::Turn(header, note) => {
                let mut layout = vec![turn_line(header, note.as_ref(), width)];
                let text = note.iter().flat_map(|note| lines::note_lines(note, width, &options));
                layout.extend(text);
                layout
            }
            EntryContent::User(blocks) => lines::user_lines(blocks, width, &options),
            EntryContent::Item(Item::Reasoning(block)) if fold == FoldState::Closed => {
                let mut closed = lines::closed_reasoning_lines(block, width, &options);
                if !self.dense {
                    closed.insert(0, Line::default());
                }
                return closed;
            }
            EntryContent::Item(Item::Part(part)) if fold == FoldState::Closed => {
                lines::closed_part_lines(part, width, &options)
            }
            EntryContent::Item(item) => lines::item_lines(item, width, &options),
            EntryContent::Foot(header) => vec![foot_line(header)],
        };
        if fold == FoldState::Closed && self.parts().is_empty() {
            layout.truncate(1);
        }
        if fold == FoldState::Open {
            for (name, session) in self.agents() {
                if let Some(inline) = context.inlines.get(&session) {
                    layout.push(Line::default());
                    layout.extend(inline.lines(&name, width, context.colours));
                }
            }
        }
        if !self.dense && !layout.is_empty() {
            layout.insert(0, Line::default());
        }
        layout
    }
}

fn place_of(item: &Item) -> Option<(EntryKey, Place)> {
    match item {
        Item::Part(part) => Some((EntryKey::Item(part.id), part.place)),
        Item::Reasoning(block) => Some((EntryKey::Item(block.id), block.parts.first()?.place)),
    }
}

fn card(part: &PartView) -> Option<&Card> {
    part.blocks
        .iter()
        .find_map(|block| if let Block::Card(card) = block { Some(&**card) } else { None })
}

fn agents_of(node: &Node, found: &mut Vec<(String, SessionId)>) {
    if let Some(session) = node.session {
        found.push((unspool_view::block::text_of(&node.label), session));
    }
    node.children.iter().for_each(|child| agents_of(child, found));
}
