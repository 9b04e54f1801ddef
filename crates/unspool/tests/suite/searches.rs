//! Searches that engineers type, through the program and a real archive: the first hit is the right
//! one, and the program says how it understood them.

use std::process::Output;

use serde_json::{Value, json};

use crate::harness::Machine;
use crate::test_server::Server;

/// What is typed, what it is understood as, and the text that the first hit must have.
const SEARCHES: &[(&str, &str, &str)] = &[
    // Commands with flags.
    ("rm -rf", "the text “rm -rf”", "then rm -rf build/ went wrong"),
    ("git -C", "the text “git -C”", "git -C /srv/app fetch"),
    ("ls -la", "the text “ls -la”", "ls -la /var/log"),
    ("--save-dev", "the text “--save-dev”", "npm install --save-dev vitest"),
    (
        "npm install --save-dev",
        "the text “npm install --save-dev”",
        "npm install --save-dev vitest",
    ),
    ("tar -xzvf", "the text “tar -xzvf”", "tar -xzvf backup.tgz"),
    ("find . -name", "the text “find . -name”", "find . -name '*.rs' -delete"),
    ("gcc -Wall -O2", "the text “gcc -Wall -O2”", "gcc -Wall -O2 main.c"),
    ("kubectl logs -f", "the text “kubectl logs -f”", "kubectl logs -f deploy/api"),
    ("docker run -it --rm", "the text “docker run -it --rm”", "docker run -it --rm alpine"),
    ("ps aux | grep -v", "the text “ps aux | grep -v”", "ps aux | grep -v root"),
    ("set -euo pipefail", "the text “set -euo pipefail”", "set -euo pipefail in the script"),
    ("kill -9", "the text “kill -9”", "kill -9 4711 helped"),
    ("java -jar", "the text “java -jar”", "java -jar app.jar"),
    ("clang -std=c++20", "the text “clang -std=c++20”", "clang -std=c++20 x.cc"),
    // Paths.
    ("src/cache.rs", "the text “src/cache.rs”", "edited src/cache.rs today"),
    ("/etc/hosts", "the text “/etc/hosts”", "changed /etc/hosts for it"),
    ("@types/node", "the text “@types/node”", "pinned @types/node at 22"),
    ("../lib", "the text “../lib”", "imported from ../lib again"),
    (".env.local", "the text “.env.local”", "copied .env.local over"),
    // Symbols and code.
    ("a->b", "the text “a->b”", "dereferences a->b twice"),
    ("foo::bar", "the text “foo::bar”", "calls foo::bar directly"),
    ("C++", "the text “C++”", "rewritten in C++ last year"),
    ("#123", "the text “#123”", "closes #123 for good"),
    ("fn main()", "the word “fn” and the text “main()”", "starts with fn main() here"),
    ("snake_case_name", "the text “snake_case_name”", "renamed snake_case_name now"),
    ("Vec<Option<u8>>", "the text “Vec<Option<u8>>”", "returns Vec<Option<u8>> now"),
    ("x != null", "the words “x” and “null” and the text “!=”", "guards with x != null there"),
    // Error codes.
    ("E0502", "the word “E0502”", "error[E0502]: cannot lend it"),
    ("error[E0502]:", "the text “error[E0502]:”", "error[E0502]: cannot lend it"),
    ("ECONNREFUSED", "the word “ECONNREFUSED”", "connect ECONNREFUSED 127.0.0.1:5432"),
    ("127.0.0.1:5432", "the text “127.0.0.1:5432”", "connect ECONNREFUSED 127.0.0.1:5432"),
    ("exit code 137", "the words “exit”, “code” and “137”", "ended with exit code 137"),
    // Phrases, exclusions, SQL.
    ("\"cannot lend\"", "the text “cannot lend”", "error[E0502]: cannot lend it"),
    ("walrus -tusk*", "the word “walrus”, without words that begin with “tusk”", "a walrus swims"),
    ("walrus -tusks", "the word “walrus”, without the word “tusks”", "a walrus swims"),
    ("walrus NOT tusks", "the word “walrus”, without the word “tusks”", "a walrus swims"),
    ("id INTEGER NOT NULL", "the text “id INTEGER NOT NULL”", "id INTEGER NOT NULL,"),
    ("pelic*", "words that begin with “pelic”", "three pelicans"),
    // Other scripts.
    ("缓存失效", "the text “缓存失效”", "修复缓存失效的问题"),
    ("キャッシュ", "the text “キャッシュ”", "このキャッシュは古い"),
    ("größe", "the word “größe”", "die Größe stimmt nicht"),
    ("🎉", "the text “🎉”", "all tests pass 🎉"),
];

