//! Finds the lines of edits in the commits of their file. A line of an edit is found at most once,
//! in the commit in which it ended: a person who types the same line later wrote it themselves.

use rustc_hash::FxHashMap;

use super::line_index::{Around, Keys, LineIndex};
use super::steps::{Step, VersionLine};
use super::written::{Written, WrittenLine, WrittenLines};
use super::{LineKey, same_line};

/// An edit that no commit has after so many later commits of its file was undone.
const MAX_COMMITS_AFTER: usize = 64;
/// The rest of an edit of which a commit has a part may follow in so many commits.
const MAX_COMMITS_OF_REST: usize = 4;

/// An edit of the file and its time in milliseconds.
pub struct TimedEdit {
    /// None: the log has no time.
    pub at: Option<i64>,
    pub place: EditPlace,
    pub written: Written,
    pub step: Step,
}

/// Where the edited file was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EditPlace {
    /// In this repository.
    Here,
    /// In a folder that is not on this machine, under the same name in its project.
    Elsewhere,
}

/// The file in one commit, as far as the commit's diff shows it.
#[derive(Default)]
pub struct CommitLines {
    /// Seconds since 1970. A rebase keeps the author's time.
    pub author_time: i64,
    pub committer_time: i64,
    pub lines: Vec<CommitLine>,
}

pub struct CommitLine {
    pub(super) key: LineKey,
    pub text: String,
    /// The commit added it.
    pub is_added: bool,
    /// Its number in the file of the commit, from 1.
    pub number: u32,
    pub claim: Option<Claim>,
}

/// The edit that wrote a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Claim {
    /// Its index in the list of edits.
    pub edit: usize,
    pub confidence: Confidence,
}

impl Claim {
    /// The claim of a line that was moved or reformatted since.
    pub fn moved(self) -> Claim {
        Claim { confidence: Confidence::Moved, ..self }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Confidence {
    /// The text of that edit apart from white space, or that text at another place.
    Moved,
    /// The exact text of that edit.
    Exact,
}

impl Confidence {
    pub fn name(self) -> &'static str {
        match self {
            Confidence::Moved => "moved",
            Confidence::Exact => "exact",
        }
    }
}

impl CommitLine {
    pub fn new(text: String, number: u32, is_added: bool) -> CommitLine {
        CommitLine { key: LineKey::of(&text), text, is_added, number, claim: None }
    }

    pub fn key(&self) -> LineKey {
        self.key
    }

    pub fn version_line(&self) -> VersionLine {
        VersionLine::of(&self.text)
    }

    pub fn is_hunk_break(&self) -> bool {
        self.key == LineKey::BREAK
    }

