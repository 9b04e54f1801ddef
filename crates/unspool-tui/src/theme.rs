//! Themes: map the roles and tones of lines to terminal styles. Catppuccin in true colour, with the
//! tokens of the web's style sheet; the terminal's own sixteen colours if it has no more; and no
//! colours at all (NO_COLOR).

mod colour_math;
mod tokens;

use ratatui::style::{Color, Modifier, Style};
use unspool_view::block::{self, Tone};
use unspool_view::lines::{self, TextRole, Token};

use self::colour_math::{Rgb, colour, mixed, nearest_ansi, xterm_colour};
use self::tokens::{ThemeColours, Tokens};

/// A theme.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Theme {
    pub name: &'static str,
    depth: ColourDepth,
    tokens: Tokens,
}

/// The colours a terminal can show.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ColourDepth {
    /// Any colour; this is the background, for blending.
    True(Rgb),
    Sixteen,
    None,
}

impl Theme {
    /// Catppuccin Mocha: dark. The tones are those of R-003-50.
    pub const fn mocha() -> Theme {
        Theme::of(&tokens::MOCHA)
    }

    /// Catppuccin Latte: light, its tones deepened so that they can be read as text.
    pub const fn latte() -> Theme {
        Theme::of(&tokens::LATTE)
    }

    const fn of(theme_colours: &ThemeColours) -> Theme {
        let depth = ColourDepth::True(colour_math::rgb(theme_colours.base));
        Theme { name: theme_colours.name, depth, tokens: Tokens::of(theme_colours) }
    }

    /// The terminal's own colours, readable on its own background, light or dark.
    pub const fn sixteen() -> Theme {
        Theme { name: "16", depth: ColourDepth::Sixteen, tokens: tokens::SIXTEEN }
    }

    /// No colours (NO_COLOR): weight, underlines and words replace them.
    pub const fn mono() -> Theme {
        Theme { name: "mono", depth: ColourDepth::None, tokens: tokens::MONO }
    }

    /// The theme of this name; `auto` detects it from the environment.
    pub fn named(name: &str) -> Option<Theme> {
        match name {
            "mocha" => Some(Theme::mocha()),
            "latte" => Some(Theme::latte()),
            "16" => Some(Theme::sixteen()),
            "mono" => Some(Theme::mono()),
            "auto" => Some(Theme::detect(|name| std::env::var(name).ok())),
            _ => None,
        }
    }

