//! One feed in several files, as after a resume: the order in which they are read does not change
//! the session.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use unspool_model::event::EventKind;
use unspool_sources::in_memory::SessionSet;

use crate::by_source::{assert_seen, by_source};
use crate::case::{Capture, OwnedLine, assert_none, captures, cases, difference, fold, name, root};
use crate::harness::Machine;

/// The log of a case, cut where turns start. A real second file has a header of its own.
fn cut_log(case: &Path, files: usize) -> Option<Vec<Capture>> {
    let log = captures(case).into_iter().find(|capture| capture.file == "log.jsonl")?;
    let mut starts = Vec::new();
    let mut seen = HashSet::new();
    let mut session_set = SessionSet::default();
    let mut input = session_set.open(&log.file);
    for (line, at) in log.lines.iter().zip(0..) {
        session_set.take_traced(&mut input, line.line(), &mut |trace| {
            for event in trace.events {
                let EventKind::TurnStarted { names, .. } = &event.kind else { continue };
                // Some logs start a turn twice: when it begins, and with its prompt.
                let again = names.iter().any(|name| seen.contains(name));
                seen.extend(names.iter().chain(&event.turn).cloned());
                if !again {
                    starts.push(at);
                }
            }
        });
    }
    starts.dedup();
    if session_set.sessions.len() != 1 || starts.len() < files {
        return None;
    }
    let cuts: Vec<usize> = (1..files).map(|nth| starts[nth * starts.len() / files]).collect();
    let bounds = [0].into_iter().chain(cuts.clone()).zip(cuts.into_iter().chain([log.lines.len()]));
    let header = log.lines[0].bytes.clone();
    let has_header = header.windows(12).any(|bytes| bytes == b"session_meta");
    let cut = bounds.map(|(from, to)| {
        let mut lines: Vec<Vec<u8>> =
            log.lines[from..to].iter().map(|line| line.bytes.clone()).collect();
        if has_header && from > 0 {
            let mut own: Value = serde_json::from_slice(&header).unwrap();
            let first: Value = serde_json::from_slice(&lines[0]).unwrap();
            own["timestamp"] = first["timestamp"].clone();
            lines.insert(0, serde_json::to_vec(&own).unwrap());
        }
        let mut offset = 0;
        let lines = lines.into_iter().zip(1..).map(|(bytes, number)| {
            let line = OwnedLine { number, offset, bytes };
            offset += line.bytes.len() as u64 + 1;
            line
        });
        Capture { file: log.file.clone(), lines: lines.collect() }
    });
    let cut: Vec<Capture> = cut.collect();
    is_real(&cut).then_some(cut)
}

/// True if each file begins with a prompt, since what comes before has no turn of its own, and no
/// turn is in two files: its parts are in the order in which the files were read. Turns with equal
/// words are counted within a file, so these must not be in two files either.
fn is_real(files: &[Capture]) -> bool {
    let mut seen = HashSet::new();
    files.iter().enumerate().all(|(nth, file)| {
        let file = std::slice::from_ref(file);
        let alone = fold(file, turns(file, &[0], false));
        let mut turns = alone.sessions.iter().flat_map(|session| session.transcript().turns);
        turns.all(|turn| {
            let mut names = turn.origin.names.into_iter();
            (nth == 0 || turn.number > 0) && names.all(|name| seen.insert(name))
        })
    })
}

fn permutations(count: usize) -> Vec<Vec<usize>> {
    if count == 0 {
        return vec![Vec::new()];
    }
    let shorter = permutations(count - 1);
    let all = shorter.iter().flat_map(|order| {
        (0..count).map(|at| {
            let mut order = order.clone();
            order.insert(at, count - 1);
            order
        })
    });
    all.collect()
}

/// Which file is next: whole files in this order, or one line of each in turn.
fn turns(files: &[Capture], order: &[usize], interleaved: bool) -> Vec<usize> {
    if !interleaved {
        return order.iter().flat_map(|file| vec![*file; files[*file].lines.len()]).collect();
    }
    let longest = files.iter().map(|file| file.lines.len()).max().unwrap_or_default();
    (0..longest).flat_map(|_| order.iter().copied()).collect()
}

by_source!(files_of_one_log_in_any_order_give_one_session);

fn files_of_one_log_in_any_order_give_one_session(source: &str) {
    // Law 5; R-X-03.
    let mut compared = 0;
    let mut differences = Vec::new();
    for case in cases(source) {
        for count in 2..=4 {
            let Some(files) = cut_log(&case, count) else { continue };
            compared += 1;
            let in_order: Vec<usize> = (0..count).collect();
            let expected = fold(&files, turns(&files, &in_order, false));
            let found = permutations(count).into_iter().find_map(|order| {
                [false, true].into_iter().find_map(|interleaved| {
                    let found = fold(&files, turns(&files, &order, interleaved));
                    let (expected, found) = (&expected.sessions[0], &found.sessions[0]);
                    let differs = difference(&expected.transcript(), &found.transcript())?;
                    Some(format!("{order:?}, interleaved: {interleaved}: {differs}"))
                })
            });
            differences.extend(found.map(|found| format!("{} {found}", name(&case))));
        }
    }
    assert_none(differences);
    assert_seen(source, compared, [0, 0, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0, 0, 0, 1, 0, 0]);
}

