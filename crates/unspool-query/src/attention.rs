//! When a person is needed: which sessions wait, and the alerts that tell it. An alert is raised
//! once: when a wait begins, and when an agent that worked for a while has finished. The page, the
//! terminal and `--notify` all raise the alerts of this tracker.

use std::collections::VecDeque;

use jiff::{SignedDuration, Timestamp};
use rustc_hash::FxHashMap;
use serde::Serialize;
use unspool_model::id::SessionId;
use unspool_model::session::TurnState;
use unspool_view::present::activity::Activity;

/// A turn that was shorter needs no alert at its end: the person still looks at the agent.
const MIN_WORK: SignedDuration = SignedDuration::from_secs(10);

/// A session, as far as attention is concerned.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    pub session: SessionId,
    pub agent: &'a str,
    pub project: Option<&'a str>,
    pub title: &'a str,
    pub sub_agent: bool,
    /// None unless it is live.
    pub activity: Option<&'a Activity>,
    pub last_turn: Option<TurnState>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AlertKind {
    Waiting,
    Done,
    Failed,
    Interrupted,
    /// It has written nothing for a long time, and no end.
    Silent,
}

/// What to tell a person. As JSON it is the input of a `--notify` command.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Alert {
    pub kind: AlertKind,
    pub session: SessionId,
    pub agent: String,
    pub project: Option<String>,
    pub title: String,
    /// The command or the question that it waits for.
    pub what: Option<String>,
    pub since: Option<Timestamp>,
}

impl Alert {
    /// `claude-code waits for you`, `codex is done`.
    pub fn headline(&self) -> String {
        match self.kind {
            AlertKind::Waiting => format!("{} waits for you", self.agent),
            AlertKind::Done => format!("{} is done", self.agent),
            AlertKind::Failed => format!("{} failed", self.agent),
            AlertKind::Interrupted => format!("{} was interrupted", self.agent),
            AlertKind::Silent => format!("{} went silent", self.agent),
        }
    }

    /// What it waits for, or the title of what is done.
    pub fn text(&self) -> &str {
        self.what.as_deref().unwrap_or(&self.title)
    }
}

/// More alerts are forgotten, the oldest first.
const MAX_WAITS: usize = 1_000;
/// Feeds of one session give the start of a call this differently.
const CLOCK_TOLERANCE: SignedDuration = SignedDuration::from_secs(2);

/// What a session waits for, and since when.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Wait {
    session: SessionId,
    what: String,
    since: Option<Timestamp>,
}

impl Wait {
    fn is(&self, other: &Wait) -> bool {
        let same_time = match (self.since, other.since) {
            (Some(one), Some(other)) => one.duration_since(other).abs() <= CLOCK_TOLERANCE,
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        self.session == other.session && self.what == other.what && same_time
    }
}

/// What was seen of each live session.
#[derive(Debug, Default)]
pub struct Attention {
    /// Since when each session is live.
    live: FxHashMap<SessionId, Timestamp>,
    /// The waits of which an alert was raised. They are kept while the session works or rests: a
    /// session may look busy for a moment while the same question stands.
    waits: VecDeque<Wait>,
    /// The first look raises no alerts: what it finds began before somebody asked to be told.
    begun: bool,
}

impl Attention {
    /// Takes the current state of sessions and returns the new alerts. A session that is not among
    /// them is as it was.
    pub fn update<'a>(
        &mut self,
        seen: impl IntoIterator<Item = Seen<'a>>,
        now: Timestamp,
    ) -> Vec<Alert> {
        let begun = std::mem::replace(&mut self.begun, true);
        let seen = seen.into_iter().filter(|seen| !seen.sub_agent);
        let alerts: Vec<Alert> = seen.filter_map(|seen| self.update_one(&seen, now)).collect();
        if begun { alerts } else { Vec::new() }
    }

    fn update_one(&mut self, seen: &Seen<'_>, now: Timestamp) -> Option<Alert> {
        let Some(activity) = seen.activity else {
            let since = self.live.remove(&seen.session)?;
            let long = now.duration_since(since) >= MIN_WORK;
            return long.then(|| alert(seen, end_kind(seen.last_turn), None, None));
        };
        self.live.entry(seen.session).or_insert(now);
        let Activity::Waiting { what, since } = activity else {
            // Without a time, the next wait for the same looks like this one.
            self.waits.retain(|wait| wait.session != seen.session || wait.since.is_some());
            return None;
        };
        let wait = Wait { session: seen.session, what: what.clone(), since: *since };
        if self.waits.iter().any(|held| held.is(&wait)) {
            return None;
        }
        if self.waits.len() >= MAX_WAITS {
            self.waits.pop_front();
        }
        self.waits.push_back(wait);
        Some(alert(seen, AlertKind::Waiting, Some(what.clone()), *since))
    }
}

fn end_kind(last_turn: Option<TurnState>) -> AlertKind {
    match last_turn {
        Some(TurnState::Completed) | None => AlertKind::Done,
        Some(TurnState::Failed) => AlertKind::Failed,
        Some(TurnState::Interrupted) => AlertKind::Interrupted,
        Some(TurnState::Running | TurnState::Unknown) => AlertKind::Silent,
    }
}

