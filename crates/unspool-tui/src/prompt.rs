//! The screen of what one model call was sent: what fills the prompt, and its pieces in order. A
//! piece is one line until it is opened, and is laid out when it is first visible.

use std::cell::RefCell;
use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};
use unspool_model::id::SessionId;
use unspool_query::prompts::{CallTarget, PromptQuery};
use unspool_query::reader::Query;
use unspool_view::block::{Block, Tone};
use unspool_view::lines::{Line, LineOptions, Style, clip, layout};
use unspool_view::present::format;
use unspool_view::present::prompt::{PieceView, PromptView, bar, since};

use crate::entry::FoldState;
use crate::scroll::{EntryHeights, Scroll, ScrollPosition, forward};

/// The head of the prompt, above the pieces.
const HEAD: usize = 0;

pub struct PromptPane {
    pub session: SessionId,
    target: CallTarget,
    /// What is looked for in the pieces.
    pub find: Option<String>,
    /// Only pieces that the call before was not sent.
    pub only_new: bool,
    /// None while it is loaded.
    pub prompt: Option<PromptView>,
    /// Pieces that were asked for as a whole, by number.
    whole: FxHashMap<usize, PieceView>,
    open: FxHashSet<usize>,
    /// The entry that keys act on: the head, or a shown piece after it.
    pub at: usize,
    pub scroll: Scroll,
    /// The shown pieces, by their place in the prompt.
    shown: Vec<usize>,
    lines: RefCell<FxHashMap<usize, Rc<Vec<Line>>>>,
    width: usize,
    view: usize,
}

impl EntryHeights for PromptPane {
    fn count(&self) -> usize {
        if self.prompt.is_some() { self.shown.len() + 1 } else { 0 }
    }

    fn height(&self, entry: usize) -> usize {
        self.lines(entry).len()
    }
}

impl PromptPane {
    pub fn new(session: SessionId, target: CallTarget, find: Option<String>) -> PromptPane {
        PromptPane {
            session,
            target,
            find,
            only_new: false,
            prompt: None,
            whole: FxHashMap::default(),
            open: FxHashSet::default(),
            at: HEAD,
            scroll: Scroll { top: ScrollPosition::default(), following: false },
            shown: Vec::new(),
            lines: RefCell::default(),
            width: 80,
            view: 20,
        }
    }

    pub fn query(&self) -> Query {
        let query = PromptQuery::Call { target: self.target.clone(), find: self.find.clone() };
        Query::Prompts { session: self.session, query }
    }

    pub fn take(&mut self, prompt: PromptView) {
        // From now on it is this call, whatever the turn gets.
        self.target = CallTarget::Request(prompt.request.clone());
        self.prompt = Some(prompt);
        self.show_pieces();
        if self.find.is_some() {
            self.at = HEAD;
            self.next_hit(1);
        }
    }

    /// Puts a piece with its whole text in place of the one that was cut.
    pub fn take_piece(&mut self, piece: PieceView) {
        self.lines.get_mut().clear();
        self.whole.insert(piece.number, piece);
        self.settle();
    }

    fn show_pieces(&mut self) {
        let pieces = self.prompt.iter().flat_map(|prompt| prompt.pieces.iter().enumerate());
        let wanted = pieces.filter(|(_, piece)| piece.is_new || !self.only_new);
        self.shown = wanted.map(|(at, _)| at).collect();
        self.lines.get_mut().clear();
        self.at = self.at.min(self.shown.len());
        self.settle();
    }

    pub fn resize(&mut self, width: usize, view: usize) {
        if (self.width, self.view) != (width, view) {
            (self.width, self.view) = (width, view);
            self.lines.get_mut().clear();
            self.settle();
        }
    }

    /// The selected piece.
    pub fn chosen(&self) -> Option<&PieceView> {
        self.piece(self.at)
    }

    fn piece(&self, entry: usize) -> Option<&PieceView> {
        let at = *self.shown.get(entry.checked_sub(1)?)?;
        self.prompt.as_ref()?.pieces.get(at)
    }

