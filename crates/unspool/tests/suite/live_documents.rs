//! Documents that an agent writes again as a whole while it works: Cline, Continue, mini-swe-agent.
//! Some truncate the file first, one removes messages when it compacts, and one is overwritten by the
//! next run. A shrunk document never deletes anything.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;
use unspool_model::id::PartId;
use unspool_model::part::{Body, ToolState};

use crate::case::{cases, name, root};
use crate::live_growth::{Archive, ArchivedSession, recorded_writes};

/// The sources whose logs are such documents, with the list that grows.
const SOURCES: [(&str, &str); 3] =
    [("cline", "messages"), ("continue", "history"), ("mini-swe-agent", "messages")];

fn document(case: &Path) -> Value {
    serde_json::from_slice(&fs::read(case.join("log.json")).unwrap()).unwrap()
}

/// Where the agent keeps such a document.
fn path_of(source: &str, document: &Value, tree: &Path) -> PathBuf {
    let id = document["sessionId"].as_str().unwrap_or_default();
    let path = match source {
        "cline" => tree.join(id).join(format!("{id}.messages.json")),
        "continue" => tree.join(format!("{id}.json")),
        _ => tree.join("last_mini_run.traj.json"),
    };
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    path
}

/// A document with the first elements of its list. Continue's sum of tokens grows with the list.
fn beginning(whole: &Value, list: &str, length: usize) -> Value {
    let mut document = whole.clone();
    let rest = document[list].as_array_mut().unwrap().split_off(length);
    for (of_document, of_call) in
        [("promptTokens", "prompt_tokens"), ("completionTokens", "completion_tokens")]
    {
        let later: u64 =
            rest.iter().filter_map(|item| item["message"]["usage"][of_call].as_u64()).sum();
        if let Some(sum) = document["usage"][of_document].as_u64() {
            document["usage"][of_document] = (sum - later).into();
        }
    }
    document
}

/// Parts that stay. Texts of errors and ends may go when the document goes on.
fn parts(contents: &[ArchivedSession]) -> BTreeSet<PartId> {
    let turns = contents.iter().flat_map(|session| &session.turns);
    let said = turns.flat_map(|turn| &turn.parts).filter(|part| {
        matches!(part.body, Body::Text(_) | Body::Reasoning(_) | Body::Tool(_) | Body::File(_))
    });
    said.map(|part| part.id).collect()
}

fn tokens(contents: &[ArchivedSession]) -> u64 {
    contents.iter().map(|session| session.summary.usage.total()).sum()
}

/// What of a document must be equal however it was read.
fn outline(contents: &[ArchivedSession]) -> Vec<String> {
    let turns = contents.iter().flat_map(|session| &session.turns);
    let turns = turns.map(|turn| {
        let bodies: Vec<&Body> = turn.parts.iter().map(|part| &part.body).collect();
        format!("{} {:?} {:?} {:?}", turn.number, turn.state, turn.user, bodies)
    });
    turns.collect()
}

#[test]
fn documents_that_are_written_again_lose_nothing_and_end_as_a_fresh_import() {
    // Laws 2 and 4, R-001-28
    let mut steps = 0;
    for (source, list) in SOURCES {
        for case in cases(source).iter().filter(|case| case.join("log.json").exists()) {
            let whole = document(case);
            let count = whole[list].as_array().unwrap().len();
            let tree = TempDir::new().unwrap();
            let path = path_of(source, &whole, tree.path());
            let mut grown = Archive::new();
            let mut held = BTreeSet::new();
            for length in 1..=count {
                let document = beginning(&whole, list, length);
                // Truncated first, and found like that by every second sync.
                fs::write(&path, "").unwrap();
                if length % 2 == 0 {
                    grown.sync(tree.path());
                }
                fs::write(&path, serde_json::to_vec(&document).unwrap()).unwrap();
                grown.sync(tree.path());
                let found = parts(&grown.contents());
                let at = format!("{source}/{} after {length} of {count}", name(case));
                assert!(held.is_subset(&found), "{at}: {} to {}", held.len(), found.len());
                held = found;
                steps += 1;
            }
            let mut fresh = Archive::new();
            fresh.sync(tree.path());
            let (found, expected) = (grown.contents(), fresh.contents());
            let at = format!("{source}/{}", name(case));
            assert_eq!(outline(&found), outline(&expected), "{at}");
            assert_eq!(tokens(&found), tokens(&expected), "{at}");
        }
    }
    assert!(steps > 200, "{steps}");
}

/// What a fresh import gives of the same files.
fn imported(tree: &Path) -> Vec<ArchivedSession> {
    let mut fresh = Archive::new();
    fresh.sync(tree);
    fresh.contents()
}

#[test]
fn documents_that_grow_as_agents_wrote_them_are_at_every_step_what_a_fresh_import_gives() {
    // Laws 2 and 4, R-001-28: with every recorded write, also those that found the file empty.
    let mut steps = 0;
    for (source, list) in SOURCES {
        let mut archives: Vec<(PathBuf, TempDir, Archive, BTreeSet<PartId>)> = Vec::new();
        for (case, file, length) in recorded_writes(source) {
            assert_eq!(file, "log.json");
            if archives.last().is_none_or(|(of, ..)| *of != case) {
                let tree = TempDir::new().unwrap();
                archives.push((case.clone(), tree, Archive::new(), BTreeSet::new()));
            }
            let (_, tree, grown, held) = archives.last_mut().unwrap();
            let whole = document(&case);
            let path = path_of(source, &whole, tree.path());
            let length: Option<usize> = length.parse().ok();
            let text =
                length.map(|length| serde_json::to_vec(&beginning(&whole, list, length)).unwrap());
            fs::write(&path, text.unwrap_or_default()).unwrap();
            grown.sync(tree.path());
            let found = grown.contents();
            let at = format!("{source}/{} at {length:?}", name(&case));
            assert!(held.is_subset(&parts(&found)), "{at}: something is gone");
            *held = parts(&found);
            if length.is_some() {
                let expected = imported(tree.path());
                assert_eq!(outline(&found), outline(&expected), "{at}");
                assert_eq!(tokens(&found), tokens(&expected), "{at}");
            }
            steps += 1;
        }
    }
    assert!(steps >= 54, "{steps}");
}

