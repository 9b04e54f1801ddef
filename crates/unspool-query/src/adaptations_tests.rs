use std::fs;
use std::thread;

use tempfile::TempDir;
use unspool_model::adaptation::TrialChange;

use super::*;

const REREAD: &str = "adn.tools.edit-reread";
const BY_TEST: Author<'static> = Author { who: "test", why: None };

fn store(folder: &TempDir) -> AdaptationStore {
    AdaptationStore::new(&folder.path().join("data"), Some(folder.path().join(USER_FILE)))
}

fn enabled(enabled: bool) -> Patch {
    Patch { enabled: Some(enabled), ..Patch::default() }
}

fn content(content: &str) -> Patch {
    Patch { content: Some(content.to_owned()), ..Patch::default() }
}

// R-002-32
#[test]
fn items_with_fixed_ids_are_shipped_and_off() {
    let folder = TempDir::new().unwrap();
    let current = store(&folder).current(None).unwrap();
    let ids: Vec<&str> =
        current.state.items.iter().map(|versioned| versioned.item.id.as_str()).collect();
    let fixed = [
        REREAD,
        "adn.tools.search",
        "adn.tools.long-output",
        "adn.tools.no-sleep",
        "adn.edits.plan",
        "adn.tests.run-once",
        "adn.flow.no-repeat",
        "adn.flow.ask-early",
        "adn.flow.denied",
        "adn.context.read-once",
        "adn.context.subagent",
        "adn.rules.after-compaction",
        "adn.safety.secrets",
        "adn.notes.project",
    ];
    assert_eq!(ids, fixed);
    assert!(current.problems.is_empty(), "{:?}", current.problems);
    assert!(
        current
            .state
            .items
            .iter()
            .all(|versioned| !versioned.item.enabled && versioned.version == 1)
    );
    // Looking writes nothing.
    assert!(!folder.path().join("data").exists());
}

// R-002-32
#[test]
fn the_users_file_and_the_projects_add_items() {
    let folder = TempDir::new().unwrap();
    let user = "[[items]]\nid = \"me.brief\"\ntitle = \"Brief\"\ncontent = \"Be brief.\"\nenabled = true\n\
        tags = [\"style\"]\n[items.scope]\nagents = [\"codex\"]\nchannels = [\"text\"]\n";
    fs::write(folder.path().join(USER_FILE), user).unwrap();
    let project = folder.path().join("app");
    fs::create_dir_all(project.join(".unspool")).unwrap();
    let own = "[[items]]\nid = \"app.rule\"\ntitle = \"Rule\"\ncontent = \"Obey me.\"\nenabled = true\n\
        scope = { global = true }\n[[items]]\nid = \"me.brief\"\ntitle = \"Taken\"\n";
    fs::write(project.join(".unspool/adaptations.toml"), own).unwrap();
    let store = store(&folder);

    let current = store.current(Some(&project.join("src"))).unwrap();
    let mine = current.state.find("me.brief", None).unwrap();
    assert_eq!((mine.origin.as_str(), mine.item.enabled), ("user", true));
    assert_eq!(mine.item.scope.agents, ["codex"]);
    // What a repository brings is off and only for itself.
    let rule = current.state.find("app.rule", Some(&project)).unwrap();
    assert!(!rule.item.enabled && !rule.item.scope.global);
    assert_eq!(rule.item.scope.projects, [project.to_str().unwrap()]);
    assert!(current.state.find("app.rule", None).is_none());
    let problem = current.problems[0].to_string();
    assert!(problem.contains("adaptations.toml:7: `me.brief` is left out"), "{problem}");

    let updated =
        store.update("app.rule", Some(&project), &enabled(true), Some(1), BY_TEST).unwrap();
    assert_eq!((updated.version, updated.item.enabled), (2, true));
    let state = State::read(&store.state_file()).unwrap().unwrap();
    let payload = |cwd: &Path| HookPayload { cwd: Some(cwd.to_owned()), ..HookPayload::default() };
    let ids = |agent, cwd: &Path| {
        let answer =
            hook_answer(&state, agent, Some("SessionStart"), &payload(cwd), Timestamp::now());
        answer.map_or(Vec::new(), |(_, delivery)| delivery.ids)
    };
    assert_eq!(ids("codex", &project), ["me.brief", "app.rule"]);
    assert_eq!(ids("gemini", &project), ["app.rule"]);
    assert_eq!(ids("gemini", folder.path()), [""; 0]);

    // A broken file of a project keeps its items, and nobody from changing others.
    fs::write(project.join(".unspool/adaptations.toml"), "[[items]]\nid = \n").unwrap();
    let changed = store.update(REREAD, None, &enabled(true), None, BY_TEST).unwrap();
    assert_eq!(changed.version, 2);
    let current = store.current(None).unwrap();
    assert!(current.state.find("app.rule", Some(&project)).unwrap().item.enabled);
    let problem = current.problems[0].to_string();
    assert!(problem.contains("adaptations.toml:2: "), "{problem}");
    store.update("app.rule", Some(&project), &enabled(false), None, BY_TEST).unwrap();
    let state = State::read(&store.state_file()).unwrap().unwrap();
    assert!(!state.find("app.rule", Some(&project)).unwrap().item.enabled);
}

