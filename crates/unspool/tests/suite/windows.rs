//! Windows: loading a session window by window from either end shows the same as loading all of it
//! (law 1, law 2, R-X-14).

use std::collections::BTreeMap;

use tempfile::TempDir;
use unspool_export::html::turn::fragments;
use unspool_model::session::Turn;
use unspool_query::window::{
    Anchor, PartFilter, Position, Size, WindowRequest, WindowView, window,
};
use unspool_store::blocking::block_on;
use unspool_store::database::Database;
use unspool_store::store::{SessionFilter, Store, StoredSession, View, Viewer};
use unspool_view::present::{Item, PartView, TurnView};

use crate::case::root;
use crate::harness::archive_of;

/// So small that every turn and every block is split.
const SMALL: Size = Size { parts: 3, block: 3, long: 0 };
/// Everything at once.
const WHOLE: Size = Size { parts: usize::MAX / 2, block: usize::MAX / 2, long: u64::MAX };

/// HTML fragments by id, and the ids of parts in order.
#[derive(Default, PartialEq, Debug)]
struct Seen {
    html: BTreeMap<String, String>,
    order: Vec<String>,
}

struct TestArchive {
    store: Database,
    _folder: TempDir,
}

impl TestArchive {
    /// An archive with all recordings of these agents.
    fn new(agents: &[&str]) -> TestArchive {
        let paths = agents.iter().map(|agent| root().join("fixtures").join(agent));
        let (store, folder) = archive_of(&paths.collect::<Vec<_>>());
        TestArchive { store, _folder: folder }
    }

    fn sessions(&self) -> Vec<StoredSession> {
        block_on(self.store.view(Viewer::Sole).sessions(SessionFilter::default())).unwrap()
    }

    fn load(&self, stored: &StoredSession, request: WindowRequest<'_>) -> WindowView {
        block_on(window(&self.store.view(Viewer::Sole), stored, request, |_: &mut [Turn]| {}))
            .unwrap()
    }
}

fn take(seen: &mut Seen, view: &TurnView) {
    for fragment in fragments(view) {
        // The turn's header counts the whole turn; other fragments depend on their own parts only.
        let old = seen.html.insert(fragment.id.clone(), fragment.html.clone());
        assert!(old.is_none_or(|old| old == fragment.html), "{} looks different", fragment.id);
    }
}

fn parts(view: &TurnView) -> Vec<&PartView> {
    view.items.iter().flat_map(parts_of).collect()
}

fn parts_of(item: &Item) -> &[PartView] {
    match item {
        Item::Part(part) => std::slice::from_ref(part),
        Item::Reasoning(block) => &block.parts,
    }
}

fn ids(shown: &WindowView) -> Vec<String> {
    shown.turns.iter().flat_map(parts).map(|part| part.id.to_string()).collect()
}

fn whole(archive: &TestArchive, stored: &StoredSession) -> Seen {
    let shown = archive.load(stored, WindowRequest { size: WHOLE, ..Anchor::End.into() });
    let mut seen = Seen { order: ids(&shown), ..Seen::default() };
    shown.turns.iter().for_each(|view| take(&mut seen, view));
    let missing =
        |view: &TurnView| view.after + parts(view).iter().map(|part| part.before).sum::<usize>();
    assert_eq!(shown.turns.iter().map(missing).sum::<usize>(), 0);
    seen
}

/// The position of the first or last loaded part; of the turn if it has none.
fn edge(shown: &WindowView, last: bool) -> Option<Position> {
    let view = if last { shown.turns.last() } else { shown.turns.first() }?;
    let all = parts(view);
    let part = if last { all.last() } else { all.first() };
    let turn = view.header.number;
    match part {
        Some(part) => Some(Position { turn, place: part.place }),
        None if last => Some(Position { turn, place: unspool_model::part::Place(i64::MAX) }),
        None => Some(Position::start_of(turn)),
    }
}

