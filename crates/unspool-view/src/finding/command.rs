//! What a shell command is, as far as its words say: its program, whether it only reads, and how
//! long it sleeps. The words are split without a shell's grammar: an unusual command is one that may
//! do anything.

use std::time::Duration;

/// The commands of one call.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Command {
    /// The first program that does something, with its subcommand: `cargo test`.
    pub program: String,
    /// It prints files and does nothing else.
    pub reads_files: bool,
    /// It changes nothing on disk, as far as its programs are known.
    pub only_reads: bool,
    /// It waits for so long before it ends, or between two looks.
    pub sleeps: Option<Duration>,
}

/// Programs whose first argument says what they do.
const WITH_SUBCOMMAND: &[&str] = &[
    "apt",
    "apt-get",
    "brew",
    "bun",
    "cargo",
    "docker",
    "gh",
    "git",
    "go",
    "gradle",
    "helm",
    "kubectl",
    "make",
    "mvn",
    "npm",
    "npx",
    "pip",
    "pip3",
    "pnpm",
    "poetry",
    "python3 -m",
    "rustup",
    "systemctl",
    "terraform",
    "uv",
    "yarn",
];
/// Programs that print files.
const READERS: &[&str] = &["bat", "cat", "head", "less", "nl", "tail"];
/// Programs that change nothing.
const HARMLESS: &[&str] = &[
    "[", "awk", "basename", "cd", "cut", "date", "df", "diff", "dirname", "du", "echo", "env",
    "exit", "file", "grep", "hostname", "id", "jq", "ls", "printf", "ps", "pwd", "readlink",
    "realpath", "rg", "sleep", "sort", "stat", "test", "tr", "tree", "true", "type", "uname",
    "uniq", "wc", "which", "whoami",
];
const HARMLESS_SUBCOMMANDS: &[&str] = &[
    "git blame",
    "git branch",
    "git diff",
    "git log",
    "git ls-files",
    "git rev-parse",
    "git show",
    "git status",
];
/// Words before a program.
const PREFIXES: &[&str] = &[
    "command", "do", "else", "exec", "if", "nohup", "sudo", "then", "time", "until", "while", "!",
    "{", "(",
];

impl Command {
    pub fn of(text: &str) -> Command {
        let mut command = Command { reads_files: false, only_reads: true, ..Command::default() };
        let mut sleeps = 0.0;
        for part in segments(text) {
            let words = words(part);
            let Some((program, arguments)) = words.split_first() else { continue };
            let program = program.rsplit('/').next().unwrap_or(program);
            if program == "sleep" {
                sleeps += arguments.first().and_then(|word| seconds(word)).unwrap_or(0.0);
            }
            let name = match arguments.first() {
                Some(first) if WITH_SUBCOMMAND.contains(&program) && is_word(first) => {
                    format!("{program} {first}")
                }
                Some(_) | None => program.to_owned(),
            };
            let prints = READERS.contains(&program)
                || program == "sed" && arguments.first().is_some_and(|first| *first == "-n");
            let finds = program == "find"
                && !arguments.iter().any(|word| word.starts_with("-exec") || *word == "-delete");
            let harmless = prints
                || finds
                || HARMLESS.contains(&program)
                || HARMLESS_SUBCOMMANDS.contains(&name.as_str());
            command.reads_files |= prints;
            command.only_reads &= harmless;
            let says_little = matches!(
                program,
                "cd" | "sleep" | "echo" | "exit" | "export" | "set" | "for" | "done" | "fi"
            );
            if command.program.is_empty() || !says_little && is_placeholder(&command.program) {
                command.program = name;
            }
        }
        command.only_reads &= !writes_file(text);
        command.reads_files &= command.only_reads;
        // A shell's `sleep infinity` has no length.
        command.sleeps = Duration::try_from_secs_f64(sleeps).ok().filter(|it| !it.is_zero());
        command
    }
}

/// A program that another one in the same command says more than.
fn is_placeholder(program: &str) -> bool {
    matches!(program, "cd" | "sleep" | "echo" | "exit" | "export" | "set" | "for" | "done" | "fi")
}

