//! Windows: a slice of a session, ready to be shown. However long a session or a turn is, only the
//! parts in the window are loaded; of the rest only the counts.

mod cut;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use unspool_core::part::{Kind, Place};
use unspool_core::present::{self, TurnView};
use unspool_core::segment::Stretch;
use unspool_core::session::Turn;
use unspool_core::skeleton::{Bone, Skeleton};
use unspool_store::store::{Store, StoreError, StoredSession, TurnSize, TurnWindow};

pub use cut::block_parts;

use crate::subagents::subagents;
use cut::{BLOCK, Cut, Edge, count_wanted};

/// A filtered window scans at most this many turns.
const PATIENCE: usize = 400;
/// A window between two positions starts no further turn after this many parts.
pub const MOST: u64 = 4000;

/// What to load.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    pub wanted: Wanted,
    /// Load only the parts that pass.
    pub only: Option<&'a Only>,
    pub size: Size,
}

impl From<Wanted> for Ask<'_> {
    fn from(wanted: Wanted) -> Self {
        Ask { wanted, only: None, size: Size::default() }
    }
}

/// How much to load.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Size {
    /// Approximate number of parts in a window.
    pub parts: usize,
    /// Number of parts of a reasoning block that are shown at first.
    pub block: usize,
    /// A turn with more parts than this is not loaded whole.
    pub long: u64,
}

impl Size {
    /// For scrolling: little enough to be inserted between two frames.
    pub const MORE: Size = Size { parts: 24, block: 24, long: 48 };
}

impl Default for Size {
    fn default() -> Size {
        Size { parts: 160, block: BLOCK, long: 320 }
    }
}

/// A position in a session: a turn and a place in it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Position {
    pub turn: u32,
    pub place: Place,
}

impl Position {
    /// Before every part of a turn.
    pub fn start_of(turn: u32) -> Position {
        Position { turn, place: Place(0) }
    }

    /// After every part of a turn.
    pub fn end_of(turn: u32) -> Position {
        Position { turn, place: Place(i64::MAX) }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.turn, self.place.0)
    }
}

impl FromStr for Position {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Position, Self::Err> {
        let read = |text: &str| {
            let (turn, place) = text.split_once('.')?;
            Some(Position { turn: turn.parse().ok()?, place: Place(place.parse().ok()?) })
        };
        read(text).ok_or("invalid position: expected a turn and a place, such as 12.4000000")
    }
}

/// The position that a window is loaded around.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wanted {
    /// The end of the session.
    End,
    /// The parts around this position.
    Around(Position),
    /// The parts from this position on.
    From(Position),
    /// The parts before this position.
    Before(Position),
    /// The parts after this position.
    After(Position),
    /// The parts before this position in the same reasoning block.
    Inside(Position),
    /// The parts between two positions, both inclusive.
    Between(Position, Position),
}

/// Selects parts by kind, tool, failure or edit.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Only {
    Kind(Kind),
    /// Calls of this tool.
    Tool(String),
    Errors,
    Edits,
}

impl Only {
    fn has(&self, bone: &Bone) -> bool {
        match self {
            Only::Kind(kind) => bone.kind == *kind,
            Only::Tool(name) => bone.tool.as_deref() == Some(name),
            Only::Errors => bone.is_failure(),
            Only::Edits => bone.is_edit(),
        }
    }
}

impl FromStr for Only {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Only, Self::Err> {
        match (text, text.split_once(':')) {
            ("errors", _) => Ok(Only::Errors),
            ("edits", _) => Ok(Only::Edits),
            (_, Some(("tool", name))) => Ok(Only::Tool(name.to_owned())),
            (_, Some(("kind", name))) => {
                Kind::of_name(name).map(Only::Kind).ok_or("unknown part kind")
            }
            _ => Err("invalid filter: expected errors, edits, kind:NAME or tool:NAME"),
        }
    }
}

/// A loaded window. Each turn view counts its own missing parts.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Shown {
    pub turns: Vec<TurnView>,
    /// Set if there are turns before the first one.
    pub earlier: Option<Position>,
    /// Set if there are turns after the last one.
    pub later: Option<Position>,
}

/// Loads one window of a session.
struct Look<'a, S: Store> {
    store: &'a S,
    stored: &'a StoredSession,
    only: Option<&'a Only>,
    size: Size,
    /// How many more turns may be scanned.
    patience: usize,
    sizes: Vec<TurnSize>,
    turns: BTreeMap<u32, Cut>,
}

