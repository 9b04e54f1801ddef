use std::path::Path;

use super::*;
use crate::prompt::adaptation_frames;

fn item(id: &str, content: &str) -> Item {
    let (id, title, content) = (id.to_owned(), id.to_owned(), content.to_owned());
    Item { id, title, content, enabled: true, ..Item::default() }
}

fn ids(items: &[Item], to: Audience<'_>) -> Vec<String> {
    assemble(items, &to).included
}

// R-002-36
#[test]
fn a_text_has_what_is_enabled_and_in_scope_in_order() {
    let mut items = vec![item("b", "  second \n"), item("a", "first"), item("empty", " \n ")];
    items.push(Item { enabled: false, ..item("off", "never") });
    let assembly = assemble(&items, &Audience::default());
    assert_eq!(assembly.text, "second\nfirst");
    assert_eq!(assembly.included, ["b", "a"]);
    assert_eq!(assemble(&items[2..], &Audience::default()).frame(3), None);

    let agents = Scope { agents: vec!["codex".to_owned()], ..Scope::default() };
    let channels = Scope { channels: vec!["voice".to_owned()], ..agents.clone() };
    let projects = Scope { projects: vec!["/home/me/app".to_owned()], ..Scope::default() };
    let global = Scope { global: true, ..channels.clone() };
    let scoped = [("agent", agents), ("voice", channels), ("app", projects), ("all", global)];
    let items = scoped.map(|(id, scope)| Item { scope, ..item(id, id) });
    let codex = Audience { agent: Some("codex"), channel: Some("text"), ..Audience::default() };
    assert_eq!(ids(&items, codex), ["agent", "all"]);
    let voice = Audience { agent: Some("codex"), channel: Some("voice"), ..Audience::default() };
    assert_eq!(ids(&items, voice), ["agent", "voice", "all"]);
    let below = |path| Audience { agent: Some("gemini"), project: Some(Path::new(path)), ..codex };
    assert_eq!(ids(&items, below("/home/me/app/src")), ["app", "all"]);
    assert_eq!(ids(&items, below("/home/me/apple")), ["all"]);
}

// R-002-34
#[test]
fn a_patch_changes_what_it_names() {
    let base = item("a", "text");
    let now = Timestamp::UNIX_EPOCH;
    let mut edit = Edit::default();
    let content = Patch { content: Some("new".to_owned()), ..Patch::default() };
    content.apply(&mut edit, now);
    let title = Patch { title: Some("Title".to_owned()), ..Patch::default() };
    title.apply(&mut edit, now);
    let off = Patch { enabled: Some(false), ..Patch::default() };
    off.apply(&mut edit, now);
    let edited = base.edited(&edit);
    assert_eq!((edited.title.as_str(), edited.content.as_str()), ("Title", "new"));
    assert!(!edited.enabled);
    Patch { trial: Some(TrialChange::Half), ..Patch::default() }.apply(&mut edit, now);
    assert_eq!(base.edited(&edit).trial, Some(Trial::Half));
    Patch { trial: Some(TrialChange::All), ..Patch::default() }.apply(&mut edit, now);
    assert_eq!(base.edited(&edit), edited);
}

#[test]
fn a_frame_is_found_again_and_says_if_it_was_altered() {
    let assembly = assemble(&[item("a", "One."), item("b", "Two.")], &Audience::default());
    let frame = assembly.frame(7).unwrap();
    let text = format!("before {frame} behind");
    let [found] = adaptation_frames(&text).try_into().unwrap();
    assert_eq!(found.content, "One.\nTwo.");
    assert_eq!((found.version, found.ids.clone()), (Some("7"), Some(vec!["a", "b"])));
    assert!(!found.is_altered());
    let altered = text.replace("Two.", "Too.");
    assert!(adaptation_frames(&altered)[0].is_altered());
    assert_eq!(&text[found.start..found.end], frame);
}

#[test]
fn a_trial_takes_half_of_the_sessions() {
    let on_trial = Item { trial: Some(Trial::Half), ..item("a", "text") };
    let taken = |item: &Item| {
        let names = (0..1000).map(|n| format!("session-{n}"));
        let with = |name: &String| {
            let to = Audience { session: Some(name), ..Audience::default() };
            !assemble([item], &to).included.is_empty()
        };
        names.map(|name| with(&name)).collect::<Vec<bool>>()
    };
    let a = taken(&on_trial);
    let count = a.iter().filter(|taken| **taken).count();
    assert!((450..550).contains(&count), "{count}");
    // Two trials do not go together.
    let b = taken(&Item { id: "b".to_owned(), ..on_trial.clone() });
    let equal = a.iter().zip(&b).filter(|(a, b)| a == b).count();
    assert!((450..550).contains(&equal), "{equal}");
    // Without a session nobody could say in which arm it is.
    assert!(assemble([&on_trial], &Audience::default()).included.is_empty());
}

#[test]
fn a_text_that_is_too_long_leaves_out_whole_items() {
    let long = |id: &str| item(id, &"x".repeat(MAX_CONTENT_CHARS));
    let items = [long("a"), long("b"), long("c"), item("d", "short")];
    let assembly = assemble(&items, &Audience::default());
    assert_eq!(assembly.included, ["a", "b", "d"]);
    assert_eq!(assembly.left_out, ["c"]);
    assert!(assembly.frame(u64::MAX).unwrap().chars().count() <= MAX_FRAME_CHARS);
}

#[test]
fn what_nobody_can_see_is_refused() {
    let of =
        |content: &str| Patch { content: Some(content.to_owned()), ..Patch::default() }.problem();
    assert_eq!(of("fine\n\tText – with “signs”"), None);
    assert!(of("\u{1b}[31mred").unwrap().contains("U+001B"));
    assert!(of("turned \u{202e}round").unwrap().contains("U+202E"));
    assert!(of("tag\u{e0041}").unwrap().contains("U+E0041"));
    assert!(of("</unspool-adaptations>").unwrap().contains("tag"));
    assert!(of(&"x".repeat(MAX_CONTENT_CHARS + 1)).unwrap().contains("4001"));
    let title = Patch { title: Some("two\nlines".to_owned()), ..Patch::default() };
    assert!(title.problem().is_some());
    assert!(Item { id: "a b".to_owned(), ..item("a", "") }.problem().is_some());
}
