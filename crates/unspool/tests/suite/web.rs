//! Pages of every recording, hostile ones among them: nothing that an agent wrote becomes markup.

use std::collections::BTreeSet;

use unspool_core::part::{Body, Text};
use unspool_core::present;
use unspool_core::price::Prices;
use unspool_core::session::Transcript;
use unspool_core::summary::Completeness;
use unspool_render::page;

use crate::case::{all_cases, captures, fold_in, main_session, name};

/// All that a page is made of.
const TAGS: &[&str] = &[
    "a",
    "article",
    "aside",
    "blockquote",
    "body",
    "button",
    "code",
    "dd",
    "details",
    "div",
    "dl",
    "dt",
    "em",
    "figcaption",
    "figure",
    "form",
    "h1",
    "h3",
    "h4",
    "h5",
    "h6",
    "head",
    "header",
    "hr",
    "html",
    "img",
    "input",
    "label",
    "option",
    "select",
    "li",
    "link",
    "main",
    "mark",
    "meta",
    "nav",
    "ol",
    "p",
    "pre",
    "s",
    "script",
    "section",
    "span",
    "strong",
    "summary",
    "table",
    "tbody",
    "td",
    "th",
    "thead",
    "time",
    "title",
    "tr",
    "ul",
];

/// And all that its elements say of themselves: nothing that runs, and nothing that looks.
const ATTRIBUTES: &[&str] = &[
    "action",
    "alt",
    "aria-hidden",
    "aria-label",
    "aria-pressed",
    "autocomplete",
    "autofocus",
    "charset",
    "class",
    "content",
    "data-act",
    "data-agent",
    "data-at",
    "data-copy",
    "data-from",
    "data-gap",
    "data-inline",
    "data-kind",
    "data-language",
    "data-line",
    "data-number",
    "data-only",
    "download",
    "selected",
    "data-seq",
    "data-session",
    "data-sign",
    "data-state",
    "data-tool",
    "data-turn",
    "data-version",
    "datetime",
    "hidden",
    "href",
    "id",
    "lang",
    "loading",
    "method",
    "name",
    "open",
    "placeholder",
    "rel",
    "required",
    "role",
    "src",
    "start",
    "tabindex",
    "target",
    "title",
    "type",
    "value",
];

/// An element's start: its name and its attributes.
struct Start<'a> {
    tag: &'a str,
    attributes: Vec<(&'a str, &'a str)>,
}

/// Reads markup as a browser does, as far as ours goes. Panics where ours would not go.
fn starts(html: &str) -> Vec<Start<'_>> {
    let mut found = Vec::new();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        if rest.starts_with('/') || rest.starts_with("!DOCTYPE") {
            rest = &rest[rest.find('>').unwrap() + 1..];
            continue;
        }
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap();
        let tag = &rest[..end];
        assert!(!tag.is_empty(), "a bare < stands before {:?}", &rest[..rest.len().min(40)]);
        rest = &rest[end..];
        let mut attributes = Vec::new();
        loop {
            rest = rest.trim_start();
            if let Some(after) = rest.strip_prefix('>') {
                rest = after;
                break;
            }
            let end = rest.find(['=', ' ', '>']).unwrap();
            let key = &rest[..end];
            rest = &rest[end..];
            let mut value = "";
            if let Some(after) = rest.strip_prefix("=\"") {
                let end = after.find('"').unwrap();
                value = &after[..end];
                rest = &after[end + 1..];
            }
            attributes.push((key, value));
        }
        found.push(Start { tag, attributes });
    }
    found
}

fn render(transcript: &Transcript) -> String {
    let summary = transcript.summary(Completeness::Full, &[]);
    let options = present::Options::of(&transcript.session);
    let turns: Vec<_> = transcript.turns.iter().map(|turn| present::turn(turn, &options)).collect();
    let prices = Prices::listed();
    let page = page::Session {
        summary: &summary,
        prices: &prices,
        seq: 0,
        window: page::Window { turns: &turns, earlier: None, later: None, prompts: &[] },
        resume: None,
    };
    page::session(&page, &page::Choice { tools: &[], only: None }).into_string()
}