/// Texts with the same words, but not what was typed. They are newer, and the words are frequent.
const DECOYS: &[&str] = &[
    "rm rm rf rf -rfv rm; farm -rf",
    "git git c c: git -config",
    "ls ls la: urls -latest -la",
    "save save dev dev --save --dev npm npm install install",
    "tar xzvf, find name ., gcc wall o2, java jar, clang std c 20",
    "kubectl f logs, docker it rm run, ps grep v aux, set pipefail euo, kill 9",
    "src cache rs, etc hosts, types node, lib, env local, mysrc/cache.rs.bak",
    "a b a-b, foo bar foo:bar foo::bars, c c c plus, 123 #1234 123, main fn",
    "snake case name, vec option u8, x null, e0502x error: [E05021]",
    "127 0 0 1 5432, exit 137 later",
    "a walrus has tusks",
    "NULL INTEGER id NOT",
    "cannot always lend",
    "缓存 失效, キャ ッシュ",
];

struct Archive(Machine);

impl Archive {
    /// One session per text.
    fn new() -> Archive {
        let archive = Archive(Machine::new());
        let mut texts: Vec<&str> = SEARCHES.iter().map(|(_, _, text)| *text).collect();
        texts.sort_unstable();
        texts.dedup();
        texts.extend(DECOYS);
        let rows: String = texts
            .iter()
            .enumerate()
            .flat_map(|(at, text)| {
                let (session, at) = (format!("s{at}"), format!("2026-03-01T10:{at:02}:00Z"));
                let row = |role: &str, text: &str| {
                    let row = json!({ "session": session, "role": role, "text": text, "at": at });
                    format!("{row}\n")
                };
                [row("user", "Go on."), row("assistant", text)]
            })
            .collect();
        let output = archive.run(&["import", "-"], &rows);
        assert!(output.status.success(), "{output:?}");
        archive
    }

    fn run(&self, arguments: &[&str], input: &str) -> Output {
        self.0.run("data", arguments, input)
    }

    /// The snippets of the hits, and what was said above them.
    fn search(&self, arguments: &[&str]) -> (Vec<String>, String) {
        let output = self.run(&[&["search", "--json"], arguments].concat(), "");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{arguments:?}: {said}");
        let hits: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
        (hits.iter().map(|hit| hit["snippet"].as_str().unwrap().to_owned()).collect(), said)
    }
}

