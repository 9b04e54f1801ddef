//! Compares the own full-text index with SQLite's FTS5: the same texts, the same queries, one core,
//! one run. Prints one table, in Markdown, and what the answers of a variant lack.
//!
//! Included for all variants:
//! - The index is in a new archive file, with the page size, journal and cache of the product.
//! - Build: batches of 16 MB, each a transaction, as in an import; then writing the journal into
//!   the file. The texts are in memory before. FTS5 also runs `optimize`; compare it with the own
//!   index merged into one segment. An import does not do that merge.
//! - Size: the pages of the index. The default table of FTS5 also stores the texts, uncompressed.
//! - Lookup: parse the query, find the first 20 hits and read their texts, for the snippets. Both
//!   return the best hits of a rare query and the newest of a common one. The own index decides
//!   which; FTS5 is told, because ranking every match of a common word would take it much longer.
//! - Candidates are compared with their texts where the index alone cannot decide. The own index
//!   always does that, FTS5 where the table says so. The answers are checked against a scan.
//!
//! Not included: cold disk caches, filters, snippets, changed and deleted documents. The texts are
//! stored uncompressed for all variants; in the product, reading one also decompresses it, and the
//! own index reads more of them.

#[path = "fts5/corpus.rs"]
mod corpus;
#[path = "fts5/own.rs"]
mod own;
#[path = "fts5/report.rs"]
mod report;
#[path = "fts5/tables.rs"]
mod tables;
#[path = "shared/text.rs"]
mod text;
#[path = "fts5/variant.rs"]
mod variant;

use std::collections::HashSet;
use std::hint::black_box;
use std::time::{Duration, Instant};

use corpus::Query;
use own::OwnIndex;
use tables::{Fts5Table, Tokens};
use variant::{Answer, Built, Found, Variant};

type Failure = Box<dyn std::error::Error>;

/// The size of the text. `FTS5_MEGABYTES` sets another size.
const MEGABYTES: usize = 128;
/// The hits of a lookup: a page of them.
const HITS: usize = 20;
/// Samples of a lookup, of which the median counts, and the time after which there are enough.
const MAX_SAMPLES: usize = 51;
const MIN_SAMPLES: usize = 5;
const SAMPLING_TIME: Duration = Duration::from_secs(1);

/// A measured lookup.
struct Cell {
    median: Duration,
    found: Found,
    /// What is wrong with the answer.
    difference: Option<String>,
}

/// The measurements of a variant.
struct Row {
    name: &'static str,
    build: Duration,
    size: u64,
    /// For each query; None if the variant cannot answer it.
    cells: Vec<Option<Cell>>,
}

fn main() -> Result<(), Failure> {
    let megabytes = match std::env::var("FTS5_MEGABYTES") {
        Ok(given) => given.parse()?,
        Err(_) => MEGABYTES,
    };
    let documents = corpus::documents(megabytes * 1_000_000);
    let mut queries = corpus::queries(&documents);
    let folder = tempfile::tempdir()?;
    corpus::store_texts(&folder.path().join("texts.db"), &documents)?;

    let mut rows = Vec::new();
    for variant in variants() {
        eprintln!("── {}", variant.name());
        let built = Built::new(&*variant, folder.path(), &documents)?;
        let measured = queries.iter().map(|query| measure(&*variant, &built, query));
        let cells: Vec<Option<Cell>> = measured.collect::<Result<_, _>>()?;
        if rows.is_empty() {
            for (query, cell) in queries.iter_mut().zip(&cells) {
                query.ranked = cell.as_ref().is_some_and(|cell| cell.found.ranked);
            }
        }
        rows.push(Row { name: variant.name(), build: built.time, size: built.size, cells });
        built.remove()?;
    }
    report::print(&documents, &queries, &rows);
    Ok(())
}

/// In the order of the table. The own index is first: it decides whether a query is ranked.
fn variants() -> Vec<Box<dyn Variant>> {
    let table = |name, tokens, positions, stores_text| -> Box<dyn Variant> {
        Box::new(Fts5Table { name, tokens, positions, stores_text })
    };
    vec![
        Box::new(OwnIndex { name: "own index", merged: false }),
        Box::new(OwnIndex { name: "own index, one segment", merged: true }),
        table("FTS5", Tokens::Words, true, true),
        table("FTS5, contentless", Tokens::Words, true, false),
        table("FTS5, contentless, detail=none", Tokens::Words, false, false),
        table("FTS5 trigram, contentless", Tokens::Trigrams, true, false),
        table("FTS5 trigram, contentless, detail=none", Tokens::Trigrams, false, false),
    ]
}

/// Measures a lookup and checks its answer.
fn measure(variant: &dyn Variant, built: &Built, query: &Query) -> Result<Option<Cell>, Failure> {
    let all = variant.look_up(&built.connection, query, Answer::All)?;
    let Some(found) = all else { return Ok(None) };
    let mut times = Vec::new();
    let begin = Instant::now();
    while times.len() < MIN_SAMPLES
        || (times.len() < MAX_SAMPLES && begin.elapsed() < SAMPLING_TIME)
    {
        let start = Instant::now();
        black_box(variant.look_up(&built.connection, query, Answer::First)?);
        times.push(start.elapsed());
    }
    times.sort_unstable();
    let difference = difference(&query.matches, &found.rows);
    Ok(Some(Cell { median: times[times.len() / 2], found, difference }))
}

/// What is wrong with an answer.
fn difference(expected: &[i64], found: &[i64]) -> Option<String> {
    let without = |rows: &[i64], others: &[i64]| {
        let others: HashSet<&i64> = others.iter().collect();
        rows.iter().filter(|row| !others.contains(row)).count()
    };
    let missing = without(expected, found);
    let wrong = without(found, expected);
    let lacks = format!("lacks {missing} of {}", expected.len());
    let has = format!("has {wrong} that do not match");
    match (missing, wrong) {
        (0, 0) => None,
        (_, 0) => Some(lacks),
        (0, _) => Some(has),
        (_, _) => Some(format!("{lacks}, {has}")),
    }
}
