//! An import that is killed at any point and restarted imports everything exactly once.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use unspool_store::blocking::block_on;
use unspool_store::store::{SessionFilter, Store, View, Viewer};

use crate::contents::Contents;
use crate::corpus;
use crate::random::Random;
use crate::sandbox::{Sandbox, Unspool};

/// How often an import is killed.
pub fn kills() -> usize {
    std::env::var("UNSPOOL_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(200)
}

/// Archives tested in parallel: most of the time a worker sleeps before a kill.
const PARALLEL_ARCHIVES: usize = 3;
/// The most kills on one archive before it is left to finish.
const MAX_KILLS_PER_ARCHIVE: usize = 16;

#[test]
fn an_import_may_be_killed_at_any_point() {
    // R-001-28, laws 4 and 5: nothing is lost, nothing is there twice.
    let sandbox = Sandbox::filled();
    let before = sandbox.listing();
    let (expected, took) = undisturbed(&sandbox);
    assert!(expected.sessions() > 60, "{} sessions", expected.sessions());
    let (killed, partials, archives) = <(AtomicUsize, AtomicUsize, AtomicUsize)>::default();
    let work = |worker: usize| {
        let mut random = Random::new(&format!("import {worker}"));
        while killed.load(Ordering::Relaxed) < kills() {
            let number = archives.fetch_add(1, Ordering::Relaxed);
            let unspool = sandbox.unspool(&format!("killed-{number}"));
            kill_again_and_again(&unspool, took, &mut random, &killed, &partials);
            unspool.sync();
            Contents::of(&unspool).assert_same_as(&expected, &format!("archive {number}"));
            assert_eq!(unspool.sync()["records"], 0, "the second time there is nothing to take");
        }
    };
    let work = &work;
    thread::scope(|scope| {
        (0..PARALLEL_ARCHIVES).for_each(|worker| drop(scope.spawn(move || work(worker))));
    });
    println!(
        "{killed:?} kills, {partials:?} left half an archive; {archives:?} archives; {took:?}"
    );
    // The test is valid only if some kill left a partial archive.
    assert!(partials.into_inner() > 0, "no kill left something half done");
    assert_eq!(sandbox.listing(), before, "law 7");
}

/// The contents after an uninterrupted import, and its duration.
fn undisturbed(sandbox: &Sandbox) -> (Contents, Duration) {
    let undisturbed = sandbox.unspool("undisturbed");
    let begun = Instant::now();
    undisturbed.sync();
    let took = begun.elapsed();
    (Contents::of(&undisturbed), took)
}

fn kill_again_and_again(
    unspool: &Unspool,
    took: Duration,
    random: &mut Random,
    killed: &AtomicUsize,
    partials: &AtomicUsize,
) {
    for nth in 0..MAX_KILLS_PER_ARCHIVE {
        let mut child = unspool.begin(&["sync"]);
        // Most kills come early, so that they hit what the previous one left; some anywhere in the
        // import.
        thread::sleep(random.delay(if nth % 4 == 0 { took } else { took / 4 }));
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success(), "{status}");
            return;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        killed.fetch_add(1, Ordering::Relaxed);
        // Sometimes read the partial archive. Not every time: the next recorder must cope with it
        // by itself.
        if nth % 5 == 4 && unspool.database().exists() {
            let output = unspool.run(&["list", "--json"]);
            let some = output.stdout.windows(5).any(|text| text == b"\"id\":");
            partials.fetch_add(usize::from(some), Ordering::Relaxed);
        }
    }
}

#[test]
fn an_import_may_be_killed_in_the_middle_of_a_file() {
    // R-001-28 R-X-14: a file larger than a batch is stored in several transactions. After a kill
    // between two of them it is read again from its start, and nothing is imported twice.
    let sandbox = Sandbox::new();
    let log = corpus::repeated("discovery-loop", 320);
    fs::write(sandbox.projects().join("long.jsonl"), &log).unwrap();
    let (expected, took) = undisturbed(&sandbox);
    let mut random = Random::new("file");
    let (mut killed, mut partials) = (0, 0);
    // Whether a kill hits the time between two transactions is chance: go on until one did.
    for number in 0..40 + kills() / 30 {
        let unspool = sandbox.unspool(&format!("killed-{number}"));
        for _ in 0..4 {
            let mut child = unspool.begin(&["sync"]);
            thread::sleep(random.delay(took));
            killed += usize::from(child.try_wait().unwrap().is_none());
            child.kill().unwrap();
            child.wait().unwrap();
            partials += usize::from(unspool.database().exists() && is_partial(&unspool));
        }
        unspool.sync();
        Contents::of(&unspool).assert_same_as(&expected, &format!("archive {number}"));
        if killed >= kills() / 30 && partials > 0 {
            break;
        }
    }
    println!("{killed} kills, {partials} left half a session; {took:?}");
    assert!(partials > 0, "no kill left half a session");
    // Memory holds one batch of the file, never all of it.
    let watcher = sandbox.unspool("watched").watch();
    watcher.report();
    if let Some(peak) = watcher.peak_memory() {
        println!("{} MB of log took {} MB", log.len() >> 20, peak >> 20);
        assert!(peak < 192 << 20, "{peak} bytes");
    }
}