// R-002-33, R-002-34
#[test]
fn an_update_is_a_patch_of_an_item_that_exists() {
    let folder = TempDir::new().unwrap();
    let store = store(&folder);
    let update = |patch: &Patch| store.update(REREAD, None, patch, None, BY_TEST).unwrap();
    let shipped = store.current(None).unwrap().state.find(REREAD, None).unwrap().clone();
    assert_eq!(update(&content("Mine.")).item.title, shipped.item.title);
    let on = update(&enabled(true));
    assert_eq!((on.item.content.as_str(), on.version), ("Mine.", 3));
    let title = Patch { title: Some("Mine too".to_owned()), ..Patch::default() };
    assert!(update(&title).item.enabled);
    let edits = fs::read_to_string(store.edits_file()).unwrap();
    let edits: serde_json::Value = serde_json::from_str(&edits).unwrap();
    let edit = edits[REREAD].as_object().unwrap();
    let fields: Vec<&String> = edit.keys().collect();
    assert_eq!(fields, ["content", "enabled", "title", "updated_at"]);
    assert_eq!(edits.as_object().unwrap().len(), 1);

    let error = store.update("adn.nothing", None, &enabled(true), None, BY_TEST).unwrap_err();
    assert!(matches!(error, AdaptError::NotFound(_)) && error.to_string().starts_with("not_found"));
    let refused = store.update(REREAD, None, &content("\u{202e}"), None, BY_TEST).unwrap_err();
    assert!(matches!(refused, AdaptError::Refused(_)), "{refused}");
    let current = store.current(None).unwrap();
    assert_eq!(current.state.find(REREAD, None).unwrap().version, 4, "nothing was changed");
    // The same again is no new version.
    assert_eq!(update(&enabled(true)).version, 4);
}

#[test]
fn a_change_for_another_version_is_refused() {
    let folder = TempDir::new().unwrap();
    let store = store(&folder);
    store.update(REREAD, None, &enabled(true), Some(1), BY_TEST).unwrap();
    let error = store.update(REREAD, None, &enabled(false), Some(1), BY_TEST).unwrap_err();
    assert!(matches!(error, AdaptError::Conflict { expected: 1, current: 2, .. }), "{error}");
    assert!(store.current(None).unwrap().state.find(REREAD, None).unwrap().item.enabled);
}

// R-002-38
#[test]
fn a_file_that_is_changed_on_disk_counts_after_a_reload() {
    let folder = TempDir::new().unwrap();
    let store = store(&folder);
    let first = store.update(REREAD, None, &enabled(true), None, BY_TEST).unwrap();
    let version = || State::read(&store.state_file()).unwrap().unwrap().version;
    let before = version();
    let text = fs::read_to_string(store.edits_file()).unwrap();
    let text = text.replace("\"enabled\"", "\"content\": \"From the editor.\",\n    \"enabled\"");
    fs::write(store.edits_file(), text).unwrap();
    let current = store.current(None).unwrap();
    assert!(current.is_pending);
    assert_eq!(version(), before, "looking changes nothing");
    assert_eq!(store.reload(BY_TEST).unwrap(), [REREAD]);
    assert_eq!(version(), before + 1);
    let state = State::read(&store.state_file()).unwrap().unwrap();
    let now = state.find(REREAD, None).unwrap();
    assert_eq!((now.version, now.item.content.as_str()), (first.version + 1, "From the editor."));
    assert!(store.reload(BY_TEST).unwrap().is_empty());
    assert_eq!(version(), before + 1, "nothing changed");
}

#[test]
fn a_broken_file_keeps_the_last_good_state_and_says_where() {
    let folder = TempDir::new().unwrap();
    let store = store(&folder);
    store.update(REREAD, None, &enabled(true), None, BY_TEST).unwrap();
    let good = State::read(&store.state_file()).unwrap().unwrap();
    let breaks = [
        ("{\n  \"adn.tools.search\": {\n    \"enabled\": \"yes\"\n  }\n}\n", "edits.json:3: "),
        ("{\n  \"adn.tools.search\": {\n", "edits.json:3: "),
        (
            "{\n\n  \"adn.tools.search\": { \"content\": \"</unspool-adaptations>\" }\n}",
            "edits.json:3: ",
        ),
        ("{\n  \"adn.tools.search\": { \"enabld\": true }\n}", "edits.json:2: "),
    ];
    for (text, place) in breaks {
        fs::write(store.edits_file(), text).unwrap();
        let current = store.current(None).unwrap();
        assert_eq!(current.state, good);
        let problem = current.problems[0].to_string();
        assert!(problem.contains(place), "{problem}");
        for error in [
            store.reload(BY_TEST).unwrap_err(),
            store.update(REREAD, None, &enabled(false), None, BY_TEST).unwrap_err(),
        ] {
            assert!(error.to_string().contains(place), "{error}");
        }
        assert_eq!(fs::read_to_string(store.edits_file()).unwrap(), text, "nobody's work is lost");
        assert_eq!(State::read(&store.state_file()).unwrap().unwrap(), good);
    }
    fs::remove_file(store.edits_file()).unwrap();
    fs::write(folder.path().join(USER_FILE), "[[items]]\nid = \"a\"\ntitle = 3\n").unwrap();
    let problem = store.current(None).unwrap().problems[0].to_string();
    assert!(problem.contains("adaptations.toml:3: "), "{problem}");
}