    /// The names that [`Theme::named`] accepts.
    pub const NAMES: [&'static str; 5] = ["auto", "mocha", "latte", "16", "mono"];

    /// Detects the theme from NO_COLOR, COLORTERM and COLORFGBG.
    pub fn detect(variable: impl Fn(&str) -> Option<String>) -> Theme {
        let is_set = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
        if is_set("NO_COLOR") {
            return Theme::mono();
        }
        match variable("COLORTERM").as_deref() {
            Some("truecolor" | "24bit") if is_light(variable("COLORFGBG")) => Theme::latte(),
            Some("truecolor" | "24bit") => Theme::mocha(),
            Some(_) | None => Theme::sixteen(),
        }
    }

    /// The style of a run, to be patched onto the cell's style.
    pub fn style(&self, line_style: &lines::Style) -> Style {
        let mut style = self.role(line_style.role);
        if let Some(colour) = line_style.foreground.and_then(|colour| self.program_colour(colour)) {
            style = style.fg(colour);
        }
        if let Some(colour) = line_style.background.and_then(|colour| self.program_colour(colour)) {
            style = style.bg(colour);
        }
        if line_style.dim {
            style = self.dimmed(style, line_style.role);
        }
        for (wanted, modifier) in [
            (line_style.strong, Modifier::BOLD),
            (line_style.emphasis, Modifier::ITALIC),
            (line_style.underline, Modifier::UNDERLINED),
            (line_style.strike, Modifier::CROSSED_OUT),
            (line_style.inverse, Modifier::REVERSED),
        ] {
            if wanted {
                style = style.add_modifier(modifier);
            }
        }
        style
    }

    fn role(&self, role: TextRole) -> Style {
        let tokens = &self.tokens;
        match role {
            TextRole::Plain | TextRole::Path => Style::new(),
            TextRole::Heading => Style::new().add_modifier(Modifier::BOLD),
            TextRole::Code => tokens.accent.remove_modifier(Modifier::BOLD),
            TextRole::Link => tokens.running.add_modifier(Modifier::UNDERLINED),
            TextRole::Gutter => tokens.muted,
            TextRole::Added => tokens.added,
            TextRole::Removed => tokens.removed,
            TextRole::AddedWord => tokens.added_word,
            TextRole::RemovedWord => tokens.removed_word,
            TextRole::Tone(tone) => self.tone(tone),
            TextRole::Badge(tone) => self.badge(tone),
            TextRole::Token(token) => self.token(token),
        }
    }

    /// The style of a tone (R-003-50).
    pub fn tone(&self, tone: Tone) -> Style {
        let tokens = &self.tokens;
        match tone {
            Tone::Pending => tokens.pending,
            Tone::Running => tokens.running,
            Tone::Ok => tokens.ok,
            Tone::Failed => tokens.failed,
            Tone::Interrupted => tokens.interrupted,
            Tone::Background | Tone::Muted => tokens.muted,
            Tone::Accent => tokens.accent,
            Tone::Warning => tokens.warning,
            Tone::User => tokens.user,
            Tone::Added => tokens.added,
            Tone::Removed => tokens.removed,
        }
    }

    /// The style of a badge such as `[OK]`: amber, cyan or magenta (R-000-21).
    pub fn badge(&self, tone: Tone) -> Style {
        let tokens = &self.tokens;
        match tone {
            Tone::Pending | Tone::Running => tokens.badge_running,
            Tone::Ok => tokens.badge_ok,
            Tone::Failed | Tone::Interrupted => tokens.badge_failed,
            // No badge has these tones.
            Tone::Background
            | Tone::Muted
            | Tone::Accent
            | Tone::Warning
            | Tone::User
            | Tone::Added
            | Tone::Removed => self.tone(tone),
        }
    }

    /// The style of a code token, as on the page.
    fn token(&self, token: Token) -> Style {
        let tokens = &self.tokens;
        match token {
            Token::Plain => Style::new(),
            Token::Keyword => tokens.user,
            Token::String => tokens.ok,
            Token::Comment => tokens.muted.add_modifier(Modifier::ITALIC),
            // Without colours only keywords, strings and comments are distinguished.
            Token::Number
            | Token::Literal
            | Token::Function
            | Token::Tag
            | Token::Type
            | Token::Attribute
            | Token::Property
                if self.depth == ColourDepth::None =>
            {
                Style::new()
            }
            Token::Number | Token::Literal => tokens.warning,
            Token::Function | Token::Tag => tokens.running,
            Token::Type => tokens.interrupted,
            Token::Attribute | Token::Property => tokens.accent,
        }
    }

    /// Dims a style by blending it with the background. Muted styles are not dimmed twice.
    fn dimmed(&self, style: Style, role: TextRole) -> Style {
        let is_quiet = [self.tokens.muted, self.tokens.pending].contains(&style);
        let is_muted = is_quiet || role == TextRole::Token(Token::Comment);
        match (self.depth, style.fg) {
            (_, _) if is_muted => style,
            (ColourDepth::True(_), None) => style.patch(self.tokens.subtext),
            (ColourDepth::True(base), Some(Color::Rgb(r, g, b))) => {
                style.fg(colour(mixed((r, g, b), 0xb3, base)))
            }
            (ColourDepth::True(_) | ColourDepth::Sixteen | ColourDepth::None, _) => {
                style.add_modifier(Modifier::DIM)
            }
        }
    }

    /// A colour chosen by a program's output, mapped to what the terminal has.
    fn program_colour(&self, colour: block::Color) -> Option<Color> {
        let ansi = |index: u8| self.tokens.ansi.get(usize::from(index)).copied();
        match (self.depth, colour) {
            (ColourDepth::None, _) => None,
            (
                ColourDepth::True(_) | ColourDepth::Sixteen,
                block::Color::Indexed(index @ 0..=15),
            ) => ansi(index),
            (ColourDepth::True(_), block::Color::Indexed(index)) => Some(Color::Indexed(index)),
            (ColourDepth::True(_), block::Color::Rgb(r, g, b)) => Some(Color::Rgb(r, g, b)),
            (ColourDepth::Sixteen, block::Color::Indexed(index)) => {
                ansi(nearest_ansi(xterm_colour(index)))
            }
            (ColourDepth::Sixteen, block::Color::Rgb(r, g, b)) => ansi(nearest_ansi((r, g, b))),
        }
    }

    /// Background and plain text.
    pub fn base(&self) -> Style {
        self.tokens.base
    }

    /// Secondary text.
    pub fn muted(&self) -> Style {
        self.tokens.muted
    }

    /// The background of the selection.
    pub fn selection(&self) -> Style {
        self.tokens.selection
    }

    /// The rail beside the entry at the cursor.
    pub fn rail(&self) -> Style {
        self.tokens.accent
    }

    /// The background of search hits.
    pub fn hit(&self) -> Style {
        self.tokens.hit
    }

    /// The background of the current hit.
    pub fn current_hit(&self) -> Style {
        self.tokens.current_hit
    }

    /// Header and footer.
    pub fn status(&self) -> Style {
        self.tokens.status
    }
}

/// Parses COLORFGBG: `foreground;background`, sometimes with a field between, as palette indices.
fn is_light(colours: Option<String>) -> bool {
    let ground = colours.as_deref().and_then(|colours| colours.rsplit(';').next());
    matches!(ground.and_then(|ground| ground.trim().parse().ok()), Some(7_u8 | 9..=15))
}

#[cfg(test)]
#[path = "theme_tests.rs"]
mod tests;
