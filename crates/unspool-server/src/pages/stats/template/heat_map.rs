//! The hours of the week as a heat map. It is a table, so that it reads without colours.

use maud::{Markup, html};
use unspool_store::stats::HourFigures;
use unspool_view::present::format;

const WEEKDAYS: [&str; 7] =
    ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const HOURS: usize = 24;
/// Every so many hours the column has a visible label.
const LABELLED_HOURS: usize = 6;
const LEVELS: u64 = 4;

pub(super) fn heat_map(hours: &[HourFigures]) -> Markup {
    let mut cells = [[HourFigures::default(); HOURS]; 7];
    for one in hours {
        let day = usize::from(one.weekday).saturating_sub(1).min(6);
        cells[day][usize::from(one.hour).min(HOURS - 1)] = *one;
    }
    let most = hours.iter().map(|hour| hour.turns).max().unwrap_or(0);
    html! {
        @if most > 0 {
            section.hours {
                h2 id="hours" { "Hours of the week" }
                table.heat aria-labelledby="hours" {
                    thead {
                        tr {
                            td {}
                            @for hour in 0..HOURS {
                                th scope="col" {
                                    span.visually-hidden[hour % LABELLED_HOURS != 0] { (format!("{hour:02}")) }
                                }
                            }
                        }
                    }
                    tbody {
                        @for (name, hours) in WEEKDAYS.iter().zip(&cells) {
                            tr {
                                th scope="row" title=(name) { (&name[..3]) }
                                @for (hour, one) in hours.iter().enumerate() {
                                    (cell(name, hour, one, most))
                                }
                            }
                        }
                    }
                }
                p.heat-scale.dim aria-hidden="true" {
                    "0 turns "
                    @for level in 0..=LEVELS { span.step.{ "heat-" (level) } {} }
                    " " (format::number(most))
                }
            }
        }
    }
}

fn cell(day: &str, hour: usize, one: &HourFigures, most: u64) -> Markup {
    // Any turn is visible.
    let level = (u128::from(one.turns) * u128::from(LEVELS)).div_ceil(u128::from(most.max(1)));
    let turns = format::count(usize::try_from(one.turns).unwrap_or(usize::MAX), "turn");
    let hint = format!("{day} {hour:02}:00 UTC: {turns}, {} tokens", format::compact(one.tokens));
    html! {
        td.{ "heat-" (level) } title=(hint) { span.visually-hidden { (format::number(one.turns)) } }
    }
}
