//! The session of a record: recognises the format of the file, reads which session or sub-agent
//! the record belongs to, and opens a session when its id is new.

use super::{FileDecoder, RecordSink, Session, SessionHandle, SessionIdent};
use crate::decode::{Fields, Format, RecordOwner, SessionsPerFile, SideChain, recognise};
use crate::read::lines::Line;

impl FileDecoder {
    /// The session of a record; `None` until a record of the file names one. Then the lines that
    /// were held are decoded first.
    pub(super) fn session_of(
        &mut self,
        fields: &Fields<'_>,
        sink: &mut (impl RecordSink + ?Sized),
    ) -> Option<SessionHandle> {
        let session = self.session_by_id(fields, sink)?;
        Some(self.side_chain(session, fields, sink).unwrap_or(session))
    }

    /// The sub-agent of a record, for logs that also hold the records of sub-agents.
    fn side_chain(
        &mut self,
        session: SessionHandle,
        fields: &Fields<'_>,
        sink: &mut (impl RecordSink + ?Sized),
    ) -> Option<SessionHandle> {
        let file_session = self.sessions.get_mut(session.0)?;
        let chain = file_session.decoder.side_chain(&file_session.id, fields);
        for id in file_session.decoder.ended_chains() {
            if let Some(over) = self.sessions.find(&id) {
                self.sessions[over.0].decoder = (self.format?.decoder)();
            }
        }
        self.open_chain(session, &chain?, sink)
    }

    /// The session of a side chain of `session`.
    pub(super) fn open_chain(
        &mut self,
        session: SessionHandle,
        chain: &SideChain,
        sink: &mut (impl RecordSink + ?Sized),
    ) -> Option<SessionHandle> {
        let existing = self.sessions.len();
        let opened = self.open_session(&chain.id, Some(&chain.parent), true, sink)?;
        if opened.0 == existing {
            self.sessions[opened.0].decoder.begin_side_chain(chain);
        }
        // Records that name no session belong to the log's main session.
        self.current = Some(session);
        Some(opened)
    }

    fn session_by_id(
        &mut self,
        fields: &Fields<'_>,
        sink: &mut (impl RecordSink + ?Sized),
    ) -> Option<SessionHandle> {
        let recognised = match (self.format, self.current) {
            // A log or a stream is one session, even if the program later drops the id that it
            // began with. One file of hooks may hold several sessions.
            (Some(format), Some(current)) if format.sessions_per_file == SessionsPerFile::One => {
                return Some(current);
            }
            // A file keeps its format; its decoder also gets records of unknown kinds.
            (Some(format), _) => (format.recognise)(fields).unwrap_or(RecordOwner::Format),
            (None, _) => {
                let (format, recognised) = recognise(fields)?;
                if matches!(recognised, RecordOwner::Ambiguous(_)) {
                    self.tentative_format = self.tentative_format.or(Some(format));
                    return None;
                }
                self.agent = format.agent_of(fields);
                self.set_format(format, sink);
                recognised
            }
        };
        match recognised {
            RecordOwner::Ambiguous(id) if id.is_empty() => self.current,
            RecordOwner::Format => self.current.or_else(|| self.former_session(sink)),
            RecordOwner::FallbackId(name) => {
                self.fallback_id.get_or_insert_with(|| name.into_owned());
                // A file that identifies itself does not continue the one that it replaces.
                self.former = None;
                self.current
            }
            // `None` until the main session was named.
            RecordOwner::MainSession => {
                let own = self.sessions.own()?;
                self.current = Some(own);
                self.current
            }
            RecordOwner::Session(id) | RecordOwner::Ambiguous(id) => {
                self.open_session(&id, None, false, sink)
            }
            RecordOwner::SubAgent { id, parent } => {
                self.open_session(&id, parent.as_deref(), true, sink)
            }
        }
    }

    /// The session of the log that this file replaces.
    fn former_session(&mut self, sink: &mut (impl RecordSink + ?Sized)) -> Option<SessionHandle> {
        let format =
            self.format.filter(|format| format.sessions_per_file == SessionsPerFile::One)?;
        let former = self.former.as_ref()?;
        let (id, parent, sub_agent) = former.session(format)?;
        let (id, parent) = (id.to_owned(), parent.map(str::to_owned));
        self.open_session(&id, parent.as_deref(), sub_agent, sink)
    }

    /// Sets the format, and decodes the records that were held while it was ambiguous.
    pub(super) fn set_format(
        &mut self,
        format: &'static Format,
        sink: &mut (impl RecordSink + ?Sized),
    ) {
        self.format = Some(format);
        if self.tentative_format.take().is_some() {
            for (number, offset, bytes) in std::mem::take(&mut self.pending.records) {
                self.decode_record(Line { number, offset, bytes: &bytes }, sink);
            }
        }
    }

    /// The handle of the session with this id. Opens it if it is new.
    pub(super) fn open_session(
        &mut self,
        id: &str,
        parent: Option<&str>,
        sub_agent: bool,
        sink: &mut (impl RecordSink + ?Sized),
    ) -> Option<SessionHandle> {
        let format = self.format?;
        let is = |handle: &SessionHandle| self.sessions[handle.0].id == id;
        let existing = self.current.filter(is).or_else(|| self.sessions.find(id));
        let session = existing.unwrap_or_else(|| {
            let handle = SessionHandle(self.sessions.len());
            let (id, parent) = (id.to_owned(), parent.map(str::to_owned));
            let mut decoder = (format.decoder)();
            let own = self.sessions.own().filter(|_| sub_agent).map(|own| &self.sessions[own.0]);
            if let Some(session_context) = own.and_then(|own| own.decoder.session_context()) {
                decoder.inherit_context(session_context);
            }
            let former = self.former.as_ref().and_then(|former| former.decoder(format, &id));
            if let Some(former) = former {
                decoder.replace(former);
            }
            let mut session = Session { id, sub_agent, parent, source: 0, decoder };
            let first = self.first.unwrap_or_default();
            let ident = file_session(format, self.agent, first, &session);
            session.source = sink.source(handle, &ident);
            self.sessions.push(session);
            handle
        });
        let first = self.current.replace(session).is_none();
        if first || (existing.is_none() && !sub_agent) {
            self.decode_pending(session, sink);
            // Held lines may belong to other sessions.
            self.current = Some(session);
        }
        Some(session)
    }
}

/// A session of a file, as sinks see it.
pub(super) fn file_session<'a>(
    format: &'static Format,
    agent: Option<&'static str>,
    first: u64,
    session: &'a Session,
) -> SessionIdent<'a> {
    SessionIdent {
        agent: agent.unwrap_or(format.agent),
        session: &session.id,
        feed: format.feed,
        first,
        sub_agent: session.sub_agent,
        parent: session.parent.as_deref(),
    }
}
