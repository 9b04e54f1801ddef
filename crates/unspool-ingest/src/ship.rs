//! The collector: sends what agents write on this machine to a server (`unspool serve`), where it is
//! decoded and recorded like the logs of that machine. What leaves is decided by project (`policy`)
//! and redacted before it leaves (`text`).
//!
//! The agents' logs are the queue. The collector keeps nothing on disk: it asks the server how far it
//! has each file, and sends what follows. A log that was replaced, or in which an earlier text turns
//! out to hold a secret, is sent again from its start, as the next generation of the file.

pub mod client;
mod policy;
mod round;
mod text;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;
use unspool_model::source::FileStamp;
use unspool_query::ship::{MAX_HELLO_FILES, MAX_NAME_BYTES, MAX_UNITS, SentTo};
use unspool_redact::{CollectedSecrets, Rules};
use unspool_sources::discover::{Environment, discover, file_stamp};

pub use self::client::{Client, ShipError};
pub use self::policy::Policy;
pub use self::round::Round;
use self::round::{Pending, deliver};
use self::text::{FileText, Resend};
use crate::sync::file_state::is_idle;

/// How long the collector waits if it has just sent something, and if not.
const BUSY_PAUSE: Duration = Duration::from_millis(250);
const IDLE_PAUSE: Duration = Duration::from_secs(1);
/// How often all folders are searched. In between only files that changed lately are looked at.
const SEARCH_INTERVAL: Duration = Duration::from_secs(5);
/// How often the server is asked how far it has everything.
const ASK_INTERVAL: Duration = Duration::from_secs(3600);
/// A file that did not change for longer is looked at with the next search.
const RECENT: Duration = Duration::from_secs(15 * 60);
/// The size of a request that is worth sending.
const REQUEST_BYTES: usize = 4 * 1024 * 1024;
/// Pauses after failures: doubled from the first to the last, each shortened by chance, so that
/// collectors that failed together do not come back together.
const FIRST_BACKOFF: Duration = Duration::from_millis(500);
const LAST_BACKOFF: Duration = Duration::from_secs(60);

/// Sends the sessions of this machine.
pub struct Collector {
    environment: Environment,
    /// Our own data folder, whose captures are not sent: a token stream splits secrets.
    own_folder: PathBuf,
    policy: Policy,
    rules: Rules,
    /// What the tags of redacted secrets are made with.
    key: Arc<str>,
    files: FxHashMap<PathBuf, ShippedFile>,
    searched: Option<Instant>,
    /// When the server was last asked for everything.
    positions_asked: Instant,
}

/// What is known of a file.
#[derive(Default)]
struct ShippedFile {
    /// When all of it was sent. None if there is more.
    done: Option<FileStamp>,
    last_stamp: FileStamp,
    /// How far the server has it. None if the server was not asked.
    sent: Option<SentTo>,
    /// Whether its project may leave. None if it names none yet.
    is_allowed: Option<bool>,
    /// When its project was looked up.
    looked_up: Option<FileStamp>,
    /// The secrets of the part that was sent.
    secrets: Option<CollectedSecrets>,
    resend: Resend,
    is_refused: bool,
    /// Why it could not be read.
    problem: Option<String>,
}

impl ShippedFile {
    fn has_news(&self, stamp: FileStamp) -> bool {
        let is_at_end = is_idle(stamp) && self.sent.is_some_and(|sent| !sent.idle);
        !self.is_refused && (self.done != Some(stamp) || is_at_end)
    }
}

/// A file that may have something new.
struct FoundFile {
    path: PathBuf,
    stamp: FileStamp,
}

impl Collector {
    pub fn new(
        environment: Environment,
        own_folder: PathBuf,
        policy: Policy,
        rules: Rules,
        key: Arc<str>,
    ) -> Collector {
        let (files, searched, positions_asked) = (FxHashMap::default(), None, Instant::now());
        Collector { environment, own_folder, policy, rules, key, files, searched, positions_asked }
    }

    /// Sends everything that is there now. What is written meanwhile is left for the next time.
    pub fn send_all(&mut self, client: &Client) -> Result<Round, ShipError> {
        let mut all = Round::default();
        loop {
            self.searched = None;
            let round = self.round(client)?;
            let is_done = round.unfinished == 0 || round.files == 0;
            all.add(round);
            if is_done {
                return Ok(all);
            }
        }
    }

