//! Which projects a scope has.

use super::*;

#[test]
fn a_folder_has_what_is_below_it_and_no_neighbour() {
    let scope = Scope::folder(Path::new("/home/me/app/"));
    assert_eq!(scope, Scope::Folder("/home/me/app".to_owned()));
    for inside in ["/home/me/app", "/home/me/app/", "/home/me/app/web/src"] {
        assert!(scope.has(Some(inside)), "{inside}");
    }
    for outside in ["/home/me/app-old", "/home/me", "/srv/home/me/app", ""] {
        assert!(!scope.has(Some(outside)), "{outside}");
    }
    assert!(!scope.has(None));
    assert!(Scope::All.has(None));
    assert!(Scope::folder(Path::new("/")).has(Some("/srv/app")));
}

#[test]
fn the_project_of_a_folder_is_the_repository_around_it() {
    let root = tempfile::tempdir().unwrap();
    let inner = root.path().join("a/b");
    std::fs::create_dir_all(&inner).unwrap();
    assert_eq!(Scope::of_working_folder(&inner), Scope::folder(&inner));
    // A worktree has a file of this name.
    std::fs::write(root.path().join("a/.git"), "gitdir: elsewhere").unwrap();
    assert_eq!(Scope::of_working_folder(&inner), Scope::folder(&root.path().join("a")));
}
