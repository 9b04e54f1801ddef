//! Bar charts as server-rendered SVG. The bars stretch with the page; labels are HTML text outside
//! the SVG, so that they stay readable at any width.

use maud::{Markup, html};
use unspool_view::present::format;

/// A data series. Bars stack the series from the bottom up.
pub struct Series {
    pub name: &'static str,
    /// CSS class of its colour.
    pub class: &'static str,
}

/// One bar.
pub struct ChartBar {
    pub label: String,
    /// One value per series.
    pub values: Vec<f64>,
    /// Tooltip.
    pub hint: String,
    /// What it leads to.
    pub address: Option<String>,
}

const VIEW_WIDTH: f64 = 1000.0;
const VIEW_HEIGHT: f64 = 200.0;
/// Maximum bar width in SVG units.
const MAX_BAR_WIDTH: f64 = 48.0;
/// So many bars have a label each.
const MAX_LABELLED_BARS: usize = 4;

/// Stacked bars over time.
pub fn columns(
    id: &str,
    title: &str,
    series: &[Series],
    columns: &[ChartBar],
    write: fn(f64) -> String,
) -> Markup {
    let sum = |column: &ChartBar| column.values.iter().sum::<f64>();
    let most = ceiling(columns.iter().map(sum).fold(0.0, f64::max));
    let slot = VIEW_WIDTH / columns.len().max(1) as f64;
    let wide = (slot * 0.8).min(MAX_BAR_WIDTH);
    // A few labels fit below their bars; of more there are those of the first, middle and last bar.
    let each = columns.len() <= MAX_LABELLED_BARS;
    let labels: Vec<&ChartBar> = match each {
        true => columns.iter().collect(),
        false => {
            let some = [columns.first(), columns.get(columns.len() / 2), columns.last()];
            some.into_iter().flatten().collect()
        }
    };
    html! {
        figure.chart {
            figcaption {
                span.name { (title) }
                @if series.len() > 1 {
                    ul.legend {
                        @for one in series { li { span.dot.(one.class) aria-hidden="true" {} (one.name) } }
                    }
                }
            }
            div.plot {
                div.scale aria-hidden="true" { span { (write(most)) } span { (write(most / 2.0)) } span { "0" } }
                svg viewBox={ "0 0 " (VIEW_WIDTH) " " (VIEW_HEIGHT) } preserveAspectRatio="none" role="group"
                    aria-labelledby={ (id) "-title " (id) "-desc" } {
                    title id={ (id) "-title" } { (title) }
                    desc id={ (id) "-desc" } { (unspool_export::html::text::safe(&description(columns, write))) }
                    @for part in 0..3 {
                        @let y = VIEW_HEIGHT * f64::from(part) / 2.0;
                        line.grid x1="0" x2=(VIEW_WIDTH) y1=(short(y)) y2=(short(y)) {}
                    }
                    @for (at, column) in columns.iter().enumerate() {
                        @let bar = html! {
                            title { (unspool_export::html::text::safe(&column.hint)) }
                            rect.slot x=(short(at as f64 * slot)) y="0" width=(short(slot)) height=(VIEW_HEIGHT) {}
                            @for (class, y, height) in stack(series, column, most) {
                                rect.(class) x=(short(at as f64 * slot + (slot - wide) / 2.0)) y=(short(y))
                                    width=(short(wide)) height=(short(height)) {}
                            }
                        };
                        // A hundred tab stops help nobody: the table has the same links.
                        @match &column.address {
                            Some(address) => a href=(address) tabindex="-1"
                                aria-label=(unspool_export::html::text::safe(&column.hint)) { (bar) },
                            None => g { (bar) },
                        }
                    }
                }
                div.ends.each[each] aria-hidden="true" {
                    @for label in &labels { span { (unspool_export::html::text::safe(&label.label)) } }
                }
            }
        }
    }
}

/// Class, top and height of each segment of a bar.
fn stack(series: &[Series], column: &ChartBar, most: f64) -> Vec<(&'static str, f64, f64)> {
    let mut top = VIEW_HEIGHT;
    let mut pieces = Vec::new();
    for (one, value) in series.iter().zip(&column.values) {
        let height = VIEW_HEIGHT * value / most;
        if height > 0.0 {
            top -= height;
            pieces.push((one.class, top, height));
        }
    }
    pieces
}

