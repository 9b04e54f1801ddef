use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::thread;

use super::{FileReplacement, replace_file};

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

#[test]
fn a_new_file_is_the_owners_alone_and_an_old_one_keeps_its_mode() {
    let folder = tempfile::tempdir().unwrap();
    let (new, old) = (folder.path().join("new"), folder.path().join("old"));
    fs::write(&old, "before").unwrap();
    for old_mode in [0o640, 0o600] {
        fs::set_permissions(&old, fs::Permissions::from_mode(old_mode)).unwrap();
        replace_file(&old, b"after").unwrap();
        assert_eq!((mode(&old), fs::read(&old).unwrap()), (old_mode, b"after".to_vec()));
    }
    replace_file(&new, b"x").unwrap();
    assert_eq!(mode(&new), 0o600);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "no temporary file stays");
}

#[test]
fn a_link_is_written_through_even_if_it_points_to_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let [link, target, ring] =
        ["link", "there/target", "ring"].map(|name| folder.path().join(name));
    fs::create_dir(folder.path().join("there")).unwrap();
    symlink("there/target", &link).unwrap();
    for text in ["one", "two"] {
        replace_file(&link, text.as_bytes()).unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read_to_string(&target).unwrap(), text);
    }
    symlink("ring", &ring).unwrap();
    assert!(replace_file(&ring, b"x").is_err());
    assert!(replace_file(&folder.path().join("there"), b"x").is_err(), "a folder");
}

#[test]
fn a_pipe_stays_a_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reader = thread::spawn({
        let pipe = pipe.clone();
        move || {
            let mut text = String::new();
            fs::File::open(pipe).unwrap().read_to_string(&mut text).unwrap();
            text
        }
    });
    replace_file(&pipe, b"through").unwrap();
    assert_eq!(reader.join().unwrap(), "through");
    assert!(pipe.metadata().unwrap().file_type().is_fifo());
}

#[test]
fn nothing_is_replaced_before_the_end() {
    // R-002-28
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    // A planted link in the place of a predictable temporary name is not followed.
    symlink("elsewhere", folder.path().join("file.partial")).unwrap();
    fs::write(&path, "before").unwrap();
    let mut file = FileReplacement::begin(&path).unwrap();
    file.write_all(b"half").unwrap();
    drop(file);
    assert_eq!(fs::read_to_string(&path).unwrap(), "before");
    let mut same = FileReplacement::begin(&path).unwrap();
    same.write_all(b"before").unwrap();
    assert!(same.changes_nothing().unwrap());
    let mut longer = FileReplacement::begin(&path).unwrap();
    longer.write_all(b"before and after").unwrap();
    assert!(!longer.changes_nothing().unwrap());
    drop((same, longer));
    assert!(!folder.path().join("elsewhere").exists());
}

#[test]
fn a_read_only_file_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, "before").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    let error = replace_file(&path, b"after").unwrap_err();
    assert!(error.to_string().contains("read-only"), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "before");
}
