//! Golden files beside each recording: its events, its parts and its plain text. Run
//! `scripts/bless` to rewrite them, and compare the plain text with the recording before you commit
//! it.

use std::fmt::Write;
use std::path::Path;

use unspool_model::agent::AgentTraits;
use unspool_model::event::{Event, EventKind, ProseKind};
use unspool_model::id::digest;
use unspool_model::part::Body;
use unspool_model::price::Prices;
use unspool_model::provenance::Name;
use unspool_model::session::Transcript;
use unspool_model::summary::Completeness;
use unspool_sources::in_memory::SessionSet;
use unspool_view::{lines, plain, present};

use crate::by_source::by_source;
use crate::case::{case_sessions, cases, family, name};

by_source!(golden_files_are_what_the_recordings_give);

fn golden_files_are_what_the_recordings_give(source: &str) {
    let bless = std::env::var_os("UNSPOOL_BLESS").is_some();
    let mut wrong = Vec::new();
    for case in &cases(source) {
        let (events, transcripts) = read(case);
        let files = [
            ("events.txt", events),
            ("parts.txt", each(&transcripts, parts)),
            ("plain.txt", each(&transcripts, text)),
        ];
        for (file, found) in files {
            let path = case.join(file);
            if bless {
                std::fs::write(&path, &found).unwrap();
                continue;
            }
            let expected = std::fs::read_to_string(&path).unwrap_or_default();
            if expected != found {
                wrong.push(format!(
                    "{}/{file}: {}",
                    name(case),
                    first_difference(&expected, &found)
                ));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} golden files differ; if that is meant, run scripts/bless and read them\n{}",
        wrong.len(),
        wrong.iter().take(12).cloned().collect::<Vec<_>>().join("\n")
    );
}

fn first_difference(expected: &str, found: &str) -> String {
    let pairs = expected.lines().map(Some).chain([None]).zip(found.lines().map(Some).chain([None]));
    for (number, (expected, found)) in (1..).zip(pairs) {
        if expected != found {
            let show = |line: Option<&str>| line.unwrap_or("(end)").to_owned();
            return format!("line {number}\n  - {}\n  + {}", show(expected), show(found));
        }
    }
    "one is longer than the other".to_owned()
}

/// The sessions of a case, one after another.
fn each(transcripts: &[Transcript], write: fn(&Transcript) -> String) -> String {
    let written: Vec<String> = transcripts.iter().map(write).collect();
    written.join("\n")
}

/// Folds all captures of a case, and writes the events of each record.
fn read(case: &Path) -> (String, Vec<Transcript>) {
    let mut session_set = SessionSet::default();
    let mut written = String::new();
    for capture in family(case) {
        writeln!(written, "── {}", capture.file).unwrap();
        let mut grown: Option<(u64, String, String)> = None;
        let mut reading = session_set.open(&capture.file);
        let mut watch = |decoded: unspool_sources::in_memory::RecordTrace<'_>| {
            for event in decoded.events {
                note(&mut written, &mut grown, decoded.line, event);
            }
            if decoded.events.is_empty() {
                flush(&mut written, &mut grown);
                writeln!(written, "{:>4}  ({:?})", decoded.line, decoded.outcome).unwrap();
            }
        };
        for line in &capture.lines {
            session_set.take_traced(&mut reading, line.line(), &mut watch);
        }
        session_set.close(reading, &mut watch);
        flush(&mut written, &mut grown);
    }
    let mut transcripts = Vec::new();
    for session in case_sessions(&session_set) {
        writeln!(written, "── {:?}", session.record_counts).unwrap();
        writeln!(written, "── counted and not applied: {:?}", session.skip_counts()).unwrap();
        let mut transcript = session.transcript();
        unspool_model::document::settle_as_file(&mut transcript);
        transcripts.push(transcript);
    }
    (written, transcripts)
}

/// One line per event; consecutive deltas of one block share a line.
fn note(written: &mut String, grown: &mut Option<(u64, String, String)>, line: u64, event: &Event) {
    if let EventKind::ProseDelta { prose_kind, block, text } = &event.kind {
        let prose_kind = match prose_kind {
            ProseKind::Text => "text",
            ProseKind::Reasoning => "reasoning",
        };
        let key =
            format!("{prose_kind} of {}", block.as_ref().map_or("no block".into(), short_name));
        match grown {
            Some((_, held, all)) if *held == key => all.push_str(text),
            _ => {
                flush(written, grown);
                *grown = Some((line, key, text.clone()));
            }
        }
        return;
    }
    if matches!(&event.kind, EventKind::ToolInputDelta { text, .. } if !text.is_empty()) {
        return;
    }
    flush(written, grown);
    let turn = event.turn.as_ref().map_or(String::new(), |turn| format!("[{}] ", short_name(turn)));
    writeln!(written, "{line:>4}  {turn}{}", event_line(&event.kind)).unwrap();
}

