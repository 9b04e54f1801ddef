//! Imports logs into an archive and nothing else: what a profiler of the import needs, built in a
//! fraction of the program's time.
//! `cargo build --profile profiling -p unspool-ingest --example import_log`, then
//! `perf record -g target/profiling/examples/import_log FOLDER LOG…`

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::path::Path;

use unspool_ingest::recorder::Recorder;
use unspool_ingest::report::Progress;
use unspool_ingest::sync::{FileCandidate, FileStates, sync};
use unspool_store::database::Database;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().unwrap();
    std::fs::create_dir_all(&folder).unwrap();
    let recorder =
        Recorder::new(Database::open(&Path::new(&folder).join("unspool.db")).unwrap()).unwrap();
    let mut states = FileStates::load(&recorder).unwrap();
    let candidates = arguments.map(|path| FileCandidate::of(Path::new(&path))).collect();
    let report = sync(&recorder, &mut states, candidates, &Progress::default()).unwrap();
    println!("{report:?}");
}
