//! Makes an archive of many small sessions and measures its list queries:
//! `cargo run -p unspool-ingest --example large_archive -- FOLDER 50000`

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::path::Path;
use std::time::Instant;

use jiff::{SignedDuration, Timestamp};
use unspool_ingest::recorder::Recorder;
use unspool_ingest::recorder::batch::IngestMode;
use unspool_model::event::{EndReason, Event, EventKey, EventKind, ProseDetail, ProseKind};
use unspool_model::part::{Body, Text};
use unspool_model::provenance::{Evidence, Feed, Name};
use unspool_model::session::{Trigger, Usage};
use unspool_store::blocking::block_on;
use unspool_store::database::Database;
use unspool_store::facets::FacetsRequest;
use unspool_store::store::{SessionFilter, Store, View, Viewer};

/// Sessions per batch.
const BATCH: usize = 500;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().unwrap();
    let count: usize = arguments.next().unwrap().parse().unwrap();
    let path = Path::new(&folder).join("unspool.db");
    std::fs::create_dir_all(&folder).unwrap();
    if !path.exists() {
        make(&path, count);
    }
    measure(&Database::open_to_read(&path).unwrap(), count as u64);
}

fn make(path: &Path, count: usize) {
    let recorder = Recorder::new(Database::open(path).unwrap()).unwrap();
    let now = Timestamp::now();
    let mut packer = recorder.packer(IngestMode::Bulk).unwrap();
    let mut writers = Vec::new();
    for nth in 0..count {
        let agent = ["claude-code", "codex", "gemini", "opencode"][nth % 4];
        let mut writer = recorder.begin(agent, &format!("session-{nth}"));
        // The newest session is still live.
        let at = now - SignedDuration::from_secs(nth as i64 * 600);
        for event in events(nth, at) {
            recorder.take(&mut writer, event).unwrap();
        }
        packer.add(&mut writer).unwrap();
        writers.push(writer);
        if writers.len() == BATCH || nth + 1 == count {
            recorder.commit(&mut packer, writers.iter_mut()).unwrap();
            writers.clear();
        }
    }
}

fn events(nth: usize, at: Timestamp) -> Vec<Event> {
    let step = Name::Message(format!("message-{nth}").into());
    let model = ["claude-opus-4-5", "gpt-5", "gemini-2.5-pro"][nth % 3];
    let said = |text: String| Body::Text(Text { text, ..Text::default() });
    let usage = Usage { input: 1000, output: 200, cache_read: 20_000, ..Usage::default() };
    let mut kinds = vec![
        EventKind::SessionUpdated {
            project: Some(format!("/home/dev/project-{}", nth % 40)),
            branch: Some("main".to_owned()),
            version: None,
            cost: None,
        },
        EventKind::TurnStarted {
            names: vec![Name::Prompt(format!("prompt-{nth}").into())],
            trigger: Trigger::User,
            user: vec![said(format!("Session {nth}: find out why the forecast is wrong"))],
        },
        EventKind::StepStarted { step: step.clone(), model: Some(model.to_owned()) },
        EventKind::UsageUpdated { step, usage },
        EventKind::ProseCompleted {
            prose_kind: ProseKind::Text,
            block: None,
            text: format!("The conversion was off by one in place {nth}."),
            detail: ProseDetail::default(),
        },
    ];
    if nth > 0 {
        kinds.push(EventKind::TurnEnded(EndReason::Completed));
    }
    let feed = Feed::Log;
    let events = kinds.into_iter().enumerate().map(|(record, kind)| Event {
        key: EventKey { record: record as u64, nth: 0 },
        feed,
        at: Some(at),
        evidence: Evidence { feed, source: 0, offset: record as u64, length: 1, digest: 0 },
        turn: None,
        generation: None,
        kind,
    });
    events.collect()
}

fn measure(store: &Database, count: u64) {
    let own = SessionFilter { without_agents: true, limit: Some(200), ..SessionFilter::default() };
    let timed = |kind: &str, run: &dyn Fn() -> u64| {
        let _ = run();
        let begun = Instant::now();
        let found = run();
        println!("{kind:<28}{:>8.1} ms  {found}", begun.elapsed().as_secs_f64() * 1000.0);
    };
    let list = |filter: SessionFilter| block_on(store.view(Viewer::Sole).sessions(filter)).unwrap();
    let length = |filter: SessionFilter| list(filter).len() as u64;
    timed("the first 200", &|| length(own.clone()));
    let all = list(SessionFilter { limit: None, ..own.clone() });
    for (kind, at) in [("200 in the middle", count / 2), ("the last 200", count - 201)] {
        let summary = &all[at as usize].summary;
        let started = summary.started.map(Timestamp::as_millisecond);
        let after = Some((started, summary.session.id));
        timed(kind, &|| length(SessionFilter { after, ..own.clone() }));
    }
    let model = Some("gpt-5".to_owned());
    timed("200 of a model", &|| length(SessionFilter { model: model.clone(), ..own.clone() }));
    let lately = (Timestamp::now() - SignedDuration::from_mins(30)).as_millisecond();
    let live = SessionFilter { since: Some(lately), limit: None, ..own.clone() };
    timed("active lately", &|| length(live.clone()));
    timed("one by its id", &|| {
        block_on(store.view(Viewer::Sole).find(all[7].summary.session.id.to_string()))
            .unwrap()
            .len() as u64
    });
    timed("facets", &|| {
        let request = FacetsRequest { filter: own.clone(), ..FacetsRequest::default() };
        block_on(store.view(Viewer::Sole).facets(request)).unwrap().sessions
    });
}
