use unspool_view::lines::Style as LineStyle;

use super::*;

const THEMES: [Theme; 4] = [Theme::mocha(), Theme::latte(), Theme::sixteen(), Theme::mono()];

fn hex(style: Style) -> String {
    let Some(Color::Rgb(r, g, b)) = style.fg else { panic!("{style:?}") };
    format!("#{r:02x}{g:02x}{b:02x}")
}

#[test]
fn r_003_50_states_have_their_colours() {
    // R-003-50 R-003-51
    let theme = Theme::mocha();
    for (tone, wanted) in [
        (Tone::Running, "#89b4fa"),
        (Tone::Ok, "#a6e3a1"),
        (Tone::Failed, "#f38ba8"),
        (Tone::Interrupted, "#f9e2af"),
        (Tone::Pending, "#585b70"),
        (Tone::Background, "#6c7086"),
        (Tone::Muted, "#6c7086"),
        (Tone::Accent, "#94e2d5"),
    ] {
        assert_eq!(hex(theme.style(&LineStyle::tone(tone))), wanted, "{tone:?}");
    }
}

#[test]
fn r_000_21_badges_are_amber_cyan_and_magenta() {
    // R-000-21
    let badge = |theme: &Theme, tone| theme.style(&LineStyle::role(TextRole::Badge(tone)));
    let mocha = Theme::mocha();
    assert_eq!(hex(badge(&mocha, Tone::Running)), "#f9c46b");
    assert_eq!(hex(badge(&mocha, Tone::Pending)), "#f9c46b");
    assert_eq!(hex(badge(&mocha, Tone::Ok)), "#89dceb");
    assert_eq!(hex(badge(&mocha, Tone::Failed)), "#f5a3e0");
    assert_eq!(hex(badge(&mocha, Tone::Interrupted)), "#f5a3e0");
    let sixteen = Theme::sixteen();
    assert_eq!(badge(&sixteen, Tone::Running).fg, Some(Color::Yellow));
    assert_eq!(badge(&sixteen, Tone::Ok).fg, Some(Color::Cyan));
    assert_eq!(badge(&sixteen, Tone::Failed).fg, Some(Color::Magenta));
}

/// The page and the terminal share one palette. In the dark theme the page's pending and muted are
/// lighter than in R-003-50, because it uses them for whole sentences.
#[test]
fn c_18_the_tokens_are_those_of_the_page() {
    let css = include_str!("../../unspool-export/assets/theme.css");
    let token = |name: &str, at: usize| {
        let line = css.lines().find(|line| line.trim().starts_with(&format!("--{name}:")));
        let values = line.unwrap().split_once("light-dark(").unwrap().1;
        let value = values.split([',', ')']).nth(at).unwrap().trim();
        u32::from_str_radix(value.trim_start_matches('#'), 16).unwrap()
    };
    for (at, theme_colours) in [(0, &tokens::LATTE), (1, &tokens::MOCHA)] {
        for (name, ours) in [
            ("base", theme_colours.base),
            ("mantle", theme_colours.mantle),
            ("subtext", theme_colours.subtext),
            ("text", theme_colours.text),
            ("running", theme_colours.running),
            ("ok", theme_colours.ok),
            ("failed", theme_colours.failed),
            ("interrupted", theme_colours.interrupted),
            ("accent", theme_colours.accent),
            ("warning", theme_colours.warning),
            ("user", theme_colours.user),
            ("badge-running", theme_colours.badge_running),
            ("badge-ok", theme_colours.badge_ok),
            ("badge-failed", theme_colours.badge_failed),
            ("added", theme_colours.ok),
            ("removed", theme_colours.failed),
            ("added-word", theme_colours.added_word),
            ("removed-word", theme_colours.removed_word),
            ("select", theme_colours.select),
            ("hit", theme_colours.hit),
            ("hit-strong", theme_colours.hit_strong),
        ] {
            assert_eq!(ours, token(name, at), "{name} of {}", theme_colours.name);
        }
        for (index, ours) in theme_colours.ansi.iter().enumerate() {
            assert_eq!(
                *ours,
                token(&format!("ansi-{index}"), at),
                "{index} of {}",
                theme_colours.name
            );
        }
    }
    assert_eq!(tokens::LATTE.pending, token("pending", 0));
    assert_eq!(tokens::LATTE.muted, token("muted", 0));
}