    /// Opens or closes the selected piece. The query is for the rest of a text that was cut.
    pub fn toggle(&mut self) -> Option<Query> {
        let (number, rest) = self.chosen().map(|piece| (piece.number, piece.rest))?;
        self.lines.get_mut().remove(&self.at);
        let is_open = !self.open.insert(number);
        let is_whole = rest == 0 || self.whole.contains_key(&number);
        let query = match (is_open, is_whole) {
            (true, false) => self.piece_query(number),
            (true, true) => {
                self.open.remove(&number);
                None
            }
            (false, _) => None,
        };
        self.settle();
        query
    }

    fn piece_query(&self, number: usize) -> Option<Query> {
        let request = self.prompt.as_ref()?.request.clone();
        let query = PromptQuery::Piece { request, number };
        Some(Query::Prompts { session: self.session, query })
    }

    /// Opens all pieces, or closes them.
    pub fn expand(&mut self, fold: FoldState) {
        let numbers: Vec<usize> = match fold {
            FoldState::Open => {
                self.prompt.iter().flat_map(|prompt| 0..prompt.pieces.len()).collect()
            }
            FoldState::Short | FoldState::Closed => Vec::new(),
        };
        self.open = numbers.into_iter().collect();
        self.lines.get_mut().clear();
        self.settle();
    }

    pub fn toggle_new(&mut self) {
        self.only_new = !self.only_new;
        self.at = HEAD;
        self.scroll.top = ScrollPosition::default();
        self.show_pieces();
    }

    /// Goes to the call before or after it. False if there is none.
    pub fn step_call(&mut self, by: isize) -> bool {
        let next = self.prompt.as_ref().and_then(|prompt| match by {
            ..0 => prompt.previous.clone(),
            _ => prompt.next.clone(),
        });
        let Some(next) = next else { return false };
        self.target = CallTarget::Request(next);
        self.whole.clear();
        self.open.clear();
        self.at = HEAD;
        self.scroll.top = ScrollPosition::default();
        true
    }

    /// How many shown pieces have the text that is looked for, and which of them is selected.
    pub fn hits(&self) -> (Option<usize>, usize) {
        let entries = 1..=self.shown.len();
        let hits: Vec<usize> =
            entries.filter(|at| self.piece(*at).is_some_and(|piece| piece.is_hit)).collect();
        (hits.iter().position(|at| *at == self.at).map(|at| at + 1), hits.len())
    }

    /// Selects the next or the previous piece that has the text, in a circle.
    pub fn next_hit(&mut self, by: isize) {
        let count = self.shown.len();
        let around = (1..=count).map(|step| match by {
            ..0 => (self.at + 2 * count + 1 - step) % (count + 1),
            _ => (self.at + step) % (count + 1),
        });
        let is_hit = |at: &usize| self.piece(*at).is_some_and(|piece| piece.is_hit);
        let found = around.chain([self.at]).find(is_hit);
        if let Some(at) = found {
            self.choose(at);
        }
    }

    // ---- scrolling ----

    fn settle(&mut self) {
        self.update_scroll(|scroll, me| scroll.settle(me, me.view));
    }

    fn update_scroll(&mut self, edit: impl FnOnce(&mut Scroll, &PromptPane)) {
        let mut scroll = self.scroll;
        edit(&mut scroll, self);
        // Nothing grows here, so nothing is followed.
        self.scroll = Scroll { following: false, ..scroll };
    }

    /// Selects the piece on a line of the screen.
    pub fn choose_line(&mut self, line: usize) {
        self.at = forward(self, self.scroll.top, line).entry;
    }

    fn choose(&mut self, at: usize) {
        self.at = at;
        self.update_scroll(|scroll, me| scroll.show(me, me.view, at));
    }