#[test]
fn edits_of_unknown_ids_are_kept() {
    let folder = TempDir::new().unwrap();
    let store = store(&folder);
    store.update(REREAD, None, &enabled(true), None, BY_TEST).unwrap();
    let edits = "{\"gone.item\": {\"enabled\": true, \"updated_at\": null}}";
    fs::write(store.edits_file(), edits).unwrap();
    store.update(REREAD, None, &enabled(true), None, BY_TEST).unwrap();
    assert!(fs::read_to_string(store.edits_file()).unwrap().contains("gone.item"));
    let problems = store.current(None).unwrap().problems;
    assert!(problems[0].what.contains("gone.item"), "{problems:?}");
}

#[test]
fn each_version_says_who_made_it_and_why() {
    let folder = TempDir::new().unwrap();
    let store = store(&folder);
    let why = Author { who: "cli", why: Some("edit-missed: 4 of 9 edits") };
    store.update(REREAD, None, &enabled(true), None, why).unwrap();
    let trial = Patch { trial: Some(TrialChange::Half), ..Patch::default() };
    store.update(REREAD, None, &trial, None, BY_TEST).unwrap();
    let history = store.history(REREAD, None).unwrap();
    let versions: Vec<_> = history.iter().map(|c| (c.version, c.who.as_str(), c.enabled)).collect();
    assert_eq!(versions, [(2, "cli", true), (3, "test", true)]);
    assert_eq!(history[0].why.as_deref(), Some("edit-missed: 4 of 9 edits"));
    assert!(history[1].trial.is_some() && history[0].trial.is_none());
    assert!(store.history("adn.nothing", None).is_err());
}

#[test]
fn concurrent_changes_lose_nothing() {
    let folder = TempDir::new().unwrap();
    let ids: Vec<String> = {
        let state = store(&folder).current(None).unwrap().state;
        state.items.iter().map(|versioned| versioned.item.id.clone()).collect()
    };
    let at = &folder;
    thread::scope(|scope| {
        for id in &ids {
            scope.spawn(move || {
                for nth in 0..10 {
                    let text = content(&format!("{id} {nth}"));
                    store(at).update(id, None, &text, None, BY_TEST).unwrap();
                }
            });
        }
    });
    let store = store(&folder);
    let state = State::read(&store.state_file()).unwrap().unwrap();
    for id in &ids {
        let versioned = state.find(id, None).unwrap();
        assert_eq!((versioned.item.content.clone(), versioned.version), (format!("{id} 9"), 11));
        assert_eq!(store.history(id, None).unwrap().len(), 10);
    }
    assert_eq!(state.version, 1 + 10 * ids.len() as u64);
}

// R-002-37
#[test]
fn a_disabled_item_is_delivered_to_nobody() {
    let folder = TempDir::new().unwrap();
    let store = store(&folder);
    store.update(REREAD, None, &enabled(true), None, BY_TEST).unwrap();
    let answer = |agent| {
        let state = State::read(&store.state_file()).unwrap().unwrap();
        let payload: HookPayload = serde_json::from_str("{\"sessionId\": \"s\"}").unwrap();
        hook_answer(&state, agent, Some("SessionStart"), &payload, Timestamp::now())
    };
    for agent in ["claude-code", "codex", "gemini", "copilot"] {
        let (printed, delivery) = answer(agent).unwrap();
        assert!(printed.contains("ids=\\\"adn.tools.edit-reread\\\""), "{printed}");
        assert_eq!(delivery.session.as_deref(), Some("s"));
    }
    assert!(fs::read_to_string(store.instructions_file()).unwrap().contains(REREAD));
    store.update(REREAD, None, &enabled(false), None, BY_TEST).unwrap();
    assert_eq!(answer("claude-code"), None);
    assert_eq!(fs::read_to_string(store.instructions_file()).unwrap(), "");
    let preview = PreviewDocument::new(&store.current(None).unwrap().state, "codex", "text", None);
    assert_eq!((preview.included_ids.len(), preview.frame), (0, None));
}
