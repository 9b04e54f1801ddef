//! What other machines send: units of texts, from which the same sessions come as from the files.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::Value;
use unspool_export::archive_lines;
use unspool_ingest::recorder::Recorder;
use unspool_ingest::report::Progress;
use unspool_ingest::sync::received::receive;
use unspool_ingest::sync::{FileCandidate, FileStates, sync};
use unspool_query::request::Sender;
use unspool_query::ship::{Receipt, SentTo, Unit, UnitHead};
use unspool_sources::fingerprint::fingerprint;
use unspool_sources::read::source;
use unspool_store::blocking::block_on;
use unspool_store::received_text::ReceivedText;
use unspool_store::rows::received_name;
use unspool_store::store::{SessionFilter, Store, View, Viewer};

use crate::fixtures::fixture_paths;
use crate::harness::Harness;
use crate::test_archive::{SqliteTestArchive, TestArchive};

/// A collector of one member's machine, without its network.
struct Sending {
    sender: Sender,
}

impl Sending {
    fn by(member: &str) -> Sending {
        Sending { sender: Sender { member: member.to_owned(), machine: "laptop".to_owned() } }
    }

    /// Sends units in one request.
    fn send<S: Store>(&self, recorder: &Recorder<S>, units: &[Unit]) -> Vec<Receipt> {
        let mut bytes = Vec::new();
        units.iter().for_each(|unit| unit.write(&mut bytes).unwrap());
        let mut states = FileStates::load(recorder).unwrap();
        let size = bytes.len() as u64;
        let mut from = BufReader::new(bytes.as_slice());
        receive(recorder, &mut states, &self.sender, &mut from, size).unwrap().0.receipts
    }

    /// Sends one unit, and expects that it is taken.
    #[track_caller]
    fn taken<S: Store>(&self, recorder: &Recorder<S>, unit: &Unit) {
        let receipt = self.send(recorder, std::slice::from_ref(unit)).remove(0);
        assert_eq!((receipt.taken, receipt.refused), (Some(unit.head.to), None));
    }

    /// What the archive has of a file's text.
    fn text<S: Store>(&self, recorder: &Recorder<S>, file: &str) -> Vec<u8> {
        let view = recorder.store().view(Viewer::Sole);
        let name = received_name(&self.sender.member, &self.sender.machine, file);
        let found = block_on(view.received(vec![name])).unwrap().remove(0).unwrap();
        let mut text = ReceivedText::stored(view, found.file, [].into()).unwrap();
        let mut bytes = Vec::new();
        text.read_to_end(&mut bytes).unwrap();
        // Also from the middle.
        let half = bytes.len() as u64 / 2;
        text.seek(SeekFrom::Start(half)).unwrap();
        let mut rest = Vec::new();
        text.read_to_end(&mut rest).unwrap();
        assert_eq!(rest, &bytes[half as usize..]);
        bytes
    }
}

/// The unit that brings a text from one offset to another.
fn unit(file: &str, generation: u32, text: &[u8], from: usize, to: usize) -> Unit {
    let print = fingerprint(&mut std::io::Cursor::new(text), to as u64).unwrap();
    let piece = text[from..to].to_vec();
    let head = UnitHead {
        file: file.to_owned(),
        from: from as u64,
        to: SentTo::new(generation, print, to == text.len()),
        modified: 1_700_000_000_000_000_000,
        more: false,
        withdraws: false,
        length: piece.len(),
    };
    Unit { head, text: piece }
}

/// A text in units of so many lines.
fn cut(file: &str, text: &[u8], every: usize) -> Vec<Unit> {
    let ends = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
    let mut bounds: Vec<usize> = ends.skip(every - 1).step_by(every).collect();
    if bounds.last() != Some(&text.len()) {
        bounds.push(text.len());
    }
    let starts = std::iter::once(0).chain(bounds.iter().copied());
    starts.zip(&bounds).map(|(from, to)| unit(file, 0, text, from, *to)).collect()
}

/// The logs of the fixtures.
fn logs() -> Vec<PathBuf> {
    let mut files = fixture_paths();
    let is_log = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy();
        let is_text = !name.ends_with(".meta.json") && !name.ends_with(".db");
        (name.starts_with("log.") || name.starts_with("agent-")) && is_text
    };
    files.retain(is_log);
    files.sort();
    assert!(files.len() > 100, "{} logs", files.len());
    files
}

