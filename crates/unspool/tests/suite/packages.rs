//! What packages install beside the program: man pages and completions, made from the command
//! definitions.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::harness::Machine;

const SHELLS: [&str; 5] = ["bash", "zsh", "fish", "powershell", "elvish"];

/// The commands in a help text. Only they have exactly two spaces before them: the lines of their
/// descriptions wrap, and options have a `-`.
fn commands(help: &str) -> BTreeSet<String> {
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    listed
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.strip_prefix("  "))
        .filter(|line| line.starts_with(|c: char| c.is_ascii_lowercase()))
        .filter_map(|line| line.split_whitespace().next().map(str::to_owned))
        .collect()
}

/// The names of all commands as `unspool --help` and the help of each command list them: `db`,
/// `db check`. Without `help`, which repeats the others.
fn all_commands(machine: &Machine) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for command in commands(&machine.ok("d", &["--help"])) {
        if command == "help" {
            continue;
        }
        let nested = commands(&machine.ok("d", &[&command, "--help"]));
        let nested = nested.iter().filter(|nested| *nested != "help");
        all.extend(nested.map(|nested| format!("{command} {nested}")));
        all.insert(command);
    }
    assert!(all.len() > 25 && all.contains("db check") && all.contains("serve"), "{all:?}");
    all
}

fn files(folder: &Path) -> BTreeSet<String> {
    let entries = folder.read_dir().unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn every_command_has_a_man_page() {
    let machine = Machine::new();
    let folder = machine.data("man/man1");
    machine.ok("d", &["man", "--out", folder.to_str().unwrap()]);
    let mut expected: BTreeSet<String> = all_commands(&machine)
        .iter()
        .map(|command| format!("unspool-{}.1", command.replace(' ', "-")))
        .collect();
    expected.insert("unspool.1".to_owned());
    assert_eq!(files(&folder), expected);
    // A page is the same on standard output, names itself, and has the options of its command.
    let page = fs::read_to_string(folder.join("unspool-db-rebuild.1")).unwrap();
    assert_eq!(machine.ok("d", &["man", "db", "rebuild"]), page);
    assert!(page.contains(".TH unspool-db-rebuild 1"), "{page}");
    assert!(page.contains("from\\-logs") && page.contains("unspool db rebuild"), "{page}");
    // Together the pages refer to every page but the first, and to no page that is not there.
    let mut referred = BTreeSet::from(["unspool.1".to_owned()]);
    for file in &expected {
        let page = fs::read_to_string(folder.join(file)).unwrap().replace("\\-", "-");
        let words = page.split(|c: char| c.is_whitespace());
        let pages = words.filter_map(|word| word.strip_suffix("(1)"));
        referred.extend(pages.map(|page| format!("{page}.1")));
    }
    assert_eq!(referred, expected);
}

#[test]
fn every_page_reads_as_roff() {
    if Command::new("man").arg("--version").output().is_err() {
        return;
    }
    let machine = Machine::new();
    let folder = machine.data("man1");
    machine.ok("d", &["man", "--out", folder.to_str().unwrap()]);
    for file in files(&folder) {
        let output = Command::new("man")
            .args(["--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z"])
            .arg(folder.join(&file))
            .env("MANROFFSEQ", "")
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && stderr.is_empty(), "{file}: {stderr}");
    }
}

#[test]
fn an_unknown_command_has_no_man_page() {
    let machine = Machine::new();
    let output = machine.run("d", &["man", "db", "chekc"], "");
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(stderr, "unspool: unspool db has no command `chekc`; see `unspool db --help`\n");
    // A folder that cannot be made is named.
    machine.write("file", b"");
    let folder = machine.home().join("file/man");
    let output = machine.run("d", &["man", "--out", folder.to_str().unwrap()], "");
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr.contains("cannot create the folder") && stderr.contains("file/man"), "{stderr}");
}

#[test]
fn every_command_stands_in_the_completions() {
    let machine = Machine::new();
    let all = all_commands(&machine);
    for shell in SHELLS {
        let script = machine.ok("d", &["completions", shell]);
        let words: BTreeSet<&str> =
            script.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').collect();
        for command in &all {
            for word in command.split(' ') {
                assert!(words.contains(word), "{shell}: no `{command}`");
            }
        }
    }
}

/// What bash offers after these words, of which the last is begun.
fn completed_by_bash(script: &Path, words: &[&str]) -> BTreeSet<String> {
    let output = Command::new("bash")
        .args(["--norc", "--noprofile", "-eu", "-c"])
        .arg(
            "source \"$1\"; shift
             COMP_WORDS=(\"$@\") COMP_CWORD=$(($# - 1)) COMP_LINE=\"$*\"
             COMP_POINT=${#COMP_LINE} COMPREPLY=()
             # The function that the script registered for the program.
             spec=$(complete -p unspool)
             [[ $spec =~ -F\\ ([^ ]+) ]]
             set +eu
             \"${BASH_REMATCH[1]}\" unspool \"${COMP_WORDS[COMP_CWORD]}\" \"${COMP_WORDS[COMP_CWORD-1]}\"
             printf '%s\\n' \"${COMPREPLY[@]}\"",
        )
        .arg("bash")
        .arg(script)
        .args(words)
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && stderr.is_empty(), "{stderr}");
    let offered = String::from_utf8(output.stdout).unwrap();
    offered.lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_and_options() {
    if Command::new("bash").arg("--version").output().is_err() {
        return;
    }
    let machine = Machine::new();
    let script = machine.data("unspool.bash");
    fs::write(&script, machine.ok("d", &["completions", "bash"])).unwrap();
    let offered = |words: &[&str]| completed_by_bash(&script, words);
    let expected = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    assert_eq!(offered(&["unspool", "compl"]), expected(&["completions"]));
    assert_eq!(offered(&["unspool", "db", "re"]), expected(&["rebuild"]));
    assert_eq!(offered(&["unspool", "completions", "po"]), expected(&["powershell"]));
    assert_eq!(offered(&["unspool", "serve", "--dem"]), expected(&["--demo"]));
    let top: BTreeSet<String> = commands(&machine.ok("d", &["--help"]));
    let offered: BTreeSet<String> = offered(&["unspool", ""]);
    assert!(top.is_subset(&offered), "{:?}", top.difference(&offered));
    // Commands that only Unspool itself starts are offered to nobody.
    assert!(!offered.contains("host"), "{offered:?}");
}
