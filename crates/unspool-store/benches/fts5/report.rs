//! The table, in Markdown, and the notes below it.

use std::time::Duration;

use crate::corpus::Query;
use crate::{Cell, Row};

pub fn print(documents: &[String], queries: &[Query], rows: &[Row]) {
    let bytes = documents.iter().map(String::len).sum::<usize>() as f64;
    println!("\n{} documents, {:.0} MB; lookups in ms\n", documents.len(), bytes / 1e6);

    let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
    let mut head = texts(&["index", "build", "rate", "size"]);
    head.extend(queries.iter().map(|query| query.name.to_owned()));
    let mut matches = texts(&["documents that match", "", "", ""]);
    matches.extend(queries.iter().map(|query| query.matches.len().to_string()));
    let mut table = vec![head, matches];
    for row in rows {
        let seconds = row.build.as_secs_f64();
        let mut line = vec![
            row.name.to_owned(),
            format!("{seconds:.1} s"),
            format!("{:.0} MB/s", bytes / 1e6 / seconds),
            format!("{:.0} %", row.size as f64 * 100.0 / bytes),
        ];
        let cells = row.cells.iter().zip(queries);
        line.extend(cells.map(|(cell, query)| match cell {
            Some(cell) => format!("{}{}", milliseconds(cell.median), marks(cell, query)),
            None => "—".to_owned(),
        }));
        table.push(line);
    }
    print_table(&table);

    println!(
        "\n— cannot answer; * candidates compared with their texts; n the newest hits, because it \
         cannot rank; ≠ another answer than a scan of all texts:"
    );
    for row in rows {
        for (cell, query) in row.cells.iter().zip(queries) {
            if let Some(difference) = cell.as_ref().and_then(|cell| cell.difference.as_ref()) {
                println!("{}: {}: {difference}", row.name, query.name);
            }
        }
    }
}

fn marks(cell: &Cell, query: &Query) -> String {
    let marks = [
        (cell.found.verified, "*"),
        (query.ranked && !cell.found.ranked, "n"),
        (cell.difference.is_some(), "≠"),
    ];
    let set: String = marks.iter().filter(|(set, _)| *set).map(|(_, mark)| *mark).collect();
    if set.is_empty() { set } else { format!(" {set}") }
}

/// Two significant digits.
fn milliseconds(time: Duration) -> String {
    let time = time.as_secs_f64() * 1e3;
    match time {
        ..1.0 => format!("{time:.2}"),
        ..10.0 => format!("{time:.1}"),
        _ => format!("{time:.0}"),
    }
}

fn print_table(table: &[Vec<String>]) {
    let columns = table.first().map_or(0, Vec::len);
    let width = |column: usize| {
        table.iter().filter_map(|line| line.get(column)).map(|it| it.chars().count()).max()
    };
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    for (number, line) in table.iter().enumerate() {
        let cells = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        println!("| {} |", cells.collect::<Vec<_>>().join(" | "));
        if number == 0 {
            let rules = widths.iter().map(|width| "-".repeat(*width));
            println!("| {} |", rules.collect::<Vec<_>>().join(" | "));
        }
    }
}
