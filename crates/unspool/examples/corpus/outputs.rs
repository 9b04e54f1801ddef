//! Command outputs: compilers, tests, version control, logs, listings. Each is generated up to
//! about the requested size, and no two are equal.

use std::fmt::Write as _;

use crate::random::Random;
use crate::sources::{Place, Sources};
use crate::words::Spelling;

/// A command and what it printed.
#[derive(Default)]
pub struct Output {
    pub command: String,
    pub purpose: String,
    pub printed: String,
    /// Standard error, where compilers print.
    pub is_error_stream: bool,
    pub exit_code: u8,
}

pub struct Printer<'a> {
    pub sources: &'a Sources,
    pub random: &'a mut Random,
    pub place: Place<'a>,
    pub folder: &'a str,
}

impl Printer<'_> {
    pub fn run(&mut self, output: &mut Output, bytes: usize) {
        output.command.clear();
        output.purpose.clear();
        output.printed.clear();
        output.is_error_stream = false;
        output.exit_code = 0;
        match self.random.below(100) {
            0..16 => self.compile(output, bytes),
            16..33 => self.test(output, bytes),
            33..42 => self.difference(output, bytes),
            42..50 => self.history(output, bytes),
            50..62 => self.log(output, bytes),
            62..72 => self.search(output, bytes),
            72..80 => self.list(output, bytes),
            80..87 => self.answer(output, bytes),
            _ => self.file(output, bytes),
        }
    }

    fn name(&mut self, out: &mut String, spelling: Spelling) {
        self.sources.words.name(out, self.random.next(), spelling);
    }

    fn path(&mut self, out: &mut String) {
        // A third of the paths are the project's shared files.
        let bits = if self.random.chance(300) {
            self.place.naming.bits ^ self.random.below(60) as u64
        } else {
            self.random.next()
        };
        self.sources.words.path(out, bits);
    }

    fn code(&mut self, out: &mut String) {
        self.sources.line_of_code(out, self.random, self.place);
    }

    fn compile(&mut self, output: &mut Output, bytes: usize) {
        output.command.push_str("cargo build --workspace --all-targets 2>&1");
        output.purpose.push_str("Build everything");
        output.is_error_stream = self.random.chance(500);
        let out = &mut output.printed;
        while out.len() < bytes {
            if self.random.chance(450) {
                out.push_str("   Compiling ");
                self.name(out, Spelling::Snake);
                let (major, minor) = (self.random.below(9), self.random.below(40));
                let _ = writeln!(out, " v{major}.{minor}.{}", self.random.below(20));
                continue;
            }
            let is_error = self.random.chance(400);
            if is_error {
                output.exit_code = 101;
                let _ = writeln!(
                    out,
                    "\u{1b}[31merror\u{1b}[0m[E0{}]: mismatched types in call {}",
                    self.random.between(100, 799),
                    self.random.below(100_000)
                );
            } else {
                out.push_str("warning: unused variable: `");
                self.name(out, Spelling::Snake);
                out.push_str("`\n");
            }
            let line = self.random.between(1, 1800);
            out.push_str("   --> ");
            self.path(out);
            let _ = write!(out, ":{line}:{}\n    |\n{line:<4}| ", self.random.between(1, 90));
            let column = out.len();
            self.code(out);
            let column = (out.len() - column) / 3;
            let _ = write!(out, "\n    | {:column$}^^^^^^^^ expected `", "");
            self.name(out, Spelling::Camel);
            out.push_str("`, found `");
            self.name(out, Spelling::Camel);
            out.push_str("`\n    |\n    = note: ");
            let words = self.random.between(6, 22);
            self.sources.words.prose(out, self.random, words);
            out.push_str("\n\n");
        }
    }

    fn test(&mut self, output: &mut Output, bytes: usize) {
        output.command.push_str("cargo test --workspace -- --test-threads 4");
        output.purpose.push_str("Run the tests");
        let out = &mut output.printed;
        let mut passed = 0;
        let _ = writeln!(out, "\nrunning {} tests", self.random.between(3, 900));
        while out.len() < bytes {
            out.push_str("test ");
            self.name(out, Spelling::Snake);
            out.push_str("::");
            self.name(out, Spelling::Snake);
            if !self.random.chance(40) {
                out.push_str(" ... ok\n");
                passed += 1;
                continue;
            }
            output.exit_code = 101;
            out.push_str(" ... FAILED\n\n---- stdout ----\nthread '");
            self.name(out, Spelling::Snake);
            out.push_str("' panicked at ");
            self.path(out);
            let _ = writeln!(out, ":{}:5:", self.random.between(10, 900));
            out.push_str("assertion `left == right` failed\n  left: \"");
            self.code(out);
            out.push_str("\"\n right: \"");
            self.code(out);
            out.push_str("\"\n\n");
        }
        let _ = write!(
            out,
            "\ntest result: {}. {passed} passed; 0 ignored; finished in {}.{:02}s",
            if output.exit_code == 0 { "ok" } else { "FAILED" },
            self.random.below(90),
            self.random.below(100)
        );
    }

    fn difference(&mut self, output: &mut Output, bytes: usize) {
        output.command.push_str("git diff HEAD~");
        let _ = write!(output.command, "{}", self.random.between(1, 9));
        output.purpose.push_str("Show what changed");
        let out = &mut output.printed;
        while out.len() < bytes {
            let mut path = String::new();
            self.path(&mut path);
            let _ = write!(out, "diff --git a/{path} b/{path}\nindex ");
            self.random.hexadecimal(out, 9);
            out.push_str("..");
            self.random.hexadecimal(out, 9);
            let _ = writeln!(out, " 100644\n--- a/{path}\n+++ b/{path}");
            let first = self.random.between(1, 900);
            let _ = writeln!(out, "@@ -{first},12 +{first},14 @@");
            for _ in 0..self.random.between(6, 30) {
                out.push_str(self.random.pick(&["+    ", "-    ", "     ", "     "]));
                self.code(out);
                out.push('\n');
            }
        }
    }

    fn history(&mut self, output: &mut Output, bytes: usize) {
        output.command.push_str("git log --stat --no-decorate");
        output.purpose.push_str("Show recent commits");
        let out = &mut output.printed;
        while out.len() < bytes {
            out.push_str("commit ");
            self.random.hexadecimal(out, 40);
            let author = self.random.pick(&["Dev Example", "Mara Lindqvist", "Jo Okafor"]);
            let _ = write!(out, "\nAuthor: {author}\n\n    ");
            let words = self.random.between(4, 12);
            self.sources.words.prose(out, self.random, words);
            out.push('\n');
            for _ in 0..self.random.between(1, 8) {
                out.push(' ');
                self.path(out);
                let lines = self.random.between(1, 40);
                let _ = writeln!(out, " | {lines} {}", "+".repeat(lines / 3 + 1));
            }
            out.push('\n');
        }
    }

    fn log(&mut self, output: &mut Output, bytes: usize) {
        output.command.push_str("journalctl -u ");
        self.name(&mut output.command, Spelling::Snake);
        output.command.push_str(" --no-pager | tail -n 400");
        output.purpose.push_str("Read the service's log");
        let out = &mut output.printed;
        while out.len() < bytes {
            let level = self.random.pick(&["INFO", "INFO", "DEBUG", "WARN", "ERROR"]);
            let (hour, minute) = (self.random.below(24), self.random.below(60));
            let _ = write!(
                out,
                "2026-09-{:02}T{hour:02}:{minute:02}:{:02}.{:06}Z {level} ",
                self.random.between(1, 30),
                self.random.below(60),
                self.random.below(1_000_000)
            );
            self.name(out, Spelling::Snake);
            out.push_str("::");
            self.name(out, Spelling::Snake);
            out.push_str(": request_id=");
            self.random.hexadecimal(out, 16);
            let _ = write!(out, " took_ms={} ", self.random.below(4000));
            let words = self.random.between(3, 11);
            self.sources.words.prose(out, self.random, words);
            out.push('\n');
        }
    }

    fn search(&mut self, output: &mut Output, bytes: usize) {
        output.command.push_str("grep -rn --include='*.rs' ");
        self.name(&mut output.command, Spelling::Snake);
        output.command.push_str(" .");
        output.purpose.push_str("Find where it is used");
        self.matches(&mut output.printed, bytes);
    }

    /// Lines in the format of `grep -n`.
    pub fn matches(&mut self, out: &mut String, bytes: usize) {
        while out.len() < bytes {
            let mut path = String::new();
            self.path(&mut path);
            for _ in 0..self.random.between(1, 7) {
                let _ = write!(out, "{path}:{}:    ", self.random.between(1, 2400));
                self.code(out);
                out.push('\n');
            }
        }
        out.pop();
    }

    fn list(&mut self, output: &mut Output, bytes: usize) {
        output.command.push_str("find . -type f -newer Cargo.lock -exec sha256sum {} +");
        output.purpose.push_str("List files with their digests");
        let out = &mut output.printed;
        while out.len() < bytes {
            self.random.hexadecimal(out, 64);
            out.push_str("  ./");
            self.path(out);
            out.push('\n');
        }
    }

    fn answer(&mut self, output: &mut Output, bytes: usize) {
        output.command.push_str("curl -s http://localhost:8080/api/");
        self.name(&mut output.command, Spelling::Snake);
        output.command.push_str(" | jq .");
        output.purpose.push_str("Ask the running service");
        self.document(&mut output.printed, bytes);
    }

    /// A JSON document.
    pub fn document(&mut self, out: &mut String, bytes: usize) {
        out.push_str("[\n");
        while out.len() < bytes {
            out.push_str("  {\n    \"id\": \"");
            out.extend(self.random.uuid().iter().map(|&byte| char::from(byte)));
            for _ in 0..self.random.between(2, 6) {
                out.push_str("\",\n    \"");
                self.name(out, Spelling::Snake);
                out.push_str("\": \"");
                let words = self.random.between(1, 9);
                let from = out.len();
                self.sources.words.prose(out, self.random, words);
                if out[from..].contains(['\n', '"']) {
                    out.truncate(from);
                }
            }
            let _ = write!(
                out,
                "\",\n    \"score\": {}.{},\n    \"digest\": \"",
                self.random.below(100),
                self.random.below(1_000_000)
            );
            self.random.hexadecimal(out, 32);
            out.push_str("\"\n  },\n");
        }
        out.push_str("  null\n]");
    }

    fn file(&mut self, output: &mut Output, bytes: usize) {
        let first = self.random.between(1, 900);
        let _ = write!(output.command, "cd {} && sed -n '{first},{}p' ", self.folder, first + 200);
        self.path(&mut output.command);
        output.purpose.push_str("Read a part of the file");
        let file = Place { naming: self.place.naming, file: self.random.next() };
        self.sources.code(&mut output.printed, self.random, file, bytes);
    }
}
