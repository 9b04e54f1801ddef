//! Adaptations as lines of text.

use std::io::{self, Write};

use anyhow::Result;
use unspool_model::adaptation::Item;
use unspool_query::adaptations::{
    AdaptationsDocument, Change, Current, Facts, PreviewDocument, Proposal, ProposalState,
    VersionedItem,
};
use unspool_view::lines::make_visible;

use crate::table::{self, left, rest, right};

/// Lines of a text, safe for a terminal.
fn text(text: &str, indent: &str) -> Result<()> {
    for line in text.trim().lines() {
        writeln!(io::stdout(), "{indent}{}", make_visible(line))?;
    }
    Ok(())
}

/// Says on stderr what is wrong with the files.
pub fn warn(current: &Current) {
    for problem in &current.problems {
        stderr_line!("unspool: {}", make_visible(&problem.to_string()));
    }
    if current.is_pending {
        stderr_line!(
            "unspool: files were changed by hand; agents get that after `unspool adapt reload`"
        );
    }
}

fn state(enabled: bool, is_trial: bool) -> &'static str {
    match (enabled, is_trial) {
        (false, _) => "off",
        (true, false) => "on",
        (true, true) => "half",
    }
}

pub fn list(document: &AdaptationsDocument<'_>) -> Result<()> {
    for problem in &document.problems {
        stderr_line!("unspool: {}", make_visible(problem));
    }
    if document.reload_needed {
        stderr_line!(
            "unspool: files were changed by hand; agents get that after `unspool adapt reload`"
        );
    }
    let columns = [left("id"), left("state"), right("version"), left("from"), rest("title")];
    let rows: Vec<Vec<String>> = document
        .items
        .iter()
        .map(|item| {
            vec![
                item.id.to_owned(),
                state(item.enabled, item.trial.is_some()).to_owned(),
                item.version.to_string(),
                item.origin.to_owned(),
                item.title.to_owned(),
            ]
        })
        .collect();
    let style = crate::command::style(None, true, true);
    table::write(&columns, &rows, &style, &mut io::stdout().lock())?;
    Ok(())
}

pub fn item(versioned: &VersionedItem, facts: &Facts) -> Result<()> {
    let mut out = io::stdout();
    let Item { id, title, content, scope, tags, enabled, trial, rule, .. } = &versioned.item;
    writeln!(out, "{id}  {}\n", make_visible(title))?;
    text(content, "  ")?;
    writeln!(out)?;
    let lists =
        [("agents", &scope.agents), ("channels", &scope.channels), ("projects", &scope.projects)];
    let scopes: Vec<String> = lists
        .iter()
        .filter(|(_, list)| !list.is_empty())
        .map(|(name, list)| format!("{name} {}", list.join(", ")))
        .collect();
    let whom =
        if scopes.is_empty() || scope.global { "everybody".to_owned() } else { scopes.join("; ") };
    writeln!(out, "for        {}", make_visible(&whom))?;
    if !tags.is_empty() {
        writeln!(out, "tags       {}", make_visible(&tags.join(", ")))?;
    }
    if let Some(rule) = rule {
        writeln!(out, "against    {}", make_visible(rule))?;
    }
    let enabled = match (enabled, trial) {
        (false, _) => "no",
        (true, None) => "yes",
        (true, Some(_)) => "yes, in half of the sessions",
    };
    writeln!(out, "version    {} ({})", versioned.version, versioned.origin)?;
    writeln!(out, "enabled    {enabled}")?;
    let last = facts.delivered_last_at.as_deref().map(|at| format!(", last at {at}"));
    let sessions = |count: usize| {
        if count == 1 { "1 session".to_owned() } else { format!("{count} sessions") }
    };
    writeln!(
        out,
        "delivered  in {}{}",
        sessions(facts.delivered_sessions),
        last.unwrap_or_default()
    )?;
    writeln!(out, "seen       in {}, {} calls", sessions(facts.seen_sessions), facts.seen_calls)?;
    if facts.delivered_not_seen > 0 {
        writeln!(
            out,
            "           delivered and not seen in {}",
            sessions(facts.delivered_not_seen)
        )?;
    }
    for session in &facts.sessions {
        let seen = match session.seen {
            Some(true) => format!("seen in {} of {} calls", session.calls, session.of_calls),
            Some(false) => "not seen".to_owned(),
            None => "its prompts are not known".to_owned(),
        };
        let given = if session.delivered { "delivered, " } else { "" };
        let altered = if session.altered { ", altered" } else { "" };
        let id = session.session.to_string();
        let line =
            format!("{}  {given}{seen}{altered}  {}", id.get(..8).unwrap_or(&id), session.title);
        writeln!(out, "  {}", make_visible(&line))?;
    }
    Ok(())
}

