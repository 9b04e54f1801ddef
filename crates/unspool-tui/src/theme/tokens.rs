//! The tokens of each theme. Those in true colour equal the web's (`theme.css`); a test compares
//! them.

use ratatui::style::{Color, Modifier, Style};

use super::colour_math::{Rgb, colour, over, rgb};

/// The style of each token of the style sheet. Styles rather than colours: without colours, bold
/// and underlined text replace them.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Tokens {
    pub base: Style,
    pub subtext: Style,
    pub muted: Style,
    pub pending: Style,
    pub running: Style,
    pub ok: Style,
    pub failed: Style,
    pub interrupted: Style,
    pub accent: Style,
    pub warning: Style,
    pub user: Style,
    pub badge_running: Style,
    pub badge_ok: Style,
    pub badge_failed: Style,
    pub added: Style,
    pub removed: Style,
    pub added_word: Style,
    pub removed_word: Style,
    pub selection: Style,
    pub hit: Style,
    pub current_hit: Style,
    pub status: Style,
    /// The sixteen ANSI colours of program output.
    pub ansi: [Color; 16],
}

impl Tokens {
    pub const fn of(theme_colours: &ThemeColours) -> Tokens {
        let base = rgb(theme_colours.base);
        Tokens {
            base: on(theme_colours.text, base),
            subtext: fg(theme_colours.subtext),
            muted: fg(theme_colours.muted),
            pending: fg(theme_colours.pending),
            running: fg(theme_colours.running),
            ok: fg(theme_colours.ok),
            failed: fg(theme_colours.failed),
            interrupted: fg(theme_colours.interrupted),
            accent: fg(theme_colours.accent),
            warning: fg(theme_colours.warning),
            user: fg(theme_colours.user),
            badge_running: fg(theme_colours.badge_running),
            badge_ok: fg(theme_colours.badge_ok),
            badge_failed: fg(theme_colours.badge_failed),
            added: fg(theme_colours.ok),
            removed: fg(theme_colours.failed),
            added_word: on(theme_colours.ok, over(theme_colours.added_word, base)),
            removed_word: on(theme_colours.failed, over(theme_colours.removed_word, base)),
            selection: Style::new().bg(colour(over(theme_colours.select, base))),
            hit: Style::new().bg(colour(over(theme_colours.hit, base))),
            current_hit: Style::new().bg(colour(over(theme_colours.hit_strong, base))),
            status: on(theme_colours.subtext, rgb(theme_colours.mantle)),
            ansi: palette(&theme_colours.ansi),
        }
    }
}

/// Muted text is dimmed rather than grey: `BrightBlack` is the background itself in some palettes.
pub const SIXTEEN: Tokens = Tokens {
    base: Style::new().fg(Color::Reset).bg(Color::Reset),
    subtext: DIM,
    muted: DIM,
    pending: DIM,
    running: Style::new().fg(Color::Blue),
    ok: Style::new().fg(Color::Green),
    failed: Style::new().fg(Color::Red),
    interrupted: Style::new().fg(Color::Yellow),
    accent: Style::new().fg(Color::Cyan),
    warning: Style::new().fg(Color::Yellow),
    user: BOLD,
    badge_running: Style::new().fg(Color::Yellow),
    badge_ok: Style::new().fg(Color::Cyan),
    badge_failed: Style::new().fg(Color::Magenta),
    added: Style::new().fg(Color::Green),
    removed: Style::new().fg(Color::Red),
    added_word: Style::new().fg(Color::Green).add_modifier(WORD),
    removed_word: Style::new().fg(Color::Red).add_modifier(WORD),
    selection: REVERSED,
    hit: Style::new().fg(Color::Black).bg(Color::Yellow),
    current_hit: Style::new().fg(Color::Black).bg(Color::Magenta),
    status: REVERSED,
    ansi: NAMED,
};

pub const MONO: Tokens = Tokens {
    base: Style::new().fg(Color::Reset).bg(Color::Reset),
    subtext: DIM,
    muted: DIM,
    pending: DIM,
    running: BOLD,
    ok: PLAIN,
    failed: BOLD,
    interrupted: BOLD,
    accent: BOLD,
    warning: BOLD,
    user: BOLD,
    badge_running: BOLD,
    badge_ok: BOLD,
    badge_failed: BOLD,
    added: PLAIN,
    removed: PLAIN,
    added_word: WORD_STYLE,
    removed_word: WORD_STYLE,
    selection: REVERSED,
    hit: WORD_STYLE,
    current_hit: WORD_STYLE.add_modifier(Modifier::REVERSED),
    status: REVERSED,
    ansi: [Color::Reset; 16],
};

