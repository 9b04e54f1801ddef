//! Where boxes stand. A lane reads from the top to the bottom: on the left what was asked and the
//! model calls, one below the other; on the right of each call what it led to, in order, and below
//! each of those what became of it. Nothing stands above a model call that came before it, so the
//! order is kept; the width of a lane is bounded, its height grows with its steps.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::project::thoughtflow::{Conversation, Label};

pub const WIDTH: i64 = 236;
pub const HEIGHT: i64 = 52;
pub const PAD: i64 = 24;
const HEAD: i64 = 52;
const BESIDE: i64 = 44;
const BELOW: i64 = 18;
/// So many boxes stand beside a model call; more of them stand below.
const COLUMNS: usize = 3;

/// A box by its upper left corner.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Box {
    pub x: i64,
    pub y: i64,
}

/// A run, laid out.
pub struct Lane {
    pub width: i64,
    pub height: i64,
    /// One for each step.
    pub boxes: Vec<Box>,
    /// Lines, as SVG writes paths.
    pub edges: Vec<String>,
}

pub fn lay(run: &Conversation) -> Lane {
    let edges = run.edges();
    let mut laying = Laying::default();
    let mut parents: Vec<Option<usize>> = vec![None; run.steps.len()];
    for (from, to) in &edges {
        if let Some(parent) = parents.get_mut(*to) {
            // The last one that it depends on is the nearest.
            *parent = Some(parent.map_or(*from, |known| known.max(*from)));
        }
    }
    for (at, step) in run.steps.iter().enumerate() {
        laying.step(Label::of_name(&step.label), parents.get(at).copied().flatten());
    }
    laying.close();
    let Laying { boxes, groups, columns, .. } = laying;
    let place = |at: usize| boxes.get(at).copied().unwrap_or_default();
    let group = |at: usize| groups.get(at).copied().unwrap_or_default();
    let near = |from: usize, to: usize| group(to) - group(from) <= 1;
    // What a call also depends on, and what reaches it by way of the calls before, is no line of
    // its own: a hundred calls would all lead back to the prompt.
    let reached: FxHashSet<usize> =
        edges.iter().filter(|(from, to)| near(*from, *to)).map(|(_, to)| *to).collect();
    let lines = edges.iter().filter(|(from, to)| near(*from, *to) || !reached.contains(to));
    let lowest = boxes.iter().map(|one| one.y + HEIGHT).max().unwrap_or(HEAD);
    let drawn = lines.map(|(from, to)| {
        let between = boxes.get(from + 1..*to).unwrap_or_default();
        line(place(*from), place(*to), between)
    });
    let drawn = drawn.collect();
    let columns = columns.max(1) as i64;
    Lane {
        width: 2 * PAD + columns * WIDTH + (columns - 1) * BESIDE,
        height: lowest + PAD + BELOW,
        boxes,
        edges: drawn,
    }
}

/// A line from a box to one beside or below it, in the room between boxes: no line runs behind one.
fn line(from: Box, to: Box, between: &[Box]) -> String {
    let (right, middle) = (from.x + WIDTH, from.y + HEIGHT / 2);
    let (center, bottom) = (from.x + WIDTH / 2, from.y + HEIGHT);
    let (x, y) = (to.x + WIDTH / 2, to.y);
    let covered = between.iter().any(|one| one.x == from.x && one.y > from.y && one.y < to.y);
    if to.x > from.x {
        let (left, level, gap) = (to.x, to.y + HEIGHT / 2, right + BESIDE / 2);
        return match (to.x - from.x == WIDTH + BESIDE, level == middle) {
            (true, true) => format!("M{right} {middle}H{left}"),
            (true, false) => format!("M{right} {middle}H{gap}V{level}H{left}"),
            (false, _) => format!("M{right} {middle}H{gap}V{}H{x}V{y}", y - BELOW / 2),
        };
    }
    let rail = (y - BELOW - 6).max(bottom + BELOW / 2);
    match (to.x == from.x, covered) {
        (true, false) => format!("M{center} {bottom}V{y}"),
        (true, true) => {
            let (left, level) = (from.x, to.y + HEIGHT / 2);
            format!("M{left} {middle}H{}V{level}H{left}", left - PAD / 2)
        }
        // Back to the left, below all that stands there.
        (false, false) => format!("M{center} {bottom}V{rail}H{x}V{y}"),
        (false, true) => format!("M{right} {middle}H{}V{rail}H{x}V{y}", right + 12),
    }
}

