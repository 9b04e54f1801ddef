//! Paints terminal output as HTML. Colours are CSS classes, because the content security policy
//! forbids inline styles. There are 256 classes, so RGB colours map to the nearest one.

use maud::{Markup, html};
use unspool_view::block::{AnsiRun, Color, Terminal};
use unspool_view::present::format;

use crate::html::text::safe;

/// Lines of a long output that stay visible.
const VISIBLE_LINES: usize = 24;

/// Shows the end of the output of a failed command, which has the error, and otherwise its start.
/// The rest of a long output is in a fold, so that there is no scroll box inside the page.
pub fn paint(terminal: &Terminal) -> Markup {
    let total = terminal.lines.len();
    let failed = terminal.exit_code.is_some_and(|code| code != 0);
    let (above, visible, below) = if total <= VISIBLE_LINES + 1 {
        (0, total, 0)
    } else if failed {
        (total - VISIBLE_LINES, VISIBLE_LINES, 0)
    } else {
        (0, VISIBLE_LINES, total - VISIBLE_LINES)
    };
    let (first, rest) = terminal.lines.split_at(above);
    let (shown, last) = rest.split_at(visible);
    html! {
        div.terminal {
            @if above > 0 {
                details.rest { summary { (format::count(above, "line")) " above" } (lines(first)) }
            }
            (lines(shown))
            @if below > 0 {
                details.rest { summary { (format::count(below, "more line")) } (lines(last)) }
            }
            @if terminal.omitted > 0 {
                p.dim { "… +" (format::count(terminal.omitted, "line")) }
            }
            @if let Some(code) = terminal.exit_code.filter(|code| *code != 0) {
                p.exit.tone-failed { "exit code " (code) }
            }
        }
    }
}

fn lines(lines: &[Vec<AnsiRun>]) -> Markup {
    html! {
        pre tabindex="0" {
            @for (at, runs) in lines.iter().enumerate() {
                @if at > 0 { "\n" }
                @for run in runs { (paint_run(run)) }
            }
        }
    }
}

fn paint_run(run: &AnsiRun) -> Markup {
    let style = &run.style;
    let (mut front, mut back) = (style.foreground, style.background);
    if style.inverse {
        (front, back) = (back, front);
    }
    let mut classes = Vec::new();
    classes.extend(front.map(|color| format!("f{}", index(color))));
    classes.extend(back.map(|color| format!("b{}", index(color))));
    let flags = [
        (style.bold, "bold"),
        (style.dim, "faint"),
        (style.italic, "italic"),
        (style.underline, "underline"),
        (style.strike, "strike"),
        (style.inverse && front.is_none() && back.is_none(), "inverse"),
    ];
    classes.extend(flags.into_iter().filter(|(is, _)| *is).map(|(_, name)| name.to_owned()));
    if classes.is_empty() {
        return html! { (safe(&run.text)) };
    }
    html! { span class=(classes.join(" ")) { (safe(&run.text)) } }
}

/// The nearest palette colour.
fn index(color: Color) -> u8 {
    let (r, g, b) = match color {
        Color::Indexed(index) => return index,
        Color::Rgb(r, g, b) => (r, g, b),
    };
    if r == g && g == b {
        return match r {
            0..=4 => 16,
            239..=255 => 231,
            grey => 232 + (grey - 5) / 10,
        };
    }
    // The 6×6×6 colour cube with levels 0, 95, 135, 175, 215, 255.
    let step = |value: u8| match value {
        0..=47 => 0,
        48..=114 => 1,
        115..=154 => 2,
        155..=194 => 3,
        195..=234 => 4,
        235..=255 => 5,
    };
    16 + 36 * step(r) + 6 * step(g) + step(b)
}

/// The 256 colours as a style sheet; the first 16 come from the theme.
pub fn palette() -> String {
    let mut css = String::new();
    for index in 0..=255_u8 {
        let color = match index {
            0..=15 => format!("var(--ansi-{index})"),
            16..=231 => {
                let level = |step: u8| if step == 0 { 0 } else { 55 + 40 * step };
                let cube = index - 16;
                let (r, g, b) = (level(cube / 36), level(cube / 6 % 6), level(cube % 6));
                format!("#{r:02x}{g:02x}{b:02x}")
            }
            232..=255 => {
                let grey = 8 + 10 * (index - 232);
                format!("#{grey:02x}{grey:02x}{grey:02x}")
            }
        };
        css.push_str(&format!(
            ".terminal .f{index}{{color:{color}}}.terminal .b{index}{{background:{color}}}\n"
        ));
    }
    css
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_go_to_their_nearest() {
        assert_eq!(index(Color::Rgb(255, 0, 0)), 196);
        assert_eq!(index(Color::Rgb(0, 0, 0)), 16);
        assert_eq!(index(Color::Rgb(255, 255, 255)), 231);
        assert_eq!(index(Color::Rgb(8, 8, 8)), 232);
        assert_eq!(index(Color::Rgb(238, 238, 238)), 255);
        assert_eq!(index(Color::Rgb(95, 135, 175)), 67);
        for grey in 0..=255 {
            index(Color::Rgb(grey, grey, grey));
        }
        assert_eq!(palette().lines().count(), 256);
    }
}
