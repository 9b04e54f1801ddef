//! The sessions that cost most, each with its sub-agents, as a table.

use std::io::{self, Write};

use unspool_store::stats::SessionFigures;
use unspool_view::present::format;

use super::tables::{self, Field, spent, tokens};
use crate::paint::Style;
use crate::table::{left, right};

/// Below this width the heading is short.
const NARROW: usize = 40;

pub fn write(sessions: &[SessionFigures], style: &Style, out: &mut impl Write) -> io::Result<()> {
    let cells = |cell: &dyn Fn(&SessionFigures) -> String| sessions.iter().map(cell).collect();
    let fields = vec![
        // Eight characters of an id are unique in practice.
        Field {
            column: left("ID"),
            rank: 2,
            cells: cells(&|one| one.session.chars().take(8).collect()),
        },
        Field { column: left("AGENT"), rank: 5, cells: cells(&|one| one.agent.clone()) },
        Field { column: right("TURNS"), rank: 4, cells: cells(&|one| format::number(one.turns)) },
        Field {
            column: right("TOKENS"),
            rank: 1,
            cells: cells(&|one| tokens(one.usage.tokens, style)),
        },
        Field { column: right("COST"), rank: 0, cells: cells(&|one| spent(&one.usage)) },
    ];
    let names = cells(&|one| one.title.clone().unwrap_or_else(|| one.session.clone()));
    // In ten thousandths of a dollar, for the bars.
    let cost = |one: &SessionFigures| (one.usage.spent_usd.unwrap_or(0.0) * 1e4) as u64;
    let values: Vec<u64> = sessions.iter().map(cost).collect();
    let name = if style.width < NARROW { "SESSION" } else { "MOST EXPENSIVE" };
    tables::write(name, names, fields, &values, style, out)
}
