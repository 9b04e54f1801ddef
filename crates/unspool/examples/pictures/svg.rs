//! Renders a screen as a self-contained SVG: no embedded font, no script, no external reference.

use std::collections::HashMap;
use std::fmt::Write;

use vt100::{Cell, Color, Screen};

const CELL: f32 = 8.4;
const ROW: f32 = 18.0;
const FONT: f32 = 14.0;
/// From the top of a row to its baseline.
const BASELINE: f32 = 13.4;
const MARGIN: f32 = 14.0;
/// Height of the window's title bar.
const BAR: f32 = 34.0;
const FONTS: &str = "ui-monospace,'Cascadia Mono','SF Mono',Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace";
/// Colours of the window's buttons.
const BUTTONS: [&str; 3] = ["#f38ba8", "#f9e2af", "#a6e3a1"];

type Rgb = (u8, u8, u8);

/// The style of a cell.
#[derive(Clone, PartialEq)]
struct CellStyle {
    fore: Rgb,
    back: Rgb,
    bold: bool,
    italic: bool,
    underline: bool,
    dim: bool,
}

/// Cells that are drawn together.
struct Run {
    column: u16,
    width: u16,
    text: String,
    cell_style: CellStyle,
}

pub fn picture(screen: &Screen) -> String {
    let (rows, columns) = screen.size();
    let ground = ground(screen);
    let width = f32::from(columns.get()) * CELL + 2.0 * MARGIN;
    let height = f32::from(rows.get()) * ROW + BAR + MARGIN;
    let mut out = String::new();
    put(
        &mut out,
        format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.1} {height:.1}\" \
             width=\"{width:.1}\" height=\"{height:.1}\" font-family=\"{FONTS}\" \
             font-size=\"{FONT}\">"
        ),
    );
    let (border, edge) = (mixed(ground, if is_dark(ground) { 255 } else { 0 }), width - 1.0);
    put(
        &mut out,
        format_args!(
            "<rect x=\".5\" y=\".5\" width=\"{edge:.1}\" height=\"{:.1}\" rx=\"10\" fill=\"{}\" \
             stroke=\"{}\"/>",
            height - 1.0,
            hex(ground),
            hex(border)
        ),
    );
    for (nth, colour) in BUTTONS.iter().enumerate() {
        let x = 20.0 + 18.0 * nth as f32;
        put(&mut out, format_args!("<circle cx=\"{x}\" cy=\"17\" r=\"5.5\" fill=\"{colour}\"/>"));
    }
    put(&mut out, format_args!("<g transform=\"translate({MARGIN} {BAR})\">"));
    for row in 0..rows.get() {
        let cells: Vec<&Cell> =
            (0..columns.get()).filter_map(|column| screen.cell(row, column)).collect();
        line(&mut out, &cells, f32::from(row) * ROW, ground);
    }
    out.push_str("</g>\n</svg>\n");
    out
}

fn line(out: &mut String, cells: &[&Cell], top: f32, ground: Rgb) {
    let cell_styles: Vec<CellStyle> = cells.iter().map(|cell| cell_style(cell, ground)).collect();
    let mut from = 0;
    for backs in cell_styles.chunk_by(|one, other| one.back == other.back) {
        if let Some(CellStyle { back, .. }) =
            backs.first().filter(|cell_style| cell_style.back != ground)
        {
            // Backgrounds that span the row extend to the window's edges.
            let end = from + backs.len();
            let whole = cell_styles.first().is_some_and(|first| first.back == *back);
            let right = if whole && end == cell_styles.len() { MARGIN - 1.0 } else { 0.0 };
            let left = if from == 0 { 1.0 - MARGIN } else { from as f32 * CELL };
            let right = right + end as f32 * CELL;
            let (x, width) = (left, right - left);
            put(
                out,
                format_args!(
                    "<rect x=\"{x:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{ROW}\" \
                     fill=\"{}\"/>",
                    hex(*back)
                ),
            );
        }
        from += backs.len();
    }
    for run in runs(cells, &cell_styles) {
        draw(out, &run, top);
    }
}

/// Groups adjacent cells of one style. A character that not every font has is a run of its own, so
/// that a fallback font's width does not shift its neighbours.
fn runs(cells: &[&Cell], cell_styles: &[CellStyle]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for ((column, cell), cell_style) in (0_u16..).zip(cells).zip(cell_styles) {
        let text = cell.contents();
        if cell.is_wide_continuation() || (text.trim().is_empty() && !cell_style.underline) {
            continue;
        }
        let text = if text.is_empty() { " " } else { text };
        let width = if cell.is_wide() { 2 } else { 1 };
        let joins = |run: &&mut Run| {
            let near = run.column + run.width;
            run.cell_style == *cell_style
                && if text.is_ascii() && run.text.is_ascii() {
                    near == column || near + 1 == column && !cell_style.underline
                } else {
                    near == column && is_stroke(text) && run.text.ends_with(text)
                }
        };
        match runs.last_mut().filter(joins) {
            Some(run) => {
                if run.column + run.width < column {
                    run.text.push(' ');
                    run.width += 1;
                }
                run.text.push_str(text);
                run.width += width;
            }
            None => runs.push(Run {
                column,
                width,
                text: text.to_owned(),
                cell_style: cell_style.clone(),
            }),
        }
    }
    runs
}