/// Loads the parts omitted inside reasoning blocks.
fn load_gaps(archive: &TestArchive, stored: &StoredSession, view: &TurnView, seen: &mut Seen) {
    let turn = view.header.number;
    for item in &view.items {
        let Item::Reasoning(block) = item else { continue };
        for gap in block.parts.iter().filter(|part| part.before > 0) {
            let (mut left, mut place) = (gap.before, gap.place);
            while left > 0 {
                let anchor = Anchor::Inside(Position { turn, place });
                let shown = archive.load(stored, WindowRequest { size: SMALL, ..anchor.into() });
                let inside: Vec<&PartView> = shown.turns.iter().flat_map(parts).collect();
                assert!(!inside.is_empty() && inside.len() <= left, "{left} are missing");
                left -= inside.len();
                place = inside[0].place;
                let found: Vec<String> = inside.iter().map(|part| part.id.to_string()).collect();
                shown.turns.iter().for_each(|view| take_parts(seen, view));
                let at = seen.order.iter().position(|id| *id == gap.id.to_string()).unwrap();
                let at = at - (gap.before - left - found.len());
                seen.order.splice(at..at, found);
            }
        }
    }
}

/// Takes only the parts: a block whose first part is not loaded has no summary.
fn take_parts(seen: &mut Seen, view: &TurnView) {
    for fragment in fragments(view).into_iter().filter(|fragment| fragment.within.is_some()) {
        seen.html.insert(fragment.id, fragment.html);
    }
}

fn walk(archive: &TestArchive, stored: &StoredSession, upward: bool) -> Seen {
    let mut seen = Seen::default();
    let first = if upward { Anchor::End } else { Anchor::From(Position::start_of(0)) };
    let mut shown = archive.load(stored, WindowRequest { size: SMALL, ..first.into() });
    loop {
        let more = ids(&shown);
        let at = if upward { 0 } else { seen.order.len() };
        seen.order.splice(at..at, more);
        shown.turns.iter().for_each(|view| take(&mut seen, view));
        shown.turns.iter().for_each(|view| load_gaps(archive, stored, view, &mut seen));
        let Some(position) = edge(&shown, !upward) else { return seen };
        let anchor = if upward { Anchor::Before(position) } else { Anchor::After(position) };
        let next = archive.load(stored, WindowRequest { size: SMALL, ..anchor.into() });
        if ids(&next).is_empty() && next.turns.iter().all(|view| seen_turn(&seen, view)) {
            return seen;
        }
        shown = next;
    }
}

fn seen_turn(seen: &Seen, view: &TurnView) -> bool {
    seen.html.contains_key(&format!("h-{}", view.id))
}

#[test]
fn windows_from_either_end_show_what_the_whole_shows() {
    // R-003-45, R-004-14, R-X-14
    let archive = TestArchive::new(&["claude-code", "codex", "copilot"]);
    let mut cut = 0;
    for stored in archive.sessions() {
        let whole = whole(&archive, &stored);
        cut += usize::from(whole.order.len() > 20);
        for upward in [true, false] {
            let walked = walk(&archive, &stored, upward);
            let title = stored.summary.title.as_deref().unwrap_or_default();
            assert_eq!(walked.order, whole.order, "{title}, upward: {upward}");
            for (id, html) in &whole.html {
                assert_eq!(walked.html.get(id), Some(html), "{title}: {id}, upward: {upward}");
            }
        }
    }
    assert!(cut > 10, "{cut} sessions are long enough to say something");
}

#[test]
fn a_window_around_a_part_has_it() {
    let archive = TestArchive::new(&["claude-code"]);
    for stored in archive.sessions().iter().take(40) {
        let order = whole(&archive, stored).order;
        for id in order.iter().step_by(7) {
            let part = unspool_model::id::PartId(id.parse().unwrap());
            let (turn, place) =
                block_on(archive.store.view(Viewer::Sole).locate(stored.row, None, part))
                    .unwrap()
                    .unwrap();
            let anchor = Anchor::Around(Position { turn, place });
            let shown = archive.load(stored, WindowRequest { size: SMALL, ..anchor.into() });
            assert!(ids(&shown).contains(id), "{id} is not in {:?}", ids(&shown));
            assert!(ids(&shown).len() < 60);
        }
    }
}

