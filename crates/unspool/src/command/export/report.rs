//! Prints what an export redacted, without the secrets themselves.

use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};

use anyhow::Result;
use unspool_model::id::SessionId;
use unspool_redact::{Location, Owner, RedactedSecret, RedactionReport};

/// The secrets that occur in the output; the report may list others.
fn secrets(report: &RedactionReport) -> impl Iterator<Item = &RedactedSecret> {
    report.secrets.iter().filter(|secret| secret.count > 0)
}

/// Prints a one-line summary to stderr.
pub fn warn(replaced: &[(SessionId, RedactionReport)]) {
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for secret in replaced.iter().flat_map(|(_, report)| secrets(report)) {
        *kinds.entry(&secret.kind).or_default() += 1;
    }
    if !kinds.is_empty() {
        let kinds: Vec<String> =
            kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        let all = kinds.join(", ");
        stderr_line!("unspool: redacted possible secrets ({all}); --dry-run lists them");
    }
}

/// Lists every secret that would be redacted, with its locations.
pub fn list(replaced: &[(SessionId, RedactionReport)]) -> Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    if replaced.iter().all(|(_, report)| secrets(report).next().is_none()) {
        writeln!(out, "no secrets found")?;
    }
    for (session, report) in replaced {
        for secret in secrets(report) {
            let RedactedSecret { kind, number, count, hint, places } = secret;
            writeln!(out, "{session}  [redacted:{kind}:{number}]  {hint}  {count}×")?;
            for location in places {
                writeln!(out, "    {}", place(location))?;
            }
        }
    }
    out.flush()?;
    Ok(())
}

fn place(Location { turn, owner, field }: &Location) -> String {
    let turn = turn.map(|turn| format!("turn {turn}, ")).unwrap_or_default();
    let owner = match owner {
        Owner::Text => "title".to_owned(),
        Owner::Session => "session".to_owned(),
        Owner::User => "user".to_owned(),
        Owner::Turn => "its end".to_owned(),
        Owner::Step(id) => format!("step {id}"),
        Owner::Part(id) => format!("part {id}"),
    };
    format!("{turn}{owner}  {field}").trim_end().to_owned()
}
