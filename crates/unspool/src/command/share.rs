//! `unspool share`: links with which guests see one session, in `unspool serve`.

use std::io::{self, Write};

use anyhow::{Context, Result, bail};
use clap::Args;
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use unspool_export::project::TurnRange;
use unspool_model::id::SessionId;
use unspool_server::{GUEST_PATH, ShareStore};
use unspool_store::blocking::block_on;
use unspool_store::store::View;
use unspool_view::lines::make_visible;

use super::export::turns;
use super::serve::address;
use crate::archive::{Archive, find};

/// The beginning of a link's id that is shown.
const ID_CHARS: usize = 12;

/// Make a link with which somebody else sees one session
///
/// Whoever has the link sees this session and its sub-agents, as they are when the page is loaded,
/// without what is still being written, with secrets redacted as in `unspool export --to html`: no other session, no raw records, and
/// your notes only with --notes. The link works while `unspool serve` runs, until it expires or is
/// revoked. For other machines the server needs --listen or --name.
#[derive(Args)]
pub struct Share {
    /// A session of the archive: its id, a unique prefix of it, or the agent's own id
    #[arg(required_unless_present_any = ["list", "revoke"])]
    session: Option<String>,
    /// How long the link works: 12h, 7d, 4w, or `never`
    #[arg(long, value_name = "TIME", default_value = "7d", value_parser = lifetime)]
    expires: Lifetime,
    /// Show your notes and bookmarks too
    #[arg(long)]
    notes: bool,
    /// Show only these turns: 3, or 3-7
    #[arg(long, value_name = "TURNS", value_parser = turns)]
    turns: Option<TurnRange>,
    /// The address under which guests reach the server; by default that of the `unspool serve` that
    /// runs on this machine
    #[arg(long, value_name = "URL")]
    address: Option<String>,
    /// List the links that work
    #[arg(long, conflicts_with_all = ["session", "revoke", "notes", "turns", "address"])]
    list: bool,
    /// The list as JSON
    #[arg(long, requires = "list")]
    json: bool,
    /// Revoke links: the id in the list, the link itself, or `all`. May be given several times
    #[arg(long, value_name = "LINK", conflicts_with_all = ["session", "notes", "turns", "address"])]
    revoke: Vec<String>,
}

/// None: until it is revoked.
pub type Lifetime = Option<SignedDuration>;

/// A link in the list.
#[derive(Serialize)]
struct LinkDocument {
    id: String,
    session: SessionId,
    title: Option<String>,
    notes: bool,
    turns: Option<TurnRange>,
    created_at: Timestamp,
    expires_at: Option<Timestamp>,
}

impl Share {
    pub fn run(self, archive: &Archive) -> Result<()> {
        let shares = ShareStore::in_data_folder(archive.folder()?.path());
        if self.list {
            return list(archive, &shares, self.json);
        }
        if !self.revoke.is_empty() {
            return self.revoke.iter().try_for_each(|link| revoke(&shares, link));
        }
        self.add(archive, &shares)
    }

    fn add(self, archive: &Archive, shares: &ShareStore) -> Result<()> {
        let session = self.session.unwrap_or_default();
        let view = archive.view()?;
        let stored = find(&view, &session)?;
        let id = stored.summary.session.id;
        let share = unspool_server::Share::new(id, self.expires, Timestamp::now());
        let share = unspool_server::Share { notes: self.notes, turns: self.turns, ..share };
        if let Some(range) = self.turns {
            let sizes = block_on(view.sizes(stored.row))?;
            if !sizes.iter().any(|size| range.contains(size.number)) {
                bail!("this session has no {range}; `unspool show` lists its turns");
            }
        }
        let token = shares.add(&share).context("cannot store the link in the data folder")?;
        let address = match self.address {
            Some(address) => address,
            None => address::of_server(archive.folder()?.path()),
        };
        writeln!(io::stdout(), "{}{GUEST_PATH}{token}", address.trim_end_matches('/'))?;
        let until = share.expires.map_or("it is revoked".to_owned(), |at| format!("{at:.0}"));
        let what = share.turns.map_or(String::new(), |range| format!("{range} of "));
        stderr_line!(
            "unspool: whoever has this link sees {what}the session {id} until {until}, while \
             `unspool serve` runs; `unspool share --list` shows all links"
        );
        Ok(())
    }
}

fn list(archive: &Archive, shares: &ShareStore, json: bool) -> Result<()> {
    let view = archive.view()?;
    let mut links = Vec::new();
    for (id, share) in shares.list(Timestamp::now()).context("cannot read the links")? {
        let session = share.session;
        let found = block_on(view.find(session.to_string()))?;
        let title = found.into_iter().find_map(|stored| stored.summary.title);
        let (id, notes, turns) = (id.chars().take(ID_CHARS).collect(), share.notes, share.turns);
        let (created_at, expires_at) = (share.created, share.expires);
        links.push(LinkDocument { id, session, title, notes, turns, created_at, expires_at });
    }
    let mut out = io::stdout().lock();
    if json {
        serde_json::to_writer(&mut out, &links)?;
        writeln!(out)?;
        return Ok(());
    }
    for LinkDocument { id, session, title, turns, expires_at, .. } in &links {
        let until = expires_at.map_or("never expires".to_owned(), |at| format!("until {at:.0}"));
        let title = make_visible(title.as_deref().unwrap_or("untitled"));
        let turns = turns.map_or(String::new(), |range| format!("  ({range})"));
        writeln!(out, "{id}  {session}  {until}  {title}{turns}")?;
    }
    if links.is_empty() {
        stderr_line!("unspool: no session is shared; `unspool share SESSION` makes a link");
    }
    Ok(())
}

fn revoke(shares: &ShareStore, link: &str) -> Result<()> {
    let token = link.rsplit_once(GUEST_PATH).map_or(link, |(_, token)| token);
    let revoked = if link == "all" {
        let links = shares.list(Timestamp::now())?;
        links.iter().try_fold(0, |sum, (id, _)| Ok::<_, io::Error>(sum + shares.revoke(id)?))
    } else {
        shares.revoke(token)
    };
    match revoked.context("cannot remove the link from the data folder")? {
        0 if link != "all" => {
            bail!("there is no link {}; `unspool share --list` shows all links", make_visible(link))
        }
        1 => stderr_line!("unspool: revoked 1 link"),
        count => stderr_line!("unspool: revoked {count} links"),
    }
    Ok(())
}

/// A number and a unit.
pub fn lifetime(text: &str) -> Result<Lifetime, String> {
    if text == "never" {
        return Ok(None);
    }
    let wrong = || format!("expected a time like 12h, 7d or 4w, or `never`, and not “{text}”");
    let hours = [('h', 1), ('d', 24), ('w', 7 * 24)];
    let (unit, hours) =
        hours.into_iter().find(|(unit, _)| text.ends_with(*unit)).ok_or_else(wrong)?;
    let count: u32 = text.trim_end_matches(unit).parse().map_err(|_| wrong())?;
    match count {
        0 => Err(wrong()),
        count => Ok(Some(SignedDuration::from_hours(i64::from(count) * hours))),
    }
}
