//! Hostile input: lines of the bundled recordings, mutated as by a crash, a bad disk, another
//! release or an attacker. Nothing panics, every record is counted, every unreadable line is
//! reported, and parts stay in order (laws 1, 3, 4, 8).

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::{Mutex, OnceLock};

use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::RngSeed;
use serde_json::value::RawValue;
use unspool_model::document::{SessionDocument, TurnDocument};
use unspool_model::part::Body;
use unspool_model::price::Prices;
use unspool_model::session::Transcript;
use unspool_model::summary::Completeness;
use unspool_sources::decode::RecordCounts;
use unspool_sources::in_memory::{DecodedSession, SessionSet};
use unspool_sources::read::lines::{Line, LineReader};
use unspool_view::lines::{LineOptions, turn_lines};
use unspool_view::present;

/// The bodies of the fuzz targets, so that a stable compiler builds and runs them too.
#[path = "../../../fuzz/src/lib.rs"]
mod fuzz_bodies;

const FILE: &str = "some folder/capture.jsonl";

// ── The recordings ──────────────────────────────────────────────────────────────────────────

type Lines = Vec<Vec<u8>>;

/// Lines that a person can read when a test fails.
struct Broken(Lines);

impl std::fmt::Debug for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|line| writeln!(f, "{}", line.escape_ascii()))
    }
}

/// All recordings of one format.
fn recordings(file: &str) -> &'static [Lines] {
    static ALL: OnceLock<BTreeMap<&'static str, Vec<Lines>>> = OnceLock::new();
    let all = ALL.get_or_init(|| {
        ["log.jsonl", "stream.jsonl", "hooks.jsonl"].map(|file| (file, read(file))).into()
    });
    &all[file]
}

fn read(file: &str) -> Vec<Lines> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/claude-code");
    let mut cases: Vec<_> = folder.read_dir().unwrap().map(|case| case.unwrap().path()).collect();
    cases.sort();
    let mut found: Vec<Lines> = Vec::new();
    for bytes in cases.iter().filter_map(|case| std::fs::read(case.join(file)).ok()) {
        // Long lines hold images and whole prompts; mutating them finds nothing new.
        let lines = bytes.split(|byte| *byte == b'\n');
        let lines = lines.filter(|line| !line.is_empty() && line.len() < 8000);
        found.push(lines.map(<[u8]>::to_vec).collect());
    }
    assert!(found.len() > 20, "{} recordings of {file}", found.len());
    found
}

/// All recordings of an agent, in whatever form it writes them.
fn recordings_of(agent: &'static str) -> &'static [Lines] {
    static ALL: OnceLock<Mutex<BTreeMap<&'static str, &'static [Lines]>>> = OnceLock::new();
    let mut all = ALL.get_or_init(Mutex::default).lock().unwrap();
    all.entry(agent).or_insert_with(|| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(agent);
        let mut files: Vec<_> = folder
            .read_dir()
            .unwrap()
            .map(|case| case.unwrap().path())
            .filter(|case| case.is_dir())
            .flat_map(|case| case.read_dir().unwrap().map(|file| file.unwrap().path()))
            .filter(|file| {
                let name = file.file_name().unwrap().to_string_lossy();
                [".jsonl", ".json", ".sse", ".db"].iter().any(|end| name.ends_with(end))
            })
            .collect();
        files.sort();
        let found: Vec<Lines> = files.iter().flat_map(|file| captures(file)).collect();
        assert!(!found.is_empty(), "no recordings of {agent}");
        Vec::leak(found)
    })
}

/// The lines that the readers make of a file; a database has one log for each session.
fn captures(file: &Path) -> Vec<Lines> {
    let logs = match file.extension().is_some_and(|extension| extension == "db") {
        true => unspool_sources::read::rows::sessions(file).unwrap(),
        false => Vec::new(),
    };
    let logs: Vec<_> = logs.into_iter().map(|(path, _)| path).collect();
    let logs = if logs.is_empty() { vec![file.to_owned()] } else { logs };
    let read = |path: &Path| {
        let mut lines = Lines::new();
        let mut keep = |line: Line<'_>| {
            if line.bytes.len() < 8000 {
                lines.push(line.bytes.to_vec());
            }
        };
        let mut source = unspool_sources::read::source::open(path).unwrap();
        let end = unspool_sources::read::lines::read(source.text(), &mut keep).unwrap();
        if let Some(rest) = end.unfinished {
            keep(rest.as_line());
        }
        lines
    };
    logs.iter().map(|path| read(path)).filter(|lines| !lines.is_empty()).collect()
}