/// Loads a window. `settle` decides whether turns without an end are still running.
pub async fn window<S: Store>(
    store: &S,
    stored: &StoredSession,
    ask: Ask<'_>,
    settle: impl Fn(&mut [Turn]),
) -> Result<Shown, StoreError> {
    let Ask { wanted, only, size } = ask;
    let sizes = store.sizes(stored.row).await?;
    let (turns, patience) = (BTreeMap::new(), PATIENCE);
    let mut look = Look { store, stored, only, size, patience, sizes, turns };
    look.choose(wanted).await?;
    look.show(settle).await
}

impl<S: Store> Look<'_, S> {
    async fn choose(&mut self, wanted: Wanted) -> Result<(), StoreError> {
        let parts = self.size.parts;
        let last = self.sizes.last().map_or(0, |size| size.number);
        match wanted {
            Wanted::End => {
                self.up(Position::end_of(last), parts).await?;
            }
            // At the edge of a turn, skip that turn altogether, its header included.
            Wanted::Before(Position { turn, place: Place(..=0) }) => {
                if let Some(turn) = turn.checked_sub(1) {
                    self.up(Position::end_of(turn), parts).await?;
                }
            }
            Wanted::After(Position { turn, place: Place(i64::MAX) }) => {
                let next = Position::start_of(turn.saturating_add(1));
                self.down(next, Edge::At, parts).await?;
            }
            Wanted::Before(position) => {
                self.up(position, parts).await?;
            }
            Wanted::After(position) => {
                self.down(position, Edge::Behind, parts).await?;
            }
            Wanted::From(position) => {
                let left = self.down(position, Edge::At, parts).await?;
                self.up(position, left).await?;
            }
            Wanted::Around(position) => {
                let left = self.down(position, Edge::At, parts).await?;
                self.up(position, left + parts / 3).await?;
                if let Some(cut) = self.turns.get_mut(&position.turn) {
                    cut.around = Some(position.place);
                }
            }
            Wanted::Inside(position) => self.inside(position).await?,
            Wanted::Between(first, last) => self.between(first, last).await?,
        }
        Ok(())
    }

    fn turns_from(&self, number: u32) -> Vec<TurnSize> {
        let at = self.sizes.partition_point(|size| size.number < number);
        self.sizes.get(at..).unwrap_or_default().to_vec()
    }

    fn turns_to(&self, number: u32) -> Vec<TurnSize> {
        let end = self.sizes.partition_point(|size| size.number <= number);
        self.sizes.get(..end).unwrap_or_default().to_vec()
    }

    /// Adds up to `budget` parts before a position. Returns the unused budget.
    async fn up(&mut self, position: Position, budget: usize) -> Result<usize, StoreError> {
        let mut left = budget;
        for size in self.turns_to(position.turn).into_iter().rev() {
            if (left == 0 && !self.turns.is_empty()) || self.patience == 0 {
                return Ok(0);
            }
            let Some(cut) = self.cut(size).await? else { continue };
            let end = match size.number == position.turn {
                true => cut.piece_at(position.place, Edge::At),
                false => cut.pieces.len(),
            };
            let mut start = end;
            while start > 0 && (left > 0 || cut.belongs_before(start)) {
                start -= 1;
                left = left.saturating_sub(cut.weight(start));
            }
            cut.take(start..end);
            if start > 0 {
                return Ok(0);
            }
        }
        Ok(left)
    }

    /// Adds up to `budget` parts at or after a position. Returns the unused budget.
    async fn down(
        &mut self,
        position: Position,
        edge: Edge,
        budget: usize,
    ) -> Result<usize, StoreError> {
        let mut left = budget;
        for size in self.turns_from(position.turn) {
            if (left == 0 && !self.turns.is_empty()) || self.patience == 0 {
                return Ok(0);
            }
            let Some(cut) = self.cut(size).await? else { continue };
            let start = match size.number == position.turn {
                true => cut.piece_at(position.place, edge),
                false => 0,
            };
            let mut end = start;
            while end < cut.pieces.len() && (left > 0 || cut.belongs_before(end)) {
                left = left.saturating_sub(cut.weight(end));
                end += 1;
            }
            cut.take(start..end);
            if end < cut.pieces.len() {
                return Ok(0);
            }
        }
        Ok(left)
    }

    async fn inside(&mut self, position: Position) -> Result<(), StoreError> {
        let block = self.size.block;
        let Some(size) = self.turn_size(position.turn) else { return Ok(()) };
        let Some(cut) = self.cut(size).await? else { return Ok(()) };
        let piece = cut.piece_at(position.place, Edge::At);
        let Some(range) = cut.pieces.get(piece).map(Stretch::range) else { return Ok(()) };
        let end = cut.bone_at(position.place).clamp(range.start, range.end);
        cut.take(piece..piece + 1);
        cut.only = Some(end.saturating_sub(block).max(range.start)..end);
        Ok(())
    }

    async fn between(&mut self, first: Position, last: Position) -> Result<(), StoreError> {
        let mut left = MOST;
        for size in self.turns_from(first.turn) {
            if size.number > last.turn || left == 0 {
                break;
            }
            left = left.saturating_sub(size.parts);
            let Some(cut) = self.cut(size).await? else { continue };
            let start = match size.number == first.turn {
                true => cut.piece_at(first.place, Edge::At),
                false => 0,
            };
            let end = match size.number == last.turn {
                true => cut.piece_at(last.place, Edge::Behind),
                false => cut.pieces.len(),
            };
            cut.take(start..end.max(start));
        }
        Ok(())
    }

    fn turn_size(&self, number: u32) -> Option<TurnSize> {
        self.sizes.iter().find(|size| size.number == number).copied()
    }

    async fn cut(&mut self, size: TurnSize) -> Result<Option<&mut Cut>, StoreError> {
        if !self.turns.contains_key(&size.number) {
            let skeleton = match self.only {
                None => skeleton(self.store, self.stored, size, self.size.long).await?,
                Some(_) => self.store.skeleton(self.stored.row, size.number).await?,
            };
            let Some(skeleton) = skeleton else { return Ok(None) };
            self.patience = self.patience.saturating_sub(1);
            self.turns.insert(size.number, Cut::new(skeleton, self.only, self.size.block));
        }
        Ok(self.turns.get_mut(&size.number))
    }

    async fn show(self, settle: impl Fn(&mut [Turn])) -> Result<Shown, StoreError> {
        let Look { store, stored, sizes, only, turns, .. } = self;
        let (first, last) = (turns.keys().next().copied(), turns.keys().next_back().copied());
        let (mut all, mut cuts) = (Vec::new(), Vec::new());
        for (_, mut cut) in turns {
            // Omit turns without a matching part.
            if only.is_some() && cut.pieces.is_empty() {
                continue;
            }
            let places = cut.places();
            fill(store, stored, &mut cut.skeleton, &places).await?;
            let Cut { skeleton: Skeleton { turn, parts }, pieces, wanted, .. } = cut;
            all.push(turn);
            cuts.push((parts, pieces.len(), wanted));
        }
        settle(&mut all);
        let subagents = subagents(store, &stored.summary.session.agent, &all).await?;
        let options = present::PresentOptions {
            subagents,
            ..present::PresentOptions::of(&stored.summary.session)
        };
        let earlier = sizes.first().zip(first).filter(|(size, first)| size.number < *first);
        let later = sizes.last().zip(last).filter(|(size, last)| size.number > *last);
        let views = all.iter().zip(&cuts).map(|(turn, (bones, count, wanted))| {
            let mut view = present::partial_turn(turn, bones, &options);
            if only.is_some() {
                count_wanted(&mut view, *count, wanted);
            }
            view
        });
        Ok(Shown {
            earlier: earlier.map(|(_, first)| Position::start_of(first)),
            later: later.map(|(_, last)| Position::end_of(last)),
            turns: views.collect(),
        })
    }
}

