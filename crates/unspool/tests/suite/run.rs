//! `unspool run`: the agent is a script, and its name is that of a real one.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::Duration;

use portable_pty::CommandBuilder;

use crate::harness::{Machine, until};
use crate::pty::Pty;

/// Writes a program of this name. Returns its path.
fn program(machine: &Machine, name: &str, script: &str) -> PathBuf {
    let path = format!("bin with spaces/{name}");
    machine.write(&path, format!("#!/bin/sh\n{script}\n").as_bytes());
    let path = machine.home().join(path);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn run(machine: &Machine, arguments: &[&OsStr], set: &[(&str, &str)]) -> Output {
    let mut command: Command = machine.command("my data", &["run"]);
    command.arg("--").args(arguments).envs(set.iter().copied());
    command.output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The lines of `env` with one of these names, by the program's own output.
fn variables(output: &Output) -> Vec<(String, String)> {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    let ours =
        |name: &str| ["OTEL", "CODEX", "COPILOT"].iter().any(|start| name.starts_with(start));
    let mut found: Vec<(String, String)> = pairs
        .filter(|(name, _)| ours(name))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    found.sort();
    found
}

#[test]
fn each_agent_gets_its_variables_and_a_folder_of_its_own() {
    let machine = Machine::new();
    let folders = || {
        let entries = fs::read_dir(machine.data("my data").join("traces")).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect::<Vec<_>>()
    };
    for (name, agent, expected) in [
        ("claude", "claude-code", vec![("OTEL_LOG_RAW_API_BODIES", "file:", "")]),
        ("codex", "codex", vec![("CODEX_ROLLOUT_TRACE_ROOT", "", "")]),
        (
            "copilot",
            "copilot",
            vec![
                ("COPILOT_OTEL_FILE_EXPORTER_PATH", "", "/spans.jsonl"),
                ("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true", "no folder"),
            ],
        ),
    ] {
        let path = program(&machine, name, "env");
        let output = run(&machine, &[path.as_os_str()], &[]);
        assert!(output.status.success(), "{}", stderr(&output));
        assert_eq!(stderr(&output), "", "{name}");
        let is_new = |path: &PathBuf| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            name.starts_with(&format!("{agent}-2"))
        };
        let folder = folders().into_iter().find(is_new).unwrap();
        assert_eq!(folder.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        let folder = folder.to_str().unwrap().to_owned();
        let expected: Vec<(String, String)> = expected
            .into_iter()
            .map(|(name, before, after)| match after {
                "no folder" => (name.to_owned(), before.to_owned()),
                after => (name.to_owned(), format!("{before}{folder}{after}")),
            })
            .collect();
        assert_eq!(variables(&output), expected);
    }
    assert_eq!(folders().len(), 3);
}

#[test]
fn what_the_user_has_set_stays() {
    let machine = Machine::new();
    let path = program(&machine, "codex", "env");
    let own = [("CODEX_ROLLOUT_TRACE_ROOT", "/elsewhere/traces")];
    let output = run(&machine, &[path.as_os_str()], &own);
    let expected: Vec<(String, String)> =
        own.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    assert_eq!(variables(&output), expected);
    assert!(stderr(&output).contains("is set to /elsewhere/traces"), "{}", stderr(&output));
    assert!(!machine.data("my data").join("traces").exists());
}

#[test]
fn arguments_and_exit_codes_are_the_agents() {
    let machine = Machine::new();
    let script = r#"for word in "$@"; do printf '[%s]' "$word"; done; cat; exit 7"#;
    let path = program(&machine, "codex", script);
    let odd = OsStr::from_bytes(b"n\xFFt");
    let arguments = ["exec", "two words", "--json", "--", "--wire", ""].map(OsStr::new);
    let arguments: Vec<&OsStr> =
        [path.as_os_str()].into_iter().chain(arguments).chain([odd]).collect();
    let output = run(&machine, &arguments, &[]);
    assert_eq!(output.stdout, b"[exec][two words][--json][--][--wire][][n\xFFt]");
    assert_eq!(output.status.code(), Some(7));

    // The shell makes 128 + 15 of it.
    let path = program(&machine, "claude", "kill -TERM $$; sleep 10");
    let output = run(&machine, &[path.as_os_str()], &[]);
    assert_eq!(output.status.signal(), Some(15));
    let quoted =
        format!("'{}' --data x run -- '{}'", env!("CARGO_BIN_EXE_unspool"), path.display());
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(format!("{quoted}; echo $?")).current_dir(machine.home());
    assert_eq!(shell.output().unwrap().stdout, b"143\n");
}

#[test]
fn an_unrecognised_program_runs_and_a_missing_one_is_named() {
    let machine = Machine::new();
    let path = program(&machine, "other-agent", "echo said; exit 3");
    let output = run(&machine, &[path.as_os_str()], &[]);
    assert_eq!((output.stdout.as_slice(), output.status.code()), (b"said\n".as_slice(), Some(3)));
    assert!(stderr(&output).contains("nothing more can be recorded of"), "{}", stderr(&output));
    assert!(stderr(&output).contains("claude, codex"), "{}", stderr(&output));

    let output = run(&machine, &[OsStr::new("no-such-agent")], &[]);
    assert_eq!((output.stdout.as_slice(), output.status.code()), (b"".as_slice(), Some(127)));
    assert!(stderr(&output).contains("no program no-such-agent"), "{}", stderr(&output));

    machine.write("plain", b"text");
    let output = run(&machine, &[machine.home().join("plain").as_os_str()], &[]);
    assert_eq!(output.status.code(), Some(126));

    let refused = machine.run("my data", &["run", "--wire", "--", "codex"], "");
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("needs a proxy"), "{}", stderr(&refused));
}

/// A folder that cannot be made is no reason not to start.
#[test]
fn an_agent_runs_without_a_folder() {
    let machine = Machine::new();
    machine.write("file", b"");
    let path = program(&machine, "codex", "env");
    let mut command = Command::new(env!("CARGO_BIN_EXE_unspool"));
    machine.set_environment(&mut command);
    command.arg("--data").arg(machine.home().join("file/data")).args(["run", "--"]).arg(path);
    let output = command.output().unwrap();
    assert!(output.status.success());
    assert_eq!(variables(&output), []);
    assert!(stderr(&output).contains("it runs without"), "{}", stderr(&output));
}

/// An interactive shell starts the agent, stops it with Ctrl-Z, continues it, and the agent alone
/// gets Ctrl-C.
#[test]
fn the_agent_has_the_terminal() {
    let machine = Machine::new();
    let script = "trap 'echo interrupted; exit 9' INT\n\
                  trap 'echo continued' CONT\n\
                  [ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo \"terminal $(ps -o tpgid= -p $$ | tr -d ' ') $$\"\n\
                  while :; do sleep 0.1; done";
    let path = program(&machine, "codex", script);
    let mut command = CommandBuilder::new("/bin/bash");
    command.args(["--norc", "--noprofile", "-i"]);
    command.env("PS1", "ready> ");
    command.env("HOME", machine.home());
    let mut pty = Pty::open(command, (120, 30));
    let wait_for = |pty: &mut Pty, text: &str| {
        until(text, || {
            let _ = pty.take(Duration::from_millis(50));
            let shown = pty.screen.screen().contents();
            if shown.contains(text) { Ok(()) } else { Err(shown) }
        });
    };
    wait_for(&mut pty, "ready>");
    pty.press(&format!(
        "'{}' --data '{}' run -- '{}'; echo code=$?\r",
        env!("CARGO_BIN_EXE_unspool"),
        machine.data("my data").display(),
        path.display()
    ));
    wait_for(&mut pty, "terminal ");
    // Its process group is the foreground group of the terminal, and it leads it.
    let shown = pty.screen.screen().contents();
    let line = shown.lines().find(|line| line.starts_with("terminal ")).unwrap();
    let ids: Vec<&str> = line.split(' ').skip(1).collect();
    assert_eq!(ids[0], ids[1], "{line}");
    pty.press("\x1a");
    wait_for(&mut pty, "Stopped");
    pty.press("fg; echo code=$?\r");
    wait_for(&mut pty, "continued");
    pty.press("\x03");
    wait_for(&mut pty, "interrupted");
    wait_for(&mut pty, "code=9");
}