    /// Sends what agents write, until the server refuses the token.
    pub fn run(
        &mut self,
        client: &Client,
        mut report: impl FnMut(Result<Round, &ShipError>),
    ) -> ShipError {
        let mut backoff = FIRST_BACKOFF;
        loop {
            let pause = match self.round(client) {
                Ok(round) => {
                    backoff = FIRST_BACKOFF;
                    let pause = if round.files > 0 { BUSY_PAUSE } else { IDLE_PAUSE };
                    report(Ok(round));
                    pause
                }
                Err(error) if error.is_final() => return error,
                Err(error) => {
                    report(Err(&error));
                    self.ask_again();
                    let pause = backoff;
                    backoff = (2 * backoff).min(LAST_BACKOFF);
                    shortened(pause)
                }
            };
            thread::sleep(pause);
        }
    }

    /// What the server has is not known any more.
    fn ask_again(&mut self) {
        self.files.values_mut().for_each(|file| (file.sent, file.done) = (None, None));
        self.positions_asked = Instant::now();
    }

    /// What would leave, without a server: all files of the projects that may leave.
    pub fn survey(&mut self) -> Vec<(PathBuf, Round)> {
        let mut found = Vec::new();
        for file in self.candidates() {
            let Some(path) = self.allowed(&file) else { continue };
            let mut round = Round { files: 1, ..Round::default() };
            let resend = Resend::default();
            let mut text = FileText::new(&path, &self.rules, &self.key, None, resend);
            let mut sent = SentTo::default();
            loop {
                match text.next_unit(sent, &mut round.secrets) {
                    Ok(Some(unit)) => {
                        round.bytes += unit.text.len() as u64;
                        sent = unit.head.to;
                    }
                    Ok(None) => break,
                    Err(error) => {
                        round.problems.push(format!("{}: {error}", path.display()));
                        break;
                    }
                }
            }
            found.push((path, round));
        }
        found
    }

    /// Files of projects that may not leave, or are not known.
    pub fn withheld(&self) -> u64 {
        self.files.values().filter(|file| file.is_allowed == Some(false)).count() as u64
    }

    /// The files that may have something new, oldest first: the server sees sessions grow in the
    /// order in which they did.
    fn candidates(&mut self) -> Vec<FoundFile> {
        let is_due = self.searched.is_none_or(|at| at.elapsed() >= SEARCH_INTERVAL);
        let mut found: Vec<FoundFile> = if is_due {
            self.searched = Some(Instant::now());
            let files = discover(&self.environment).files;
            files.into_iter().map(|file| FoundFile { path: file.path, stamp: file.stamp }).collect()
        } else {
            let is_due = |file: &ShippedFile| {
                let is_unfinished = file.sent.is_some() && file.done.is_none();
                is_unfinished || is_recent(file.last_stamp)
            };
            let recent = self.files.iter().filter(|(_, file)| is_due(file));
            let now = |path: &PathBuf| {
                let stamp = file_stamp(&std::fs::metadata(path).ok()?);
                Some(FoundFile { path: path.clone(), stamp })
            };
            recent.filter_map(|(path, _)| now(path)).collect()
        };
        found.retain(|file| {
            let is_own = file.path.starts_with(&self.own_folder);
            !is_own && self.files.get(&file.path).is_none_or(|known| known.has_news(file.stamp))
        });
        found.sort_by_key(|file| file.stamp.modified);
        found
    }

    /// The path of a file whose project may leave.
    fn allowed(&mut self, found: &FoundFile) -> Option<PathBuf> {
        let name = found.path.to_str().filter(|name| name.len() <= MAX_NAME_BYTES)?;
        let file = self.files.entry(found.path.clone()).or_default();
        file.last_stamp = found.stamp;
        if file.is_allowed.is_none() && file.looked_up != Some(found.stamp) {
            file.looked_up = Some(found.stamp);
            // A log that does not name its project yet may do so later.
            file.is_allowed = match policy::projects_of(Path::new(name)) {
                Some(projects) => {
                    Some(projects.iter().all(|project| self.policy.allows(project.as_deref())))
                }
                None => self.policy.allows(None).then_some(true),
            };
        }
        let is_allowed = file.is_allowed == Some(true);
        is_allowed.then(|| found.path.clone())
    }

    fn round(&mut self, client: &Client) -> Result<Round, ShipError> {
        if self.positions_asked.elapsed() > ASK_INTERVAL {
            // The server may have been set back to a backup while there was nothing to send.
            self.ask_again();
        }
        let mut round = Round::default();
        let found = self.candidates();
        let wanted: Vec<(PathBuf, FileStamp)> =
            found.iter().filter_map(|file| Some((self.allowed(file)?, file.stamp))).collect();
        round.withheld = self.withheld();
        self.ask(client, &wanted)?;
        let mut pending = Pending::default();
        for (path, stamp) in &wanted {
            self.read(client, path, *stamp, &mut pending, &mut round)?;
        }
        self.send(client, &mut pending, &mut round)?;
        let is_unfinished = |path: &PathBuf| {
            self.files.get(path).is_some_and(|file| file.done.is_none() && !file.is_refused)
        };
        round.unfinished = wanted.iter().filter(|(path, _)| is_unfinished(path)).count() as u64;
        Ok(round)
    }

