use std::fs::File;

use super::*;

fn set_age(path: &Path, age: Duration) {
    File::open(path).unwrap().set_modified(SystemTime::now() - age).unwrap();
}

#[test]
fn folders_of_old_runs_are_removed_unless_something_in_them_is_new() {
    let data = tempfile::tempdir().unwrap();
    let folder = DataFolder::new(data.path().join("a b"));
    let create = |agent: &str| {
        let run = folder.create_trace(agent, jiff::Timestamp::UNIX_EPOCH).unwrap();
        fs::create_dir(run.join("inner")).unwrap();
        fs::write(run.join("inner/trace.jsonl"), "{}\n").unwrap();
        run
    };
    let (old, open, new) = (create("codex"), create("codex"), create("copilot"));
    let month = Duration::from_secs(30 * 24 * 60 * 60);
    for path in [&old, &open] {
        set_age(&path.join("inner/trace.jsonl"), month);
        set_age(&path.join("inner"), month);
        set_age(path, month);
    }
    // An agent appends to a file: its folders stay as they are.
    set_age(&open.join("inner/trace.jsonl"), Duration::from_secs(60));
    sweep(&folder);
    assert!(!old.exists());
    assert!(open.join("inner/trace.jsonl").exists());
    assert!(new.join("inner/trace.jsonl").exists());
}

#[cfg(unix)]
#[test]
fn nobody_else_reads_the_folder_of_a_run() {
    use std::os::unix::fs::PermissionsExt;

    let data = tempfile::tempdir().unwrap();
    let folder = DataFolder::new(data.path().join("data"));
    let run = folder.create_trace("codex", jiff::Timestamp::UNIX_EPOCH).unwrap();
    assert!(run.is_absolute());
    for path in [folder.traces(), run] {
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o700, "{path:?}");
    }
}
