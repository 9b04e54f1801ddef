//! `unspool tag` and `unspool rename`: the user's own tags and name for a session.

use std::io::{self, Write};

use anyhow::{Result, bail};
use clap::Args;
use unspool_ingest::report::Progress;
use unspool_query::request::Request;
use unspool_view::lines::make_visible;

use crate::archive::{Archive, find};

/// Tag a session, or show its tags
#[derive(Args)]
pub struct Tag {
    /// A session of the archive: its id, a unique prefix of it, or the agent's own id
    session: String,
    /// Tags to add; quote a tag that contains spaces: "needs review"
    tags: Vec<String>,
    /// Remove this tag. May be given several times
    #[arg(long, value_name = "TAG")]
    remove: Vec<String>,
}

impl Tag {
    pub fn run(self, archive: &Archive) -> Result<()> {
        if let Some(tag) = self.tags.iter().find(|tag| tag.trim().is_empty()) {
            bail!(
                "invalid tag {tag:?}: a tag must have at least one character that is not a space"
            );
        }
        let stored = find(&archive.view()?, &self.session)?;
        if !self.tags.is_empty() || !self.remove.is_empty() {
            let session = stored.summary.session.id;
            let request = Request::Tag { session, add: self.tags, remove: self.remove };
            archive.writer()?.submit(request, &Progress::default())?;
        }
        for tag in find(&archive.view()?, &self.session)?.summary.tags {
            writeln!(io::stdout(), "{}", make_visible(&tag))?;
        }
        Ok(())
    }
}

/// Rename a session
#[derive(Args)]
pub struct Rename {
    /// A session of the archive: its id, a unique prefix of it, or the agent's own id
    session: String,
    /// The new name; omit it to show the agent's title or the first prompt again
    name: Option<String>,
}

impl Rename {
    pub fn run(self, archive: &Archive) -> Result<()> {
        let stored = find(&archive.view()?, &self.session)?;
        let name = self.name.filter(|name| !name.trim().is_empty());
        let request = Request::Rename { session: stored.summary.session.id, name };
        archive.writer()?.submit(request, &Progress::default())?;
        let title = find(&archive.view()?, &self.session)?.summary.title;
        writeln!(io::stdout(), "{}", make_visible(title.as_deref().unwrap_or("untitled")))?;
        Ok(())
    }
}