#[test]
fn a_history_that_grows_as_aider_wrote_it_is_at_every_step_what_a_fresh_import_gives() {
    // Laws 2 and 4, R-001-28
    let tree = TempDir::new().unwrap();
    let path = tree.path().join(".aider.chat.history.md");
    let mut grown = Archive::new();
    let writes = recorded_writes("aider");
    assert_eq!(writes.len(), 8);
    for (case, file, lines) in writes {
        let text = fs::read_to_string(case.join(file)).unwrap();
        let lines: usize = lines.parse().unwrap();
        let written: String = text.split_inclusive('\n').take(lines).collect();
        fs::write(&path, written).unwrap();
        grown.sync(tree.path());
        let (found, expected) = (grown.contents(), imported(tree.path()));
        assert_eq!(outline(&found), outline(&expected), "{lines} lines");
        assert_eq!(tokens(&found), tokens(&expected), "{lines} lines");
    }
    assert_eq!(grown.contents()[0].turns.len(), 1);
}

#[test]
fn a_history_that_grows_line_by_line_ends_as_a_fresh_import() {
    // Laws 2 and 4, R-001-28: aider only appends.
    for case in cases("aider") {
        let text = fs::read_to_string(case.join("log.md")).unwrap();
        let tree = TempDir::new().unwrap();
        let path = tree.path().join(".aider.chat.history.md");
        let mut grown = Archive::new();
        let ends: Vec<usize> = text.match_indices('\n').map(|(at, _)| at + 1).collect();
        for end in ends.iter().step_by(ends.len().div_ceil(12)).chain(ends.last()) {
            fs::write(&path, &text[..*end]).unwrap();
            grown.sync(tree.path());
        }
        let mut fresh = Archive::new();
        fresh.sync(tree.path());
        let (found, expected) = (grown.contents(), fresh.contents());
        assert_eq!(outline(&found), outline(&expected), "{}", name(&case));
        assert_eq!(tokens(&found), tokens(&expected), "{}", name(&case));
    }
}

/// Syncs one document and then another in its place. Returns what the archive has after each.
fn replaced(source: &str, first: &str, second: &str) -> [Vec<ArchivedSession>; 2] {
    let folder = root().join("fixtures").join(source);
    let tree = TempDir::new().unwrap();
    let mut archive = Archive::new();
    [first, second].map(|case| {
        let document = document(&folder.join(case));
        let path = path_of(source, &document, tree.path());
        fs::write(&path, serde_json::to_vec(&document).unwrap()).unwrap();
        archive.sync(tree.path());
        archive.contents()
    })
}

/// Syncs a document of Continue, then the empty file, then the document after its compaction.
fn replaced_through_nothing(first: &str) -> Vec<ArchivedSession> {
    let folder = root().join("fixtures/continue");
    let tree = TempDir::new().unwrap();
    let mut archive = Archive::new();
    for case in [Some(first), None, Some("history-compacted")] {
        let found = document(&folder.join(case.unwrap_or(first)));
        let path = path_of("continue", &found, tree.path());
        let text = case.map(|_| serde_json::to_vec(&found).unwrap());
        fs::write(&path, text.unwrap_or_default()).unwrap();
        archive.sync(tree.path());
    }
    archive.contents()
}

#[test]
fn a_document_that_was_compacted_keeps_what_it_had() {
    // Law 4: Continue removes the messages that its summary stands for.
    let [before, after] =
        replaced("continue", "permissions-question-and-interruption", "history-compacted");
    assert_eq!((before.len(), after.len()), (1, 1));
    assert!(parts(&before).is_subset(&parts(&after)));
    assert!(parts(&after).len() > parts(&before).len());
    let kept = after[0].turns.iter().flat_map(|turn| &turn.parts);
    let denied = kept
        .filter(|part| matches!(&part.body, Body::Tool(tool) if tool.state == ToolState::Denied));
    assert!(denied.count() > 0, "the states stay as well");
    // Tokens are counted once: those of the first document, and of what the second one adds.
    let alone = replaced("continue", "history-compacted", "history-compacted");
    // The sum of the document has those of the calls that are gone, and of the compaction.
    assert_eq!(tokens(&after), 22_908 + 545);
    assert_eq!(tokens(&alone[0]), tokens(&after));
    // The same if the file was found empty in between.
    let between = replaced_through_nothing("permissions-question-and-interruption");
    assert_eq!(tokens(&between), tokens(&after));
    // Reading it again changes nothing.
    assert_eq!(tokens(&alone[1]), tokens(&alone[0]));
}

#[test]
fn a_run_that_overwrites_the_file_of_another_is_a_session_beside_it() {
    // Law 4: mini-swe-agent writes every run to the same file.
    let [before, after] = replaced("mini-swe-agent", "discovery-loop", "timeout-and-long-output");
    assert_eq!((before.len(), after.len()), (1, 2));
    assert!(parts(&before).is_subset(&parts(&after)));
    let alone = replaced("mini-swe-agent", "timeout-and-long-output", "timeout-and-long-output");
    assert_eq!(tokens(&after), tokens(&before) + tokens(&alone[0]));
    assert_eq!(tokens(&alone[1]), tokens(&alone[0]));
}