/// The lossless exports of all sessions, without where they were read and how often they were
/// written.
fn exports(store: &impl Store) -> Vec<String> {
    let view = store.view(Viewer::Sole);
    let filter = SessionFilter { with_empty: true, ..SessionFilter::default() };
    let sessions = block_on(view.sessions(filter)).unwrap();
    let mut exports: Vec<String> = Vec::new();
    for stored in &sessions {
        let mut lines = Vec::new();
        archive_lines::write(&view, stored, true, &mut lines).unwrap();
        let lines = String::from_utf8(lines).unwrap();
        let (first, rest) = lines.split_once('\n').unwrap();
        let mut head: Value = serde_json::from_str(first).unwrap();
        let fields = head.as_object_mut().unwrap();
        assert!(fields.remove("seq").is_some());
        for source in fields["sources"].as_array_mut().unwrap() {
            assert!(source.as_object_mut().unwrap().remove("file").is_some());
        }
        exports.push(format!("{head}\n{rest}"));
    }
    exports.sort();
    exports
}

/// The exports of a log that was read here, by itself.
fn local(file: &Path) -> Vec<String> {
    let harness = Harness::<SqliteTestArchive>::new();
    let mut states = FileStates::load(&harness.recorder).unwrap();
    let candidate = FileCandidate { path: file.to_owned(), stamp: None, named: true };
    sync(&harness.recorder, &mut states, vec![candidate], &Progress::default()).unwrap();
    exports(harness.store())
}

pub fn what_is_received_is_what_is_read_on_the_machine<H: TestArchive>() {
    // R-000-14
    let folder = tempfile::tempdir().unwrap();
    let logs = logs();
    for (at, log) in logs.iter().enumerate().filter(|(at, _)| at % 5 == 0) {
        let file = folder.path().join(format!("{at}")).join(log.file_name().unwrap());
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::copy(log, &file).unwrap();
        let long_ago = SystemTime::now() - Duration::from_secs(3600);
        File::options().write(true).open(&file).unwrap().set_modified(long_ago).unwrap();
        // The text of a document or a compressed file is another than its bytes.
        let mut text = Vec::new();
        source::open(&file).unwrap().text().read_to_end(&mut text).unwrap();
        let name = file.to_str().unwrap();
        let harness = Harness::<H>::new();
        for unit in cut(name, &text, 1 + at % 7) {
            Sending::by("ann").taken(&harness.recorder, &unit);
        }
        assert_eq!(exports(harness.store()), local(&file), "{}", log.display());
        assert_eq!(Sending::by("ann").text(&harness.recorder, name), text);
        harness.is_clean();
    }
}

const LOG: &str = "/home/ann/.claude/projects/-w/5f0c3a52-9c1e-4c7e-9d1a-3f5b8a0d7c11.jsonl";

/// A small log of Claude Code.
fn conversation(prompts: &[&str]) -> Vec<u8> {
    let mut text = String::new();
    for (nth, prompt) in prompts.iter().enumerate() {
        let record = serde_json::json!({
            "type": "user", "sessionId": "5f0c3a52-9c1e-4c7e-9d1a-3f5b8a0d7c11", "cwd": "/w",
            "version": "2.1.300", "uuid": format!("0000000{nth}-0000-4000-8000-000000000000"),
            "parentUuid": null, "isSidechain": false, "userType": "external",
            "timestamp": format!("2026-11-01T10:00:0{nth}.000Z"),
            "message": {"role": "user", "content": prompt},
        });
        text.push_str(&format!("{record}\n"));
    }
    text.into_bytes()
}

/// True if a transcript says this.
fn says<H: TestArchive>(harness: &Harness<H>, text: &str) -> bool {
    let text = serde_json::to_string(text).unwrap();
    exports(harness.store()).concat().contains(&text)
}