#[test]
fn a_filtered_window_shows_all_matches_and_nothing_else() {
    let archive = TestArchive::new(&["claude-code"]);
    let mut found = 0;
    for stored in archive.sessions() {
        let all = archive.load(&stored, WindowRequest { size: WHOLE, ..Anchor::End.into() });
        let calls: Vec<String> = all
            .turns
            .iter()
            .flat_map(parts)
            .filter(|part| part.kind == unspool_model::part::Kind::Tool)
            .map(|part| part.id.to_string())
            .collect();
        found += calls.len();
        let filter: PartFilter = "kind:tool".parse().unwrap();
        let mut walked: Vec<String> = Vec::new();
        let mut anchor = Anchor::End;
        loop {
            let request = WindowRequest { filter: Some(&filter), size: SMALL, ..anchor.into() };
            let shown = archive.load(&stored, request);
            let more = ids(&shown);
            let Some(position) = edge(&shown, false).filter(|_| !more.is_empty()) else { break };
            walked.splice(0..0, more);
            anchor = Anchor::Before(position);
        }
        assert_eq!(walked, calls);
    }
    assert!(found > 100, "{found} calls");
    assert!("tool".parse::<PartFilter>().is_err() && "kind:nothing".parse::<PartFilter>().is_err());
}

/// A log of one prompt and a reply of this many texts.
fn log_of_texts(count: u32) -> String {
    let record = |kind: &str, nth: u32, content: serde_json::Value| {
        let message =
            serde_json::json!({ "id": format!("m{nth}"), "role": kind, "content": content });
        let record = serde_json::json!({
            "type": kind, "uuid": nth.to_string(), "sessionId": count.to_string(), "message": message,
        });
        format!("{record}\n")
    };
    let text = |nth: u32| serde_json::json!([{ "type": "text", "text": format!("Text {nth}") }]);
    let texts = (1..=count).map(|nth| record("assistant", nth, text(nth)));
    [record("user", 0, serde_json::json!("Go on."))].into_iter().chain(texts).collect()
}

#[test]
fn a_window_of_fifty_messages_leaves_out_those_before() {
    // R-003-45, C-19: the archive keeps what is outside of the window.
    let folder = TempDir::new().unwrap();
    for (count, outside) in [(50, 0), (51, 1), (200, 150)] {
        let path = folder.path().join(format!("{count}.jsonl"));
        std::fs::write(&path, log_of_texts(count)).unwrap();
        let (store, _folder) = archive_of(&[path]);
        let archive = TestArchive { store, _folder };
        let stored = archive.sessions().remove(0);
        let size = Size { parts: 50, block: 50, long: 0 };
        let shown = archive.load(&stored, WindowRequest { size, ..Anchor::End.into() });
        let all = whole(&archive, &stored).order;
        assert_eq!(all.len(), count as usize);
        assert_eq!(ids(&shown), all[outside..], "{count}");
        let before: usize = shown.turns.iter().flat_map(parts).map(|part| part.before).sum();
        assert_eq!(before, outside, "{count}");
    }
}

/// The first part that a window shows: a call that is shown as its agents has nothing of its own.
fn first_shown(shown: &WindowView) -> Option<&PartView> {
    shown.turns.iter().flat_map(parts).find(|part| !part.blocks.is_empty())
}

#[test]
fn a_window_begins_with_the_title_of_its_parallel_calls() {
    let archive = TestArchive::new(&["claude-code", "codex", "opencode", "gemini"]);
    let (mut titles, mut inside) = (0, 0);
    for stored in archive.sessions() {
        let all = archive.load(&stored, WindowRequest { size: WHOLE, ..Anchor::End.into() });
        for view in &all.turns {
            for part in parts(view).into_iter().filter(|part| part.group.is_some()) {
                titles += usize::from(part.group.as_ref().is_some_and(|one| one.title.is_some()));
                let at = Position { turn: view.header.number, place: part.place };
                for anchor in [Anchor::From(at), Anchor::Around(at)] {
                    let small = WindowRequest { size: SMALL, ..anchor.into() };
                    let shown = archive.load(&stored, small);
                    let first = first_shown(&shown).and_then(|first| first.group.as_ref());
                    assert!(first.is_none_or(|first| first.title.is_some()), "{at:?}");
                    inside += 1;
                }
            }
        }
    }
    assert!(titles > 60 && inside > 200, "{titles} titles, {inside} windows");
}