/// The skeleton of a turn; a short turn comes with its parts.
async fn skeleton<S: Store>(
    store: &S,
    stored: &StoredSession,
    size: TurnSize,
    long: u64,
) -> Result<Option<Skeleton>, StoreError> {
    if size.parts > long {
        return store.skeleton(stored.row, size.number).await;
    }
    let mut found = store.turns(stored.row, TurnWindow::Turn(size.number)).await?;
    Ok(found.pop().map(|turn| Skeleton { parts: Skeleton::of(&turn), turn }))
}

/// Loads the parts at these places and drops all others.
pub async fn fill<S: Store>(
    store: &S,
    stored: &StoredSession,
    skeleton: &mut Skeleton,
    places: &[Place],
) -> Result<(), StoreError> {
    let Skeleton { turn, parts: bones } = skeleton;
    if turn.parts.len() == bones.len() {
        turn.parts.retain(|part| places.binary_search(&part.place).is_ok());
    } else {
        turn.parts = store.parts(stored.row, turn.number, places.to_vec()).await?;
        // Parts written since the skeleton was read arrive as live updates.
        turn.parts.retain(|part| {
            let at = bones.binary_search_by_key(&part.place, |bone| bone.place);
            at.is_ok_and(|at| bones.get(at).is_some_and(|bone| bone.id == part.id))
        });
    }
    Ok(())
}
