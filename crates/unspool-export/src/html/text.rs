//! Makes agent text safe for HTML pages. maud does the escaping; this module replaces control
//! characters and bidirectional overrides, which could disguise text, by visible symbols.

use std::borrow::Cow;

use maud::{Markup, html};
use unspool_view::block::{Span, SpanStyle, Tone, is_deceptive};

/// Makes every control character visible except newlines and tabs.
pub fn safe(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\n' | '\t' => out.push(c),
            '\r' => {}
            '\u{0}'..='\u{1f}' => out.extend(char::from_u32(0x2400 + c as u32)),
            '\u{7f}' => out.push('␡'),
            '\u{80}'..='\u{9f}' => out.push(char::REPLACEMENT_CHARACTER),
            '\u{2028}' | '\u{2029}' => out.push('\n'),
            c if is_deceptive(c) => out.push_str(&format!("‹U+{:04X}›", c as u32)),
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

fn is_unsafe(c: char) -> bool {
    let kept = matches!(c, '\n' | '\t');
    !kept && (c.is_control() || is_deceptive(c) || matches!(c, '\u{2028}' | '\u{2029}'))
}

/// Paints spans with their styles.
pub fn spans(spans: &[Span]) -> Markup {
    html! { @for span in spans { (paint_span(span)) } }
}

fn paint_span(span: &Span) -> Markup {
    let text = html! { (safe(&span.text)) };
    let SpanStyle { strong, emphasis, strike, code, dim, path, link, tone } = &span.style;
    let text = if *code {
        html! { code { (text) } }
    } else {
        text
    };
    let text = if *path {
        html! { span.path { (text) } }
    } else {
        text
    };
    let text = if *strong {
        html! { strong { (text) } }
    } else {
        text
    };
    let text = if *emphasis {
        html! { em { (text) } }
    } else {
        text
    };
    let text = if *strike {
        html! { s { (text) } }
    } else {
        text
    };
    let text = if *dim {
        html! { span.dim { (text) } }
    } else {
        text
    };
    let text = match tone {
        Some(tone) => html! { span class=(tone_class(*tone)) { (text) } },
        None => text,
    };
    match link {
        // Do not leak the referrer or the opener to the link's target.
        Some(link) => html! {
            a href=(link) rel="noreferrer noopener nofollow" target="_blank" { (text) }
        },
        None => text,
    }
}

/// The CSS class of a tone.
pub fn tone_class(tone: Tone) -> &'static str {
    match tone {
        Tone::Pending => "tone-pending",
        Tone::Running => "tone-running",
        Tone::Ok => "tone-ok",
        Tone::Failed => "tone-failed",
        Tone::Interrupted => "tone-interrupted",
        Tone::Background => "tone-background",
        Tone::Muted => "tone-muted",
        Tone::Accent => "tone-accent",
        Tone::Warning => "tone-warning",
        Tone::User => "tone-user",
        Tone::Added => "tone-added",
        Tone::Removed => "tone-removed",
    }
}