    /// Between two hunks.
    pub fn hunk_break() -> CommitLine {
        CommitLine {
            key: LineKey::BREAK,
            text: String::new(),
            is_added: false,
            number: 0,
            claim: None,
        }
    }
}

/// An edit that is looked for.
struct Entry {
    edit: usize,
    /// In seconds, as git has times.
    at: i64,
    place: EditPlace,
    lines: Vec<WrittenLine>,
    /// For each line: it was found.
    found: Vec<bool>,
    /// For each line: when a later edit removed it.
    removed_at: Vec<i64>,
    /// Lines that were not found yet.
    left: usize,
    commits_after: usize,
    is_partly_found: bool,
}

impl Keys for Vec<WrittenLine> {
    fn key(&self, at: usize) -> LineKey {
        self.get(at).map_or(LineKey::BREAK, |line| line.key)
    }
}

/// Gives the lines of the commits, oldest first, to the edits that wrote them.
pub fn claim_lines(edits: Vec<TimedEdit>, commits: &mut [CommitLines]) {
    let entries = entries(edits);
    let mut order: Vec<usize> = (0..commits.len()).collect();
    order.sort_by_key(|at| commits[*at].author_time);
    let mut entries = entries.into_iter().peekable();
    let mut active: Vec<Entry> = Vec::new();
    // Edits after the author's time of a commit that has them: it was amended or squashed.
    let mut later: Vec<Entry> = Vec::new();
    for at in &order {
        let commit = &mut commits[*at];
        while let Some(entry) = entries.next_if(|entry| entry.at <= commit.author_time) {
            active.push(entry);
        }
        let mut index = LineIndex::new(&commit.lines);
        for entry in active.iter_mut().rev() {
            let time = commit.author_time;
            entry.claim(commit, &mut index, time);
        }
        later.extend(active.extract_if(.., |entry| entry.is_over()));
    }
    later.extend(active);
    later.extend(entries);
    later.retain(|entry| entry.left > 0 && !entry.is_partly_found);
    later.sort_by_key(|entry| entry.at);
    for at in order {
        let commit = &mut commits[at];
        if commit.committer_time <= commit.author_time {
            continue;
        }
        let from = later.partition_point(|entry| entry.at <= commit.author_time);
        let to = later.partition_point(|entry| entry.at <= commit.committer_time);
        let mut index = LineIndex::new(&commit.lines);
        let tried = to.saturating_sub(from).min(MAX_COMMITS_AFTER);
        for entry in later[from..from + tried].iter_mut().rev() {
            entry.commits_after = entry.commits_after.max(1);
            let time = commit.committer_time;
            entry.claim(commit, &mut index, time);
        }
    }
    for commit in commits {
        leave_out_movable(&mut commit.lines);
    }
}

/// The edits by time.
fn entries(edits: Vec<TimedEdit>) -> Vec<Entry> {
    let mut edits: Vec<(usize, TimedEdit)> = edits.into_iter().enumerate().collect();
    edits.sort_by_key(|(_, edit)| edit.at);
    let mut entries: Vec<Entry> = Vec::new();
    // Distinctive lines that stand in the file, by their text.
    let mut standing: FxHashMap<LineKey, Vec<(usize, usize)>> = FxHashMap::default();
    for (number, edit) in edits {
        let at = edit.at.map_or(i64::MIN, |at| at.div_euclid(1000));
        let mut written = match edit.written {
            Written::Lines(written) => written,
            Written::Deleted => WrittenLines { is_whole_file: true, ..WrittenLines::default() },
        };
        let mut remove = |(entry, line): (usize, usize)| {
            if let Some(entry) = entries.get_mut(entry) {
                entry.removed_at[line] = at;
            }
        };
        if written.is_whole_file {
            let mut kept: FxHashMap<LineKey, Vec<(usize, usize)>> = FxHashMap::default();
            for line in &mut written.lines {
                if let Some(earlier) = standing.get_mut(&line.key).and_then(Vec::pop) {
                    kept.entry(line.key).or_default().push(earlier);
                    line.is_written = false;
                }
            }
            std::mem::replace(&mut standing, kept).into_values().flatten().for_each(remove);
        } else {
            for key in &written.removed {
                standing.get_mut(key).and_then(Vec::pop).into_iter().for_each(&mut remove);
            }
        }
        for (line, it) in written.lines.iter().enumerate() {
            if it.is_written && it.is_distinctive {
                standing.entry(it.key).or_default().push((entries.len(), line));
            }
        }
        entries.push(Entry::new(number, at, edit.place, written.lines));
    }
    entries
}

impl Entry {
    fn new(edit: usize, at: i64, place: EditPlace, lines: Vec<WrittenLine>) -> Entry {
        Entry {
            edit,
            at,
            place,
            left: lines.iter().filter(|line| line.is_written).count(),
            found: vec![false; lines.len()],
            removed_at: vec![i64::MAX; lines.len()],
            lines,
            commits_after: 0,
            is_partly_found: false,
        }
    }

    fn is_over(&self) -> bool {
        let limit = if self.is_partly_found { MAX_COMMITS_OF_REST } else { MAX_COMMITS_AFTER };
        self.left == 0 || self.commits_after >= limit
    }

    /// Finds the lines of this edit in a commit.
    fn claim(&mut self, commit: &mut CommitLines, index: &mut LineIndex, time: i64) {
        let mut found = vec![None; self.lines.len()];
        for around in [Around::Both, Around::Before, Around::After] {
            self.claim_around(commit, index, time, around, &mut found);
            self.extend(commit, time, &mut found);
        }
        // Git's times are in seconds: a commit of the same second may be older than the edit.
        let is_after = time > self.at;
        // Text alone is enough in the first commit after the edit only.
        if is_after && self.commits_after == 0 && self.place == EditPlace::Here {
            self.claim_text(commit, index, time, &mut found);
            self.extend(commit, time, &mut found);
        }
        self.commits_after += usize::from(is_after);
        self.is_partly_found |=
            found.iter().any(Option::is_some) && self.found.iter().any(|found| *found);
    }

    fn is_wanted(&self, at: usize, time: i64) -> bool {
        self.lines[at].is_written && !self.found[at] && self.removed_at[at] >= time
    }

    fn is_distinctive(&self, at: Option<usize>) -> bool {
        at.and_then(|at| self.lines.get(at)).is_some_and(|line| line.is_distinctive)
    }