// ── Mutations ───────────────────────────────────────────────────────────────────────────────

#[derive(Clone, Debug)]
enum Mutation {
    FlipBits(Index, u8),
    Truncate(Index),
    RemoveField(Index),
    /// Replaces the value: another type, very large, very deep, poisoned.
    Replace(Index, String),
    /// Duplicates the field.
    Twice(Index, String),
    /// Inserts text into a string.
    Insert(Index, Index, &'static str),
    /// Copies the value from a field of any other record.
    Borrow(Index, Index, Index),
    RepeatLine,
    DropLine,
    SwapLines(Index),
    /// Removes the line end.
    JoinLines,
    /// Inserts a line of random bytes.
    Foreign(Vec<u8>),
}

/// Text to insert into strings, as valid or as invalid JSON.
const POISON: &[&str] = &[
    r"\u0000",
    r"\u001b[2J\u001b]0;title\u0007",
    r"\u202e",
    r"\u2066",
    r"\u200b",
    r"\ud800",
    r"\udc00\ud800",
    r"\ud83d",
    r"\n",
    r"</command-name>",
    r"<command-name>",
    r"<task-notification>",
    r"[Request interrupted by user]",
    "\u{2028}",
    "\u{feff}",
    "\0",
    "\x1b[31m",
    "\\",
    "\"",
];

/// Replacement values.
const VALUES: &[&str] = &[
    "null",
    "true",
    "0",
    "-1",
    "1.5",
    "4294967295",
    "4294967296",
    "18446744073709551615",
    "18446744073709551616",
    "-9223372036854775808",
    "1e308",
    "1e999",
    "-0.0",
    "[]",
    "{}",
    "[null]",
    "[[{}]]",
    r#"{"type":null}"#,
    r#"[{"type":"text"}]"#,
    r#"[{"type":"text","text":7},{"type":"tool_use"},{"type":"tool_result"}]"#,
    r#"[{"type":"tool_use","id":"","name":"Task","input":[]}]"#,
    r#""""#,
    r#"" ""#,
    r#""tool_use""#,
    r#""[Request interrupted by user]""#,
    r#""9999-12-31T23:59:59.999Z""#,
    r#""-009999-01-02T00:00:00Z""#,
    r#""\ud800""#,
    r#""\u0000""#,
];

fn value() -> impl Strategy<Value = String> {
    let deep = (1_usize..4000).prop_map(|depth| "[".repeat(depth) + &"]".repeat(depth));
    let objects =
        (1_usize..400).prop_map(|depth| r#"{"content":"#.repeat(depth) + "1" + &"}".repeat(depth));
    let unclosed = (1_usize..4000).prop_map(|depth| "[".repeat(depth));
    let digits = (1_usize..2000).prop_map(|length| "9".repeat(length));
    prop_oneof![
        12 => proptest::sample::select(VALUES).prop_map(str::to_owned),
        1 => deep,
        1 => objects,
        1 => unclosed,
        1 => digits,
    ]
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let index = any::<Index>;
    prop_oneof![
        2 => (index(), 1_u8..).prop_map(|(at, bits)| Mutation::FlipBits(at, bits)),
        1 => index().prop_map(Mutation::Truncate),
        4 => index().prop_map(Mutation::RemoveField),
        6 => (index(), value()).prop_map(|(field, value)| Mutation::Replace(field, value)),
        2 => (index(), value()).prop_map(|(field, value)| Mutation::Twice(field, value)),
        4 => (index(), index(), proptest::sample::select(POISON))
            .prop_map(|(field, at, poison)| Mutation::Insert(field, at, poison)),
        6 => (index(), index(), index())
            .prop_map(|(field, line, other)| Mutation::Borrow(field, line, other)),
        1 => Just(Mutation::RepeatLine),
        1 => Just(Mutation::DropLine),
        2 => index().prop_map(Mutation::SwapLines),
        1 => Just(Mutation::JoinLines),
        1 => proptest::collection::vec(any::<u8>(), 0..60).prop_map(Mutation::Foreign),
    ]
}

/// Mutates one line, or the order of the lines.
fn mutate(lines: &mut Lines, at: &Index, mutation: &Mutation) {
    if lines.is_empty() {
        return;
    }
    let at = at.index(lines.len());
    match mutation {
        Mutation::FlipBits(byte, bits) => {
            let line = &mut lines[at];
            if !line.is_empty() {
                let byte = byte.index(line.len());
                line[byte] ^= bits;
            }
        }
        Mutation::Truncate(length) => {
            let length = length.index(lines[at].len() + 1);
            lines[at].truncate(length);
        }
        Mutation::RemoveField(field) => {
            if let Some(field) = pick(&lines[at], field) {
                remove(&mut lines[at], &field);
            }
        }
        Mutation::Replace(field, value) => {
            if let Some(field) = pick(&lines[at], field) {
                lines[at].splice(field.start..field.end, value.bytes());
            }
        }
        Mutation::Twice(field, value) => {
            if let Some(Field { key: Some(key), end, .. }) = pick(&lines[at], field) {
                let again = [b",", &lines[at][key.0..key.1], b":", value.as_bytes()].concat();
                lines[at].splice(end..end, again);
            }
        }
        Mutation::Insert(field, place, poison) => {
            let strings = fields(&lines[at]);
            let strings: Vec<_> = strings.iter().filter(|f| lines[at][f.start] == b'"').collect();
            if !strings.is_empty() {
                let string = strings[field.index(strings.len())];
                let place = string.start + 1 + place.index(string.end - string.start - 1);
                lines[at].splice(place..place, poison.bytes());
            }
        }
        Mutation::Borrow(field, line, other) => {
            let from = line.index(lines.len());
            if let (Some(to), Some(other)) = (pick(&lines[at], field), pick(&lines[from], other)) {
                let value = lines[from][other.start..other.end].to_vec();
                lines[at].splice(to.start..to.end, value);
            }
        }
        Mutation::RepeatLine => lines.insert(at, lines[at].clone()),
        Mutation::DropLine => drop(lines.remove(at)),
        Mutation::SwapLines(other) => {
            let other = other.index(lines.len());
            lines.swap(at, other);
        }
        Mutation::JoinLines => {
            if at + 1 < lines.len() {
                let next = lines.remove(at + 1);
                lines[at].extend(next);
            }
        }
        Mutation::Foreign(bytes) => lines.insert(at, bytes.clone()),
    }
}

/// The byte range of a value in a line, with its key if it is a field of an object.
#[derive(Clone, Debug)]
struct Field {
    key: Option<(usize, usize)>,
    start: usize,
    end: usize,
}

fn pick(line: &[u8], at: &Index) -> Option<Field> {
    let fields = fields(line);
    (!fields.is_empty()).then(|| fields[at.index(fields.len())].clone())
}

/// Every value in a line except the line itself, as far as an already broken line can be scanned.
fn fields(line: &[u8]) -> Vec<Field> {
    let mut found = Vec::new();
    let mut open: Vec<Field> = Vec::new();
    let mut key = None;
    let mut at = 0;
    while at < line.len() {
        let start = at;
        at += 1;
        match line[start] {
            b'{' | b'[' => open.push(Field { key: key.take(), start, end: start }),
            b'}' | b']' => found.extend(open.pop().map(|field| Field { end: at, ..field })),
            b',' | b':' | b' ' | b'\r' | b'\t' => {}
            b'"' => {
                while at < line.len() && line[at] != b'"' {
                    at += if line[at] == b'\\' { 2 } else { 1 };
                }
                at = (at + 1).min(line.len());
                if line.get(at) == Some(&b':') {
                    key = Some((start, at));
                } else if at > start + 1 {
                    found.push(Field { key: key.take(), start, end: at });
                }
            }
            _ => {
                while at < line.len() && !b",:]} \"".contains(&line[at]) {
                    at += 1;
                }
                found.push(Field { key: key.take(), start, end: at });
            }
        }
    }
    found.retain(|field| field.start > 0);
    found
}

fn remove(line: &mut Vec<u8>, field: &Field) {
    let start = field.key.map_or(field.start, |key| key.0);
    let end = if line.get(field.end) == Some(&b',') { field.end + 1 } else { field.end };
    // Removing the last of several fields also removes the comma before it.
    let start = if end == field.end && line[start - 1] == b',' { start - 1 } else { start };
    line.drain(start..end);
}

// ── Invariants ──────────────────────────────────────────────────────────────────────────────

/// Decodes a file and checks the invariants.
fn decode_lines(lines: &[Vec<u8>]) -> SessionSet {
    let bytes = lines.join(&b'\n');
    let mut session_set = SessionSet::default();
    let mut input = session_set.open(FILE);
    let mut taken: Vec<(u64, Vec<u8>)> = Vec::new();
    let mut take = |line: Line<'_>| {
        taken.push((line.number, line.bytes.to_vec()));
        session_set.take(&mut input, line);
    };
    let mut reader = LineReader::new();
    reader.push(&bytes, &mut take);
    if let Some(rest) = reader.finish() {
        take(rest.as_line());
    }
    let recognised = session_set.close(input, &mut |_| {});

    let unreadable: Vec<_> = taken.iter().filter(|(_, bytes)| !is_object(bytes)).collect();
    let warnings =
        || session_set.sessions.iter().flat_map(|s| &s.warnings).chain(&session_set.warnings);
    for (number, bytes) in &unreadable {
        let warned = warnings().any(|warning| {
            warning.file == FILE && warning.line == *number && warning.bytes == *bytes
        });
        assert!(warned, "no warning for line {number}: {}", String::from_utf8_lossy(bytes));
    }
    let mut counted = 0;
    for session in &session_set.sessions {
        counted += check_counts(&session.record_counts);
        check_session(session);
    }
    if recognised {
        assert_eq!(counted, taken.len() as u64, "records are missing from the counts");
        let outcome: u64 =
            session_set.sessions.iter().map(|session| session.record_counts.unreadable).sum();
        assert_eq!(outcome, unreadable.len() as u64, "lines that cannot be read");
    }
    session_set
}

fn check_counts(record_counts: &RecordCounts) -> u64 {
    let left_out: u64 = record_counts.left_out.values().sum();
    let sum = record_counts.in_parts + record_counts.metadata + left_out + record_counts.unreadable;
    assert_eq!(record_counts.read, sum, "{record_counts:?}");
    record_counts.read
}

/// True if a line is a JSON object, by an independent parser.
fn is_object(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    serde_json::from_str::<BTreeMap<String, &RawValue>>(&text).is_ok()
}

/// Checks order, ids and every output form.
fn check_session(session: &DecodedSession) {
    let transcript = session.transcript();
    let prices = Prices::listed();
    assert!(transcript.turns.is_sorted_by_key(|turn| turn.number), "turns are out of order");
    let (mut turns, mut ids) = (HashSet::new(), HashSet::new());
    for turn in &transcript.turns {
        assert!(turns.insert(turn.id), "two turns are called {}", turn.id);
        assert!(turn.parts.is_sorted_by_key(|part| part.place), "parts are out of order");
        for part in &turn.parts {
            assert!(ids.insert(part.id), "two parts are called {}", part.id);
        }
        let view = present::turn(turn, &present::PresentOptions::default());
        for line in turn_lines(&view, 80, &LineOptions::everything()) {
            let text = line.text();
            assert!(!text.chars().any(is_dangerous), "{text:?} would reach a terminal");
        }
        let written =
            serde_json::to_string(&TurnDocument { agent: "claude-code", turn, prices: &prices })
                .unwrap();
        assert!(is_object(written.as_bytes()), "{written}");
    }
    let summary = transcript.summary(Completeness::Full, &[]);
    serde_json::to_string(&SessionDocument { summary: &summary, prices: &prices }).unwrap();
}

fn is_dangerous(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

// ── Tests ───────────────────────────────────────────────────────────────────────────────────

/// A mutated excerpt of a recording.
fn broken(file: &'static str) -> impl Strategy<Value = Broken> {
    excerpt(move || recordings(file))
}

/// A mutated excerpt of any recording of an agent.
fn broken_of(agent: &'static str) -> impl Strategy<Value = Broken> {
    excerpt(move || recordings_of(agent))
}

fn excerpt(recordings: impl Fn() -> &'static [Lines]) -> impl Strategy<Value = Broken> {
    let mutations = proptest::collection::vec((any::<Index>(), mutation()), 1..8);
    (any::<Index>(), any::<Index>(), 1_usize..50, mutations).prop_map(
        move |(case, from, length, mutations)| {
            let recordings = recordings();
            let recording = &recordings[case.index(recordings.len())];
            let from = from.index(recording.len());
            let mut lines: Lines = recording[from..].iter().take(length).cloned().collect();
            for (at, mutation) in &mutations {
                mutate(&mut lines, at, mutation);
            }
            Broken(lines)
        },
    )
}

/// The same cases on every run, unless `PROPTEST_CASES` or `PROPTEST_RNG_SEED` is set.
fn cases(count: u32) -> ProptestConfig {
    let defaults = ProptestConfig::default();
    let rng_seed = match defaults.rng_seed {
        RngSeed::Random => RngSeed::Fixed(1),
        RngSeed::Fixed(seed) => RngSeed::Fixed(seed),
    };
    // A failing case is copied into a test below, not into a file.
    ProptestConfig {
        cases: defaults.cases.max(count),
        rng_seed,
        failure_persistence: None,
        ..defaults
    }
}

proptest! {
    #![proptest_config(cases(600))]

    #[test]
    fn broken_logs_lose_nothing(lines in broken("log.jsonl")) {
        decode_lines(&lines.0);
    }

    #[test]
    fn broken_streams_lose_nothing(lines in broken("stream.jsonl")) {
        decode_lines(&lines.0);
    }

    #[test]
    fn broken_hooks_lose_nothing(lines in broken("hooks.jsonl")) {
        decode_lines(&lines.0);
    }

    #[test]
    fn feeds_of_three_kinds_in_one_file_lose_nothing(
        log in broken("log.jsonl"),
        stream in broken("stream.jsonl"),
        hooks in broken("hooks.jsonl"),
    ) {
        let (log, stream, hooks) = (log.0, stream.0, hooks.0);
        let length = log.len().max(stream.len()).max(hooks.len());
        let mixed: Lines = (0..length)
            .flat_map(|at| [log.get(at), stream.get(at), hooks.get(at)])
            .flatten()
            .cloned()
            .collect();
        decode_lines(&mixed);
    }
}

/// One test for each of the other agents, and the bodies of the fuzz targets on the same bytes.
macro_rules! agents {
    ($($name:ident: $agent:literal,)*) => {
        proptest! {
            #![proptest_config(cases(250))]
            $(
                #[test]
                fn $name(lines in broken_of($agent)) {
                    decode_lines(&lines.0);
                    let bytes = lines.0.join(&b'\n');
                    let first = String::from_utf8_lossy(&recordings_of($agent)[0][0]).into_owned();
                    fuzz_bodies::decode_capture(&first, &bytes);
                    fuzz_bodies::lines(&bytes);
                    fuzz_bodies::present(&bytes);
                }
            )*
        }
    };
}

agents! {
    broken_claude_code: "claude-code",
    broken_codex: "codex",
    broken_opencode: "opencode",
    broken_copilot: "copilot",
    broken_gemini: "gemini",
    broken_ai_sdk: "ai-sdk",
    broken_thoughtflow: "thoughtflow",
    broken_rows: "rows",
}

/// The transcript of the one session in these lines.
fn outcome(lines: &[&str]) -> Transcript {
    let lines: Lines = lines.iter().map(|line| line.as_bytes().to_vec()).collect();
    let session_set = decode_lines(&lines);
    assert_eq!(session_set.sessions.len(), 1);
    session_set.sessions[0].transcript()
}

fn texts(transcript: &Transcript) -> Vec<&str> {
    let mut texts = Vec::new();
    for part in transcript.turns.iter().flat_map(|turn| &turn.parts) {
        if let Body::Text(text) = &part.body {
            texts.push(text.text.as_str());
        }
    }
    texts
}

#[test]
fn the_largest_counts_overflow_nothing() {
    let message = |id: &str| {
        format!(
            r#"{{"type":"assistant","uuid":"{id}","sessionId":"s","message":{{"id":"{id}","content":[{{"type":"text","text":"hi"}}],"usage":{{"input_tokens":18446744073709551615,"output_tokens":18446744073709551615}}}}}}"#
        )
    };
    outcome(&[&message("m1"), &message("m2")]);
}

#[test]
fn the_largest_index_of_a_block_overflows_nothing_in_a_log() {
    let line = r#"{"type":"assistant","uuid":"a","sessionId":"s","apiBlockIndex":4294967295,"message":{"id":"m","content":[{"type":"text","text":"hi"}]}}"#;
    assert_eq!(texts(&outcome(&[line])), ["hi"]);
}

#[test]
fn the_largest_index_of_a_block_overflows_nothing_in_a_stream() {
    let transcript = outcome(&[
        r#"{"type":"system","subtype":"init","session_id":"s","uuid":"a"}"#,
        r#"{"type":"stream_event","session_id":"s","event":{"type":"message_start","message":{"id":"m"}}}"#,
        r#"{"type":"stream_event","session_id":"s","event":{"type":"content_block_start","index":4294967295,"content_block":{"type":"text"}}}"#,
        r#"{"type":"assistant","session_id":"s","uuid":"b","message":{"id":"m","content":[{"type":"text","text":"hi"}]}}"#,
    ]);
    assert_eq!(texts(&transcript), ["hi"]);
}

/// JavaScript writes a lone surrogate if it cuts a string in the middle of a character. The
/// character is lost; the text around it is not.
#[test]
fn half_a_character_does_not_lose_the_text_around_it() {
    let block = r#"{"type":"text","text":"before \ud83d after"}"#;
    let log = format!(
        r#"{{"type":"assistant","uuid":"a","sessionId":"s","message":{{"id":"m","content":[{block}]}}}}"#
    );
    assert_eq!(texts(&outcome(&[&log])), ["before \u{fffd} after"]);
    let stream = format!(
        r#"{{"type":"assistant","uuid":"a","session_id":"s","message":{{"id":"m","content":[{block}]}}}}"#
    );
    assert_eq!(texts(&outcome(&[&stream])), ["before \u{fffd} after"]);
    let hooks = r#"{"hook_event_name":"MessageDisplay","session_id":"s","message_id":"m","delta":"before \ud83d after","final":true}"#;
    assert_eq!(texts(&outcome(&[hooks])), ["before \u{fffd} after"]);
}

/// A prompt whose id already has a turn, and a stream without ids, name no turn.
#[test]
fn turns_without_a_name_stay_apart() {
    let said = |uuid: &str, text: &str| {
        format!(
            r#"{{"type":"user",{uuid}"promptId":"p","sessionId":"s","message":{{"content":"{text}"}}}}"#
        )
    };
    let log = [said(r#""uuid":"u","#, "one"), said("", "two"), said("", "three")];
    assert_eq!(outcome(&[&log[0], &log[1], &log[2]]).turns.len(), 3);
    let init = r#"{"type":"system","subtype":"init","session_id":"s"}"#;
    let result = r#"{"type":"result","subtype":"success","session_id":"s"}"#;
    assert_eq!(outcome(&[init, result, init, result]).turns.len(), 2);
}