fn segments(text: &str) -> impl Iterator<Item = &str> {
    let mut before = ' ';
    // `2>&1` and `&>file` are redirections.
    let mut chars = text.char_indices().peekable();
    let mut cuts = Vec::new();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map(|(_, c)| *c);
        let ends = match c {
            '\n' | ';' | '|' => true,
            '&' => before != '>' && next != Some('>'),
            _ => false,
        };
        if ends {
            cuts.push(at);
        }
        before = c;
    }
    let starts = std::iter::once(0).chain(cuts.clone().into_iter().map(|at| at + 1));
    let ends = cuts.into_iter().chain(std::iter::once(text.len()));
    starts.zip(ends).filter_map(|(start, end)| text.get(start..end))
}

/// The words from the program on.
fn words(segment: &str) -> Vec<&str> {
    let words = segment.split_whitespace().map(|word| word.trim_matches(['"', '\'']));
    let is_before = |word: &&str| PREFIXES.contains(word) || is_assignment(word);
    let mut words: Vec<&str> =
        words.skip_while(is_before).filter(|word| !word.is_empty()).collect();
    if words.first() == Some(&"timeout") {
        words.drain(..words.len().min(2));
    }
    words
}

fn is_assignment(word: &str) -> bool {
    let is_name = |name: &str| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    word.split_once('=').is_some_and(|(name, _)| is_name(name))
}

fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
}

/// True if output goes into a file. `2>&1` and `>/dev/null` do not.
fn writes_file(text: &str) -> bool {
    let mut rest = text;
    while let Some(at) = rest.find('>') {
        let after = rest[at + 1..].trim_start_matches('>');
        let target = after.trim_start();
        if !target.starts_with("&") && !target.starts_with("/dev/null") {
            return true;
        }
        rest = after;
    }
    false
}

/// `30`, `0.5`, `2m`.
fn seconds(word: &str) -> Option<f64> {
    let (number, unit) = match word.char_indices().next_back()? {
        (at, 's') => (&word[..at], 1.0),
        (at, 'm') => (&word[..at], 60.0),
        (at, 'h') => (&word[..at], 3600.0),
        _ => (word, 1.0),
    };
    let number: f64 = number.parse().ok()?;
    (number.is_finite() && number >= 0.0).then_some(number * unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> (String, bool, bool, u64) {
        let Command { program, reads_files, only_reads, sleeps } = Command::of(text);
        (program, reads_files, only_reads, sleeps.map_or(0, |sleeps| sleeps.as_secs()))
    }

    #[test]
    fn a_command_is_named_by_what_it_does() {
        let named = |text: &str| of(text).0;
        assert_eq!(named("cd /w && cargo test -p a"), "cargo test");
        assert_eq!(named("FOO=1 sudo /usr/bin/make all"), "make all");
        assert_eq!(named("timeout 30 npm run build 2>&1 | tail -5"), "npm run");
        assert_eq!(named("sleep 10; curl localhost"), "curl");
        assert_eq!(named("git -C /w status"), "git");
        assert_eq!(named(""), "");
    }

    #[test]
    fn a_command_that_may_write_does_not_only_read() {
        let reads = |text: &str| (of(text).1, of(text).2);
        assert_eq!(reads("cat a.txt | head -3"), (true, true));
        assert_eq!(reads("sed -n 1,20p a.txt"), (true, true));
        assert_eq!(reads("sed -i s/a/b/ a.txt"), (false, false));
        assert_eq!(reads("cat a.txt > b.txt"), (false, false));
        assert_eq!(reads("ls -la 2>&1 >/dev/null"), (false, true));
        assert_eq!(reads("git status && git push"), (false, false));
        assert_eq!(reads("find . -name '*.tmp' -delete"), (false, false));
    }

    #[test]
    fn sleeping_is_counted() {
        let sleeps = |text: &str| of(text).3;
        assert_eq!(sleeps("sleep 30 && tail log"), 30);
        assert_eq!(sleeps("sleep 2m; sleep 1"), 121);
        assert_eq!(sleeps("while ! curl localhost; do sleep 5; done"), 5);
        assert_eq!(sleeps("sleep infinity"), 0);
        assert_eq!(sleeps("sleep -1"), 0);
        assert_eq!(sleeps("echo sleep 5"), 0);
    }
}