pub fn changed(versioned: &VersionedItem) -> Result<()> {
    let item = &versioned.item;
    let state = state(item.enabled, item.trial.is_some());
    writeln!(io::stdout(), "{}: {state}, version {}", item.id, versioned.version)?;
    Ok(())
}

/// Enabling alone delivers nothing.
pub fn delivery_hint(enabled: bool) -> Result<()> {
    if enabled {
        stderr_line!(
            "unspool: sessions that start from now on get it if the hooks deliver it: `unspool hooks \
             install --agent AGENT --adapt`"
        );
    }
    Ok(())
}

pub fn reloaded(changed: &[String], version: u64) -> Result<()> {
    let what = match changed {
        [] => "nothing changed".to_owned(),
        changed => format!("changed: {}", changed.join(", ")),
    };
    writeln!(io::stdout(), "{}; version {version}", make_visible(&what))?;
    Ok(())
}

pub fn preview(document: &PreviewDocument) -> Result<()> {
    let mut out = io::stdout();
    match &document.frame {
        Some(frame) => {
            text(frame, "")?;
            writeln!(out, "\n{} characters in each prompt", document.chars)?;
        }
        None => writeln!(
            out,
            "{} gets nothing: no adaptation for it is enabled",
            make_visible(&document.agent)
        )?,
    }
    if !document.on_trial_ids.is_empty() {
        writeln!(out, "in half of the sessions also: {}", document.on_trial_ids.join(", "))?;
    }
    if !document.left_out_ids.is_empty() {
        writeln!(
            out,
            "left out, because the text would be too long: {}",
            document.left_out_ids.join(", ")
        )?;
    }
    Ok(())
}

pub fn history(versions: &[Change]) -> Result<()> {
    if versions.is_empty() {
        writeln!(io::stdout(), "it was never changed")?;
    }
    let mut before: Option<&Change> = None;
    for change in versions {
        let mut what = vec![state(change.enabled, change.trial.is_some()).to_owned()];
        if before.is_some_and(|before| before.title != change.title) {
            what.push(format!("title “{}”", change.title));
        }
        if before.is_some_and(|before| before.content != change.content) {
            what.push("new text".to_owned());
        }
        let why = change.why.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
        let line = format!(
            "version {}  {:.0}  {} ({}{why})",
            change.version,
            change.at,
            what.join(", "),
            change.who
        );
        writeln!(io::stdout(), "{}", make_visible(&line))?;
        before = Some(change);
    }
    Ok(())
}

pub fn proposals(proposals: &[Proposal]) -> Result<()> {
    if proposals.is_empty() {
        writeln!(io::stdout(), "no proposals; `unspool adapt propose` makes some from findings")?;
    }
    for proposal in proposals {
        let state = match proposal.state {
            ProposalState::Open => "",
            ProposalState::Applied => ", applied",
            ProposalState::Dismissed => ", dismissed",
        };
        let line = format!(
            "{}  {}  {} ({}{state}; {} characters in each prompt)",
            proposal.number, proposal.id, proposal.why, proposal.who, proposal.chars
        );
        writeln!(io::stdout(), "{}", make_visible(&line))?;
        if let Some(content) = &proposal.patch.content {
            text(content, "     ")?;
        }
        for evidence in &proposal.evidence {
            writeln!(io::stdout(), "     shown by {}", make_visible(evidence))?;
        }
    }
    if proposals.iter().any(|proposal| proposal.state == ProposalState::Open) {
        stderr_line!(
            "unspool: `unspool adapt apply N` applies one; --trial half tries it in half of the sessions"
        );
    }
    Ok(())
}
