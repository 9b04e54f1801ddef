//! The examples of `docs/library.md` as a program. Prints what happened in a log, and its calls;
//! `-` follows standard input line by line.
//!
//! ```text
//! cargo run -p unspool-sources --example read_log -- fixtures/claude-code/discovery-loop/log.jsonl
//! ```

// An application chooses the kinds that it shows.
#![allow(clippy::wildcard_enum_match_arm)]

use std::error::Error;

use unspool_sources::model::part::Body;
use unspool_sources::{extract_tool_calls, parse_log_file, parse_log_stream};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: read_log FILE|-")?;
    let log = if path == "-" {
        parse_log_stream(std::io::stdin(), |update| {
            println!("{} line {}: {} changes", update.session, update.line, update.changes.len());
        })?
    } else {
        parse_log_file(&path)?
    };
    for session in &log.sessions {
        for turn in &session.transcript.turns {
            for part in &turn.parts {
                match &part.body {
                    Body::Reasoning(reasoning) => println!("thinks: {}", reasoning.text),
                    Body::Text(text) => println!("says: {}", text.text),
                    Body::Tool(tool) => println!("calls {}: {}", tool.name, tool.state.name()),
                    other => println!("{}", other.kind().name()),
                }
            }
        }
    }
    let session = log.main_session().ok_or("no session")?;
    for call in extract_tool_calls(&session.transcript.turns) {
        println!("{} {} {:?}", call.order, call.name, call.error);
    }
    Ok(())
}