/// A lane that is being laid out.
#[derive(Default)]
struct Laying {
    boxes: Vec<Box>,
    /// Which call each step belongs to.
    groups: Vec<usize>,
    group: usize,
    /// A model call, or nothing yet, is the head of the group.
    head: Option<usize>,
    top: i64,
    /// Where the next step on the left may stand.
    bottom: i64,
    /// What stands on the right of the head.
    stacks: Vec<Stack>,
    /// The stack that each step of the group stands in.
    stack_of: FxHashMap<usize, usize>,
    columns: usize,
}

/// Boxes one below the other: the column, and how far down it reaches.
#[derive(Clone, Copy)]
struct Stack {
    column: usize,
    bottom: i64,
}

impl Laying {
    fn step(&mut self, label: Label, parent: Option<usize>) {
        let at = self.boxes.len();
        if self.bottom == 0 {
            self.bottom = HEAD;
        }
        let result = matches!(label, Label::ToolOutput | Label::ToolError);
        if label == Label::AssistantCall {
            self.close();
            self.group += 1;
            self.left();
            self.head = Some(at);
        } else if self.head.is_none() {
            // Before any model call, or where none is known: one below the other, and what a tool
            // gave back beside its call.
            match parent.filter(|parent| result && parent + 1 == at) {
                Some(parent) => self.right_of(parent),
                None => self.left(),
            }
        } else {
            self.beside(at, parent);
        }
        self.groups.push(self.group);
    }

    /// On the left, below everything.
    fn left(&mut self) {
        self.top = self.bottom;
        self.put(0, self.top);
        self.bottom = self.top + HEIGHT + BELOW;
    }

    fn right_of(&mut self, step: usize) {
        let y = self.boxes.get(step).map_or(self.top, |known| known.y);
        self.put(1, y);
    }

    /// On the right of the head: below the step that it came from, or in a column of its own.
    fn beside(&mut self, at: usize, parent: Option<usize>) {
        let own = parent.and_then(|parent| self.stack_of.get(&parent).copied());
        if let Some((own, stack)) = own.and_then(|own| Some((own, self.stacks.get_mut(own)?))) {
            let (column, y) = (stack.column, stack.bottom);
            stack.bottom = y + HEIGHT + BELOW;
            self.stack_of.insert(at, own);
            self.put(column, y);
            return;
        }
        let nth = self.stacks.len();
        if nth > 0 && nth.is_multiple_of(COLUMNS) {
            // The next row of columns stands below the last one.
            let row = self.stacks.iter().rev().take(COLUMNS);
            self.top = row.map(|stack| stack.bottom).max().unwrap_or(self.top);
        }
        let (column, y) = (1 + nth % COLUMNS, self.top);
        self.stacks.push(Stack { column, bottom: y + HEIGHT + BELOW });
        self.stack_of.insert(at, nth);
        self.put(column, y);
    }

    fn put(&mut self, column: usize, y: i64) {
        self.columns = self.columns.max(column + 1);
        self.boxes.push(Box { x: PAD + column as i64 * (WIDTH + BESIDE), y });
    }

    /// Ends a group: the next one stands below all of it.
    fn close(&mut self) {
        self.stack_of.clear();
        let reached = self.stacks.drain(..).map(|stack| stack.bottom).max();
        self.bottom = self.bottom.max(reached.unwrap_or(0));
        if self.head.is_some() {
            self.bottom += BELOW;
        }
    }
}