pub fn a_unit_is_taken_once<H: TestArchive>() {
    let harness = Harness::<H>::new();
    let ann = Sending::by("ann");
    let text = conversation(&["one", "two", "three"]);
    let units = cut(LOG, &text, 1);
    ann.taken(&harness.recorder, &units[0]);
    let once = exports(harness.store());
    let harness = harness.reopened();
    // Sent again, because the answer was lost, and a unit that leaves something out.
    for unit in [&units[0], &units[2]] {
        let receipts = ann.send(&harness.recorder, std::slice::from_ref(unit));
        assert_eq!(receipts[0].taken, Some(units[0].head.to));
    }
    assert_eq!(exports(harness.store()), once);
    // Two units of one file in one request.
    let receipts = ann.send(&harness.recorder, &units[1..]);
    assert_eq!(receipts[1].taken, Some(units[2].head.to));
    assert_eq!(ann.text(&harness.recorder, LOG), text);
    // The same file of another machine is another file; its sessions are the same.
    let other =
        Sending { sender: Sender { member: "ann".to_owned(), machine: "desktop".to_owned() } };
    let before = exports(harness.store());
    units.iter().for_each(|unit| other.taken(&harness.recorder, unit));
    let turns = |exports: &[String]| exports[0].lines().skip(1).collect::<Vec<_>>().len();
    assert_eq!(turns(&exports(harness.store())), turns(&before));
    harness.is_clean();
}

pub fn a_file_that_was_replaced_is_received_again<H: TestArchive>() {
    let harness = Harness::<H>::new();
    let ann = Sending::by("ann");
    let text = conversation(&["one", "two"]);
    ann.taken(&harness.recorder, &unit(LOG, 0, &text, 0, text.len()));
    let next = conversation(&["one", "three", "four"]);
    let half = next.len() / 3;
    // A later generation begins at the start.
    let late = unit(LOG, 1, &next, half, next.len());
    let receipts = ann.send(&harness.recorder, &[late]);
    assert_eq!(receipts[0].taken.unwrap().generation, 0);
    ann.taken(&harness.recorder, &unit(LOG, 1, &next, 0, next.len()));
    assert_eq!(ann.text(&harness.recorder, LOG), next);
    // An earlier one is over.
    let receipts = ann.send(&harness.recorder, &[unit(LOG, 0, &text, 0, text.len())]);
    assert_eq!(receipts[0].taken.unwrap().generation, 1);
    assert_eq!(ann.text(&harness.recorder, LOG), next);
    harness.is_clean();
}

pub fn a_session_has_one_owner<H: TestArchive>() {
    let harness = Harness::<H>::new();
    let text = conversation(&["one", "two"]);
    Sending::by("ann").taken(&harness.recorder, &unit(LOG, 0, &text, 0, text.len()));
    let before = exports(harness.store());
    // Eve sends records of the same session, which say something else.
    let forged = conversation(&["one", "two", "forged"]);
    let eve = Sending::by("eve");
    let receipts = eve.send(&harness.recorder, &[unit(LOG, 0, &forged, 0, forged.len())]);
    assert!(receipts[0].refused.as_ref().unwrap().contains("another member's"), "{receipts:?}");
    assert_eq!(exports(harness.store()), before);
    // Ann goes on.
    let more = conversation(&["one", "two", "three"]);
    Sending::by("ann").taken(&harness.recorder, &unit(LOG, 0, &more, text.len(), more.len()));
    assert!(says(&harness, "three") && !says(&harness, "forged"));
    harness.is_clean();
}

pub fn what_was_deleted_is_not_received_again<H: TestArchive>() {
    let harness = Harness::<H>::new();
    let ann = Sending::by("ann");
    let text = conversation(&["one", "two"]);
    let end = cut(LOG, &text, 1)[0].head.to.offset as usize;
    ann.taken(&harness.recorder, &unit(LOG, 0, &text, 0, end));
    let view = harness.view();
    let row = block_on(view.sessions(SessionFilter::default())).unwrap()[0].row;
    block_on(harness.store().delete(row)).unwrap();
    let harness = harness.reopened();
    assert_eq!(ann.text(&harness.recorder, LOG), b"", "its text goes with it");
    ann.taken(&harness.recorder, &unit(LOG, 0, &text, end, text.len()));
    assert_eq!(exports(harness.store()), [""; 0]);
    assert_eq!(ann.text(&harness.recorder, LOG), b"");
    harness.is_clean();
}