#[test]
fn a_pipe_that_was_named_is_an_error() {
    // Nothing is read, so the command must not succeed.
    let machine = Machine::new();
    fs::create_dir_all(machine.home()).unwrap();
    let pipe = machine.home().join("log.jsonl");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let output = machine.run("d", &["import", pipe.to_str().unwrap()], "");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("log.jsonl: cannot be read"), "{said}");
}

#[test]
fn a_line_of_any_length_leaves_the_others_readable() {
    let machine = Machine::new();
    let source = root().join("fixtures/claude-code/discovery-loop/log.jsonl");
    let text = fs::read_to_string(source).unwrap();
    let (first, rest) = text.split_at(text.find("\n").unwrap() + 1);
    let log = machine.home().join("log.jsonl");
    fs::create_dir_all(machine.home()).unwrap();
    let long = "x".repeat(135_000_000);
    fs::write(&log, format!("{first}{{\"text\":\"{long}\"}}\n{rest}")).unwrap();
    let report = machine.json("long", &["import", log.to_str().unwrap()]);
    let warning = &report["warnings"][0];
    assert_eq!(warning["line"], 2, "{warning}");
    assert!(warning["what"].as_str().unwrap().contains("has 135000011 bytes"), "{warning}");
    fs::write(&log, &text).unwrap();
    machine.ok("short", &["import", log.to_str().unwrap()]);
    let parts = |data: &str| machine.json(data, &["list"])[0]["parts"].clone();
    assert_eq!(parts("long"), parts("short"));
}

#[test]
fn a_session_without_messages_has_no_messages_to_export() {
    let machine = Machine::new();
    fs::create_dir_all(machine.home()).unwrap();
    let log = machine.home().join("log.jsonl");
    let header =
        fs::read_to_string(root().join("fixtures/codex/discovery-loop/log.jsonl")).unwrap();
    fs::write(&log, header.lines().next().unwrap().to_owned() + "\n").unwrap();
    machine.ok("d", &["import", log.to_str().unwrap()]);
    let id = machine.json("d", &["list"])[0]["id"].as_str().unwrap().to_owned();
    let output = machine.run("d", &["export", &id, "--to", "uimessage"], "");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("nothing to export"), "{output:?}");
}

#[test]
fn an_archive_has_the_turns_of_a_resumed_session_in_order() {
    // Law 5; R-X-03. The later file is imported first, then the earlier one in two reads.
    let machine = Machine::new();
    let files = cases("codex").iter().find_map(|case| cut_log(case, 3)).unwrap();
    let paths: Vec<String> = (0..files.len())
        .map(|nth| machine.home().join(format!("rollout-{nth}.jsonl")).to_str().unwrap().to_owned())
        .collect();
    fs::create_dir_all(machine.home()).unwrap();
    let text = |lines: &[OwnedLine]| {
        let lines = lines.iter().map(|line| String::from_utf8(line.bytes.clone()).unwrap() + "\n");
        lines.collect::<String>()
    };
    for (file, path) in files.iter().zip(&paths) {
        fs::write(path, text(&file.lines)).unwrap();
    }
    for path in &paths {
        machine.ok("in-order", &["import", path]);
    }
    let expected = machine.json("in-order", &["list"]);
    let id = expected[0]["id"].as_str().unwrap();
    machine.ok("reversed", &["import", &paths[2]]);
    let half = files[0].lines.len() / 2;
    fs::write(&paths[0], text(&files[0].lines[..half])).unwrap();
    machine.ok("reversed", &["import", &paths[0]]);
    machine.ok("reversed", &["import", &paths[1]]);
    fs::write(&paths[0], text(&files[0].lines)).unwrap();
    machine.ok("reversed", &["import", &paths[0]]);
    let turns = |data: &str| machine.json(data, &["show", id])["turns"].clone();
    assert!(turns("in-order").as_array().unwrap().len() >= 3);
    assert_eq!(turns("reversed"), turns("in-order"));
}

#[test]
fn a_named_file_is_read_to_its_end_without_a_final_line_end() {
    // R-001-13
    let machine = Machine::new();
    let log = root().join("fixtures/claude-code/discovery-loop/log.jsonl");
    let text = fs::read_to_string(log).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let (cut, rest) = lines.split_at(lines.len() - 1);
    let complete = Machine::new();
    complete.write("log.jsonl", text.as_bytes());
    let import = |machine: &Machine| {
        let path = machine.home().join("log.jsonl");
        let report = machine.json("data", &["import", path.to_str().unwrap()]);
        report["records"].as_u64().unwrap()
    };
    assert_eq!(import(&complete), lines.len() as u64);
    // The line end comes later, with the next record: nothing is read twice.
    machine.write("log.jsonl", cut.join("\n").as_bytes());
    assert_eq!(import(&machine), cut.len() as u64);
    machine.write("log.jsonl", text.as_bytes());
    assert_eq!(import(&machine), rest.len() as u64);
}
