//! The files that a composer offers, and those that a message mentions.

use std::fmt::Write;
use std::path::Path;

use ignore::WalkBuilder;

use crate::outgoing::FileLink;

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

/// The most files that a message links.
const MAX_LINKS: usize = 100;

/// The files that a text mentions as `@path`, relative to the folder. A file outside of it, also
/// behind a link, is no file of the project.
pub fn mentioned(folder: &Path, text: &str) -> Vec<FileLink> {
    let Ok(root) = folder.canonicalize() else { return Vec::new() };
    let mut links: Vec<FileLink> = Vec::new();
    for word in text.split_whitespace().take(10_000) {
        let Some(name) = word.strip_prefix('@') else { continue };
        let find = |name: &str| {
            let path = root.join(name).canonicalize().ok()?;
            (!name.is_empty() && path.starts_with(&root) && path.exists()).then_some(path)
        };
        // A sentence may go on right behind the name.
        let bare = name.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']', '"', '\'']);
        let found = [name, bare].into_iter().find_map(|name| Some((name, find(name)?)));
        let Some((name, path)) = found else { continue };
        if links.iter().all(|link| link.name != name) && links.len() < MAX_LINKS {
            links.push(FileLink { name: name.to_owned(), uri: file_uri(&path) });
        }
    }
    links
}

fn file_uri(path: &Path) -> String {
    format!("file://{}", percent_encode(path.as_os_str().as_encoded_bytes()))
}

/// A path as a part of an address.
pub fn percent_encode(path: &[u8]) -> String {
    let mut encoded = String::new();
    for byte in path {
        match byte {
            b'/' | b'-' | b'_' | b'.' | b'~' => encoded.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => encoded.push(char::from(*byte)),
            byte => {
                let _ = write!(encoded, "%{byte:02X}");
            }
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn only_files_of_the_project_are_linked() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("a project");
        fs::create_dir_all(root.join("src")).unwrap();
        fs::write(root.join("src/main.rs"), "").unwrap();
        fs::write(folder.path().join("secret"), "").unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(folder.path().join("secret"), root.join("link")).unwrap();
        let text =
            "see @src/main.rs, (and @src/main.rs again), @../secret @link @none a@src @ @src.";
        let links = mentioned(&root, text);
        let names: Vec<&str> = links.iter().map(|link| link.name.as_str()).collect();
        assert_eq!(names, ["src/main.rs", "src"]);
        let base = file_uri(&root.canonicalize().unwrap());
        assert!(base.ends_with("/a%20project"), "{base}");
        assert_eq!(links[0].uri, format!("{base}/src/main.rs"));
    }
}
