use super::*;

fn at(second: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(second)
}

fn list(program: &[&str], folder: Option<&str>, started: u64) -> ProcessList {
    ProcessList(vec![Process {
        program: program.iter().map(|&name| name.to_owned()).collect(),
        folder: folder.map(PathBuf::from),
        started: Some(at(started)),
    }])
}

fn finds(list: &ProcessList, project: Option<&str>) -> bool {
    let project = project.map(Path::new);
    list.has(&AgentProcess { program: "claude", project, started_before: at(100) })
}

#[test]
fn an_agent_is_found_by_program_folder_and_time() {
    let node = ["node", "node", "/usr/lib/node_modules/@anthropic-ai/claude-code/cli.js"];
    assert!(finds(&list(&["claude"], Some("/w"), 50), Some("/w")));
    assert!(finds(&list(&node, Some("/w/sub"), 50), Some("/w")));
    assert!(finds(&list(&["claude"], None, 50), Some("/w")), "its folder may not be read");
    assert!(finds(&list(&["claude"], Some("/w"), 50), None), "the project is not known");
    assert!(!finds(&list(&["codex"], Some("/w"), 50), Some("/w")));
    assert!(!finds(&list(&["claude"], Some("/other"), 50), Some("/w")));
    assert!(!finds(&list(&["claude"], Some("/w"), 200), Some("/w")), "a later run");
    assert!(!finds(&ProcessList::default(), Some("/w")));
}

#[test]
fn the_program_is_in_the_first_two_arguments() {
    let words: Vec<String> = program_of(b"node\0/opt/claude\0--resume\0").collect();
    assert_eq!(words, ["node", "/opt/claude"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_process_is_seen_until_it_ends() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let wanted = || AgentProcess {
        program: "sleep",
        project: Some(&folder),
        started_before: SystemTime::now(),
    };
    assert!(!ProcessList::read().unwrap().has(&wanted()));
    let mut child =
        std::process::Command::new("sleep").arg("60").current_dir(&folder).spawn().unwrap();
    assert!(ProcessList::read().unwrap().has(&wanted()));
    child.kill().unwrap();
    // Killed, and not waited for.
    let begun = std::time::Instant::now();
    while ProcessList::read().unwrap().has(&wanted()) {
        assert!(begun.elapsed() < Duration::from_secs(20));
        std::thread::sleep(Duration::from_millis(10));
    }
    child.wait().unwrap();
}
