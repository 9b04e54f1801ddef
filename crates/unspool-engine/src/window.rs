//! Windows: some of a session, as it is shown. However long a session or a turn is, only what
//! stands in the window is read; of the rest it is known how much there is.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use unspool_core::part::{Kind, Place};
use unspool_core::present::{self, Item, TurnView};
use unspool_core::segment::{Stretch, stretches};
use unspool_core::session::Turn;
use unspool_core::skeleton::{Bone, Skeleton};
use unspool_store::contract::{Store, StoreError, StoredSession, TurnSize, Window};

use crate::family::family;

/// So many turns are looked through for what is wanted, at a time.
const PATIENCE: usize = 400;
/// About so many parts are in a window.
const PARTS: usize = 160;
/// A turn with more parts than this is not loaded whole.
const LONG: u64 = 320;
/// No window from one place to another begins a turn behind so many parts.
const MOST: u64 = 4000;
/// A reasoning block shows its first part and so many of its last ones.
pub const BLOCK: usize = 40;

/// A place in a session.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Position {
    pub turn: u32,
    pub place: Place,
}

impl Position {
    /// Before everything in a turn.
    pub fn start_of(turn: u32) -> Position {
        Position { turn, place: Place(0) }
    }

    fn end_of(turn: u32) -> Position {
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
        read(text).ok_or("a position is a turn and a place, such as 12.4000000")
    }
}

/// What somebody wants to see.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wanted {
    /// The end of the session.
    End,
    /// What is around this place.
    Around(Position),
    /// From this place on.
    From(Position),
    /// What stands before this place.
    Before(Position),
    /// What stands behind this place.
    After(Position),
    /// What stands before this place in the same reasoning block.
    Inside(Position),
    /// From one place to another, both included.
    Between(Position, Position),
}

/// Which parts are wanted; all, where nothing is said.
#[derive(Clone, PartialEq, Eq, Debug)]
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
                Kind::of_name(name).map(Only::Kind).ok_or("there is no such kind of part")
            }
            _ => Err("only errors, edits, kind:NAME or tool:NAME can be asked for"),
        }
    }
}

/// A window as it is shown. What is missing in a turn stands in its view.
pub struct Shown {
    pub turns: Vec<TurnView>,
    /// There are turns before the first one.
    pub earlier: Option<Position>,
    /// There are turns behind the last one.
    pub later: Option<Position>,
}

/// A session that is looked at.
pub struct Look<'a, S: Store> {
    store: &'a S,
    stored: &'a StoredSession,
    only: Option<&'a Only>,
    /// So many more turns are looked through.
    patience: usize,
    sizes: Vec<TurnSize>,
    turns: BTreeMap<u32, Cut>,
}

/// A turn cut into pieces, and which of them are wanted.
struct Cut {
    skeleton: Skeleton,
    pieces: Vec<Stretch>,
    wanted: Range<usize>,
    /// The place that somebody looks for, where a long block must be shown around it.
    around: Option<Place>,
    /// Only this stretch of parts is shown.
    only: Option<Range<usize>>,
}

/// Loads what is wanted. `settle` says of turns without an end whether they go on.
pub async fn window<S: Store>(
    store: &S,
    stored: &StoredSession,
    wanted: Wanted,
    only: Option<&Only>,
    settle: impl Fn(&mut [Turn]),
) -> Result<Shown, StoreError> {
    let sizes = store.sizes(stored.row).await?;
    let (turns, patience) = (BTreeMap::new(), PATIENCE);
    let mut look = Look { store, stored, only, patience, sizes, turns };
    look.choose(wanted).await?;
    look.show(settle).await
}