#[test]
fn the_environment_chooses() {
    let with = |variables: &'static [(&str, &str)]| {
        let found = |name: &str| variables.iter().find(|(of, _)| *of == name);
        Theme::detect(|name| found(name).map(|(_, value)| (*value).to_owned())).name
    };
    assert_eq!(with(&[]), "16");
    assert_eq!(with(&[("COLORTERM", "truecolor")]), "mocha");
    assert_eq!(with(&[("COLORTERM", "24bit"), ("COLORFGBG", "15;0")]), "mocha");
    assert_eq!(with(&[("COLORTERM", "24bit"), ("COLORFGBG", "0;15")]), "latte");
    assert_eq!(with(&[("COLORTERM", "24bit"), ("COLORFGBG", "0;default;7")]), "latte");
    assert_eq!(with(&[("COLORTERM", "24bit"), ("COLORFGBG", "0;default")]), "mocha");
    assert_eq!(with(&[("COLORTERM", "truecolor"), ("NO_COLOR", "1")]), "mono");
    assert_eq!(with(&[("COLORTERM", "truecolor"), ("NO_COLOR", "")]), "mocha");
    for name in Theme::NAMES {
        assert!(Theme::named(name).is_some_and(|theme| name == "auto" || theme.name == name));
    }
    assert!(Theme::named("pink").is_none());
}

#[test]
fn program_colours_map_to_the_available_palette() {
    let red = LineStyle { foreground: Some(block::Color::Indexed(1)), ..LineStyle::default() };
    let pink =
        LineStyle { foreground: Some(block::Color::Rgb(250, 10, 10)), ..LineStyle::default() };
    let cube = LineStyle { background: Some(block::Color::Indexed(21)), ..LineStyle::default() };
    assert_eq!(hex(Theme::mocha().style(&red)), "#f38ba8");
    assert_eq!(hex(Theme::latte().style(&red)), "#bb0e35");
    assert_eq!(hex(Theme::mocha().style(&pink)), "#fa0a0a");
    assert_eq!(Theme::mocha().style(&cube).bg, Some(Color::Indexed(21)));
    let sixteen = Theme::sixteen();
    assert_eq!(sixteen.style(&red).fg, Some(Color::Red));
    assert_eq!(sixteen.style(&pink).fg, Some(Color::LightRed));
    assert_eq!(sixteen.style(&cube).bg, Some(Color::Blue));
    for index in 0..=255 {
        let line_style =
            LineStyle { foreground: Some(block::Color::Indexed(index)), ..LineStyle::default() };
        assert!(NAMED_COLOURS.contains(&sixteen.style(&line_style).fg.unwrap()));
        assert_eq!(Theme::mono().style(&line_style).fg, None);
    }
}

const NAMED_COLOURS: [Color; 16] = tokens::SIXTEEN.ansi;

#[test]
fn no_color_means_none() {
    let theme = Theme::mono();
    let styles = [theme.base(), theme.selection(), theme.hit(), theme.current_hit()]
        .into_iter()
        .chain([theme.status(), theme.rail(), theme.muted()])
        .chain(roles().map(|role| theme.style(&LineStyle::role(role))));
    for style in styles {
        for colour in [style.fg, style.bg].into_iter().flatten() {
            assert_eq!(colour, Color::Reset);
        }
    }
}

#[test]
fn dim_text_is_muted_but_never_twice() {
    for theme in THEMES {
        for role in roles() {
            let loud = theme.style(&LineStyle::role(role));
            let dim = theme.style(&LineStyle { dim: true, ..LineStyle::role(role) });
            let is_muted = loud == theme.muted()
                || loud == theme.tone(Tone::Pending)
                || role == TextRole::Token(Token::Comment);
            assert_eq!(loud == dim, is_muted, "{} {role:?}", theme.name);
        }
    }
}

fn roles() -> impl Iterator<Item = TextRole> {
    let tones = [
        Tone::Pending,
        Tone::Running,
        Tone::Ok,
        Tone::Failed,
        Tone::Interrupted,
        Tone::Background,
        Tone::Muted,
        Tone::Accent,
        Tone::Warning,
        Tone::User,
        Tone::Added,
        Tone::Removed,
    ];
    let tokens = [
        Token::Plain,
        Token::Keyword,
        Token::String,
        Token::Comment,
        Token::Number,
        Token::Literal,
        Token::Function,
        Token::Type,
        Token::Tag,
        Token::Attribute,
        Token::Property,
    ];
    let plain = [
        TextRole::Plain,
        TextRole::Heading,
        TextRole::Code,
        TextRole::Link,
        TextRole::Path,
        TextRole::Gutter,
        TextRole::Added,
        TextRole::Removed,
        TextRole::AddedWord,
        TextRole::RemovedWord,
    ];
    let tones = tones.into_iter().flat_map(|tone| [TextRole::Tone(tone), TextRole::Badge(tone)]);
    plain.into_iter().chain(tones).chain(tokens.map(TextRole::Token))
}
