//! The files that a composer offers.

use std::path::Path;

use ignore::WalkBuilder;

/// The most files that are offered.
const MAX_FILES: usize = 20_000;

/// The files below a folder that git does not ignore, relative to it.
pub fn project_files(folder: &Path) -> Vec<String> {
    let walk = WalkBuilder::new(folder).require_git(false).build();
    let files = walk.flatten().filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
    let paths = files.filter_map(|entry| {
        let path = entry.path().strip_prefix(folder).ok()?;
        // A name with a space would end the word.
        path.to_str().filter(|path| !path.contains(char::is_whitespace)).map(str::to_owned)
    });
    paths.take(MAX_FILES).collect()
}