fn check(html: &str, whose: &str) {
    let bad =
        |c: char| (c.is_control() && c != '\n' && c != '\t') || unspool_core::block::is_bidi(c);
    assert!(!html.contains(bad), "{whose}: a character that no page may hold");
    let mut ids = BTreeSet::new();
    for Start { tag, attributes } in starts(html) {
        assert!(TAGS.contains(&tag), "{whose}: <{tag}>");
        for (key, value) in attributes {
            assert!(ATTRIBUTES.contains(&key), "{whose}: <{tag} {key}>");
            match (tag, key) {
                ("script" | "link", "src" | "href") => {
                    assert!(value.starts_with("/assets/"), "{whose}: {value}");
                }
                ("img", "src") => assert!(value.starts_with("data:image/"), "{whose}: {value:.40}"),
                ("form", "action") => assert!(["/", "/login"].contains(&value), "{whose}: {value}"),
                (_, "src" | "action") => assert!(value == "/", "{whose}: {key}={value}"),
                (_, "href") => {
                    let ours = value.starts_with('#') || value.starts_with('/');
                    let safe = ["http://", "https://", "mailto:"];
                    let safe = ours || safe.iter().any(|start| value.starts_with(start));
                    assert!(safe && !value.starts_with("//"), "{whose}: {value}");
                }
                (_, "id") => assert!(ids.insert(value.to_owned()), "{whose}: two are {value}"),
                _ => {}
            }
        }
    }
}

#[test]
fn law_8_no_recording_becomes_markup() {
    // R-001-31, R-000-24: every recording has a page, made of what pages are made of.
    for case in all_cases() {
        let captures = captures(&case);
        let all: Vec<usize> = (0..captures.len()).collect();
        let gathering = fold_in(&captures, &all);
        let transcript = main_session(&gathering).transcript();
        check(&render(&transcript), &name(&case));
    }
}

/// What people try.
const ATTACKS: &[&str] = &[
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\"><svg onload=alert(1)>",
    "[x](javascript:alert(1))",
    "[x](data:text/html,<script>alert(1)</script>)",
    "![x](https://elsewhere.example/pixel.png)",
    "<style>*{display:none}</style>",
    "[Thinking] I am not",
    "\u{1b}[31mred\u{1b}]8;;javascript:alert(1)\u{7}link",
    "\u{202e}gnp.exe",
    "</code></pre></div><iframe src=//evil>",
    "a\u{0}b\u{85}c\u{2028}d",
    "```\" onclick=\"alert(1)\n<b>x</b>\n```",
    "| a | <b onclick=x> |\n|---|---|\n| ' | \" |",
    "&lt;script&gt; &amp;#60;",
];

#[test]
fn law_8_no_attack_becomes_markup() {
    let case = all_cases().into_iter().find(|case| name(case) == "odd-output").unwrap();
    let gathering = fold_in(&captures(&case)[..1], &[0]);
    let mut transcript = main_session(&gathering).transcript();
    let attacks = ATTACKS.join("\n\n");
    transcript.session.facts.project = Some(ATTACKS[2].to_owned());
    transcript.session.facts.branch = Some(ATTACKS[1].to_owned());
    transcript.session.agent_session_id = ATTACKS[2].to_owned();
    for turn in &mut transcript.turns {
        turn.user = vec![Body::Text(Text { text: attacks.clone(), ..Text::default() })];
        for part in &mut turn.parts {
            match &mut part.body {
                Body::Text(text) => text.text = attacks.clone(),
                Body::Reasoning(reasoning) => reasoning.text = attacks.clone(),
                Body::Tool(tool) => {
                    tool.name = ATTACKS[2].to_owned();
                    tool.title = Some(ATTACKS[0].to_owned());
                    tool.output = Some(attacks.clone());
                    tool.result = None;
                }
                Body::Notice(notice) => notice.text = attacks.clone(),
                Body::Error(error) => error.text = attacks.clone(),
                _ => {}
            }
        }
    }
    let html = render(&transcript);
    check(&html, "attacks");
    assert_eq!(html.matches("<script").count(), 2, "only ours");
    // What was written is still to be read.
    assert!(html.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
}

#[test]
fn the_page_that_asks_for_a_password_runs_nothing() {
    for attack in ATTACKS {
        let html = page::login(Some("That is not the password."), attack).into_string();
        check(&html, attack);
        assert!(!html.contains("<script"), "{html}");
    }
}