    pub fn move_by(&mut self, lines: isize) {
        self.update_scroll(|scroll, me| scroll.move_by(me, me.view, lines));
        let bottom = forward(self, self.scroll.top, self.view.saturating_sub(1)).entry;
        self.at = self.at.clamp(self.scroll.top.entry, bottom.max(self.scroll.top.entry));
    }

    /// Selects the next or the previous piece; scrolls through one that is taller than the screen.
    pub fn step(&mut self, by: isize) {
        let half = (self.view / 2).max(1) as isize;
        let top = self.scroll.top;
        if self.height(self.at) > self.view {
            let bottom = forward(self, top, self.view);
            let ends_below =
                bottom.entry == self.at && bottom.line < self.height(self.at).saturating_sub(1);
            let begins_above = top.entry == self.at && top.line > 0;
            if (by > 0 && ends_below) || (by < 0 && begins_above) {
                self.update_scroll(|scroll, me| scroll.move_by(me, me.view, by * half));
                return;
            }
        }
        let last = self.count().saturating_sub(1);
        self.choose(self.at.saturating_add_signed(by).min(last));
    }

    pub fn go_to_start(&mut self) {
        self.at = HEAD;
        self.scroll.top = ScrollPosition::default();
    }

    pub fn go_to_end(&mut self) {
        self.at = self.count().saturating_sub(1);
        self.update_scroll(|scroll, me| scroll.go_to_end(me, me.view));
    }

    // ---- layout ----

    pub fn lines(&self, entry: usize) -> Rc<Vec<Line>> {
        if let Some(held) = self.lines.borrow().get(&entry) {
            return Rc::clone(held);
        }
        let lines = Rc::new(match entry {
            HEAD => self.head_lines(),
            _ => self.piece(entry).map(|piece| self.piece_lines(piece)).unwrap_or_default(),
        });
        self.lines.borrow_mut().insert(entry, Rc::clone(&lines));
        lines
    }

    fn head_lines(&self) -> Vec<Line> {
        let Some(prompt) = &self.prompt else { return Vec::new() };
        let options = LineOptions::everything();
        let mut blocks = vec![Block::Paragraph { spans: bar(&prompt.shares, self.width) }];
        blocks.extend(prompt.head.iter().cloned());
        blocks.extend(since(prompt).map(|field| Block::Fields { fields: vec![field] }));
        let mut lines = layout(&blocks, self.width, &options);
        lines.push(Line::default());
        if self.only_new {
            let count = format::count(self.shown.len(), "piece");
            let text = format!("Only what is new: {count} of {}", prompt.pieces.len());
            lines.push(Line::of(&text, Style::tone(Tone::Accent)));
        }
        lines
    }

    fn piece_lines(&self, piece: &PieceView) -> Vec<Line> {
        let is_open = self.open.contains(&piece.number);
        let piece = self.whole.get(&piece.number).filter(|_| is_open).unwrap_or(piece);
        let mut head = Line::of(if is_open { "▾ " } else { "▸ " }, Style::gutter());
        let tone = if piece.is_unknown { Tone::Warning } else { Tone::Accent };
        head.push(&piece.title, Style::tone(tone));
        if !is_open {
            head.push("  ", Style::default());
            head.push(&piece.summary, Style::gutter());
            return vec![clip(head, self.width)];
        }
        let mut lines = vec![clip(head, self.width)];
        let inner = self.width.saturating_sub(2).max(1);
        let indented = |line: Line| {
            let mut out = Line::of("  ", Style::default());
            line.runs.into_iter().for_each(|run| out.push(&run.text, run.style));
            out
        };
        let body = layout(&piece.blocks, inner, &LineOptions::everything());
        lines.extend(body.into_iter().map(indented));
        if piece.rest > 0 {
            let rest = format::number(piece.rest);
            let more = if self.whole.contains_key(&piece.number) {
                format!("  … {rest} more characters: `unspool prompt --json` has them")
            } else {
                format!("  … {rest} more characters: enter")
            };
            lines.push(clip(Line::of(&more, Style::tone(Tone::Accent)), self.width));
        }
        lines.push(Line::default());
        lines
    }
}