pub fn a_hostile_text_harms_nobody_else<H: TestArchive>() {
    let harness = Harness::<H>::new();
    let word = "x".repeat(1024 * 1024);
    let mut text = conversation(&["with \0 inside", &word]);
    text.extend_from_slice(b"{\"type\":\"user\",\"uuid\":\xff\xfe\n\0\0\0\n[[[[[[\n");
    let eve = Sending::by("eve");
    eve.taken(&harness.recorder, &unit(LOG, 0, &text, 0, text.len()));
    assert_eq!(eve.text(&harness.recorder, LOG), text);
    assert!(says(&harness, "with \0 inside") && says(&harness, &word));
    // In one request with the text of a file that is nothing at all.
    let other = LOG.replace("5f0c", "6f0c");
    let good = String::from_utf8(conversation(&["good"])).unwrap().replace("5f0c", "6f0c");
    let noise: Vec<u8> =
        (0..100_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let receipts = eve.send(
        &harness.recorder,
        &[
            unit("/home/eve/.claude/projects/-w/noise.jsonl", 0, &noise, 0, noise.len()),
            unit("../../etc/passwd", 0, b"root\n", 0, 5),
            unit(&other, 0, good.as_bytes(), 0, good.len()),
        ],
    );
    assert!(receipts.iter().all(|receipt| receipt.refused.is_none()), "{receipts:?}");
    assert!(says(&harness, "good"));
    harness.is_clean();
}

pub fn pieces_of_any_size_are_joined_to_what_was_sent<H: TestArchive>() {
    let harness = Harness::<H>::new();
    let ann = Sending::by("ann");
    let lines: Vec<String> = (0..300_usize)
        .map(|n| {
            format!("{{\"type\":\"noise\",\"n\":{n},\"t\":\"{}\"}}\n", "y".repeat(n * n % 9001))
        })
        .collect();
    let text = lines.concat().into_bytes();
    let mut from = 0;
    for group in lines.chunk_by(|line, _| line.len() % 3 == 0) {
        // Some lines come alone, some together.
        let to = from + group.iter().map(String::len).sum::<usize>();
        ann.taken(&harness.recorder, &unit(LOG, 0, &text, from, to));
        from = to;
    }
    assert_eq!(ann.text(&harness.recorder, LOG), text);
    let view = harness.view();
    let name = received_name("ann", "laptop", LOG);
    let found = block_on(view.received(vec![name])).unwrap().remove(0).unwrap();
    let pieces = block_on(view.received_pieces(found.file)).unwrap();
    assert!(pieces.len() < 16, "{} pieces of {} bytes", pieces.len(), text.len());
}

pub fn what_its_sender_takes_back_leaves_nothing<H: TestArchive>() {
    let harness = Harness::<H>::new();
    let ann = Sending::by("ann");
    let text = conversation(&["use Zx9kQ2mN8vB4wP7t", "go on"]);
    let noise = [text.as_slice(), b"{\"broken\": Zx9kQ2mN8vB4wP7t\n"].concat();
    ann.taken(&harness.recorder, &unit(LOG, 0, &noise, 0, noise.len()));
    assert!(harness.find("Zx9kQ2mN8vB4wP7t").len() == 1);
    let row = block_on(harness.view().sessions(SessionFilter::default())).unwrap()[0].row;
    block_on(harness.store().rename(row, Some("mine".to_owned()))).unwrap();
    let redacted = String::from_utf8(noise).unwrap();
    let redacted = redacted.replace("Zx9kQ2mN8vB4wP7t", "[redacted:password:3fa1c0]");
    let mut again = unit(LOG, 1, redacted.as_bytes(), 0, redacted.len());
    again.head.withdraws = true;
    ann.taken(&harness.recorder, &again);
    assert!(!exports(harness.store()).concat().contains("Zx9kQ2mN8vB4wP7t"));
    assert!(says(&harness, "use [redacted:password:3fa1c0]") && says(&harness, "go on"));
    assert_eq!(harness.find("Zx9kQ2mN8vB4wP7t"), [""; 0]);
    let stored = block_on(harness.view().sessions(SessionFilter::default())).unwrap();
    assert_eq!(stored[0].name.as_deref(), Some("mine"), "what the user said of it stays");
    let warnings = block_on(harness.view().warnings(stored[0].row)).unwrap();
    assert!(!format!("{warnings:?}").contains("Zx9kQ2mN8vB4wP7t"));
    harness.is_clean();
}

/// A log of a session that starts a sub-agent with this id.
fn starting(session: &str, agent: &str) -> Vec<u8> {
    let record = |uuid: &str, parent: Value, kind: &str, more: Value| {
        let mut record = serde_json::json!({
            "type": kind, "sessionId": session, "cwd": "/w", "version": "2.1.300", "uuid": uuid,
            "parentUuid": parent, "isSidechain": false, "userType": "external",
            "timestamp": "2026-11-01T10:00:00.000Z",
        });
        record.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        format!("{record}\n")
    };
    let call = serde_json::json!({"type": "tool_use", "id": "toolu_1", "name": "Agent", "input":
        {"description": "look", "prompt": "look", "subagent_type": "explore"}});
    let result = serde_json::json!({"type": "tool_result", "tool_use_id": "toolu_1", "content":
        [{"type": "text", "text": "done"}]});
    [
        record(
            "1",
            Value::Null,
            "user",
            serde_json::json!({"message":
            {"role": "user", "content": "start"}}),
        ),
        record(
            "2",
            "1".into(),
            "assistant",
            serde_json::json!({"message":
            {"id": "msg_1", "type": "message", "role": "assistant", "model": "m",
             "content": [call], "usage": {"input_tokens": 1, "output_tokens": 1}}}),
        ),
        record(
            "3",
            "2".into(),
            "user",
            serde_json::json!({
            "message": {"role": "user", "content": [result]},
            "toolUseResult": {"status": "completed", "agentId": agent, "prompt": "look",
                "content": [{"type": "text", "text": "done"}], "totalDurationMs": 1,
                "totalTokens": 1, "totalToolUseCount": 0}}),
        ),
    ]
    .concat()
    .into_bytes()
}

pub fn nobody_adopts_the_session_of_another_member<H: TestArchive>() {
    const EVES: &str = "00000000-0000-4000-8000-00000000000e";
    const ANNS: &str = "5f0c3a52-9c1e-4c7e-9d1a-3f5b8a0d7c11";
    let eves_log = LOG.replace(ANNS, EVES);
    let text = conversation(&["one", "two"]);
    let forged = starting(EVES, ANNS);
    // Whoever comes first.
    for eve_is_first in [false, true] {
        let harness = Harness::<H>::new();
        let (ann, eve) = (Sending::by("ann"), Sending::by("eve"));
        let of_ann = || ann.taken(&harness.recorder, &unit(LOG, 0, &text, 0, text.len()));
        let of_eve = || eve.taken(&harness.recorder, &unit(&eves_log, 0, &forged, 0, forged.len()));
        if eve_is_first {
            of_eve();
            of_ann();
        } else {
            of_ann();
            of_eve();
        }
        assert!(says(&harness, "start"));
        let top = SessionFilter { without_agents: true, ..SessionFilter::default() };
        let listed = harness.sessions(top);
        assert!(listed.iter().any(|session| session == ANNS), "{listed:?}");
        let view = harness.view();
        let found = block_on(view.sessions(SessionFilter::default())).unwrap();
        let eves = found.iter().find(|stored| stored.summary.session.agent_session_id == EVES);
        assert_eq!(block_on(harness.store().delete(eves.unwrap().row)).unwrap(), 1);
        assert!(says(&harness, "two"), "what is Ann's is still there");
        harness.is_clean();
    }
    // Of one member it is a sub-agent.
    let harness = Harness::<H>::new();
    let eve = Sending::by("eve");
    eve.taken(&harness.recorder, &unit(&eves_log, 0, &forged, 0, forged.len()));
    eve.taken(&harness.recorder, &unit(LOG, 0, &text, 0, text.len()));
    let top = SessionFilter { without_agents: true, ..SessionFilter::default() };
    assert_eq!(harness.sessions(top), [EVES]);
}
