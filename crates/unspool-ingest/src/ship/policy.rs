//! Which sessions may leave this machine: those of projects that the user named, by folder or by the
//! address of a git remote.

use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;
use unspool_query::git::Repository;
use unspool_sources::in_memory::{DecodedSession, SessionSet};
use unspool_sources::read::source;

/// How much of a log is read to find its project: the first records name it, unless they are long.
const FIRST_BYTES: [u64; 2] = [64 * 1024, 1024 * 1024];

/// What may leave.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// Everything, also sessions whose project is not known.
    all: bool,
    folders: Vec<PathBuf>,
    /// Addresses of remotes, perhaps with `*` at the end.
    remotes: Vec<String>,
    /// What was decided for a folder.
    decided: FxHashMap<String, bool>,
}

impl Policy {
    pub fn everything() -> Policy {
        Policy { all: true, ..Policy::default() }
    }

    /// Projects by folder (an absolute path) or by remote (`github.com/acme/*`).
    pub fn projects(patterns: &[String]) -> Policy {
        let mut policy = Policy::default();
        for pattern in patterns {
            match Path::new(pattern).is_absolute() {
                true => policy.folders.push(PathBuf::from(pattern)),
                false => policy.remotes.push(pattern.clone()),
            }
        }
        policy
    }

    /// True if sessions of this project may leave.
    pub fn allows(&mut self, project: Option<&str>) -> bool {
        let Some(project) = project else { return self.all };
        if self.all {
            return true;
        }
        if let Some(decided) = self.decided.get(project) {
            return *decided;
        }
        let folder = Path::new(project);
        let is_named = self.folders.iter().any(|named| folder.starts_with(named))
            || (!self.remotes.is_empty() && self.has_remote(folder));
        self.decided.insert(project.to_owned(), is_named);
        is_named
    }

    /// True if the repository of a folder has a remote that was named. A folder that is gone has
    /// none.
    fn has_remote(&self, folder: &Path) -> bool {
        let repository = Repository::of(folder).ok().flatten();
        let remotes = repository.map(|found| found.remotes()).unwrap_or_default();
        remotes.iter().any(|remote| self.remotes.iter().any(|named| matches(named, remote)))
    }
}

/// A `*` at the end stands for anything; without one the whole address must be the same.
fn matches(pattern: &str, remote: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => remote.starts_with(beginning),
        None => remote == pattern,
    }
}

/// The projects of a file's sessions, as far as its beginning names them. None if it names none yet.
pub fn projects_of(path: &Path) -> Option<Vec<Option<String>>> {
    let found = FIRST_BYTES.iter().find_map(|bytes| {
        let mut source = source::open(path).ok()?;
        let beginning = std::io::Read::take(source.text(), *bytes);
        let mut sessions = SessionSet::default();
        // A beginning that cannot be decoded names no project.
        let _ = sessions.read(path, beginning, &mut |_| {});
        let mut found =
            sessions.sessions.iter().map(DecodedSession::transcript).collect::<Vec<_>>();
        // Sub-agents in the log of their session are of its project.
        if found.iter().any(|transcript| transcript.session.parent.is_none()) {
            found.retain(|transcript| transcript.session.parent.is_none());
        }
        let projects = found.iter().map(|transcript| transcript.session.facts.project.clone());
        let projects: Vec<Option<String>> = projects.collect();
        let is_whole = source.length.is_some_and(|length| length <= *bytes);
        match projects.as_slice() {
            [Some(_)] => Some(projects),
            // What is behind the beginning may be of any project.
            [_, _, ..] if !is_whole => Some([projects, vec![None]].concat()),
            [_, _, ..] => Some(projects),
            [] | [None] => None,
        }
    });
    // What an agent keeps beside a log is of the project that the log names.
    found.or_else(|| {
        let log = path.to_str()?.strip_suffix(".meta.json")?;
        projects_of(Path::new(&format!("{log}.jsonl")))
    })
}

#[cfg(test)]
mod tests {
    use super::{Policy, matches};

    #[test]
    fn remotes_match_whole_or_by_their_beginning() {
        assert!(matches("github.com/acme/*", "github.com/acme/app"));
        assert!(matches("github.com/acme/app", "github.com/acme/app"));
        assert!(!matches("github.com/acme/app", "github.com/acme/app2"));
        assert!(!matches("github.com/acme/*", "github.com/acme-evil/app"));
    }

    #[test]
    fn only_named_projects_leave() {
        let mut named = Policy::projects(&["/home/ann/app".to_owned()]);
        assert!(named.allows(Some("/home/ann/app")) && named.allows(Some("/home/ann/app/web")));
        for other in [Some("/home/ann/app2"), Some("/home/ann"), Some("/"), Some(""), None] {
            assert!(!named.allows(other), "{other:?}");
        }
        assert!(!Policy::default().allows(Some("/home/ann/app")), "nothing leaves by itself");
        assert!(Policy::everything().allows(None));
    }
}
