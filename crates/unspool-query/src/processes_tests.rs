use std::process::{Command, Stdio};

use super::*;

fn at(second: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(second)
}

fn process(program: &[&str], folder: Option<&str>, started: u64) -> Process {
    Process {
        parent: None,
        program: program.iter().map(|&name| name.to_owned()).collect(),
        command: program.iter().map(|word| letters_and_digits(word)).collect(),
        is_daemon: false,
        folder: folder.map(PathBuf::from),
        started: at(started),
    }
}

fn list(processes: impl IntoIterator<Item = Process>) -> ProcessList {
    ProcessList((1..).zip(processes).collect())
}

fn finds(process: Process, project: Option<&str>) -> bool {
    let project = project.map(Path::new);
    let wanted = AgentProcess { program: "claude", project, started_before: at(100) };
    list([process]).has(&wanted, &[])
}

#[test]
fn an_agent_is_found_by_program_folder_and_time() {
    let node = ["node", "node", "/usr/lib/node_modules/@anthropic-ai/claude-code/cli.js"];
    assert!(finds(process(&["claude"], Some("/w"), 50), Some("/w")));
    assert!(finds(process(&node, Some("/w/sub"), 50), Some("/w")));
    assert!(finds(process(&["claude"], None, 50), Some("/w")), "its folder may not be read");
    assert!(finds(process(&["claude"], Some("/w"), 50), None), "the project is not known");
    assert!(!finds(process(&["codex"], Some("/w"), 50), Some("/w")));
    assert!(!finds(process(&["claude"], Some("/other"), 50), Some("/w")));
    assert!(!finds(process(&["claude"], Some("/w"), 200), Some("/w")), "a later run");
}

#[test]
fn a_program_is_a_component_of_a_path() {
    let is = |words: &[&str]| process(words, None, 0).is_program("codex");
    assert!(is(&["codex"]) && is(&["node", "/x/bin/codex.js"]) && is(&["/x/codex-linux-x64/a"]));
    assert!(!is(&["cat", "/home/a/.codex/notes.txt"]) && !is(&["codexample"]));
}

#[test]
fn a_process_of_another_session_does_not_count() {
    let wanted = AgentProcess { program: "claude", project: None, started_before: at(100) };
    let one = list([process(&["claude"], None, 50)]);
    assert!(one.has(&wanted, &[2]));
    assert!(!one.has(&wanted, &[1]));
    // Its launcher, and what it started of its own program.
    let below = |parent| Process { parent: Some(parent), ..process(&["claude"], None, 50) };
    let chain = list([process(&["claude"], None, 50), below(1), below(2)]);
    assert!(!chain.has(&wanted, &[2]));
    // One that it started with a shell is an agent of its own.
    let shell = Process { parent: Some(1), ..process(&["sh"], None, 50) };
    assert!(list([process(&["claude"], None, 50), shell, below(2)]).has(&wanted, &[1]));
}

#[test]
fn a_process_id_that_is_used_again_is_another_process() {
    let one = list([process(&["claude"], None, 50)]);
    assert!(one.is_alive(1, at(60)));
    assert!(!one.is_alive(1, at(40)), "it started after the other was seen");
    assert!(!one.is_alive(2, at(60)));
}

#[test]
fn a_command_runs_below_its_agent() {
    let shell = ["bash", "bash", "-c", "source snapshot && eval 'npm test -- --run' \\< /dev/null"];
    let below = |parent| Process { parent: Some(parent), ..process(&shell, None, 100) };
    let agent = || process(&["claude"], None, 50);
    let agent_of = |program| RunningAgent { program, project: Some(Path::new("/w")) };
    let runs =
        |list: &ProcessList, command, since| list.runs(&agent_of("claude"), command, at(since));
    let both = list([agent(), below(1)]);
    assert!(runs(&both, "npm test -- --run", 99));
    assert!(!runs(&both, "npm run build", 99));
    assert!(!runs(&both, "npm test -- --run", 200), "an earlier call of the same command");
    assert!(!runs(&both, "", 99));
    assert!(!runs(&list([agent(), below(3)]), "npm test -- --run", 99), "typed by a person");
    let other = || process(&["claude"], Some("/other"), 50);
    assert!(!runs(&list([other(), below(1)]), "npm test -- --run", 99), "another project");
    let has_child = |since| both.has_child_since(&agent_of("claude"), at(since));
    assert!(has_child(99) && !has_child(101));
}

/// A process below another agent of the same project says nothing about this one.
#[test]
fn children_count_only_if_one_agent_runs_in_the_project() {
    let agent = |folder| process(&["claude"], Some(folder), 50);
    let child = || Process { parent: Some(1), ..process(&["sh", "x"], None, 100) };
    let of = RunningAgent { program: "claude", project: Some(Path::new("/w")) };
    let has_child = |processes: Vec<Process>| list(processes).has_child_since(&of, at(99));
    assert!(has_child(vec![agent("/w"), child()]));
    assert!(!has_child(vec![agent("/w"), child(), agent("/w")]));
    assert!(has_child(vec![agent("/w"), child(), agent("/other")]));
    // What an agent starts of its own program is not another agent.
    let helper = Process { parent: Some(1), ..agent("/w") };
    assert!(has_child(vec![agent("/w"), child(), helper]));
    // A server that stays behind is none either.
    let daemon = Process { is_daemon: true, ..agent("/w") };
    assert!(has_child(vec![agent("/w"), child(), daemon]));
}

#[test]
fn real_processes_are_seen_until_they_end() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let seen = || {
        let wanted = AgentProcess {
            program: "sleep",
            project: Some(&folder),
            started_before: SystemTime::now(),
        };
        ProcessList::read().unwrap().has(&wanted, &[])
    };
    assert!(!seen());
    let mut child = Command::new("sleep").arg("60").current_dir(&folder).spawn().unwrap();
    let id = child.id();
    assert!(seen());
    let list = ProcessList::read().unwrap();
    assert!(list.is_alive(id, SystemTime::now()));
    child.kill().unwrap();
    // Killed, and not waited for.
    let begun = Instant::now();
    while seen() {
        assert!(begun.elapsed() < Duration::from_secs(20));
        std::thread::sleep(Duration::from_millis(10));
    }
    child.wait().unwrap();
}

#[cfg(unix)]
#[test]
fn a_real_command_is_found_in_the_shell_that_runs_it() {
    let since = SystemTime::now();
    let script = "sleep 61; true";
    let mut shell = Command::new("sh").args(["-c", script]).stdin(Stdio::null()).spawn().unwrap();
    let own = std::env::current_exe().unwrap();
    let own = own.file_name().unwrap().to_str().unwrap();
    // The list leaves this process out, so a copy of it stands for the agent.
    let read = || {
        let mut list = ProcessList::read().unwrap();
        list.0.insert(std::process::id(), process(&[own], None, 0));
        list
    };
    let agent = |program| RunningAgent { program, project: None };
    let begun = Instant::now();
    while !read().runs(&agent(own), script, since) {
        assert!(begun.elapsed() < Duration::from_secs(20));
        std::thread::sleep(Duration::from_millis(10));
    }
    let list = read();
    assert!(!list.runs(&agent(own), "sleep 62; true", since));
    assert!(!list.runs(&agent("another-agent"), script, since));
    shell.kill().unwrap();
    shell.wait().unwrap();
}
