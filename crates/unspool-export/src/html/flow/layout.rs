//! Lays out the boxes of a lane. A lane reads from top to bottom: prompts and model calls in the
//! left column, the steps that a call led to on its right, in order, and their results below them.
//! No step is above an earlier model call, so the order is visible. The width of a lane is bounded;
//! its height grows with its steps.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::project::thoughtflow::{Conversation, Label};

pub const BOX_WIDTH: i64 = 236;
pub const BOX_HEIGHT: i64 = 52;
pub const PADDING: i64 = 24;
const HEADER_HEIGHT: i64 = 52;
const COLUMN_GAP: i64 = 44;
const ROW_GAP: i64 = 18;
/// Columns beside a model call; further stacks start a new row.
const MAX_COLUMNS: usize = 3;

/// The upper left corner of a box.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StepBox {
    pub x: i64,
    pub y: i64,
}

/// A laid out run.
pub struct Lane {
    pub width: i64,
    pub height: i64,
    /// One box per step.
    pub boxes: Vec<StepBox>,
    /// SVG path data of the lines.
    pub edges: Vec<String>,
}

pub fn layout(run: &Conversation) -> Lane {
    let edges = run.edges();
    let mut builder = LaneBuilder::default();
    let mut parents: Vec<Option<usize>> = vec![None; run.steps.len()];
    for (from, to) in &edges {
        if let Some(parent) = parents.get_mut(*to) {
            // The last dependency is the nearest.
            *parent = Some(parent.map_or(*from, |existing| existing.max(*from)));
        }
    }
    for (at, step) in run.steps.iter().enumerate() {
        builder.step(Label::of_name(&step.label), parents.get(at).copied().flatten());
    }
    builder.close();
    let LaneBuilder { boxes, groups, columns, .. } = builder;
    let place = |at: usize| boxes.get(at).copied().unwrap_or_default();
    let group = |at: usize| groups.get(at).copied().unwrap_or_default();
    let near = |from: usize, to: usize| group(to) - group(from) <= 1;
    // Omit distant dependencies of a step that also has a near one: otherwise a hundred calls would
    // all have lines back to the prompt.
    let reached: FxHashSet<usize> =
        edges.iter().filter(|(from, to)| near(*from, *to)).map(|(_, to)| *to).collect();
    let lines = edges.iter().filter(|(from, to)| near(*from, *to) || !reached.contains(to));
    let lowest = boxes.iter().map(|one| one.y + BOX_HEIGHT).max().unwrap_or(HEADER_HEIGHT);
    let drawn = lines.map(|(from, to)| {
        let between = boxes.get(from + 1..*to).unwrap_or_default();
        line(place(*from), place(*to), between)
    });
    let drawn = drawn.collect();
    let columns = columns.max(1) as i64;
    Lane {
        width: 2 * PADDING + columns * BOX_WIDTH + (columns - 1) * COLUMN_GAP,
        height: lowest + PADDING + ROW_GAP,
        boxes,
        edges: drawn,
    }
}

/// The path from a box to one beside or below it, routed between boxes.
fn line(from: StepBox, to: StepBox, between: &[StepBox]) -> String {
    let (right, middle) = (from.x + BOX_WIDTH, from.y + BOX_HEIGHT / 2);
    let (center, bottom) = (from.x + BOX_WIDTH / 2, from.y + BOX_HEIGHT);
    let (x, y) = (to.x + BOX_WIDTH / 2, to.y);
    let covered = between.iter().any(|one| one.x == from.x && one.y > from.y && one.y < to.y);
    if to.x > from.x {
        let (left, level, gap) = (to.x, to.y + BOX_HEIGHT / 2, right + COLUMN_GAP / 2);
        return match (to.x - from.x == BOX_WIDTH + COLUMN_GAP, level == middle) {
            (true, true) => format!("M{right} {middle}H{left}"),
            (true, false) => format!("M{right} {middle}H{gap}V{level}H{left}"),
            (false, _) => format!("M{right} {middle}H{gap}V{}H{x}V{y}", y - ROW_GAP / 2),
        };
    }
    let rail = (y - ROW_GAP - 6).max(bottom + ROW_GAP / 2);
    match (to.x == from.x, covered) {
        (true, false) => format!("M{center} {bottom}V{y}"),
        (true, true) => {
            let (left, level) = (from.x, to.y + BOX_HEIGHT / 2);
            format!("M{left} {middle}H{}V{level}H{left}", left - PADDING / 2)
        }
        // Back to the left column, below everything in between.
        (false, false) => format!("M{center} {bottom}V{rail}H{x}V{y}"),
        (false, true) => format!("M{right} {middle}H{}V{rail}H{x}V{y}", right + 12),
    }
}

/// Layout state of a lane.
#[derive(Default)]
struct LaneBuilder {
    boxes: Vec<StepBox>,
    /// The group (model call) of each step.
    groups: Vec<usize>,
    group: usize,
    /// The model call that heads the current group, if any.
    head: Option<usize>,
    top: i64,
    /// The next free y position in the left column.
    bottom: i64,
    /// The stacks to the right of the head.
    stacks: Vec<BoxStack>,
    /// The stack of each step of the group.
    stack_of: FxHashMap<usize, usize>,
    columns: usize,
}

/// A vertical stack of boxes: its column and its bottom.
#[derive(Clone, Copy)]
struct BoxStack {
    column: usize,
    bottom: i64,
}

impl LaneBuilder {
    fn step(&mut self, label: Label, parent: Option<usize>) {
        let at = self.boxes.len();
        if self.bottom == 0 {
            self.bottom = HEADER_HEIGHT;
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
        self.bottom = self.top + BOX_HEIGHT + ROW_GAP;
    }

    fn right_of(&mut self, step: usize) {
        let y = self.boxes.get(step).map_or(self.top, |existing| existing.y);
        self.put(1, y);
    }

    /// Places a step to the right of the head: below its parent, or in a new column.
    fn beside(&mut self, at: usize, parent: Option<usize>) {
        let own = parent.and_then(|parent| self.stack_of.get(&parent).copied());
        if let Some((own, stack)) = own.and_then(|own| Some((own, self.stacks.get_mut(own)?))) {
            let (column, y) = (stack.column, stack.bottom);
            stack.bottom = y + BOX_HEIGHT + ROW_GAP;
            self.stack_of.insert(at, own);
            self.put(column, y);
            return;
        }
        let nth = self.stacks.len();
        if nth > 0 && nth.is_multiple_of(MAX_COLUMNS) {
            // Start a new row of columns below the last one.
            let row = self.stacks.iter().rev().take(MAX_COLUMNS);
            self.top = row.map(|stack| stack.bottom).max().unwrap_or(self.top);
        }
        let (column, y) = (1 + nth % MAX_COLUMNS, self.top);
        self.stacks.push(BoxStack { column, bottom: y + BOX_HEIGHT + ROW_GAP });
        self.stack_of.insert(at, nth);
        self.put(column, y);
    }

    fn put(&mut self, column: usize, y: i64) {
        self.columns = self.columns.max(column + 1);
        self.boxes.push(StepBox { x: PADDING + column as i64 * (BOX_WIDTH + COLUMN_GAP), y });
    }

    /// Ends a group: the next one starts below it.
    fn close(&mut self) {
        self.stack_of.clear();
        let reached = self.stacks.drain(..).map(|stack| stack.bottom).max();
        self.bottom = self.bottom.max(reached.unwrap_or(0));
        if self.head.is_some() {
            self.bottom += ROW_GAP;
        }
    }
}