/// True for line-drawing characters, which connect to their neighbours.
fn is_stroke(text: &str) -> bool {
    matches!(text, "─" | "━")
}

fn draw(out: &mut String, run: &Run, top: f32) {
    let Run { column, width, text, cell_style } = run;
    let (x, width) = (f32::from(*column) * CELL, f32::from(*width) * CELL);
    let fill = hex(cell_style.fore);
    let opacity = if cell_style.dim { " fill-opacity=\".6\"" } else { "" };
    let (middle, centre) = (top + ROW / 2.0, x + CELL / 2.0);
    let mut stroke = |x: f32, y: f32, width: f32, height: f32| {
        put(
            out,
            format_args!(
                "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" \
                 fill=\"{fill}\"{opacity}/>"
            ),
        );
    };
    // Draw line characters as paths: glyphs of most fonts leave gaps between rows.
    match text.chars().next() {
        Some('─') => return stroke(x, middle - 0.5, width, 1.0),
        Some('━') => return stroke(x, middle - 1.0, width, 2.0),
        Some('│') => return stroke(centre - 0.5, top, 1.0, ROW),
        Some('▎') => return stroke(x, top, CELL / 4.0, ROW),
        Some('┊') => {
            for nth in 0_u8..3 {
                stroke(centre - 0.5, top + 1.0 + 6.0 * f32::from(nth), 1.0, 3.5);
            }
            return;
        }
        Some(_) | None => {}
    }
    let mut style = String::from(opacity);
    for (wanted, attribute) in [
        (cell_style.bold, " font-weight=\"bold\""),
        (cell_style.italic, " font-style=\"italic\""),
        (cell_style.underline, " text-decoration=\"underline\""),
    ] {
        if wanted {
            style.push_str(attribute);
        }
    }
    // Centre a glyph of a fallback font in its cells instead of stretching it.
    let place = if text.is_ascii() {
        format!("x=\"{x:.1}\" textLength=\"{width:.1}\" lengthAdjust=\"spacingAndGlyphs\"")
    } else {
        format!("x=\"{:.1}\" text-anchor=\"middle\"", x + width / 2.0)
    };
    let y = top + BASELINE;
    let text = escaped(text);
    put(out, format_args!("<text {place} y=\"{y:.1}\" fill=\"{fill}\"{style}>{text}</text>"));
}

fn cell_style(cell: &Cell, ground: Rgb) -> CellStyle {
    let plain = if is_dark(ground) { (0xcd, 0xd6, 0xf4) } else { (0x4c, 0x4f, 0x69) };
    let (mut fore, mut back) = (rgb(cell.fgcolor(), plain), rgb(cell.bgcolor(), ground));
    if cell.inverse() {
        (fore, back) = (back, fore);
    }
    CellStyle {
        fore,
        back,
        bold: cell.bold(),
        italic: cell.italic(),
        underline: cell.underline(),
        dim: cell.dim(),
    }
}

fn rgb(colour: Color, usual: Rgb) -> Rgb {
    match colour {
        Color::Rgb(red, green, blue) => (red, green, blue),
        Color::Default => usual,
        Color::Idx(number) => panic!("{number} is no true colour: the theme has others"),
    }
}

/// The most frequent background colour.
fn ground(screen: &Screen) -> Rgb {
    let (rows, columns) = screen.size();
    let mut counts: HashMap<Rgb, usize> = HashMap::new();
    for row in 0..rows.get() {
        for column in 0..columns.get() {
            if let Some(Color::Rgb(red, green, blue)) =
                screen.cell(row, column).map(vt100::Cell::bgcolor)
            {
                *counts.entry((red, green, blue)).or_default() += 1;
            }
        }
    }
    counts.into_iter().max_by_key(|(_, count)| *count).map_or((0, 0, 0), |(colour, _)| colour)
}

fn is_dark((red, green, blue): Rgb) -> bool {
    u32::from(red) + u32::from(green) + u32::from(blue) < 3 * 128
}

/// Mixes in one sixth of black or white.
fn mixed((red, green, blue): Rgb, to: u16) -> Rgb {
    let mix = |from: u8| ((u16::from(from) * 5 + to) / 6) as u8;
    (mix(red), mix(green), mix(blue))
}

fn hex((red, green, blue): Rgb) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

fn escaped(text: &str) -> String {
    let mut out = String::new();
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // Not allowed in XML.
            letter if letter.is_control() => out.push('\u{fffd}'),
            letter => out.push(letter),
        }
    }
    out
}

fn put(out: &mut String, arguments: std::fmt::Arguments<'_>) {
    out.write_fmt(arguments).unwrap();
    out.push('\n');
}
