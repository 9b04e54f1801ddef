//! The screen of what a session changed: its files one below another, laid out as lines.

use rustc_hash::FxHashMap;
use unspool_model::id::SessionId;
use unspool_query::reader::Query;
use unspool_view::block::{Block, Span};
use unspool_view::lines::{Line, LineOptions, layout};
use unspool_view::present::changes::{Changes, EditRef, FileChange, FileStanding, Standing};

/// Commits beyond this number are not listed.
const MAX_COMMITS: usize = 20;

pub struct ChangesPane {
    pub session: SessionId,
    /// None while they are loaded.
    pub changes: Option<Changes>,
    /// What git has of them. None until git was asked.
    standing: Option<Standing>,
    has_asked_git: bool,
    /// All lines, for the current width.
    pub lines: Vec<Line>,
    /// The line at which each file starts.
    starts: Vec<usize>,
    /// The first visible line.
    pub top: usize,
    /// The file that an action is for.
    pub at: usize,
    size: (usize, usize),
}

impl ChangesPane {
    pub fn new(session: SessionId) -> ChangesPane {
        ChangesPane {
            session,
            changes: None,
            standing: None,
            has_asked_git: false,
            lines: Vec::new(),
            starts: Vec::new(),
            top: 0,
            at: 0,
            size: (0, 0),
        }
    }

    pub fn query(&self) -> Query {
        Query::Changes { session: self.session, turn: None }
    }

    pub fn take(&mut self, changes: Changes) {
        self.changes = Some(changes);
        self.lay();
    }

    /// The query for what git has of the changes, once.
    pub fn ask_git(&mut self) -> Option<Query> {
        let is_first = !std::mem::replace(&mut self.has_asked_git, true);
        is_first.then_some(Query::Standing { session: self.session })
    }

    pub fn take_standing(&mut self, standing: Standing) {
        self.standing = Some(standing);
        self.lay();
    }

    pub fn resize(&mut self, width: usize, height: usize) {
        if self.size != (width, height) {
            self.size = (width, height);
            self.lay();
        }
    }

    fn lay(&mut self) {
        let Some(changes) = &self.changes else { return };
        let (width, _) = self.size;
        let options = LineOptions::everything();
        let paragraph = |spans: Vec<Span>| Block::Paragraph { spans };
        let mut head = vec![paragraph(changes.summary())];
        head.extend(changes.notes().into_iter().map(|note| paragraph(vec![Span::plain(note)])));
        let standing = self.standing.as_ref().filter(|standing| !standing.is_empty());
        if let Some(standing) = standing {
            head.push(paragraph(standing.summary()));
            let commits = standing.commits.iter().take(MAX_COMMITS);
            head.extend(commits.map(|commit| paragraph(commit.line())));
        }
        self.lines = layout(&head, width, &options);
        self.starts.clear();
        let files = standing.into_iter().flat_map(|it| it.files.iter().flatten());
        let in_git: FxHashMap<&str, &FileStanding> =
            files.map(|file| (file.path.as_str(), file)).collect();
        for file in &changes.files {
            self.lines.push(Line::default());
            self.starts.push(self.lines.len());
            let mut blocks = vec![paragraph(file.head())];
            let in_git = in_git.get(file.path.as_str()).map(|file| file.summary());
            blocks.extend(in_git.filter(|spans| !spans.is_empty()).map(paragraph));
            blocks.extend(file.body());
            self.lines.extend(layout(&blocks, width, &options));
        }
        self.scroll_to(self.top);
    }

    fn scroll_to(&mut self, top: usize) {
        let (_, height) = self.size;
        self.top = top.min(self.lines.len().saturating_sub(height));
    }

    pub fn scroll_by(&mut self, lines: isize) {
        self.scroll_to(self.top.saturating_add_signed(lines));
        // The file at the top of the screen, unless the selected one is still visible.
        let (_, height) = self.size;
        let visible = self.top..self.top + height;
        if self.starts.get(self.at).is_none_or(|start| !visible.contains(start)) {
            let above = self.starts.partition_point(|start| *start <= self.top);
            self.at = above.saturating_sub(1);
        }
    }

    /// Selects another file and shows its start. False if there is none.
    pub fn step(&mut self, by: isize) -> bool {
        let next = self.at.saturating_add_signed(by);
        let Some(start) = self.starts.get(next).copied().filter(|_| next != self.at) else {
            return false;
        };
        self.at = next;
        // Above the first file is the summary.
        self.scroll_to(if next == 0 { 0 } else { start.saturating_sub(1) });
        true
    }

    pub fn chosen(&self) -> Option<&FileChange> {
        self.changes.as_ref()?.files.get(self.at)
    }

    /// The line on which the selected file starts.
    pub fn chosen_line(&self) -> Option<usize> {
        self.starts.get(self.at).copied()
    }

    /// The last edit of the selected file.
    pub fn last_edit(&self) -> Option<EditRef> {
        self.chosen()?.edits.last().copied()
    }

    /// The selected file and its first changed line.
    pub fn editor_target(&self) -> Option<(String, u64)> {
        let file = self.chosen()?;
        Some((file.path.clone(), file.first_changed_line()))
    }
}
