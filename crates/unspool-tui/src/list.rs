//! The session list: live sessions first, filtered as the user types, optionally grouped.

use std::cmp::Reverse;

use jiff::Timestamp;
use rustc_hash::FxHashMap;
use unspool_model::id::SessionId;
use unspool_model::session::SessionState;
use unspool_query::reader::{Query, SessionRow};
use unspool_view::present::activity::Activity;

/// The sessions on the first page, small so that something shows quickly, and on each further one.
const FIRST_PAGE_SESSIONS: u64 = 120;
const NEXT_PAGE_SESSIONS: u64 = 4000;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Grouping {
    None,
    Project,
    Day,
}

impl Grouping {
    pub fn next(self) -> Grouping {
        match self {
            Grouping::None => Grouping::Project,
            Grouping::Project => Grouping::Day,
            Grouping::Day => Grouping::None,
        }
    }
}

/// A line of the list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Row {
    /// The header of a group, and its number of sessions.
    Group(String, usize),
    /// An index into `all`.
    Session(usize),
}

pub struct List {
    pub all: Vec<SessionRow>,
    pub rows: Vec<Row>,
    /// The selected row.
    pub at: usize,
    /// The first visible row.
    pub top: usize,
    pub filter: String,
    pub grouping: Grouping,
    /// All sessions are loaded.
    pub complete: bool,
    /// The index of each session in `all`.
    index: FxHashMap<SessionId, usize>,
}

impl List {
    pub fn new() -> (List, Query) {
        let list = List {
            all: Vec::new(),
            rows: Vec::new(),
            at: 0,
            top: 0,
            filter: String::new(),
            grouping: Grouping::None,
            complete: false,
            index: FxHashMap::default(),
        };
        (list, Query::List { after: None, limit: FIRST_PAGE_SESSIONS })
    }

    pub fn chosen(&self) -> Option<&SessionRow> {
        match self.rows.get(self.at)? {
            Row::Session(nth) => self.all.get(*nth),
            Row::Group(..) => None,
        }
    }

    /// Adds a page of sessions. Returns the query for the next page.
    pub fn take(&mut self, sessions: Vec<SessionRow>, more: bool) -> Option<Query> {
        let last =
            sessions.last().map(|last| (last.started.map(Timestamp::as_millisecond), last.id));
        for session_row in sessions {
            self.upsert(session_row);
        }
        self.complete |= !more;
        self.rebuild_rows();
        let after = last.filter(|_| more)?;
        Some(Query::List { after: Some(after), limit: NEXT_PAGE_SESSIONS })
    }

    /// Updates or adds a session; removes it if `None`.
    pub fn update(&mut self, id: SessionId, session_row: Option<SessionRow>) {
        match session_row {
            Some(session_row) if session_row.sub_agent => return,
            Some(session_row) => self.upsert(session_row),
            None => {
                let Some(at) = self.index.get(&id) else { return };
                self.all.remove(*at);
                let places = self.all.iter().enumerate().map(|(at, held)| (held.id, at));
                self.index = places.collect();
            }
        }
        self.rebuild_rows();
    }

    fn upsert(&mut self, session_row: SessionRow) {
        let at = self.index.get(&session_row.id).copied();
        match at.and_then(|at| self.all.get_mut(at)) {
            Some(held) => *held = session_row,
            None => {
                self.index.insert(session_row.id, self.all.len());
                self.all.push(session_row);
            }
        }
    }

    pub fn set_filter(&mut self, filter: &str) {
        filter.clone_into(&mut self.filter);
        self.at = 0;
        self.rebuild_rows();
        self.at = self.rows.iter().position(|row| matches!(row, Row::Session(_))).unwrap_or(0);
    }

    pub fn group(&mut self) {
        self.grouping = self.grouping.next();
        self.rebuild_rows();
    }

