//! Catalogues of adaptations: what comes with the program, the user's file, and the file of a project.
//! People write and version them; no tool adds an item or takes one away.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::Spanned;
use unspool_model::adaptation::Item;

const DEFAULTS: &str = include_str!("defaults.toml");
/// Where a project has its own.
const PROJECT_FILE: &str = ".unspool/adaptations.toml";
/// Larger files are no catalogue that a person wrote.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// A place in a file that needs somebody's attention.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileProblem {
    pub file: PathBuf,
    /// 0 if the whole file is meant.
    pub line: usize,
    pub what: String,
}

impl fmt::Display for FileProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.display();
        match self.line {
            0 => write!(f, "{file}: {}", self.what),
            line => write!(f, "{file}:{line}: {}", self.what),
        }
    }
}

impl std::error::Error for FileProblem {}

/// Where an item is defined.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Origin {
    Shipped,
    User,
    Project(PathBuf),
}

impl Origin {
    pub fn name(&self) -> &'static str {
        match self {
            Origin::Shipped => "shipped",
            Origin::User => "user",
            Origin::Project(_) => "project",
        }
    }

    /// The project whose file has the item.
    pub fn project(&self) -> Option<&Path> {
        match self {
            Origin::Project(path) => Some(path),
            Origin::Shipped | Origin::User => None,
        }
    }
}

/// The items of all catalogues, in their order.
#[derive(Debug, Default)]
pub struct Catalogue {
    pub items: Vec<(Item, Origin)>,
    /// What was left out, and why.
    pub warnings: Vec<FileProblem>,
    /// Projects whose file is broken. Their items stay as they were: a repository must not keep
    /// anybody from changing the others.
    pub broken: Vec<PathBuf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default)]
    items: Vec<Spanned<Item>>,
}

/// Reads the catalogues. Fails if that of the user is broken.
pub fn read(user: Option<&Path>, projects: &[PathBuf]) -> Result<Catalogue, FileProblem> {
    let mut catalogue = Catalogue::default();
    catalogue.add(Path::new("defaults.toml"), DEFAULTS, &Origin::Shipped)?;
    if let Some(file) = user
        && let Some(text) = text_of(file)?
    {
        catalogue.add(file, &text, &Origin::User)?;
    }
    for project in projects {
        let file = project.join(PROJECT_FILE);
        let origin = Origin::Project(project.clone());
        let added = match text_of(&file) {
            Ok(Some(text)) => catalogue.add(&file, &text, &origin),
            Ok(None) => Ok(()),
            Err(problem) => Err(problem),
        };
        if let Err(problem) = added {
            catalogue.warnings.push(problem);
            catalogue.broken.push(project.clone());
        }
    }
    Ok(catalogue)
}

impl Catalogue {
    fn add(&mut self, file: &Path, text: &str, origin: &Origin) -> Result<(), FileProblem> {
        let document: Document = toml::from_str(text).map_err(|error| FileProblem {
            file: file.to_owned(),
            line: error.span().map_or(0, |span| line_of(text, span.start)),
            what: error.message().to_owned(),
        })?;
        let mut warn = |line: usize, what: String| {
            self.warnings.push(FileProblem { file: file.to_owned(), line, what });
        };
        for item in document.items {
            let line = line_of(text, item.span().start);
            let mut item = item.into_inner();
            item.content = item.content.trim().to_owned();
            if let Some(problem) = item.problem() {
                warn(line, format!("`{}` is left out: {problem}", item.id));
                continue;
            }
            // An item of a project is another one in another project.
            let is_same =
                |other: &Origin| other.project() == origin.project() || other.project().is_none();
            let earlier = self.items.iter().find(|(one, of)| one.id == item.id && is_same(of));
            if let Some((_, earlier)) = earlier {
                warn(
                    line,
                    format!("`{}` is left out: the id is taken ({})", item.id, earlier.name()),
                );
                continue;
            }
            if let Origin::Project(project) = origin {
                // What a repository brings is for that repository, and off until a person turns
                // it on here: whoever clones it has not read it.
                item.scope.projects = vec![project.to_string_lossy().into_owned()];
                item.scope.global = false;
                item.enabled = false;
            }
            self.items.push((item, origin.clone()));
        }
        Ok(())
    }
}

/// The text of a file; `None` if there is none.
pub fn text_of(file: &Path) -> Result<Option<String>, FileProblem> {
    let failed = |error: io::Error| FileProblem {
        file: file.to_owned(),
        line: 0,
        what: format!("cannot be read: {error}"),
    };
    match fs::metadata(file) {
        Ok(found) if found.is_file() && found.len() <= MAX_FILE_BYTES => {
            fs::read_to_string(file).map(Some).map_err(failed)
        }
        Ok(_) => Err(failed(io::Error::other("it is no file, or larger than 1 MB"))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(error)),
    }
}

fn line_of(text: &str, byte: usize) -> usize {
    1 + text.bytes().take(byte).filter(|byte| *byte == b'\n').count()
}