impl<S: Store> Look<'_, S> {
    async fn choose(&mut self, wanted: Wanted) -> Result<(), StoreError> {
        let last = self.sizes.last().map_or(0, |size| size.number);
        match wanted {
            Wanted::End => {
                self.up(Position::end_of(last), PARTS).await?;
            }
            // Of the turn whose very edge it is nothing is wanted, not even its head.
            Wanted::Before(Position { turn, place: Place(..=0) }) => {
                if let Some(turn) = turn.checked_sub(1) {
                    self.up(Position::end_of(turn), PARTS).await?;
                }
            }
            Wanted::After(Position { turn, place: Place(i64::MAX) }) => {
                let next = Position::start_of(turn.saturating_add(1));
                self.down(next, Edge::At, PARTS).await?;
            }
            Wanted::Before(position) => {
                self.up(position, PARTS).await?;
            }
            Wanted::After(position) => {
                self.down(position, Edge::Behind, PARTS).await?;
            }
            Wanted::From(position) => {
                let left = self.down(position, Edge::At, PARTS).await?;
                self.up(position, left).await?;
            }
            Wanted::Around(position) => {
                let left = self.down(position, Edge::At, PARTS).await?;
                self.up(position, left + PARTS / 3).await?;
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

    /// Takes in what stands before a place, up to so many parts. Says how many it could not use.
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

    /// Takes in what stands at or behind a place.
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
        let Some(size) = self.size(position.turn) else { return Ok(()) };
        let Some(cut) = self.cut(size).await? else { return Ok(()) };
        let piece = cut.piece_at(position.place, Edge::At);
        let Some(range) = cut.pieces.get(piece).map(Stretch::range) else { return Ok(()) };
        let end = cut.bone_at(position.place).clamp(range.start, range.end);
        cut.take(piece..piece + 1);
        cut.only = Some(end.saturating_sub(BLOCK).max(range.start)..end);
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

    fn size(&self, number: u32) -> Option<TurnSize> {
        self.sizes.iter().find(|size| size.number == number).copied()
    }

    async fn cut(&mut self, size: TurnSize) -> Result<Option<&mut Cut>, StoreError> {
        if !self.turns.contains_key(&size.number) {
            let skeleton = match self.only {
                None => skeleton(self.store, self.stored, size).await?,
                Some(_) => self.store.skeleton(self.stored.row, size.number).await?,
            };
            let Some(skeleton) = skeleton else { return Ok(None) };
            self.patience = self.patience.saturating_sub(1);
            self.turns.insert(size.number, Cut::new(skeleton, self.only));
        }
        Ok(self.turns.get_mut(&size.number))
    }

    async fn show(self, settle: impl Fn(&mut [Turn])) -> Result<Shown, StoreError> {
        let Look { store, stored, sizes, only, turns, .. } = self;
        let (first, last) = (turns.keys().next().copied(), turns.keys().next_back().copied());
        let (mut all, mut cuts) = (Vec::new(), Vec::new());
        for (_, mut cut) in turns {
            // A turn in which there is nothing of what is wanted is not shown.
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
        let family = family(store, &stored.summary.session.agent, &all).await?;
        let options = present::Options { family, ..present::Options::of(&stored.summary.session) };
        let earlier = sizes.first().zip(first).filter(|(size, first)| size.number < *first);
        let later = sizes.last().zip(last).filter(|(size, last)| size.number > *last);
        let views = all.iter().zip(&cuts).map(|(turn, (bones, count, wanted))| {
            let mut view = present::partial(turn, bones, &options);
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

/// Whether the piece at a place counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Edge {
    At,
    Behind,
}

impl Cut {
    fn new(skeleton: Skeleton, only: Option<&Only>) -> Cut {
        let pieces = match only {
            None => pieces(&skeleton),
            Some(only) => {
                let all = skeleton.parts.iter().enumerate();
                all.filter(|(_, bone)| only.has(bone)).map(|(at, _)| Stretch::Part(at)).collect()
            }
        };
        Cut { skeleton, pieces, wanted: 0..0, around: None, only: None }
    }

    fn take(&mut self, more: Range<usize>) {
        self.wanted = match self.wanted.is_empty() {
            true => more,
            false => self.wanted.start.min(more.start)..self.wanted.end.max(more.end),
        };
    }

    fn bone_at(&self, place: Place) -> usize {
        self.skeleton.parts.partition_point(|bone| bone.place < place)
    }

    /// The piece at this place or, where it is looked for behind the place, the next one.
    fn piece_at(&self, place: Place, edge: Edge) -> usize {
        let bone = match edge {
            Edge::At => self.bone_at(place),
            Edge::Behind => self.skeleton.parts.partition_point(|bone| bone.place <= place),
        };
        match edge {
            Edge::At => self.pieces.partition_point(|piece| piece.range().end <= bone),
            Edge::Behind => self.pieces.partition_point(|piece| piece.range().start < bone),
        }
    }

    /// How much of a window a piece takes.
    fn weight(&self, piece: usize) -> usize {
        self.pieces.get(piece).map_or(0, |piece| piece.range().len().min(BLOCK))
    }

    /// Whether what begins here is shown together with what stands before it: a tree of agents
    /// stands for its call.
    fn belongs_before(&self, piece: usize) -> bool {
        let first = self.pieces.get(piece).map(|piece| piece.range().start);
        let bone = first.and_then(|first| self.skeleton.parts.get(first));
        bone.is_some_and(|bone| bone.kind == Kind::Agent)
    }

    /// The places of the parts that are shown.
    fn places(&self) -> Vec<Place> {
        let bones = &self.skeleton.parts;
        let wanted = self.pieces.get(self.wanted.clone()).unwrap_or_default();
        let around = self.around.map(|place| self.bone_at(place));
        // A tree of agents stands for its call.
        let is_tree = |at: usize| bones.get(at).is_some_and(|bone| bone.kind == Kind::Agent);
        let mut places = Vec::new();
        let mut take = |range: Range<usize>| {
            places.extend(bones.get(range).unwrap_or_default().iter().map(|bone| bone.place));
        };
        for piece in wanted {
            match &self.only {
                Some(only) => take(only.clone()),
                None => block_parts(piece.range(), around).into_iter().for_each(&mut take),
            }
        }
        let calls = wanted.iter().map(|piece| piece.range().start).filter(|at| is_tree(*at));
        places.extend(calls.filter_map(|at| bones.get(at.checked_sub(1)?)).map(|bone| bone.place));
        places.sort_unstable();
        places.dedup();
        places
    }
}

/// Of parts that are not wanted none is missing.
fn count_wanted(view: &mut TurnView, count: usize, wanted: &Range<usize>) {
    view.after = count.saturating_sub(wanted.end);
    for (at, item) in view.items.iter_mut().enumerate() {
        let missing = if at == 0 { wanted.start } else { 0 };
        match item {
            Item::Part(part) => part.before = missing,
            Item::Reasoning(block) => {
                block.before = missing;
                block.parts.iter_mut().for_each(|part| part.before = 0);
                // What is looked for in it is to be seen.
                block.open = true;
            }
        }
    }
}

/// Which parts of a piece are shown: all of a short one; of a long block its first, and its last
/// ones or those around the one that is looked for.
pub fn block_parts(range: Range<usize>, around: Option<usize>) -> Vec<Range<usize>> {
    if range.len() <= BLOCK {
        return vec![range];
    }
    let end = match around.filter(|at| range.contains(at)) {
        Some(at) => (at + BLOCK / 2).clamp(range.start + BLOCK, range.end),
        None => range.end,
    };
    let start = end - BLOCK + 1;
    if start <= range.start + 1 {
        vec![range.start..end]
    } else {
        vec![range.start..range.start + 1, start..end]
    }
}

/// The pieces of a turn.
pub fn pieces(skeleton: &Skeleton) -> Vec<Stretch> {
    let kinds: Vec<Kind> = skeleton.parts.iter().map(|bone| bone.kind).collect();
    let rule = present::Options::default().rule;
    stretches(&kinds, skeleton.turn.thinking_mode, rule)
}

/// A turn, with its parts if there are not many.
pub async fn skeleton<S: Store>(
    store: &S,
    stored: &StoredSession,
    size: TurnSize,
) -> Result<Option<Skeleton>, StoreError> {
    if size.parts > LONG {
        return store.skeleton(stored.row, size.number).await;
    }
    let mut found = store.turns(stored.row, Window::Turn(size.number)).await?;
    Ok(found.pop().map(|turn| Skeleton { parts: Skeleton::of(&turn), turn }))
}

/// Loads the parts at these places, and lets go of others.
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
        // What was written meanwhile is told live.
        turn.parts.retain(|part| {
            let at = bones.binary_search_by_key(&part.place, |bone| bone.place);
            at.is_ok_and(|at| bones.get(at).is_some_and(|bone| bone.id == part.id))
        });
    }
    Ok(())
}
