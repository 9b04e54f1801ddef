//! Contrast of every text colour on every background, in both themes (WCAG 2.2, AA).

use std::collections::BTreeMap;

const THEME: &str = include_str!("../../assets/theme.css");

/// Red, green, blue and alpha.
#[derive(Clone, Copy)]
struct Colour([f64; 4]);

fn parse(hex: &str) -> Colour {
    let hex = hex.trim().trim_start_matches('#');
    let part = |at: usize| {
        let digits = hex.get(at * 2..at * 2 + 2).unwrap_or("ff");
        f64::from(u8::from_str_radix(digits, 16).unwrap()) / 255.0
    };
    Colour([part(0), part(1), part(2), part(3)])
}

/// The tokens of one theme: 0 is light, 1 is dark.
fn tokens(theme: usize) -> BTreeMap<&'static str, Colour> {
    let mut found = BTreeMap::new();
    for line in THEME.lines() {
        let Some((name, value)) = line.trim().split_once(": light-dark(") else { continue };
        let value = value.trim_end_matches(");");
        found.insert(name.trim_start_matches("--"), parse(value.split(',').nth(theme).unwrap()));
    }
    assert!(found.len() > 30, "the format of the theme has changed");
    found
}

/// Blends a colour over a background.
fn over(Colour(top): Colour, Colour(below): Colour) -> Colour {
    let mix = |at: usize| top[at] * top[3] + below[at] * (1.0 - top[3]);
    Colour([mix(0), mix(1), mix(2), 1.0])
}

fn luminance(Colour(parts): Colour) -> f64 {
    let linear = |part: f64| {
        if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * linear(parts[0]) + 0.7152 * linear(parts[1]) + 0.0722 * linear(parts[2])
}

fn contrast(one: Colour, other: Colour) -> f64 {
    let (one, other) = (luminance(one), luminance(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

/// Text colours.
const TEXT: &[&str] = &[
    "text",
    "subtext",
    "muted",
    "pending",
    "running",
    "ok",
    "failed",
    "interrupted",
    "accent",
    "warning",
    "user",
    "badge-running",
    "badge-ok",
    "badge-failed",
    "added",
    "removed",
];
/// Backgrounds: the page, raised surfaces, hovered and selected rows.
const GROUNDS: &[&str] = &["base", "mantle", "surface-0"];
/// Non-text colours: chart bars, on the page and on hover.
const GRAPHICS: &[&str] = &["chart-1", "chart-2", "chart-3", "chart-4", "running", "accent"];

fn failures(theme: usize) -> Vec<String> {
    let tokens = tokens(theme);
    let mut failures = Vec::new();
    let mut hold = |name: &str, ground: &str, colour: Colour, on: Colour, least: f64| {
        let found = contrast(over(colour, on), on);
        if found < least {
            failures.push(format!("{name} on {ground}: {found:.2}, not {least}"));
        }
    };
    for name in TEXT {
        for ground in GROUNDS {
            hold(name, ground, tokens[name], tokens[ground], 4.5);
        }
    }
    // Terminal colours. Black and grey are meant to recede.
    for number in [1, 2, 3, 4, 5, 6, 9, 10, 11, 12, 13, 14, 15] {
        let name = format!("ansi-{number}");
        for ground in ["base", "mantle"] {
            hold(&name, ground, tokens[name.as_str()], tokens[ground], 4.5);
        }
    }
    for name in GRAPHICS {
        for ground in GROUNDS {
            hold(name, ground, tokens[name], tokens[ground], 3.0);
        }
    }
    // Highlight marks with their text.
    for mark in ["hit", "select", "added-line", "removed-line", "added-word", "removed-word"] {
        hold("text", mark, tokens["text"], over(tokens[mark], tokens["base"]), 4.5);
    }
    // A button in the accent colour.
    hold("base", "accent", tokens["base"], tokens["accent"], 4.5);
    failures
}

#[test]
fn text_can_be_read_in_the_light() {
    assert_eq!(failures(0), Vec::<String>::new());
}

#[test]
fn text_can_be_read_in_the_dark() {
    assert_eq!(failures(1), Vec::<String>::new());
}

#[test]
fn black_on_white_is_21_to_1() {
    assert!((contrast(parse("#000000"), parse("#ffffff")) - 21.0).abs() < 1e-9);
    assert!((contrast(parse("#777777"), parse("#ffffff")) - 4.48).abs() < 0.01);
}