/// True if the session is stored in part.
fn is_partial(unspool: &Unspool) -> bool {
    let Ok(store) = unspool_store::database::Database::open_to_read(&unspool.database()) else {
        return false;
    };
    let sessions =
        block_on(store.view(Viewer::Sole).sessions(SessionFilter::default())).unwrap_or_default();
    sessions.first().is_some_and(|session| (1..9600).contains(&session.summary.parts))
}

/// Some sessions, one of them with sub-agents.
const SAMPLE_CASES: [&str; 4] =
    ["discovery-loop", "odd-output", "subagents-nested", "question-answered"];
const SESSION_WITH_AGENTS: &str = "603a0aef-2810-4302-a068-e41cfe255095";

/// A template archive, to be copied before each kill, and how long the command takes on it.
fn prepared(sandbox: &Sandbox, arguments: &[&str]) -> (Unspool, Duration) {
    corpus::fill_with(&sandbox.projects(), &SAMPLE_CASES);
    let (template, measured) = (sandbox.unspool("template"), sandbox.unspool("measured"));
    template.sync();
    template.print(&["tag", SESSION_WITH_AGENTS, "kept"]);
    template.print(&["rename", SESSION_WITH_AGENTS, "My session"]);
    copy(&template, &measured);
    let begun = Instant::now();
    measured.print(arguments);
    (template, begun.elapsed())
}

fn copy(from: &Unspool, to: &Unspool) {
    fs::create_dir(to.folder().path()).unwrap();
    fs::copy(from.database(), to.database()).unwrap();
}

fn kill(unspool: &Unspool, arguments: &[&str], after: Duration) {
    let mut child = unspool.begin(arguments);
    thread::sleep(after);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_deletion_may_be_killed_at_any_point() {
    // R-004-20: a session and its sub-agents are deleted completely or not at all, and the others
    // are unchanged.
    let sandbox = Sandbox::new();
    let arguments = ["delete", SESSION_WITH_AGENTS, "--yes"];
    let (template, took) = prepared(&sandbox, &arguments);
    let (with, without) = (Contents::of(&template), Contents::of(&sandbox.unspool("measured")));
    assert_eq!(without.sessions() + 3, with.sessions());
    let mut random = Random::new("deletion");
    for number in 0..kills() / 20 {
        let unspool = sandbox.unspool(&format!("killed-{number}"));
        copy(&template, &unspool);
        kill(&unspool, &arguments, random.delay(took));
        let found = Contents::of(&unspool);
        let gone = found.sessions() == without.sessions();
        found.assert_same_as(if gone { &without } else { &with }, &format!("deletion {number}"));
        // A sync does not restore it.
        unspool.run(&arguments);
        unspool.sync();
        Contents::of(&unspool).assert_same_as(&without, &format!("after deletion {number}"));
    }
}

#[test]
fn a_rebuild_or_vacuum_may_be_killed_at_any_point() {
    // The index, the file, and the sessions themselves: sessions removed to be read again come back
    // with the next sync, with their name and tags.
    for arguments in [&["db", "rebuild"][..], &["db", "rebuild", "--from-logs"], &["db", "vacuum"]]
    {
        let sandbox = Sandbox::new();
        let (template, took) = prepared(&sandbox, arguments);
        let expected = Contents::of(&template);
        Contents::of(&sandbox.unspool("measured"))
            .assert_same_as(&expected, &format!("{arguments:?}"));
        let mut random = Random::new(&arguments.join(" "));
        for number in 0..kills() / 50 {
            let unspool = sandbox.unspool(&format!("killed-{number}"));
            copy(&template, &unspool);
            kill(&unspool, arguments, random.delay(took));
            kill(&unspool, arguments, random.delay(took));
            unspool.print(&["db", "check"]);
            unspool.sync();
            Contents::of(&unspool).assert_same_as(&expected, &format!("{arguments:?} {number}"));
        }
    }
}
