//! `unspool team`: who may send sessions to this server.

use std::io::{self, Write};

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde::Serialize;
use unspool_server::{ShipToken, ShipTokens, is_name};
use unspool_view::lines::make_visible;

use super::share::{Lifetime, lifetime};
use crate::archive::Archive;

/// The beginning of a token's id that is shown.
const ID_CHARS: usize = 12;

/// Make and revoke the tokens with which members of your team send their sessions here
///
/// A token lets `unspool ship` on a member's machines send sessions to this server, and nothing else:
/// it reads nothing. The sessions of a member are told apart from those of others by the member's
/// name; another member cannot add to them.
#[derive(Args)]
pub struct Team {
    #[command(subcommand)]
    command: TeamCommand,
}

#[derive(Subcommand)]
enum TeamCommand {
    /// Make a token for a member and print it; it is shown only once
    Token {
        /// The member's name: letters, digits, . - _
        member: String,
        /// How long it is valid: 12h, 7d, 52w, or `never`
        #[arg(long, value_name = "TIME", default_value = "52w", value_parser = lifetime)]
        expires: Lifetime,
    },
    /// List the tokens that are valid
    Tokens {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Revoke tokens: the id in the list, a token, or the name of a member for all of hers
    Revoke {
        #[arg(required = true, value_name = "TOKEN")]
        tokens: Vec<String>,
    },
}

/// A token in the list.
#[derive(Serialize)]
struct TokenDocument {
    id: String,
    member: String,
    created_at: Timestamp,
    expires_at: Option<Timestamp>,
}

impl Team {
    pub fn run(self, archive: &Archive) -> Result<()> {
        let folder = archive.folder()?;
        let tokens = ShipTokens::in_data_folder(folder.path());
        match self.command {
            TeamCommand::Token { member, expires } => add(&tokens, member, expires),
            TeamCommand::Tokens { json } => list(&tokens, json),
            TeamCommand::Revoke { tokens: given } => {
                given.iter().try_for_each(|token| revoke(&tokens, token))
            }
        }
    }
}

fn add(tokens: &ShipTokens, member: String, expires: Lifetime) -> Result<()> {
    if !is_name(&member) {
        bail!("the name of a member has letters, digits, . - _ and at most 64 of them");
    }
    let token = ShipToken::new(member, expires, Timestamp::now());
    let text = tokens.add(&token).context("cannot store the token in the data folder")?;
    writeln!(io::stdout(), "{text}")?;
    let until = token.expires.map_or("it is revoked".to_owned(), |at| format!("{at:.0}"));
    stderr_line!(
        "unspool: valid until {until}. On the machine of {}: UNSPOOL_SHIP_TOKEN=… unspool ship --to \
         ADDRESS --project FOLDER",
        token.member
    );
    Ok(())
}

fn list(tokens: &ShipTokens, json: bool) -> Result<()> {
    let found = tokens.list(Timestamp::now()).context("cannot read the tokens")?;
    let documents: Vec<TokenDocument> = found
        .into_iter()
        .map(|(id, ShipToken { member, created, expires })| TokenDocument {
            id: id.chars().take(ID_CHARS).collect(),
            member,
            created_at: created,
            expires_at: expires,
        })
        .collect();
    let mut out = io::stdout().lock();
    if json {
        serde_json::to_writer(&mut out, &documents)?;
        writeln!(out)?;
        return Ok(());
    }
    for TokenDocument { id, member, expires_at, .. } in &documents {
        let until = expires_at.map_or("never expires".to_owned(), |at| format!("until {at:.0}"));
        writeln!(out, "{id}  {}  {until}", make_visible(member))?;
    }
    if documents.is_empty() {
        stderr_line!("unspool: there is no token; `unspool team token MEMBER` makes one");
    }
    Ok(())
}

fn revoke(tokens: &ShipTokens, given: &str) -> Result<()> {
    let revoked = match tokens.revoke_member(given)? {
        0 => tokens.revoke(given),
        count => Ok(count),
    };
    match revoked.context("cannot remove the token from the data folder")? {
        0 => bail!(
            "there is no token or member {}; `unspool team tokens` shows all tokens",
            make_visible(given)
        ),
        1 => stderr_line!("unspool: revoked 1 token"),
        count => stderr_line!("unspool: revoked {count} tokens"),
    }
    Ok(())
}
