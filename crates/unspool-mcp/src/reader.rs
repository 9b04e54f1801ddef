//! Reads the archive for the tools: finds sessions that the client may see, and redacts them.

use std::sync::Arc;

use unspool_model::price::Prices;
use unspool_model::session::SessionState;
use unspool_query::adaptations::AdaptationStore;
use unspool_query::findings::Reflection;
use unspool_redact::Rules;
use unspool_store::blocking::block_on;
use unspool_store::facets::FacetsRequest;
use unspool_store::store::{SessionFilter, StoreError, StoredSession, View};

use crate::arguments::Arguments;
use crate::exit::{Exit, SecretCache};
use crate::item::cut;
use crate::scope::Scope;
use crate::tool::ToolError;

/// Sessions with this tag are never told about.
pub const PRIVATE_TAG: &str = "private";
/// Deepest nesting of sub-agents that is followed.
const MAX_DEPTH: usize = 16;
/// No path of a project has this character.
const NO_PROJECT: &str = "\0";
/// Sessions loaded at once while looking for those in scope.
const SESSIONS_PER_LOAD: u64 = 50;

/// What answers depend on.
#[derive(Clone)]
pub struct Settings {
    /// What is redacted; nothing without rules.
    pub rules: Option<Arc<Rules>>,
    pub prices: Prices,
    pub scope: Scope,
    /// The agent's own id of the session that the client is, if it says so.
    pub own_session: Option<String>,
    /// Looks for findings, and redacts what they quote.
    pub reflection: Arc<Reflection>,
}

/// The adaptations that a client may see.
#[derive(Clone)]
pub struct Adaptations {
    pub store: AdaptationStore,
    /// The client may change them. Without it, it may propose.
    pub allows_edits: bool,
}

/// The archive as a client may see it.
pub struct Reader<V: View> {
    pub view: V,
    settings: Settings,
    /// Shared by the readers of all scopes.
    secrets: Arc<SecretCache>,
    adaptations: Option<Adaptations>,
}

impl<V: View> Reader<V> {
    pub fn new(view: V, settings: Settings) -> Reader<V> {
        Reader { view, settings, secrets: Arc::default(), adaptations: None }
    }

    /// With adaptations, which a client may see.
    pub fn with_adaptations(self, adaptations: Adaptations) -> Reader<V> {
        Reader { adaptations: Some(adaptations), ..self }
    }

    pub fn adaptations(&self) -> Option<&Adaptations> {
        self.adaptations.as_ref()
    }

    /// The same archive for a client with another scope.
    pub fn in_scope(&self, scope: Scope) -> Reader<V> {
        let settings = Settings { scope, ..self.settings.clone() };
        let (view, secrets) = (self.view.clone(), self.secrets.clone());
        Reader { view, settings, secrets, adaptations: self.adaptations.clone() }
    }

    pub fn scope(&self) -> &Scope {
        &self.settings.scope
    }

    pub fn reflection(&self) -> &Reflection {
        &self.settings.reflection
    }

    pub fn prices(&self) -> &Prices {
        &self.settings.prices
    }

