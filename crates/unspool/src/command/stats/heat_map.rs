//! The hours of the week as a heat map of block characters: one line per weekday, one cell per hour.

use std::io::{self, Write};

use unspool_store::stats::HourFigures;
use unspool_view::lines::truncate;

use crate::paint::Style;

const WEEKDAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
/// Nothing, then four levels.
const SHADES: [char; 5] = ['·', '░', '▒', '▓', '█'];
const HOURS: usize = 24;
/// The weekday and a space.
const NAME_WIDTH: usize = 4;

pub fn write(hours: &[HourFigures], style: &Style, out: &mut impl Write) -> io::Result<()> {
    // Two columns per hour, one, or one for two hours.
    let room = style.width.saturating_sub(NAME_WIDTH);
    let (cell_width, cell_hours) = match room {
        48.. => (2, 1),
        24..48 => (1, 1),
        _ => (1, 2),
    };
    let mut turns = [[0u64; HOURS]; 7];
    for one in hours {
        let day = usize::from(one.weekday).saturating_sub(1).min(6);
        turns[day][usize::from(one.hour).min(HOURS - 1) / cell_hours] += one.turns;
    }
    let most = turns.iter().flatten().copied().max().unwrap_or_default();
    let title = format!("turns by hour (UTC), at most {most} in one cell");
    writeln!(out, "{}", truncate(&title, style.width))?;
    let ticks: String = (0..HOURS / 6)
        .map(|nth| format!("{:<width$}", nth * 6, width = 6 / cell_hours * cell_width))
        .collect();
    writeln!(out, "    {}", ticks.trim_end())?;
    for (name, turns) in WEEKDAYS.iter().zip(turns) {
        let cells: String = turns[..HOURS / cell_hours]
            .iter()
            .map(|count| shade(*count, most).to_string().repeat(cell_width))
            .collect();
        writeln!(out, "{name} {cells}")?;
    }
    Ok(())
}

fn shade(count: u64, most: u64) -> char {
    let level = if most == 0 { 0 } else { (u128::from(count) * 4).div_ceil(u128::from(most)) };
    SHADES[usize::try_from(level).unwrap_or(4).min(4)]
}