    /// Rebuilds the rows from filter, order and grouping. Keeps the selection.
    fn rebuild_rows(&mut self) {
        let chosen = self.chosen().map(|session_row| session_row.id);
        let words: Vec<String> = self.filter.split_whitespace().map(str::to_lowercase).collect();
        let mut nths: Vec<usize> = (0..self.all.len()).collect();
        nths.retain(|nth| {
            self.all.get(*nth).is_some_and(|session_row| matches(session_row, &words))
        });
        let order = |nth: &usize| {
            let session_row = self.all.get(*nth);
            let live =
                session_row.is_some_and(|session_row| session_row.state == SessionState::Live);
            let last = session_row.and_then(|session_row| session_row.last_heard);
            let activity = session_row.and_then(|session_row| session_row.activity.as_ref());
            let urgency = Activity::order(activity);
            (urgency, Reverse(live), Reverse(last), session_row.map(|session_row| session_row.id))
        };
        nths.sort_by_cached_key(order);
        self.rows.clear();
        match self.grouping {
            Grouping::None => self.rows.extend(nths.into_iter().map(Row::Session)),
            Grouping::Project | Grouping::Day => {
                let mut groups: Vec<(String, Vec<usize>)> = Vec::new();
                for nth in nths {
                    let Some(session_row) = self.all.get(nth) else { continue };
                    let name = group_of(session_row, self.grouping);
                    match groups.iter_mut().find(|(held, _)| *held == name) {
                        Some((_, nths)) => nths.push(nth),
                        None => groups.push((name, vec![nth])),
                    }
                }
                for (name, nths) in groups {
                    self.rows.push(Row::Group(name, nths.len()));
                    self.rows.extend(nths.into_iter().map(Row::Session));
                }
            }
        }
        let is_chosen = |row: &Row| match row {
            Row::Session(nth) => self.all.get(*nth).map(|session_row| session_row.id) == chosen,
            Row::Group(..) => false,
        };
        let kept = chosen.and_then(|_| self.rows.iter().position(is_chosen));
        // Until the user moves, select the first session.
        if self.at > 0 || self.top > 0 {
            self.at = kept.unwrap_or(self.at);
        } else {
            self.at = self.rows.iter().position(|row| matches!(row, Row::Session(_))).unwrap_or(0);
        }
        self.at = self.at.min(self.rows.len().saturating_sub(1));
    }

    /// Moves the selection by a number of rows.
    pub fn move_by(&mut self, rows: isize) {
        let last = self.rows.len().saturating_sub(1);
        let mut at = self.at.saturating_add_signed(rows).min(last);
        let step: isize = if rows < 0 { -1 } else { 1 };
        // Skip group headers.
        while matches!(self.rows.get(at), Some(Row::Group(..))) {
            match at.checked_add_signed(step).filter(|next| *next <= last) {
                Some(next) => at = next,
                None => return,
            }
        }
        self.at = at;
    }

    /// Scrolls so that the selected row is visible.
    pub fn settle(&mut self, view: usize) {
        if self.at < self.top {
            self.top = self.at;
        }
        // Show the group's header with its first session.
        if self.at == self.top
            && self.at > 0
            && matches!(self.rows.get(self.at - 1), Some(Row::Group(..)))
        {
            self.top = self.at - 1;
        }
        if self.at >= self.top + view.max(1) {
            self.top = self.at + 1 - view.max(1);
        }
        self.top = self.top.min(self.rows.len().saturating_sub(view.max(1)));
    }
}

fn matches(session_row: &SessionRow, words: &[String]) -> bool {
    let fields = [
        Some(session_row.title.as_str()),
        Some(session_row.agent.as_str()),
        session_row.project.as_deref(),
    ];
    let lists = session_row.models.iter().chain(&session_row.tags).map(String::as_str);
    let texts: Vec<String> =
        fields.into_iter().flatten().chain(lists).map(str::to_lowercase).collect();
    words.iter().all(|word| texts.iter().any(|text| text.contains(word.as_str())))
}

fn group_of(session_row: &SessionRow, grouping: Grouping) -> String {
    match grouping {
        Grouping::Day => {
            let last = session_row.last_heard;
            last.map_or_else(|| "no date".to_owned(), |at| at.strftime("%A, %-d %B %Y").to_string())
        }
        Grouping::Project | Grouping::None => {
            session_row.project.clone().unwrap_or_else(|| "no project".to_owned())
        }
    }
}