fn flush(written: &mut String, grown: &mut Option<(u64, String, String)>) {
    if let Some((line, key, text)) = grown.take() {
        writeln!(written, "{line:>4}  prose-delta {key}: {}", text_line(&text)).unwrap();
    }
}

fn short_name(name: &Name) -> String {
    format!("{name:?}")
}

/// An event as its kind and its data: `step-ended {"step":…}`.
fn event_line(kind: &EventKind) -> String {
    let json = serde_json::to_string(kind).unwrap();
    let data = json.strip_prefix("{\"").and_then(|rest| rest.strip_suffix('}')?.split_once("\":"));
    match data {
        Some((kind, data)) => format!("{kind} {}", json_line(data)),
        None => json.trim_matches('"').to_owned(),
    }
}

/// JSON on one line. It has its own escapes; only characters that a terminal would not show as they
/// are get another one.
fn json_line(json: &str) -> String {
    let shown = |c: char| if c == '\\' { c.to_string() } else { visible(c) };
    cut(json.chars().map(shown).collect(), json)
}

/// A text on one line.
fn text_line(text: &str) -> String {
    cut(text.chars().map(visible).collect(), text)
}

/// Line ends, backslashes and characters that cannot be seen are escaped; quotes are not.
fn visible(c: char) -> String {
    match c {
        '"' | '\'' => c.to_string(),
        _ => c.escape_debug().to_string(),
    }
}

/// A long line, cut, with a digest of the whole so that any change shows.
fn cut(line: String, whole: &str) -> String {
    const LENGTH: usize = 220;
    if line.chars().count() <= LENGTH {
        return line;
    }
    let start: String = line.chars().take(LENGTH).collect();
    format!("{start}… {} bytes {:016x}", whole.len(), digest(whole.as_bytes()))
}

fn parts(transcript: &Transcript) -> String {
    let mut out = String::new();
    let session = &transcript.session;
    let facts = serde_json::to_string(&session.facts).unwrap();
    writeln!(out, "session {} {:?} {facts}", session.id, session.state).unwrap();
    for turn in &transcript.turns {
        let mut head = turn.clone();
        head.parts.clear();
        head.steps.clear();
        head.user.clear();
        writeln!(out, "\nturn {}", serde_json::to_string(&head).unwrap()).unwrap();
        for body in &turn.user {
            writeln!(out, "  user {}", json_line(&serde_json::to_string(body).unwrap())).unwrap();
        }
        for step in &turn.steps {
            writeln!(out, "  step {}", serde_json::to_string(step).unwrap()).unwrap();
        }
        for part in &turn.parts {
            let step = part.step.and_then(|step| turn.step_number(step)).unwrap_or(0);
            writeln!(
                out,
                "  part {} at {} step {step} {:?}..{:?} from {} records",
                part.id,
                part.place.0,
                part.started.map(|at| at.to_string()).unwrap_or_default(),
                part.ended.map(|at| at.to_string()).unwrap_or_default(),
                part.evidence.len(),
            )
            .unwrap();
            writeln!(out, "    names {:?}", part.origin.names).unwrap();
            write_body(&mut out, &part.body);
        }
    }
    out
}

fn write_body(out: &mut String, body: &Body) {
    let kind = body.kind().name();
    let value = serde_json::to_value(body).unwrap();
    let fields = value.as_object().and_then(|object| object.values().next()).cloned();
    writeln!(out, "    {kind}").unwrap();
    for (field, value) in
        fields.as_ref().and_then(|fields| fields.as_object()).into_iter().flatten()
    {
        if !value.is_null() && value != "" && value != &serde_json::json!([]) {
            let written = value.as_str().map_or_else(|| json_line(&value.to_string()), text_line);
            writeln!(out, "      {field}: {written}").unwrap();
        }
    }
}

/// What `show --plain` prints, at a fixed width.
fn text(transcript: &Transcript) -> String {
    let options = lines::LineOptions::default();
    let loss = AgentTraits::of(&transcript.session.agent).log_detail.loss();
    let grade = if loss.is_some() { Completeness::Partial } else { Completeness::Full };
    let summary = transcript.summary(grade, &[]);
    // Prices change more often than transcripts.
    let head = present::session(&summary, &Prices::none());
    let mut out = plain::paint(&lines::layout(&head, 100, &options));
    let shown = present::PresentOptions::of(&transcript.session);
    for turn in transcript.turns.iter().filter(|turn| !turn.is_blank()) {
        let view = present::turn(turn, &shown);
        out.push('\n');
        out += &plain::paint(&lines::turn_lines(&view, 100, &options));
    }
    out
}