fn alert(
    seen: &Seen<'_>,
    kind: AlertKind,
    what: Option<String>,
    since: Option<Timestamp>,
) -> Alert {
    Alert {
        kind,
        session: seen.session,
        agent: seen.agent.to_owned(),
        project: seen.project.map(str::to_owned),
        title: seen.title.to_owned(),
        what,
        since,
    }
}

#[cfg(test)]
mod tests {
    use unspool_model::id::Id;

    use super::*;

    fn second(second: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + second).unwrap()
    }

    fn waits(what: &str, since: i64) -> Activity {
        Activity::Waiting { what: what.to_owned(), since: Some(second(since)) }
    }

    fn works() -> Activity {
        Activity::Working { what: "thinking".to_owned(), since: None }
    }

    fn alerts_of(attention: &mut Attention, activity: Option<&Activity>, at: i64) -> Vec<String> {
        alerts_after(attention, TurnState::Completed, activity, at)
    }

    fn alerts_after(
        attention: &mut Attention,
        last_turn: TurnState,
        activity: Option<&Activity>,
        at: i64,
    ) -> Vec<String> {
        let seen = Seen {
            session: SessionId(Id::derive([b"s".as_slice()])),
            agent: "claude-code",
            project: None,
            title: "Fix the cache",
            sub_agent: false,
            activity,
            last_turn: Some(last_turn),
        };
        let alerts = attention.update([seen], second(at));
        alerts.iter().map(|alert| format!("{}: {}", alert.headline(), alert.text())).collect()
    }

    #[test]
    fn a_wait_raises_one_alert() {
        let mut attention = Attention::default();
        assert!(alerts_of(&mut attention, Some(&works()), 0).is_empty());
        let first = ["claude-code waits for you: rm -rf build/"];
        assert_eq!(alerts_of(&mut attention, Some(&waits("rm -rf build/", 1)), 1), first);
        assert!(alerts_of(&mut attention, Some(&waits("rm -rf build/", 1)), 60).is_empty());
        assert!(alerts_of(&mut attention, Some(&works()), 61).is_empty());
        // The same command again is another wait.
        assert_eq!(alerts_of(&mut attention, Some(&waits("rm -rf build/", 70)), 70), first);
    }

    #[test]
    fn the_same_wait_raises_no_second_alert() {
        let mut attention = Attention::default();
        alerts_of(&mut attention, Some(&works()), 0);
        let first = ["claude-code waits for you: npm test"];
        assert_eq!(alerts_of(&mut attention, Some(&waits("npm test", 1)), 1), first);
        // It looks busy for a moment, and even idle, and another question comes between.
        assert!(alerts_of(&mut attention, Some(&works()), 2).is_empty());
        assert!(alerts_of(&mut attention, Some(&waits("npm test", 1)), 3).is_empty());
        assert_eq!(alerts_of(&mut attention, Some(&waits("ls", 3)), 4).len(), 1);
        assert!(alerts_of(&mut attention, Some(&waits("npm test", 1)), 5).is_empty());
        assert!(alerts_of(&mut attention, None, 6).is_empty());
        assert!(alerts_of(&mut attention, Some(&waits("npm test", 1)), 7).is_empty());
        // The log gives the call another time than the hooks did.
        assert!(alerts_of(&mut attention, Some(&waits("npm test", 2)), 8).is_empty());
        assert_eq!(alerts_of(&mut attention, Some(&waits("npm test", 9)), 9), first);
    }

    #[test]
    fn the_end_of_a_long_turn_raises_an_alert() {
        let mut attention = Attention::default();
        assert!(alerts_of(&mut attention, None, 0).is_empty());
        alerts_of(&mut attention, Some(&works()), 1);
        assert!(alerts_of(&mut attention, None, 5).is_empty());
        alerts_of(&mut attention, Some(&works()), 10);
        assert_eq!(alerts_of(&mut attention, None, 30), ["claude-code is done: Fix the cache"]);
        assert!(alerts_of(&mut attention, None, 31).is_empty());
    }

    #[test]
    fn the_alert_says_how_a_turn_ended() {
        let ends = [
            (TurnState::Failed, "claude-code failed: Fix the cache"),
            (TurnState::Interrupted, "claude-code was interrupted: Fix the cache"),
            (TurnState::Unknown, "claude-code went silent: Fix the cache"),
            (TurnState::Running, "claude-code went silent: Fix the cache"),
        ];
        for (last_turn, said) in ends {
            let mut attention = Attention::default();
            alerts_of(&mut attention, Some(&works()), 0);
            assert_eq!(alerts_after(&mut attention, last_turn, None, 30), [said]);
        }
    }

    #[test]
    fn what_was_so_before_the_first_look_raises_none() {
        let mut attention = Attention::default();
        assert!(alerts_of(&mut attention, Some(&waits("ls", 1)), 5).is_empty());
        assert!(alerts_of(&mut attention, Some(&waits("ls", 1)), 6).is_empty());
    }
}