const PLAIN: Style = Style::new();
const DIM: Style = Style::new().add_modifier(Modifier::DIM);
const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const REVERSED: Style = Style::new().add_modifier(Modifier::REVERSED);
const WORD: Modifier = Modifier::BOLD.union(Modifier::UNDERLINED);
const WORD_STYLE: Style = Style::new().add_modifier(WORD);

/// The colours of the style sheet that a terminal needs. The last byte of eight-digit values is
/// alpha.
pub struct ThemeColours {
    pub name: &'static str,
    pub base: u32,
    pub mantle: u32,
    pub subtext: u32,
    pub text: u32,
    pub running: u32,
    pub ok: u32,
    pub failed: u32,
    pub interrupted: u32,
    pub pending: u32,
    pub muted: u32,
    pub accent: u32,
    pub warning: u32,
    pub user: u32,
    pub badge_running: u32,
    pub badge_ok: u32,
    pub badge_failed: u32,
    pub added_word: u32,
    pub removed_word: u32,
    pub select: u32,
    pub hit: u32,
    pub hit_strong: u32,
    pub ansi: [u32; 16],
}

pub const MOCHA: ThemeColours = ThemeColours {
    name: "mocha",
    base: 0x1e1e2e,
    mantle: 0x181825,
    subtext: 0xa6adc8,
    text: 0xcdd6f4,
    running: 0x89b4fa,
    ok: 0xa6e3a1,
    failed: 0xf38ba8,
    interrupted: 0xf9e2af,
    pending: 0x585b70,
    muted: 0x6c7086,
    accent: 0x94e2d5,
    warning: 0xfab387,
    user: 0xcba6f7,
    badge_running: 0xf9c46b,
    badge_ok: 0x89dceb,
    badge_failed: 0xf5a3e0,
    added_word: 0xa6e3a140,
    removed_word: 0xf38ba840,
    select: 0x94e2d533,
    hit: 0xf9e2af33,
    hit_strong: 0xf9e2af66,
    ansi: [
        0x45475a, 0xf38ba8, 0xa6e3a1, 0xf9e2af, 0x89b4fa, 0xf5c2e7, 0x94e2d5, 0xbac2de, 0x6c7086,
        0xf38ba8, 0xa6e3a1, 0xf9e2af, 0x89b4fa, 0xf5c2e7, 0x94e2d5, 0xcdd6f4,
    ],
};

pub const LATTE: ThemeColours = ThemeColours {
    name: "latte",
    base: 0xeff1f5,
    mantle: 0xe6e9ef,
    subtext: 0x575a72,
    text: 0x34364c,
    running: 0x1b54c7,
    ok: 0x276a19,
    failed: 0xbb0e35,
    interrupted: 0x825500,
    pending: 0x575a72,
    muted: 0x575a72,
    accent: 0x0d696f,
    warning: 0x9c4103,
    user: 0x7a2fd0,
    badge_running: 0x825500,
    badge_ok: 0x096581,
    badge_failed: 0xa82186,
    added_word: 0x40a02b3d,
    removed_word: 0xd20f393d,
    select: 0x17929933,
    hit: 0xdf8e1d33,
    hit_strong: 0xdf8e1d66,
    ansi: [
        0x575a72, 0xbb0e35, 0x276a19, 0x825500, 0x1b54c7, 0xa82186, 0x0d696f, 0x6c6f85, 0x6c6f85,
        0xbb0e35, 0x276a19, 0x825500, 0x1b54c7, 0xa82186, 0x0d696f, 0x4c4f69,
    ],
};

const NAMED: [Color; 16] = [
    Color::Black,
    Color::Red,
    Color::Green,
    Color::Yellow,
    Color::Blue,
    Color::Magenta,
    Color::Cyan,
    Color::Gray,
    Color::DarkGray,
    Color::LightRed,
    Color::LightGreen,
    Color::LightYellow,
    Color::LightBlue,
    Color::LightMagenta,
    Color::LightCyan,
    Color::White,
];

const fn fg(hex: u32) -> Style {
    Style::new().fg(colour(rgb(hex)))
}

const fn on(hex: u32, ground: Rgb) -> Style {
    fg(hex).bg(colour(ground))
}

const fn palette(hex: &[u32; 16]) -> [Color; 16] {
    let mut colours = [Color::Reset; 16];
    let mut at = 0;
    while at < 16 {
        colours[at] = colour(rgb(hex[at]));
        at += 1;
    }
    colours
}
