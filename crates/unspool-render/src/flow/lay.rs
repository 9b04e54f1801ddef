//! Lays out the boxes of a lane. A lane reads from top to bottom: prompts and model calls in the
//! left column, the steps that a call led to on its right, in order, and their results below them.
//! No step is above an earlier model call, so the order is visible. The width of a lane is bounded;
//! its height grows with its steps.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::project::thoughtflow::{Conversation, Label};

pub const WIDTH: i64 = 236;
pub const HEIGHT: i64 = 52;
pub const PAD: i64 = 24;
const HEAD: i64 = 52;
const BESIDE: i64 = 44;
const BELOW: i64 = 18;
/// Columns beside a model call; further stacks start a new row.
const COLUMNS: usize = 3;

/// The upper left corner of a box.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Box {
    pub x: i64,
    pub y: i64,
}

/// A laid out run.
pub struct Lane {
    pub width: i64,
    pub height: i64,
    /// One box per step.
    pub boxes: Vec<Box>,
    /// SVG path data of the lines.
    pub edges: Vec<String>,
}

pub fn lay(run: &Conversation) -> Lane {
    let edges = run.edges();
    let mut laying = Laying::default();
    let mut parents: Vec<Option<usize>> = vec![None; run.steps.len()];
    for (from, to) in &edges {
        if let Some(parent) = parents.get_mut(*to) {
            // The last dependency is the nearest.
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
    // Omit distant dependencies of a step that also has a near one: otherwise a hundred calls would
    // all have lines back to the prompt.
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

/// The path from a box to one beside or below it, routed between boxes.
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
        // Back to the left column, below everything in between.
        (false, false) => format!("M{center} {bottom}V{rail}H{x}V{y}"),
        (false, true) => format!("M{right} {middle}H{}V{rail}H{x}V{y}", right + 12),
    }
}

/// Layout state of a lane.
#[derive(Default)]
struct Laying {
    boxes: Vec<Box>,
    /// The group (model call) of each step.
    groups: Vec<usize>,
    group: usize,
    /// The model call that heads the current group, if any.
    head: Option<usize>,
    top: i64,
    /// The next free y position in the left column.
    bottom: i64,
    /// The stacks to the right of the head.
    stacks: Vec<Stack>,
    /// The stack of each step of the group.
    stack_of: FxHashMap<usize, usize>,
    columns: usize,
}

/// A vertical stack of boxes: its column and its bottom.
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
            // Before the first model call, or without any: a single column, with each tool result
            // beside its call.
            match parent.filter(|parent| result && parent + 1 == at) {
                Some(parent) => self.right_of(parent),
                None => self.left(),
            }
        } else {
            self.beside(at, parent);
        }
        self.groups.push(self.group);
    }

    /// Places a step in the left column, below everything.
    fn left(&mut self) {
        self.top = self.bottom;
        self.put(0, self.top);
        self.bottom = self.top + HEIGHT + BELOW;
    }

    fn right_of(&mut self, step: usize) {
        let y = self.boxes.get(step).map_or(self.top, |known| known.y);
        self.put(1, y);
    }

    /// Places a step to the right of the head: below its parent, or in a new column.
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
            // Start a new row of columns below the last one.
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

    /// Ends a group: the next one starts below it.
    fn close(&mut self) {
        self.stack_of.clear();
        let reached = self.stacks.drain(..).map(|stack| stack.bottom).max();
        self.bottom = self.bottom.max(reached.unwrap_or(0));
        if self.head.is_some() {
            self.bottom += BELOW;
        }
    }
}