    fn claim_around(
        &mut self,
        commit: &mut CommitLines,
        index: &mut LineIndex,
        time: i64,
        around: Around,
        found: &mut [Option<usize>],
    ) {
        for (at, found) in found.iter_mut().enumerate() {
            let before = at.checked_sub(1).filter(|_| around != Around::After);
            let after = Some(at + 1).filter(|_| around != Around::Before);
            let is_break =
                |at: Option<usize>| at.is_none_or(|at| self.lines.key(at) == LineKey::BREAK);
            let edge = match around {
                Around::Both | Around::Nothing => false,
                Around::Before => is_break(before),
                Around::After => is_break(after),
            };
            // The rest of an edit may have been dropped: its context alone says nothing later.
            let tells = match self.is_partly_found {
                true => self.is_distinctive(Some(at)),
                false => [before, Some(at), after].into_iter().any(|at| self.is_distinctive(at)),
            };
            if !tells || edge || found.is_some() || !self.is_wanted(at, time) {
                continue;
            }
            if let Some(place) = index.find(&commit.lines, &self.lines, at, around) {
                *found = Some(place);
                self.take(at, &mut commit.lines[place]);
            }
        }
    }

    fn claim_text(
        &mut self,
        commit: &mut CommitLines,
        index: &mut LineIndex,
        time: i64,
        found: &mut [Option<usize>],
    ) {
        for (at, found) in found.iter_mut().enumerate() {
            if found.is_some() || !self.is_distinctive(Some(at)) || !self.is_wanted(at, time) {
                continue;
            }
            if let Some(place) = index.find_only(&commit.lines, &self.lines, at) {
                *found = Some(place);
                self.take(at, &mut commit.lines[place]);
                if let Some(claim) = &mut commit.lines[place].claim {
                    claim.confidence = Confidence::Moved;
                }
            }
        }
    }

    /// Goes on from lines that were found to their neighbours.
    fn extend(&mut self, commit: &mut CommitLines, time: i64, found: &mut [Option<usize>]) {
        let count = self.lines.len();
        for at in 1..count {
            let next = found[at - 1].map(|place| place + 1);
            self.extend_to(commit, time, at, next, found);
        }
        for at in (0..count.saturating_sub(1)).rev() {
            let next = found[at + 1].and_then(|place| place.checked_sub(1));
            self.extend_to(commit, time, at, next, found);
        }
    }

    fn extend_to(
        &mut self,
        commit: &mut CommitLines,
        time: i64,
        at: usize,
        place: Option<usize>,
        found: &mut [Option<usize>],
    ) {
        let Some(place) = place.filter(|_| found[at].is_none()) else { return };
        let key = self.lines[at].key;
        let Some(line) = commit.lines.get_mut(place) else { return };
        if key == LineKey::BREAK || line.key != key {
            return;
        }
        found[at] = Some(place);
        if line.is_added && line.claim.is_none() && self.is_wanted(at, time) {
            self.take(at, line);
        }
    }

    fn take(&mut self, at: usize, line: &mut CommitLine) {
        let is_exact = self.place == EditPlace::Here && same_line(&self.lines[at].text, &line.text);
        let confidence = if is_exact { Confidence::Exact } else { Confidence::Moved };
        line.claim = Some(Claim { edit: self.edit, confidence });
        self.found[at] = true;
        self.left -= 1;
    }
}

/// Takes back the claims of lines at the ends of a block that may also be the same lines beside it:
/// whoever inserts a function after another writes its last `}` or the other's, and a diff does not
/// tell which.
fn leave_out_movable(lines: &mut [CommitLine]) {
    let edit_of = |at: usize| lines[at].claim.map(|claim: Claim| claim.edit);
    // A line that another edit wrote is no line that a person wrote.
    let is_same = |inside: usize, beside: usize| {
        let (inside, beside) = (&lines[inside], &lines[beside]);
        inside.key == beside.key && beside.key != LineKey::BREAK && beside.claim.is_none()
    };
    let mut movable = Vec::new();
    let mut from = 0;
    while from < lines.len() {
        let edit = edit_of(from);
        let length = (from..lines.len()).take_while(|at| edit_of(*at) == edit).count();
        let to = from + length;
        if edit.is_some() {
            let before = length.min(from);
            let up = (1..=before).take_while(|by| is_same(to - by, from - by)).count();
            let after = length.min(lines.len() - to);
            let down = (0..after).take_while(|by| is_same(from + by, to + by)).count();
            movable.extend((to - up..to).chain(from..from + down));
        }
        from = to;
    }
    for at in movable {
        lines[at].claim = None;
    }
}
