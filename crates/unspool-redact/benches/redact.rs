//! Throughput of redaction: prose and code without secrets, and text with a secret on every
//! hundredth line.

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use unspool_redact::{Redactor, Rules};

const LINES: usize = 100_000;

fn main() {
    divan::main();
}

#[divan::bench]
fn prose(bencher: Bencher<'_, '_>) {
    measure(bencher, |_| {
        "The quick brown fox jumps over the lazy dog, and nobody minds.".to_owned()
    });
}

/// Names that match a rule, with values that are not secrets.
#[divan::bench]
fn code(bencher: Bencher<'_, '_>) {
    measure(bencher, |line| {
        format!("    let token{line} = self.tokens.get(key).map(|token| token.text(password));")
    });
}

#[divan::bench]
fn with_secrets(bencher: Bencher<'_, '_>) {
    measure(bencher, |line| match line % 100 {
        0 => format!("DB_PASSWORD=pw{}x{line}", line % 7),
        _ => "2026-11-15T23:59:59Z INFO shop::orders: order 4711 was paid".to_owned(),
    });
}

fn measure(bencher: Bencher<'_, '_>, line: impl Fn(usize) -> String) {
    let text: String = (0..LINES).map(|at| line(at) + "\n").collect();
    let rules = Rules::standard();
    bencher
        .counter(BytesCount::of_str(&text))
        .bench_local(|| Redactor::new(&rules).text(black_box(&text)).len());
}
