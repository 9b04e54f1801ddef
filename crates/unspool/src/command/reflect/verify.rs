//! `unspool reflect verify`: whether an adaptation helped where it was seen.

use std::io::{self, Write};

use anyhow::{Context, Result, bail};
use clap::Args;
use unspool_query::adaptations::{Question, Verification, verify};
use unspool_store::store::SessionFilter;
use unspool_view::finding::Rule;
use unspool_view::lines::make_visible;

use super::rule;
use crate::archive::Archive;
use crate::command::adapt::{sessions_of, store};

/// Compare sessions whose prompts had an adaptation with sessions whose prompts did not
///
/// Counts findings per opportunity, in sessions of one agent, project and model. Only what was seen
/// in prompts counts. There is no verdict below five sessions and twenty opportunities on each side.
/// Without a trial (`unspool adapt apply N --trial half`) the sessions without it are older ones.
#[derive(Args)]
pub struct Verify {
    /// The adaptation
    id: String,
    /// The rule of findings to count, if not the one that the adaptation is made for
    #[arg(long, value_name = "RULE", value_parser = rule)]
    rule: Option<Rule>,
    /// Only findings with this signature, as `unspool reflect --json` has it
    #[arg(long, value_name = "TEXT")]
    signature: Option<String>,
    /// Only sessions of this agent
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// Only sessions whose project's path contains this
    #[arg(long, value_name = "PATH")]
    project: Option<String>,
    /// Only sessions of this model
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Write the comparison as JSON
    #[arg(long)]
    json: bool,
}

impl Verify {
    pub fn run(self, archive: &Archive) -> Result<()> {
        let folder = std::env::current_dir().ok();
        let store = store(archive)?;
        let current = store.current(folder.as_deref())?;
        let Some(item) = current.state.find(&self.id, folder.as_deref()) else {
            bail!("not_found: there is no adaptation {}; `unspool adapt list` shows all", self.id)
        };
        let own = || Rule::of_name(item.item.rule.as_deref()?);
        let rule = self
            .rule
            .or_else(own)
            .context("the adaptation does not say which rule it is for; name one with --rule")?;
        let changes = store.history(&self.id, folder.as_deref())?;
        let filter = SessionFilter {
            agent: self.agent.clone(),
            project: self.project.clone(),
            ..SessionFilter::default()
        };
        let sessions = sessions_of(archive, filter)?;
        let (signature, model) = (self.signature.as_deref(), self.model.as_deref());
        let question = Question { item, rule, signature, model, changes: &changes };
        let verified = verify(&sessions, &question);
        if self.json {
            return crate::command::write_json(&verified);
        }
        paint(&verified)
    }
}

fn paint(verified: &Verification) -> Result<()> {
    let mut out = io::stdout().lock();
    let mut line = |text: String| writeln!(out, "{}", make_visible(&text));
    line(format!("{}: {} ({})", verified.id, verified.verdict, verified.because))?;
    let of = [&verified.agent, &verified.project, &verified.model];
    let of: Vec<&str> = of.into_iter().flatten().map(String::as_str).collect();
    if !of.is_empty() {
        line(format!("of {}", of.join(", ")))?;
    }
    line(verified.design_words().to_owned())?;
    line(String::new())?;
    for (name, arm) in verified.arms() {
        line(format!("{name:<8} {}", verified.arm_words(arm)))?;
    }
    for (name, note) in verified.notes() {
        line(match name {
            "" => note,
            name => format!("{name:<8} {note}"),
        })?;
    }
    Ok(())
}