    /// The way out for what is told of a session.
    pub fn exit(&self, stored: &StoredSession) -> Result<Exit<'_>, StoreError> {
        self.secrets.exit(&self.view, stored, self.settings.rules.as_deref())
    }

    /// The way out for texts of no one session.
    pub fn exit_of_none(&self) -> Exit<'_> {
        Exit::new(self.settings.rules.as_deref())
    }

    /// The session that the arguments name, else the client's own, else the newest.
    pub fn session(&self, arguments: &Arguments) -> Result<StoredSession, ToolError> {
        match arguments.text("session") {
            Some(text) => self.named(text),
            None => self.current(),
        }
    }

    /// A session by its id, a unique prefix of it, or the agent's own id.
    pub fn named(&self, text: &str) -> Result<StoredSession, ToolError> {
        let mut visible = Vec::new();
        for stored in block_on(self.view.find(text.to_owned()))? {
            if self.may_see(&stored)? {
                visible.push(stored);
            }
        }
        let text = cut(text, 60);
        if visible.len() > 1 {
            let ids: Vec<String> =
                visible.iter().take(8).map(|it| it.summary.session.id.to_string()).collect();
            return Err(ToolError::message(format!(
                "{text:?} matches {} sessions; give more of the id: {}",
                visible.len(),
                ids.join(", ")
            )));
        }
        visible.pop().ok_or_else(|| {
            ToolError::message(format!(
                "there is no session {text:?} {}; list_sessions has them",
                self.settings.scope.words()
            ))
        })
    }

    /// The client's own session, else the newest that is live, else the newest.
    fn current(&self) -> Result<StoredSession, ToolError> {
        if let Some(own) = &self.settings.own_session {
            for stored in block_on(self.view.find(own.clone()))? {
                if stored.summary.session.agent_session_id == *own && self.may_see(&stored)? {
                    return Ok(stored);
                }
            }
        }
        let filter = SessionFilter { without_agents: true, ..SessionFilter::default() };
        let (mut newest, _) = self.sessions(filter, 20)?;
        let live = newest.iter().position(|it| it.summary.session.state == SessionState::Live);
        let nothing = || {
            ToolError::message(format!(
                "no session {} is recorded yet; `unspool serve` records while it runs, and `unspool \
                 sync` reads what is there",
                self.settings.scope.words()
            ))
        };
        match newest.is_empty() {
            true => Err(nothing()),
            false => Ok(newest.swap_remove(live.unwrap_or(0))),
        }
    }

    /// Sessions that the client may see, newest first, and whether there are more.
    pub fn sessions(
        &self,
        filter: SessionFilter,
        count: usize,
    ) -> Result<(Vec<StoredSession>, bool), StoreError> {
        let mut filter = SessionFilter { limit: Some(SESSIONS_PER_LOAD), ..filter };
        let asked = filter.project.take();
        // The store has one filter by project: the narrower one.
        let scope = self.settings.scope.folder_path().map(str::to_owned);
        filter.project = scope.or_else(|| asked.clone());
        let mut visible = Vec::new();
        loop {
            let loaded = block_on(self.view.sessions(filter.clone()))?;
            let Some(last) = loaded.last() else { return Ok((visible, false)) };
            filter.after =
                Some((last.summary.started.map(|at| at.as_millisecond()), last.summary.session.id));
            for stored in loaded {
                if self.is_in_project(&stored, asked.as_deref()) && self.may_see(&stored)? {
                    if visible.len() == count {
                        return Ok((visible, true));
                    }
                    visible.push(stored);
                }
            }
        }
    }

    /// True if the path of the project has this text, also after redaction: a filter must not tell
    /// what an answer does not.
    pub fn is_in_project(&self, stored: &StoredSession, text: Option<&str>) -> bool {
        let project = stored.summary.session.facts.project.as_deref().unwrap_or_default();
        text.is_none_or(|text| self.shows(project, text))
    }

    fn shows(&self, path: &str, text: &str) -> bool {
        path.contains(text) && self.exit_of_none().text(path).contains(text)
    }

    /// The filter by project. A text that no redacted path has selects nothing: sums and numbers of
    /// hits cannot be checked session by session.
    pub fn project(&self, arguments: &Arguments) -> Result<Option<String>, StoreError> {
        let Some(text) = arguments.owned("project") else { return Ok(None) };
        let request = FacetsRequest {
            filter: SessionFilter::default(),
            times: Vec::new(),
            prices: self.prices().clone(),
        };
        let projects = block_on(self.view.facets(request))?.projects;
        let is_shown = projects.iter().any(|project| self.shows(&project.path, &text));
        Ok(Some(if is_shown { text } else { NO_PROJECT.to_owned() }))
    }

    /// True if the session, or one that started it, is in scope, and none of them is private.
    pub fn may_see(&self, stored: &StoredSession) -> Result<bool, StoreError> {
        let mut in_scope = false;
        let mut current = stored.clone();
        for _ in 0..MAX_DEPTH {
            let summary = &current.summary;
            if summary.tags.iter().any(|tag| tag == PRIVATE_TAG) {
                return Ok(false);
            }
            in_scope |= self.settings.scope.has(summary.session.facts.project.as_deref());
            let Some(parent) = &summary.session.parent else { return Ok(in_scope) };
            match block_on(self.view.session(parent.session))? {
                Some(parent) => current = parent,
                None => return Ok(in_scope),
            }
        }
        Ok(false)
    }
}