fn description(columns: &[ChartBar], write: fn(f64) -> String) -> String {
    let sum = |column: &ChartBar| column.values.iter().sum::<f64>();
    let most = columns.iter().max_by(|one, other| sum(one).total_cmp(&sum(other)));
    match (columns.first(), columns.last(), most) {
        (Some(first), Some(last), Some(most)) => format!(
            "{} from {} to {}; the highest is {}: {}. The table below has all figures and links.",
            format::count(columns.len(), "bar"),
            first.label,
            last.label,
            most.label,
            write(sum(most))
        ),
        _ => "Nothing to show.".to_owned(),
    }
}

/// A bar in a table cell, scaled to the largest value.
pub fn share_bar(value: f64, most: f64, class: &str) -> Markup {
    let length = if most > 0.0 { 100.0 * value / most } else { 0.0 };
    html! {
        svg.share viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true" {
            rect.(class) x="0" y="0" width=(short(length)) height="8" {}
        }
    }
}

/// The smallest round figure that is at least `most`.
fn ceiling(most: f64) -> f64 {
    if most <= 0.0 || !most.is_finite() {
        return 1.0;
    }
    let unit = 10f64.powf(most.log10().floor());
    let round = [1.0, 2.0, 4.0, 5.0, 8.0, 10.0].into_iter().find(|times| times * unit >= most);
    round.unwrap_or(10.0) * unit
}

/// At most two decimals, which is finer than any screen.
fn short(number: f64) -> String {
    let text = format!("{number:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// `937.5M`.
pub fn compact(value: f64) -> String {
    let units = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    match units.into_iter().find(|(unit, _)| value >= *unit * 0.9995) {
        Some((unit, sign)) => format!("{}{sign}", short((value / unit * 10.0).round() / 10.0)),
        None => short((value * 100.0).round() / 100.0),
    }
}

/// `$12.30`.
pub fn dollars(value: f64) -> String {
    if value >= 1000.0 { format!("${}", compact(value)) } else { format!("${value:.2}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short() {
        for (value, text) in [
            (0.0, "0"),
            (7.0, "7"),
            (999.0, "999"),
            (1000.0, "1k"),
            (1234.0, "1.2k"),
            (999_999.0, "1M"),
            (937_500_823.0, "937.5M"),
        ] {
            assert_eq!(compact(value), text);
        }
        assert_eq!(dollars(0.126), "$0.13");
    }

    #[test]
    fn nothing_stands_above_the_scale() {
        for most in [0.0, 0.3, 1.0, 9.99, 10.0, 43.0, 99_999.0, 4.2e12] {
            let top = ceiling(most);
            assert!(top >= most && (most == 0.0 || top <= most * 10.0), "{most}: {top}");
        }
    }

    #[test]
    fn a_stack_is_as_high_as_its_sum() {
        let series = [Series { name: "a", class: "a" }, Series { name: "b", class: "b" }];
        let column = ChartBar {
            label: String::new(),
            values: vec![25.0, 50.0],
            hint: String::new(),
            address: None,
        };
        let pieces = stack(&series, &column, 100.0);
        assert_eq!(pieces, [("a", 150.0, 50.0), ("b", 50.0, 100.0)]);
    }

    #[test]
    fn a_chart_says_in_words_what_it_shows() {
        let series = [Series { name: "tokens", class: "a" }];
        let one = |label: &str, value: f64| ChartBar {
            label: label.to_owned(),
            values: vec![value],
            hint: format!("{label}: <{value}>"),
            address: (value > 0.0).then(|| format!("/?since={label}")),
        };
        let days = [one("1 May", 10.0), one("2 May", 40.0), one("3 May", 0.0)];
        let html = columns("c", "Tokens by day", &series, &days, compact).into_string();
        assert!(html.contains("3 bars from 1 May to 3 May; the highest is 2 May: 40."), "{html}");
        assert!(html.contains("<title id=\"c-title\">Tokens by day</title>"));
        assert!(html.contains("&lt;40&gt;") && !html.contains("<40>"));
        assert_eq!(html.matches("<rect class=\"a\"").count(), 2, "nothing has no bar");
    }
}
