//! The entries of a transcript: a turn's header, the user's text, a part, a reasoning block, a
//! turn's footer. An entry is made from a `TurnView` and laid out as lines when it is first
//! visible; the layout is cached until its content, its width or its fold state changes.

use std::cell::RefCell;
use std::rc::Rc;

use jiff::Timestamp;
use rustc_hash::FxHashMap;
use unspool_core::block::{Block, Card, Node, Tone};
use unspool_core::id::{PartId, SessionId, TurnId};
use unspool_core::lines::{self, Highlighter, Line, LineOptions, Style};
use unspool_core::part::{Kind, Place};
use unspool_core::present::{HeaderFactKind, Item, PartView, TurnHeader, TurnView};
use unspool_core::session::TurnState;
use unspool_engine::window::Position;

/// The identity of an entry, stable when its content changes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Key {
    Head,
    Turn(TurnId),
    User(TurnId),
    Item(PartId),
    Foot(TurnId),
}

#[derive(Clone, PartialEq, Debug)]
pub enum Content {
    /// The head of the session.
    Head(Vec<Block>),
    Turn(TurnHeader),
    User(Vec<Block>),
    Item(Item),
    /// The duration and tokens of a finished turn (R-003-25).
    Foot(TurnHeader),
}

/// How much of an entry is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fold {
    /// One line.
    Closed,
    /// Long output is cut.
    Short,
    Open,
}

/// The lines of output shown in a `Short` entry.
const SHORT: usize = 8;

pub struct Piece {
    pub key: Key,
    pub position: Position,
    pub content: Content,
    /// No blank line above it.
    pub dense: bool,
    laid: RefCell<Option<Laid>>,
}

/// What the layout needs beside the entry itself.
pub struct Surroundings<'a> {
    pub colours: Option<&'a dyn Highlighter>,
    pub inlines: &'a Inlines,
}

/// The transcripts of sub-agents that are shown inline.
pub type Inlines = FxHashMap<SessionId, Inline>;

/// The end of a sub-agent's transcript.
pub struct Inline {
    pub turns: Vec<TurnView>,
    /// The beginning is omitted.
    pub cut: bool,
}

