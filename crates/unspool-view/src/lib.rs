//! What a transcript looks like. `present` turns parts into blocks and parses Markdown, terminal
//! escapes and diffs on the way; `segment` groups a turn into reasoning blocks, `parallel` finds the
//! calls that ran at the same time; `lines` lays blocks out as styled lines for terminals and plain
//! text. Painters elsewhere draw blocks or lines; they decide nothing.
//!
//! Pure, like the model: no clock, no I/O, no async.

pub mod block;
pub mod call_groups;
pub mod finding;
pub mod lines;
pub mod plain;
pub mod present;
pub mod segment;
