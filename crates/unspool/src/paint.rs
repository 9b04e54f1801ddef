//! Paints laid-out lines for `show`, with or without ANSI colours. The text of a line contains no
//! control characters; the only escapes are those written here.

use std::io::{self, Write};

use anstyle::{Ansi256Color, AnsiColor, Color, RgbColor, Style as Ansi};
use unspool_model::note::PlacedNote;
use unspool_model::price::Prices;
use unspool_model::session::{Session, Turn};
use unspool_model::summary::Summary;
use unspool_view::block::{self, Tone};
use unspool_view::lines::{
    Line, LineOptions, Style as Look, TextRole, continues_group, item_lines, layout, turn_lines,
};
use unspool_view::present::agents::SubagentSessions;
use unspool_view::present::notes::{NoteViews, head_blocks};
use unspool_view::segment::SegmentRule;
use unspool_view::{plain, present};

/// How to paint.
pub struct Style {
    pub colour: bool,
    pub width: usize,
    /// Show everything: reasoning unfolded, outputs uncut.
    pub full: bool,
    /// How parts are grouped into reasoning blocks.
    pub rule: SegmentRule,
}

/// What is shown in turns beside their own content.
#[derive(Default)]
pub struct Joined {
    pub subagents: SubagentSessions,
    pub notes: NoteViews,
}

/// The terminal's width, if there is a terminal.
pub fn terminal_width() -> Option<usize> {
    terminal_size::terminal_size().map(|(width, _)| usize::from(width.0))
}

/// Paints the head of a session.
pub fn head(
    summary: &Summary,
    prices: &Prices,
    style: &Style,
    out: &mut impl Write,
) -> io::Result<()> {
    let head = layout(&present::session(summary, prices), style.width, &style.options());
    write_lines(&head, style, out)
}

/// Paints the notes at the head of a session, after an empty line.
pub fn head_notes(notes: &[PlacedNote], style: &Style, out: &mut impl Write) -> io::Result<()> {
    let lines = layout(&head_blocks(notes), style.width, &style.options());
    if !lines.is_empty() {
        writeln!(out)?;
    }
    write_lines(&lines, style, out)
}

/// Paints blocks.
pub fn blocks(blocks: &[block::Block], style: &Style, out: &mut impl Write) -> io::Result<()> {
    write_lines(&layout(blocks, style.width, &style.options()), style, out)?;
    out.flush()
}

/// Paints turns of a session, each after an empty line.
pub fn turns(
    session: &Session,
    turns: &[Turn],
    joined: Joined,
    style: &Style,
    out: &mut impl Write,
) -> io::Result<()> {
    let shown = style.present_options(session, joined);
    for turn in turns {
        let view = present::turn(turn, &shown);
        writeln!(out)?;
        write_lines(&turn_lines(&view, style.width, &style.options()), style, out)?;
    }
    out.flush()
}

/// Paints the header and the user's message of a turn, after an empty line.
pub fn turn_head(
    session: &Session,
    turn: &Turn,
    joined: Joined,
    style: &Style,
    out: &mut impl Write,
) -> io::Result<()> {
    let head = Turn { parts: Vec::new(), ..turn.clone() };
    turns(session, &[head], joined, style, out)
}

/// Paints the parts of a turn without its header, each item after an empty line, and parallel calls
/// together.
pub fn items(
    session: &Session,
    turn: &Turn,
    joined: Joined,
    style: &Style,
    out: &mut impl Write,
) -> io::Result<()> {
    let shown = style.present_options(session, joined);
    for item in &present::turn(turn, &shown).items {
        let lines = item_lines(item, style.width, &style.options());
        if !lines.is_empty() {
            if !continues_group(item) {
                writeln!(out)?;
            }
            write_lines(&lines, style, out)?;
        }
    }
    out.flush()
}

impl Style {
    fn options(&self) -> LineOptions<'static> {
        if self.full { LineOptions::everything() } else { LineOptions::default() }
    }

    fn present_options(&self, session: &Session, joined: Joined) -> present::PresentOptions {
        let Joined { subagents, notes } = joined;
        let options = present::PresentOptions::of(session);
        present::PresentOptions { subagents, notes, rule: self.rule, ..options }
    }
}

fn write_lines(lines: &[Line], style: &Style, out: &mut impl Write) -> io::Result<()> {
    if !style.colour {
        return out.write_all(plain::paint(lines).as_bytes());
    }
    for line in lines {
        for run in &line.runs {
            let ansi = ansi(&run.style);
            write!(out, "{ansi}{}{ansi:#}", run.text)?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn ansi(look: &Look) -> Ansi {
    let mut style = role(look.role);
    if let Some(colour) = look.foreground {
        style = style.fg_color(Some(colour_of(colour)));
    }
    if let Some(colour) = look.background {
        style = style.bg_color(Some(colour_of(colour)));
    }
    for (wanted, effect) in [
        (look.strong, anstyle::Effects::BOLD),
        (look.dim, anstyle::Effects::DIMMED),
        (look.emphasis, anstyle::Effects::ITALIC),
        (look.underline, anstyle::Effects::UNDERLINE),
        (look.strike, anstyle::Effects::STRIKETHROUGH),
        (look.inverse, anstyle::Effects::INVERT),
    ] {
        if wanted {
            style = style.effects(style.get_effects() | effect);
        }
    }
    style
}

fn colour_of(colour: block::Color) -> Color {
    match colour {
        block::Color::Indexed(index) => Ansi256Color(index).into(),
        block::Color::Rgb(red, green, blue) => RgbColor(red, green, blue).into(),
    }
}

/// The sixteen colours of the terminal's own palette, so that light and dark terminals both stay
/// readable. Badges are amber, cyan and magenta (R-000-21).
fn role(role: TextRole) -> Ansi {
    let colour = |colour: AnsiColor| Ansi::new().fg_color(Some(colour.into()));
    match role {
        // `show` does not highlight code: loading the grammars would delay it.
        TextRole::Plain | TextRole::Path | TextRole::Token(_) => Ansi::new(),
        TextRole::Heading => Ansi::new().bold(),
        TextRole::Code => colour(AnsiColor::Cyan),
        TextRole::Link => colour(AnsiColor::Blue).underline(),
        TextRole::Gutter => colour(AnsiColor::BrightBlack),
        TextRole::Added => colour(AnsiColor::Green),
        TextRole::Removed => colour(AnsiColor::Red),
        TextRole::AddedWord => colour(AnsiColor::Green).bold().underline(),
        TextRole::RemovedWord => colour(AnsiColor::Red).bold().underline(),
        TextRole::Tone(tone) | TextRole::Badge(tone) => match tone {
            Tone::Running | Tone::Interrupted | Tone::Warning => colour(AnsiColor::Yellow),
            Tone::Ok => colour(AnsiColor::Cyan),
            Tone::Failed => colour(AnsiColor::Magenta),
            Tone::Pending | Tone::Background | Tone::Muted => colour(AnsiColor::BrightBlack),
            Tone::Accent => colour(AnsiColor::Cyan),
            Tone::User => Ansi::new().bold(),
            Tone::Added => colour(AnsiColor::Green),
            Tone::Removed => colour(AnsiColor::Red),
        },
    }
}
