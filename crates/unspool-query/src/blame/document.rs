//! Blame as JSON, for `--json` and REST.

use jiff::Timestamp;
use rustc_hash::FxHashMap;
use serde::Serialize;
use unspool_model::id::{PartId, SessionId};
use unspool_view::present::changes::LineStanding;

use super::Blame;
use super::commits::CommitShares;
use super::standing::SessionStanding;

#[derive(Serialize)]
pub struct BlameDocument<'a> {
    file: &'a str,
    lines: Vec<LineDocument<'a>>,
    edits: Vec<EditDocument<'a>>,
}

#[derive(Serialize)]
struct LineDocument<'a> {
    line: u32,
    session: Option<SessionId>,
    turn: Option<u32>,
    part: Option<PartId>,
    confidence: Option<&'static str>,
    commit: Option<&'a str>,
}

#[derive(Serialize)]
struct EditDocument<'a> {
    session: SessionId,
    turn: u32,
    part: PartId,
    agent: &'a str,
    model: Option<&'a str>,
    prompt: Option<&'a str>,
    at: Option<Timestamp>,
}

impl Blame {
    pub fn document(&self) -> BlameDocument<'_> {
        let lines = self.lines.iter().map(|line| {
            let edit = line.edit.map(|(edit, _)| &self.edits[edit]);
            LineDocument {
                line: line.line,
                session: edit.map(|edit| edit.session),
                turn: edit.map(|edit| edit.turn),
                part: edit.map(|edit| edit.part),
                confidence: line.edit.map(|(_, confidence)| confidence.name()),
                commit: line.commit.as_deref(),
            }
        });
        let edits = self.edits.iter().map(|edit| EditDocument {
            session: edit.session,
            turn: edit.turn,
            part: edit.part,
            agent: &edit.agent,
            model: edit.model.as_deref(),
            prompt: edit.prompt.as_deref(),
            at: edit.at,
        });
        BlameDocument { file: &self.file, lines: lines.collect(), edits: edits.collect() }
    }
}

#[derive(Serialize)]
pub struct StandingDocument<'a> {
    commits: Vec<SessionCommitDocument<'a>>,
    /// The changed files that git knows.
    files: Vec<FileDocument<'a>>,
    /// Edited files that are in no repository of this machine.
    outside: &'a [String],
}

#[derive(Serialize)]
struct SessionCommitDocument<'a> {
    #[serde(flatten)]
    commit: CommitDocument<'a>,
    lines: usize,
    exact: usize,
}

#[derive(Serialize)]
struct FileDocument<'a> {
    path: &'a str,
    name: &'a str,
    lines: &'a [LineStanding],
}

#[derive(Serialize)]
struct CommitDocument<'a> {
    commit: &'a str,
    author: &'a str,
    at: Option<Timestamp>,
    subject: &'a str,
    added: usize,
}

impl<'a> CommitDocument<'a> {
    fn new(commit: &'a CommitShares) -> CommitDocument<'a> {
        CommitDocument {
            commit: &commit.id,
            author: &commit.author,
            at: Timestamp::from_second(commit.author_time).ok(),
            subject: &commit.subject,
            added: commit.added,
        }
    }
}

impl SessionStanding {
    pub fn document(&self) -> StandingDocument<'_> {
        let commits = self.standing.commits.iter().map(|commit| SessionCommitDocument {
            commit: CommitDocument {
                commit: &commit.id,
                author: &commit.author,
                at: commit.at,
                subject: &commit.subject,
                added: commit.added,
            },
            lines: commit.lines,
            exact: commit.exact,
        });
        let files = self.standing.files.iter().flatten();
        let files = files.map(|file| FileDocument {
            path: &file.path,
            name: &file.name,
            lines: &file.lines,
        });
        StandingDocument {
            commits: commits.collect(),
            files: files.collect(),
            outside: &self.outside,
        }
    }
}

#[derive(Serialize)]
pub struct CommitsDocument<'a> {
    commits: Vec<CommitSessionsDocument<'a>>,
}

#[derive(Serialize)]
struct CommitSessionsDocument<'a> {
    #[serde(flatten)]
    commit: CommitDocument<'a>,
    sessions: Vec<ShareDocument<'a>>,
}

#[derive(Serialize)]
struct ShareDocument<'a> {
    session: SessionId,
    agent: Option<&'a str>,
    title: Option<&'a str>,
    lines: usize,
    exact: usize,
}

/// The commits of a range with their sessions; `titles`: the agent and the title of each.
pub fn range_document<'a>(
    commits: &'a [CommitShares],
    titles: &'a FxHashMap<SessionId, (String, Option<String>)>,
) -> CommitsDocument<'a> {
    let one = |commit: &'a CommitShares| {
        let sessions = commit.sessions.iter().map(|share| {
            let known = titles.get(&share.session);
            ShareDocument {
                session: share.session,
                agent: known.map(|(agent, _)| agent.as_str()),
                title: known.and_then(|(_, title)| title.as_deref()),
                lines: share.lines,
                exact: share.exact,
            }
        });
        CommitSessionsDocument { commit: CommitDocument::new(commit), sessions: sessions.collect() }
    };
    CommitsDocument { commits: commits.iter().map(one).collect() }
}