impl Inline {
    fn lines(&self, name: &str, width: usize, colours: Option<&dyn Highlighter>) -> Vec<Line> {
        let options = LineOptions { expand: false, output_lines: Some(SHORT), colours };
        let mut all = vec![Line::of(name, Style { strong: true, ..Style::default() })];
        if self.cut {
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

struct Laid {
    width: usize,
    fold: Fold,
    lines: Rc<Vec<Line>>,
}

impl Piece {
    fn new(key: Key, position: Position, content: Content) -> Piece {
        Piece { key, position, content, dense: false, laid: RefCell::default() }
    }

    pub fn head(blocks: Vec<Block>) -> Piece {
        Piece::new(Key::Head, Position { turn: 0, place: Place(i64::MIN) }, Content::Head(blocks))
    }

    /// The entries of a turn.
    pub fn of_turn(view: TurnView) -> Vec<Piece> {
        let TurnView { id, header, user, items, after, .. } = view;
        let number = header.number;
        // The header and the user's text precede all parts: places -2 and -1.
        let before = |place: i64| Position { turn: number, place: Place(place) };
        let ended = !matches!(header.state, TurnState::Running | TurnState::Unknown);
        let foot = (ended && after == 0 && !items.is_empty()).then(|| header.clone());
        let mut pieces = vec![Piece::new(Key::Turn(id), before(-2), Content::Turn(header))];
        if !user.is_empty() {
            pieces.push(Piece::new(Key::User(id), before(-1), Content::User(user)));
        }
        let mut last_dense = false;
        for item in items {
            let Some((key, place)) = place_of(&item) else { continue };
            let dense = lines::is_dense(&item);
            let position = Position { turn: number, place };
            let mut piece = Piece::new(key, position, Content::Item(item));
            piece.dense = dense && last_dense;
            // A call that is shown as its agents has no lines of its own.
            if !piece.parts().iter().all(|part| part.blocks.is_empty()) {
                last_dense = dense;
            }
            pieces.push(piece);
        }
        if let Some(header) = foot {
            pieces.push(Piece::new(Key::Foot(id), Position::end_of(number), Content::Foot(header)));
        }
        pieces
    }

    /// Takes over the cached layout of the old entry if its content is unchanged.
    pub fn inherit(&mut self, old: Piece) {
        if self.content == old.content && self.dense == old.dense {
            self.laid = old.laid;
        }
    }

    /// Drops the cached layout: highlights arrived, or an inline transcript changed.
    pub fn forget(&self) {
        self.laid.replace(None);
    }

    /// The fold state unless the user chose another. Failures, edits and questions show their
    /// content; other calls are one line, as on the page.
    pub fn usual_fold(&self) -> Fold {
        let Content::Item(item) = &self.content else { return Fold::Open };
        match item {
            Item::Reasoning(_) => Fold::Closed,
            Item::Part(part) => match part.kind {
                Kind::Tool => match card(part) {
                    Some(card) if is_telling(card) => Fold::Short,
                    Some(_) => Fold::Closed,
                    None => Fold::Short,
                },
                Kind::Reasoning
                | Kind::Agent
                | Kind::Compaction
                | Kind::SkillLoad
                | Kind::McpSnapshot
                | Kind::ContextInfo
                | Kind::Data => Fold::Short,
                Kind::Text
                | Kind::Interjection
                | Kind::TaskList
                | Kind::File
                | Kind::Source
                | Kind::Patch
                | Kind::Notice
                | Kind::Error => Fold::Open,
            },
        }
    }

    /// Its kind, for folding and seeking by kind.
    pub fn kind(&self) -> Option<Kind> {
        match &self.content {
            Content::Item(Item::Part(part)) => Some(part.kind),
            Content::Item(Item::Reasoning(_)) => Some(Kind::Reasoning),
            Content::Head(_) | Content::Turn(_) | Content::User(_) | Content::Foot(_) => None,
        }
    }

    pub fn is_error(&self) -> bool {
        self.parts().iter().any(|part| {
            part.kind == Kind::Error
                || card(part).is_some_and(|card| card.badge.tone == Tone::Failed)
        })
    }

    pub fn is_edit(&self) -> bool {
        let changes = |block: &Block| matches!(block, Block::Diff(_));
        self.parts().iter().any(|part| {
            part.blocks.iter().any(changes)
                || card(part).is_some_and(|card| card.body.iter().any(changes))
        })
    }

    /// The parts that it shows.
    pub fn parts(&self) -> &[PartView] {
        match &self.content {
            Content::Item(Item::Part(part)) => std::slice::from_ref(part),
            Content::Item(Item::Reasoning(block)) => &block.parts,
            Content::Head(_) | Content::Turn(_) | Content::User(_) | Content::Foot(_) => &[],
        }
    }

    /// When it started.
    pub fn time(&self) -> Option<Timestamp> {
        match &self.content {
            Content::Turn(header) => header.started,
            Content::Foot(header) => header.ended,
            Content::Item(_) => self.parts().iter().find_map(|part| part.started),
            Content::Head(_) | Content::User(_) => None,
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
    pub fn lines(&self, width: usize, fold: Fold, shown: &Surroundings<'_>) -> Rc<Vec<Line>> {
        let mut laid = self.laid.borrow_mut();
        if let Some(laid) = laid.as_ref().filter(|laid| laid.width == width && laid.fold == fold) {
            return Rc::clone(&laid.lines);
        }
        let lines = Rc::new(self.lay(width, fold, shown));
        *laid = Some(Laid { width, fold, lines: Rc::clone(&lines) });
        lines
    }

    fn lay(&self, width: usize, fold: Fold, shown: &Surroundings<'_>) -> Vec<Line> {
        let output_lines = match fold {
            Fold::Closed | Fold::Short => Some(SHORT),
            Fold::Open => None,
        };
        let options =
            LineOptions { expand: fold == Fold::Open, output_lines, colours: shown.colours };
        let mut laid = match &self.content {
            Content::Head(blocks) => lines::layout(blocks, width, &options),
            Content::Turn(header) => vec![turn_line(header, width)],
            Content::User(blocks) => lines::user_lines(blocks, width, &options),
            Content::Item(item) => lines::item_lines(item, width, &options),
            Content::Foot(header) => vec![foot_line(header)],
        };
        if fold == Fold::Closed {
            laid.truncate(1);
        }
        if fold == Fold::Open {
            for (name, session) in self.agents() {
                if let Some(inline) = shown.inlines.get(&session) {
                    laid.push(Line::default());
                    laid.extend(inline.lines(&name, width, shown.colours));
                }
            }
        }
        if !self.dense && !laid.is_empty() {
            laid.insert(0, Line::default());
        }
        laid
    }
}

fn place_of(item: &Item) -> Option<(Key, Place)> {
    match item {
        Item::Part(part) => Some((Key::Item(part.id), part.place)),
        Item::Reasoning(block) => Some((Key::Item(block.id), block.parts.first()?.place)),
    }
}

fn card(part: &PartView) -> Option<&Card> {
    part.blocks
        .iter()
        .find_map(|block| if let Block::Card(card) = block { Some(&**card) } else { None })
}

fn is_telling(card: &Card) -> bool {
    // A question stays visible with its answer: it is a record of a decision.
    let asked = card.question.is_some();
    let shows = |block: &Block| matches!(block, Block::Diff(_) | Block::List(_));
    asked || card.badge.tone == Tone::Failed || card.body.iter().any(shows)
}

fn agents_of(node: &Node, found: &mut Vec<(String, SessionId)>) {
    if let Some(session) = node.session {
        found.push((unspool_core::block::text_of(&node.label), session));
    }
    node.children.iter().for_each(|child| agents_of(child, found));
}

/// `── Turn 3 · user · 14:03:22 · claude-opus-4 ──`: the facts known when a turn starts.
fn turn_line(header: &TurnHeader, width: usize) -> Line {
    let measure = width.min(lines::MAX_LINE_WIDTH);
    let mut line = Line::of("── ", Style::gutter());
    line.push(&format!("Turn {}", header.number), Style { strong: true, ..Style::default() });
    let muted = Style::tone(Tone::Muted);
    let mut fact = |text: &str, style: Style| {
        line.push(" · ", Style::gutter());
        line.push(text, style);
    };
    let is_told = |kind: HeaderFactKind| {
        kind != HeaderFactKind::State || header.state != TurnState::Completed
    };
    for told in header.facts().into_iter().filter(|told| is_told(told.kind)) {
        fact(told.text, Style::tone(told.tone.unwrap_or(Tone::Muted)));
    }
    if let Some(started) = header.started {
        fact(&started.strftime("%H:%M:%S").to_string(), muted.clone());
    }
    for model in &header.models {
        fact(model, muted.clone());
    }
    let mut line = lines::clip(line, measure.saturating_sub(3));
    let rest = measure.saturating_sub(line.width() + 1);
    line.push(&format!(" {}", "─".repeat(rest)), Style::gutter());
    line
}

/// `12.4 s · 1,729 tokens`
fn foot_line(header: &TurnHeader) -> Line {
    let mut facts = header.metrics();
    if header.state != TurnState::Completed {
        facts.push(header.state.name().to_owned());
    }
    Line::of(&facts.join(" · "), Style::tone(Tone::Muted))
}
