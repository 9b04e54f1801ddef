use std::io::Read;
use std::path::Path;

use super::{length, ranges, text};

const A: &str = "01a1dc9e-0000-7000-8000-00000000000a";
const B: &str = "01a1dc9e-0000-7000-8000-00000000000b";
const C: &str = "01a1dc9e-0000-7000-8000-00000000000c";

fn meta(id: &str, base: Option<(&str, usize)>) -> String {
    let base = base.map(|(id, end)| {
        format!(r#","history_base":{{"thread_id":"{id}","end_ordinal_exclusive":2,"end_byte_offset":{end}}}"#)
    });
    let base = base.unwrap_or_default();
    format!("{{\"type\":\"session_meta\",\"payload\":{{\"id\":\"{id}\"{base}}}}}\n")
}

fn whole(path: &Path) -> String {
    let ranges = ranges(path).unwrap();
    let mut content = String::new();
    text(&ranges).unwrap().read_to_string(&mut content).unwrap();
    if let Some(length) = length(&ranges) {
        assert_eq!(length, content.len() as u64);
    }
    content
}

#[test]
fn a_fork_has_the_history_of_its_base() {
    let home = tempfile::tempdir().unwrap();
    let day = home.path().join("sessions/2026/11/15");
    let away = home.path().join("archived_sessions");
    std::fs::create_dir_all(&day).unwrap();
    std::fs::create_dir_all(&away).unwrap();
    let name = |id: &str| format!("rollout-2026-11-15T00-32-48-{id}.jsonl");
    let a = meta(A, None) + "a1\na2\n";
    // The base may be compressed, archived, or itself a fork.
    let packed = zstd::encode_all(a.as_bytes(), 3).unwrap();
    std::fs::write(day.join(name(A) + ".zst"), packed).unwrap();
    let (head, cut) = (meta(B, Some((A, a.len() - 3))), a.len() - 3);
    let b = head.clone() + "b1\nb2\n";
    std::fs::write(away.join(name(B)), &b).unwrap();
    let content = whole(&away.join(name(B)));
    assert_eq!(content, format!("{head}{}b1\nb2\n", &a[..cut]));
    let own = meta(C, Some((B, b.len() - 3)));
    std::fs::write(day.join(name(C)), own.clone() + "c1\n").unwrap();
    assert_eq!(whole(&day.join(name(C))), format!("{own}{head}{}b1\nc1\n", &a[..cut]));
}

#[test]
fn after_going_back_the_file_before_comes_first() {
    let folder = tempfile::tempdir().unwrap();
    let first = folder.path().join(format!("rollout-2026-11-15T00-34-05-{A}.jsonl"));
    let second = folder.path().join(format!("rollout-2026-11-15T00-34-10-{A}_{B}.jsonl"));
    let before = meta(A, None) + "a1\na2\n";
    let after = meta(A, Some((A, before.len() - 3))) + "b1\n";
    std::fs::write(&first, &before).unwrap();
    std::fs::write(&second, &after).unwrap();
    assert_eq!(ranges(&first), None);
    assert_eq!(whole(&second), before + &after);
}

#[test]
fn a_base_that_is_not_there_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(format!("rollout-2026-11-15T00-34-05-{B}.jsonl"));
    std::fs::write(&path, meta(B, Some((A, 10)))).unwrap();
    assert_eq!(ranges(&path), None);
    // Two files that name each other as base form a cycle.
    let other = folder.path().join(format!("rollout-2026-11-15T00-34-05-{A}.jsonl"));
    std::fs::write(&other, meta(A, Some((B, 10)))).unwrap();
    assert!(ranges(&path).is_some_and(|ranges| ranges.len() < 200));
}
