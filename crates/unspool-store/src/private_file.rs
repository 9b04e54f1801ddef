//! Files and folders that only their owner may read, because they hold what agents read and wrote.
//! The one place that knows how a platform says so.
//!
//! Unix says it by the mode. On Windows a new file gets the access list of its folder, and that of a
//! user's profile, where the data folder is, names the user alone.

use std::fs::{DirBuilder, OpenOptions, Permissions};
use std::path::Path;

/// Options with which a new file is its owner's alone. A file that exists keeps its mode.
pub fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    platform::restrict_new_file(&mut options);
    options
}

/// Creates a missing file. An error shows when the file is opened.
pub fn create(path: &Path) {
    let _ = options().write(true).create_new(true).open(path);
}

/// Creates folders that nobody else may enter. A folder that exists keeps its mode.
pub fn folders() -> DirBuilder {
    let mut builder = DirBuilder::new();
    platform::restrict_new_folder(&mut builder);
    builder
}

/// The mode of a file that is its owner's alone. None if the platform has no modes.
pub fn permissions() -> Option<Permissions> {
    platform::permissions()
}

/// Takes the rights of others away from a file. Fails silently on a file of somebody else, who
/// decides who may read it.
pub fn restrict(path: &Path) {
    platform::restrict(path);
}

/// True if others have rights on a file or folder.
pub fn is_open_to_others(path: &Path) -> bool {
    platform::is_open_to_others(path)
}

#[cfg(unix)]
mod platform {
    use std::fs::{DirBuilder, OpenOptions, Permissions};
    use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
    use std::path::Path;

    pub fn restrict_new_file(options: &mut OpenOptions) {
        options.mode(0o600);
    }

    pub fn restrict_new_folder(builder: &mut DirBuilder) {
        builder.mode(0o700);
    }

    pub fn permissions() -> Option<Permissions> {
        Some(Permissions::from_mode(0o600))
    }

    pub fn restrict(path: &Path) {
        if let Some(mode) = mode(path)
            && mode & 0o077 != 0
        {
            let _ = std::fs::set_permissions(path, Permissions::from_mode(mode & 0o700));
        }
    }

    pub fn is_open_to_others(path: &Path) -> bool {
        mode(path).is_some_and(|mode| mode & 0o077 != 0)
    }

    fn mode(path: &Path) -> Option<u32> {
        path.metadata().ok().map(|found| found.permissions().mode() & 0o777)
    }
}

#[cfg(not(unix))]
mod platform {
    use std::fs::{DirBuilder, OpenOptions, Permissions};
    use std::path::Path;

    pub fn restrict_new_file(_: &mut OpenOptions) {}

    pub fn restrict_new_folder(_: &mut DirBuilder) {}

    pub fn permissions() -> Option<Permissions> {
        None
    }

    pub fn restrict(_: &Path) {}

    pub fn is_open_to_others(_: &Path) -> bool {
        false
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn new_files_and_folders_are_their_owners_alone() {
        let folder = tempfile::tempdir().unwrap();
        let (file, below) = (folder.path().join("file"), folder.path().join("a/b"));
        options().write(true).create_new(true).open(&file).unwrap();
        folders().recursive(true).create(&below).unwrap();
        assert_eq!((mode(&file), mode(&below)), (0o600, 0o700));
        assert_eq!(mode(below.parent().unwrap()), 0o700);
        assert!(!is_open_to_others(&file));
    }

    #[test]
    fn rights_of_others_are_taken_away() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(is_open_to_others(&file));
        restrict(&file);
        assert_eq!(mode(&file), 0o600);
        assert!(!is_open_to_others(&file) && !is_open_to_others(&folder.path().join("none")));
    }
}
