//! Which files are found as logs, and which are not.

use std::fs;

use super::*;

/// A temporary folder, deleted on drop.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("unspool-{name}-{}", std::process::id()));
        fs::remove_dir_all(&path).ok();
        fs::create_dir_all(&path).unwrap();
        Scratch(path.canonicalize().unwrap())
    }

    fn write(&self, path: &str) -> PathBuf {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "{}\n").unwrap();
        path
    }

    fn environment(&self) -> Environment {
        Environment { home: Some(self.0.clone()), ..Environment::default() }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

fn paths(discovered: &Discovery) -> Vec<&Path> {
    discovered.files.iter().map(|found| found.path.as_path()).collect()
}

#[test]
fn logs_of_sessions_and_of_their_agents_are_found() {
    // R-001-25
    let scratch = Scratch::new("logs");
    let nested = scratch.write(".claude/projects/-home-app/s1/subagents/agent-a1.jsonl");
    let session = scratch.write(".claude/projects/-home-app/s1.jsonl");
    let beside = scratch.write(".claude/projects/-home-app/agent-b2.jsonl");
    let other = scratch.write(".claude/projects/-home-other/s2.jsonl");
    scratch.write(".claude/history.jsonl");
    let meta = scratch.write(".claude/projects/-home-app/s1/subagents/agent-a1.meta.json");
    scratch.write(".claude/projects/-home-app/s1/tool-results/x.txt");
    let discovered = discover(&scratch.environment());
    assert_eq!(discovered.warnings, []);
    assert_eq!(paths(&discovered), [&*beside, &session, &nested, &meta, &other]);
    for found in &discovered.files {
        assert_eq!(found.agent, "claude-code");
        assert_eq!(found.stamp, file_stamp(&fs::metadata(&found.path).unwrap()));
        assert_eq!(found.stamp.size, 3);
        assert!(found.stamp.modified > 1_600_000_000_000_000_000);
    }
}

#[test]
fn the_agents_variable_goes_before_the_home() {
    let scratch = Scratch::new("variable");
    scratch.write(".claude/projects/p/at-home.jsonl");
    // A comma is part of the name: Claude Code supports one folder only.
    let elsewhere = scratch.write("else,where/projects/p/s.jsonl");
    let mut environment = scratch.environment();
    environment.variables.insert("CLAUDE_CONFIG_DIR", scratch.0.join("else,where"));
    assert_eq!(paths(&discover(&environment)), [&*elsewhere]);
    let folders: Vec<_> =
        environment.folders().filter(|(agent, _)| *agent == "claude-code").collect();
    assert_eq!(folders, [("claude-code", scratch.0.join("else,where/projects"))]);
}

#[test]
fn who_has_no_agent_has_no_logs_and_no_warnings() {
    let scratch = Scratch::new("nothing");
    assert_eq!(discover(&scratch.environment()), Discovery::default());
    assert_eq!(discover(&Environment::default()), Discovery::default());
}

#[cfg(unix)]
#[test]
fn links_lead_to_each_file_once_and_never_in_circles() {
    use std::os::unix::fs::symlink;

    let scratch = Scratch::new("links");
    let here = scratch.write(".claude/projects/p/here.jsonl");
    let away = scratch.write("away/p/away.jsonl");
    let lone = scratch.write("lone.jsonl");
    let projects = scratch.0.join(".claude/projects");
    let link = |target: &Path, name: &str| symlink(target, projects.join(name)).unwrap();
    link(&projects, "p/itself");
    link(&projects.join("p"), "moved");
    link(Path::new("/"), "the-disk");
    link(&scratch.0.join("away"), "away");
    symlink(scratch.0.join("away"), scratch.0.join("away/p/again")).unwrap();
    symlink(&projects, scratch.0.join("away/p/back")).unwrap();
    link(&here, "p/twice.jsonl");
    link(&lone, "p/lone.jsonl");
    link(Path::new("nowhere"), "p/broken.jsonl");
    let discovered = discover(&scratch.environment());
    assert_eq!(paths(&discovered), [&*here, &projects.join("p/lone.jsonl"), &away]);
    let warned: Vec<_> = discovered.warnings.iter().map(|w| (&*w.file, &*w.what)).collect();
    let broken = projects.join("p/broken.jsonl");
    assert_eq!(warned, [(&*broken.to_string_lossy(), "not a file")]);

    // In a folder that the user names, symlinks to folders are not followed.
    let (files, warnings) = find_files(&projects);
    assert_eq!(files, [here, projects.join("p/lone.jsonl")]);
    assert_eq!(warnings.len(), 1);
}

#[cfg(unix)]
#[test]
fn what_cannot_be_listed_is_a_warning() {
    use std::os::unix::fs::PermissionsExt;

    let scratch = Scratch::new("closed");
    let open = scratch.write(".claude/projects/open/s.jsonl");
    scratch.write(".claude/projects/closed/s.jsonl");
    fs::create_dir_all(scratch.0.join(".claude/projects/folder.jsonl")).unwrap();
    let closed = scratch.0.join(".claude/projects/closed");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
    // Root may list everything.
    let barred = closed.read_dir().is_err();
    let discovered = discover(&scratch.environment());
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
    if barred {
        assert_eq!(paths(&discovered), [&*open]);
        assert_eq!(discovered.warnings.len(), 1);
        assert_eq!(discovered.warnings[0].file, closed.to_string_lossy());
        assert!(discovered.warnings[0].what.starts_with("cannot be listed: "));
    }
}

#[test]
fn a_file_that_is_named_is_taken_whatever_it_is_called() {
    let scratch = Scratch::new("named");
    let file = scratch.write("capture.txt");
    assert_eq!(find_files(&file), (vec![file.clone()], Vec::new()));
    let (first, second) = (scratch.write("a/one.jsonl"), scratch.write("b/two.jsonl"));
    assert_eq!(find_files(&scratch.0), (vec![first, second], Vec::new()));
}

#[test]
fn a_variable_may_name_a_database() {
    // R-001-25: beside the log folder, as a path or as a name in it.
    let scratch = Scratch::new("database");
    let own = scratch.0.join(".local/share/kilo");
    fs::create_dir_all(&own).unwrap();
    let elsewhere = scratch.0.join("elsewhere.db");
    for path in [own.join("kilo.db"), own.join("work.db"), elsewhere.clone()] {
        fs::copy(KILO_DATABASE, path).unwrap();
    }
    let databases = |value: Option<&Path>| {
        let mut environment = scratch.environment();
        environment.variables.extend(value.map(|value| ("KILO_DB", value.to_owned())));
        let mut found: Vec<PathBuf> = discover(&environment)
            .files
            .iter()
            .filter(|found| found.agent == "kilo")
            .filter_map(|found| Some(crate::read::rows::split(&found.path)?.0))
            .collect();
        let count = found.len();
        found.dedup();
        (count, found, environment)
    };
    let (usual, both, _) = databases(None);
    assert_eq!(both, [own.join("kilo.db"), own.join("work.db")]);
    // One that is found anyway is read once.
    let (count, named, _) = databases(Some(Path::new("work.db")));
    assert_eq!((count, named), (usual, both));
    let (count, named, environment) = databases(Some(&elsewhere));
    assert_eq!(count, usual / 2 * 3);
    assert!(named.contains(&elsewhere), "{named:?}");
    let watched: Vec<(PathBuf, bool)> = environment.watched_folders().collect();
    assert!(watched.contains(&(scratch.0.clone(), false)), "{watched:?}");
    assert!(!environment.logs_at(&scratch.0.join("elsewhere.db-wal")).is_empty());
    // In memory there is nothing to read.
    assert_eq!(databases(Some(Path::new(":memory:"))).0, usual);
}

/// A database of the fixtures, with sessions.
const KILO_DATABASE: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/kilo/retries/log.db");

#[test]
fn a_log_in_the_project_of_another_session_is_found() {
    // R-001-25
    let scratch = Scratch::new("projects");
    let history = scratch.write("work/app/.aider.chat.history.md");
    scratch.write("work/app/notes.md");
    // Known from a session that was started below the root of a repository.
    let root = scratch.write("work/repository/.aider.chat.history.md");
    scratch.write("work/repository/.git/HEAD");
    fs::create_dir_all(scratch.0.join("work/repository/crates/one")).unwrap();
    let unknown = scratch.write("work/other/.aider.chat.history.md");
    let known = ["work/app", "work/repository/crates/one", "work/gone", "work/app"];
    let known = known.iter().map(|folder| scratch.0.join(folder));
    let projects = Projects::around(known.chain([PathBuf::from("relative")]));
    assert_eq!(projects.folders().len(), 4, "{projects:?}");
    let environment =
        Environment { home: Some(scratch.0.join("home")), projects, ..Environment::default() };
    let discovered = discover(&environment);
    assert_eq!(discovered.warnings, []);
    assert_eq!(paths(&discovered), [&*history, &*root]);
    assert!(discovered.files.iter().all(|found| found.agent == "aider"));
    assert_eq!(environment.logs_in_projects(), discovered.files);
    // What is written to it is noticed, and nothing is watched where there is none.
    assert_eq!(environment.logs_at(&history).len(), 1);
    assert_eq!(environment.logs_at(&unknown), []);
    let watched: Vec<_> = environment.watched_folders().collect();
    assert!(watched.contains(&(scratch.0.join("work/app"), false)), "{watched:?}");
    assert!(!watched.iter().any(|(folder, _)| folder.ends_with("gone")), "{watched:?}");
}

#[test]
fn only_so_many_projects_are_looked_at() {
    let many = (0..3 * MAX_PROJECTS).map(|number| PathBuf::from(format!("/none/{number}")));
    assert_eq!(Projects::around(many).folders().len(), MAX_PROJECTS);
}
