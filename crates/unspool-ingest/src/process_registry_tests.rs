use std::process::{Command, Stdio};

use super::*;

fn sleep() -> std::process::Child {
    Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().unwrap()
}

fn source(path: &Path, files: ProcessFiles) -> ProcessSource {
    ProcessSource { program: Some(FAKE_AGENT), path: path.to_owned(), files }
}

/// A program that nothing else on this machine runs.
const FAKE_AGENT: &str = "unspool-fake-agent";

#[cfg(target_os = "linux")]
fn fake_agent(folder: &Path) -> std::process::Child {
    let program = folder.join(FAKE_AGENT);
    std::os::unix::fs::symlink("/bin/sleep", &program).unwrap();
    Command::new(program).arg("60").stdin(Stdio::null()).spawn().unwrap()
}

#[test]
fn a_session_is_dead_when_its_processes_are() {
    let folder = tempfile::tempdir().unwrap();
    let (mut one, mut two) = (sleep(), sleep());
    let register = |pid: u32, session: &str| {
        let text = format!(r#"{{"pid":{pid},"sessionId":"{session}","status":"busy"}}"#);
        fs::write(folder.path().join(format!("{pid}.json")), text).unwrap();
    };
    register(one.id(), "a");
    register(two.id(), "b");
    fs::write(folder.path().join("odd.json"), "{").unwrap();
    let folders = [folder.path().to_owned(), folder.path().join("none")];
    let sources = folders.map(|folder| source(&folder, ProcessFiles::Entries));
    let of = |session: &str| {
        let list = ProcessList::read().unwrap();
        ProcessRegistry::read(&sources, &list).process_of(session, &list)
    };
    assert_eq!((of("a"), of("b"), of("c")), (Registered::Alive, Registered::Alive, Registered::No));
    let idle = format!(r#"{{"pid":{},"sessionId":"i","status":"idle"}}"#, two.id());
    fs::write(folder.path().join("idle.json"), idle).unwrap();
    assert!(matches!(of("i"), Registered::Idle(_)));
    fs::remove_file(folder.path().join("idle.json")).unwrap();
    let list = ProcessList::read().unwrap();
    let registry = ProcessRegistry::read(&sources, &list);
    assert_eq!(registry.others("a", &list), [two.id()]);
    one.kill().unwrap();
    one.wait().unwrap();
    assert_eq!((of("a"), of("b")), (Registered::Dead, Registered::Alive));
    two.kill().unwrap();
    two.wait().unwrap();
}

/// Copilot names the process in a lock that stays behind when the process is killed.
#[test]
fn the_lock_of_a_session_names_its_process() {
    let folder = tempfile::tempdir().unwrap();
    let (mut one, mut two) = (sleep(), sleep());
    let lock = |session: &str, pid: u32| {
        fs::create_dir_all(folder.path().join(session)).unwrap();
        let path = folder.path().join(session).join(format!("inuse.{pid}.lock"));
        fs::write(path, pid.to_string()).unwrap();
    };
    lock("a", one.id());
    lock("b", two.id());
    fs::write(folder.path().join("b/events.jsonl"), "").unwrap();
    let sources = [source(folder.path(), ProcessFiles::SessionLocks)];
    let of = |session: &str| {
        let list = ProcessList::read().unwrap();
        ProcessRegistry::read(&sources, &list).process_of(session, &list)
    };
    assert_eq!((of("a"), of("b"), of("c")), (Registered::Alive, Registered::Alive, Registered::No));
    one.kill().unwrap();
    one.wait().unwrap();
    assert_eq!((of("a"), of("b")), (Registered::Dead, Registered::Alive));
    two.kill().unwrap();
    two.wait().unwrap();
}

/// Qwen Code leaves the file behind when it ends.
#[cfg(target_os = "linux")]
#[test]
fn the_process_in_a_runtime_file_runs_the_chat() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = fake_agent(folder.path());
    let chats = folder.path().join("projects/-w/chats");
    fs::create_dir_all(&chats).unwrap();
    let text =
        format!(r#"{{"schema_version":1,"pid":{},"session_id":"a","work_dir":"/w"}}"#, child.id());
    fs::write(chats.join("a.runtime.json"), text).unwrap();
    fs::write(chats.join("b.jsonl"), "{}").unwrap();
    let sources = [source(&folder.path().join("projects"), ProcessFiles::ChatRuntimes)];
    let of = |session: &str| {
        let list = ProcessList::read().unwrap();
        ProcessRegistry::read(&sources, &list).process_of(session, &list)
    };
    assert_eq!((of("a"), of("b")), (Registered::Alive, Registered::No));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(of("a"), Registered::Dead);
}

/// OpenCode logs no process id: a run is of the process that started just before it.
#[cfg(target_os = "linux")]
#[test]
fn a_run_is_of_the_process_that_started_before_it() {
    use jiff::{SignedDuration, Timestamp};

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("opencode.log");
    let mut child = fake_agent(folder.path());
    let now = Timestamp::now();
    let run = |id: &str, at: Timestamp, session: &str| {
        format!(
            "timestamp={at} level=INFO run={id} message=\"creating instance\" directory=/w\n\
             timestamp={at} level=INFO run={id} message=loop session.id={session} step=0\n"
        )
    };
    let of = |text: &str, session: &str| {
        fs::write(&path, text).unwrap();
        let list = ProcessList::read().unwrap();
        let registry = ProcessRegistry::read(&[source(&path, ProcessFiles::RunLog)], &list);
        (registry.process_of(session, &list), registry.others("another", &list))
    };
    let earlier = run("1", now - SignedDuration::from_mins(5), "ses_a");
    let later = run("2", now + SignedDuration::from_secs(1), "ses_b");
    let both = format!("{earlier}{later}");
    assert_eq!(of(&both, "ses_a").0, Registered::Dead);
    let (own, others) = of(&both, "ses_b");
    assert_eq!(own, Registered::Alive);
    assert!(others.contains(&child.id()), "{others:?}");
    assert_eq!(of(&both, "ses_c").0, Registered::No);
    // The same session in a second run.
    let resumed = format!("{both}{}", later.replace("ses_b", "ses_a"));
    assert_eq!(of(&resumed, "ses_a").0, Registered::Alive);
    // Two runs that start at once cannot be told apart.
    let close = format!("{later}{}", run("3", now + SignedDuration::from_secs(4), "ses_d"));
    assert_eq!((of(&close, "ses_b").0, of(&close, "ses_d").0), (Registered::No, Registered::No));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(of(&both, "ses_b").0, Registered::Dead);
}