    /// Asks how far the server has files of which that is not known.
    fn ask(&mut self, client: &Client, wanted: &[(PathBuf, FileStamp)]) -> Result<(), ShipError> {
        let is_new = |path: &PathBuf| self.files.get(path).is_none_or(|file| file.sent.is_none());
        let new: Vec<PathBuf> =
            wanted.iter().map(|(path, _)| path).filter(|path| is_new(path)).cloned().collect();
        for group in new.chunks(MAX_HELLO_FILES) {
            let names = group.iter().map(|path| path.to_string_lossy().into_owned()).collect();
            let positions = client.hello(names)?;
            for (path, position) in group.iter().zip(positions) {
                let file = self.files.entry(path.clone()).or_default();
                file.sent = Some(position.unwrap_or_default());
            }
        }
        Ok(())
    }

    /// Reads what is new of a file, and sends what has become enough for a request.
    fn read(
        &mut self,
        client: &Client,
        path: &Path,
        stamp: FileStamp,
        pending: &mut Pending,
        round: &mut Round,
    ) -> Result<(), ShipError> {
        let Some(file) = self.files.get_mut(path) else { return Ok(()) };
        let mut sent = file.sent.unwrap_or_default();
        let (secrets, resend) = (file.secrets.take(), file.resend);
        let mut text = FileText::new(path, &self.rules, &self.key, secrets, resend);
        let mut units = Vec::new();
        let mut size = 0;
        file.done = loop {
            match text.next_unit(sent, &mut round.secrets) {
                Ok(Some(unit)) => {
                    (sent, size) = (unit.head.to, size + unit.text.len());
                    units.push(unit);
                    // The rest comes with the next round, when it is known that this was taken.
                    if size >= REQUEST_BYTES || units.len() >= MAX_UNITS {
                        break None;
                    }
                }
                Ok(None) => {
                    file.problem = None;
                    break (!text.has_rest).then_some(stamp);
                }
                Err(error) => {
                    let problem = format!("{} cannot be read: {error}", path.display());
                    // It is tried again, and said once.
                    if file.problem.replace(problem.clone()) != Some(problem.clone()) {
                        round.problems.push(problem);
                    }
                    break None;
                }
            }
        };
        file.resend = text.resend;
        file.secrets = text.into_secrets();
        pending.size += size;
        pending.units.extend(units.into_iter().map(|unit| (path.to_owned(), unit)));
        if pending.size >= REQUEST_BYTES || pending.units.len() >= MAX_UNITS / 2 {
            self.send(client, pending, round)?;
        }
        Ok(())
    }

    fn send(
        &mut self,
        client: &Client,
        pending: &mut Pending,
        round: &mut Round,
    ) -> Result<(), ShipError> {
        let Pending { units, size } = std::mem::take(pending);
        if units.is_empty() {
            return Ok(());
        }
        let receipts = deliver(client, &units)?;
        let mut last = None;
        for ((path, unit), receipt) in units.iter().zip(receipts) {
            let Some(file) = self.files.get_mut(path) else { continue };
            if receipt.taken != Some(unit.head.to) {
                // The server has another position: go on from there.
                (file.done, file.secrets) = (None, None);
            }
            file.sent = Some(receipt.taken.unwrap_or_default());
            if let Some(refused) = receipt.refused {
                file.is_refused = true;
                round.problems.push(format!("{}: {refused}", path.display()));
            }
            round.files += u64::from(last != Some(path));
            last = Some(path);
        }
        round.bytes += size as u64;
        Ok(())
    }
}

fn is_recent(stamp: FileStamp) -> bool {
    let modified = u64::try_from(stamp.modified).unwrap_or_default();
    let modified = std::time::UNIX_EPOCH + Duration::from_nanos(modified);
    modified.elapsed().map_or(true, |since| since < RECENT)
}

/// A part of a pause between nothing and all of it.
fn shortened(pause: Duration) -> Duration {
    let nanos = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let chance = nanos.map_or(0, |since| since.subsec_nanos() % 1000);
    FIRST_BACKOFF.min(pause) / 2 + pause * chance / 1000
}
