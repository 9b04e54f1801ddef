//! One-line charts: bars and sparklines of block characters.

/// A bar of at most `room` columns, in eighths of a column. Any non-zero value is visible.
pub fn bar(value: u64, most: u64, room: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    if value == 0 || most == 0 {
        return String::new();
    }
    let eighths = u128::from(value) * room as u128 * 8 / u128::from(most);
    let eighths = usize::try_from(eighths).unwrap_or(usize::MAX).clamp(1, room * 8);
    "█".repeat(eighths / 8) + EIGHTHS[eighths % 8]
}

/// One column for each value; a space for zero.
pub fn sparkline(values: &[u64]) -> String {
    const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = u128::from(values.iter().copied().max().unwrap_or_default());
    let sign = |value: u64| match u128::from(value) {
        0 => ' ',
        value => LEVELS[usize::try_from((value * 8).div_ceil(most)).map_or(7, |nth| nth - 1)],
    };
    values.iter().map(|value| sign(*value)).collect()
}

#[cfg(test)]
#[path = "chart_tests.rs"]
mod tests;