#[test]
fn searches_find_what_they_say_and_say_what_they_find() {
    let archive = Archive::new();
    assert!(SEARCHES.len() >= 40);
    let mut wrong = Vec::new();
    for (typed, understood, text) in SEARCHES {
        let (hits, said) = archive.search(&["--", typed]);
        if hits.first().map(String::as_str) != Some(*text) {
            wrong.push(format!("{typed}: found {hits:?}"));
        }
        if !said.starts_with(&format!("unspool: Searched for {understood}.\n")) {
            wrong.push(format!("{typed}: said {said}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_other_reading_is_a_command_that_can_be_typed() {
    let archive = Archive::new();
    let (hits, said) = archive.search(&["walrus -tusks"]);
    assert_eq!(hits, ["a walrus swims"]);
    let other = r#"Search for the text “walrus -tusks”: unspool search '"walrus -tusks"'"#;
    assert!(said.contains(other), "{said}");
    let (hits, said) = archive.search(&["rm -rf"]);
    assert_eq!(hits, ["then rm -rf build/ went wrong"]);
    assert!(said.contains("unspool search 'rm NOT rf'"), "{said}");
    let (hits, _) = archive.search(&["docker NOT rm"]);
    assert!(hits.is_empty(), "{hits:?}");
    // Nothing has it as it is written, but a part has all its pieces.
    let (hits, said) = archive.search(&["helped kill -9"]);
    assert_eq!(hits, ["kill -9 4711 helped"]);
    assert!(said.contains("Nothing contains the text “helped kill -9”. Searched for"), "{said}");
}

#[test]
fn no_hit_is_one_sentence_with_a_way_on() {
    let archive = Archive::new();
    let fails = |arguments: &[&str]| {
        let output = archive.run(&[&["search"], arguments].concat(), "");
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(output.stdout.is_empty());
        String::from_utf8(output.stderr).unwrap()
    };
    assert_eq!(
        fails(&["walrus giraffe"]),
        "unspool: Nothing found for the words “walrus” and “giraffe”. \
         Search for the text “walrus giraffe”: unspool search '\"walrus giraffe\"'\n"
    );
    assert_eq!(
        fails(&["giraffe"]),
        "unspool: Nothing found for the word “giraffe”. Try another word or a part of it.\n"
    );
    assert_eq!(
        fails(&["walrus", "--since", "yesterday"]),
        "unspool: Nothing found for the word “walrus” with these filters. Try it without the filters.\n"
    );
    let error = fails(&["walrus", "--since", "soonish"]);
    assert!(error.contains("“soonish”") && error.contains("yesterday"), "{error}");
}

#[test]
fn the_page_says_what_was_understood_and_links_to_the_other_reading() {
    let archive = Archive::new();
    let server = Server::begin(&archive.0, "data", &[]);
    let page = |path: &str, status: u16| {
        let response = server.request("GET", path, &[("Accept", "text/html")]);
        assert_eq!(response.status, status, "{path}");
        String::from_utf8(response.body).unwrap()
    };
    let hits = page("/?q=rm+-rf", 200);
    assert!(hits.contains("1 hit in 1 session"), "{hits}");
    assert!(hits.contains("Searched for the text “rm -rf”."), "{hits}");
    assert!(hits.contains("href=\"/?q=rm%20NOT%20rf\""), "{hits}");
    let none = page("/?q=walrus&since=yesterday", 200);
    assert!(none.contains("Nothing found for the word “walrus” with these filters."), "{none}");
    assert!(none.contains("href=\"/?q=walrus\"") && !none.contains("0 hits"), "{none}");
    for path in ["/?q=walrus&since=sometime", "/?until=sometime", "/stats?since=sometime"] {
        let error = page(path, 400);
        assert!(error.contains("“sometime”") && error.contains("3 days ago"), "{error}");
    }
    for path in ["/s/nosuchsession", "/nosuchpage"] {
        let missing = page(path, 404);
        assert!(missing.contains("there is no") && !missing.contains("/api"), "{missing}");
    }
}

/// An error is what it is everywhere else: an error part or a failed call.
#[test]
fn errors_include_commands_that_failed() {
    let machine = Machine::new();
    machine.put("claude-code/discovery-loop/log.jsonl", ".claude/projects/-p/log.jsonl");
    machine.ok("data", &["sync"]);
    let hits = machine.json("data", &["search", "unit mismatch", "--kind", "error"]);
    let states: Vec<&Value> = hits.as_array().unwrap().iter().map(|hit| &hit["state"]).collect();
    assert!(!states.is_empty() && states.iter().all(|state| **state == "failed"), "{hits}");
}

/// "What failed last week?" needs no word.
#[test]
fn filters_without_words_find_the_newest() {
    let machine = Machine::new();
    machine.put("claude-code/discovery-loop/log.jsonl", ".claude/projects/-p/log.jsonl");
    machine.ok("data", &["sync"]);
    let found = |arguments: &[&str]| {
        let output = machine.run("data", arguments, "");
        let hits: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        (hits, String::from_utf8(output.stderr).unwrap())
    };
    let (hits, said) = found(&["search", "--state", "failed", "--json"]);
    let tools: Vec<&str> =
        hits.as_array().unwrap().iter().map(|hit| hit["tool"].as_str().unwrap()).collect();
    assert_eq!(tools, ["Edit", "Bash", "Read"], "newest first: {hits}");
    assert!(said.contains("All failed calls, newest first."), "{said}");
    let (hits, said) = found(&["search", "--state", "failed", "--tool", "Bash", "--json"]);
    assert_eq!(hits.as_array().unwrap().len(), 1, "{hits}");
    assert!(hits[0]["snippet"].as_str().unwrap().contains("python3"), "{hits}");
    assert!(said.contains("All failed calls of Bash, newest first."), "{said}");
    let (_, said) = found(&["search", "--state", "failed", "--since", "2999-01-01"]);
    assert!(said.contains("No failed calls found."), "{said}");
    let (_, said) = found(&["search"]);
    assert!(said.contains("required"), "{said}");
    let server = Server::begin(&machine, "data", &[]);
    let page = String::from_utf8(server.get("/?kind=error").body).unwrap();
    assert!(page.contains("All errors, newest first."), "{page}");
}

/// A hit in the input of a call shows the words, not the JSON that they are in.
#[test]
fn a_hit_in_the_input_of_a_call_shows_words() {
    let machine = Machine::new();
    machine.put("claude-code/discovery-loop/log.jsonl", ".claude/projects/-p/log.jsonl");
    machine.ok("data", &["sync"]);
    let snippets = |words: &str, tool: &str| -> Vec<String> {
        let hits = machine.json("data", &["search", words, "--tool", tool]);
        let hits = hits.as_array().unwrap().iter();
        hits.map(|hit| hit["snippet"].as_str().unwrap().to_owned()).collect()
    };
    // The command is in the head line of the card.
    assert_eq!(snippets("git diff --stat", "Bash"), ["git diff --stat"]);
    // The text of an edit is not.
    let edits = snippets("ttlSeconds", "Edit");
    assert!(!edits.is_empty());
    assert!(
        edits.iter().all(|edit| !edit.contains("new_string") && !edit.contains("{\"")),
        "{edits:?}"
    );
}
