//! Answers for an OpenCode server that is followed: its permissions and questions are shown with the
//! session and can be answered there, beside its own dialog.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use serde_json::Value;
use unspool_ingest::attach::{AttachEvent, OpencodeServer};
use unspool_ingest::lock::DataFolder;
use unspool_live::host::folder::ChatFolders;
use unspool_live::opencode_question::{OpencodeQuestion, QuestionEvent};
use unspool_live::question_host::{ClientAnswer, QuestionEnd, Wait, now, wait};

use crate::command::chat::folders;

/// More questions at once are not shown: no person reads them.
const MAX_OPEN: usize = 50;
const AGENT: &str = "opencode";

/// The open questions of a server.
pub struct Questions {
    server: OpencodeServer,
    folders: ChatFolders,
    open: OpenQuestions,
}

/// The session of each open question, and how to tell whoever waits for its answer that it is over.
type OpenQuestions = Arc<Mutex<BTreeMap<String, (String, Sender<QuestionEnd>)>>>;

impl Questions {
    pub fn new(server: &OpencodeServer, data: &DataFolder) -> Questions {
        Questions { server: server.clone(), folders: folders(data), open: OpenQuestions::default() }
    }

    pub fn take(&self, event: &AttachEvent<'_>) {
        match event {
            AttachEvent::Attached => self.ask_server(),
            AttachEvent::Received(event) => match QuestionEvent::of_event(event) {
                Some(QuestionEvent::Asked(question)) => self.ask(question),
                Some(QuestionEvent::Over(id, how)) => {
                    self.end(QuestionEnd::Answered(how), |open, _| open == id);
                }
                Some(QuestionEvent::Rests(session)) => {
                    let end = QuestionEnd::Gone("the turn has ended");
                    self.end(end, |_, of| of == session);
                }
                None => {}
            },
            AttachEvent::Disconnected => {
                let end = QuestionEnd::Gone("the connection to OpenCode was lost");
                self.end(end, |_, _| true);
            }
            AttachEvent::Lost(_) => {}
        }
    }

    /// What was asked before the connection: the server does not repeat its events.
    fn ask_server(&self) {
        let list = |path: &str| -> Vec<Value> {
            let listed = self.server.get(path);
            listed.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
        };
        let (permissions, forms) = (list("/permission"), list("/question"));
        let permissions = permissions.iter().filter_map(OpencodeQuestion::permission);
        let all: Vec<_> =
            permissions.chain(forms.iter().filter_map(OpencodeQuestion::form)).collect();
        // Questions of a turn that was aborted stay in the list.
        let status = self.server.get("/session/status");
        let status: Option<Value> = status.and_then(|text| serde_json::from_str(&text).ok());
        let works = |session: &str| match &status {
            Some(Value::Object(all)) => all.get(session).is_some_and(|one| one["type"] != "idle"),
            Some(_) | None => true,
        };
        for question in all.into_iter().filter(|question| works(&question.session)) {
            self.ask(question);
        }
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<String, (String, Sender<QuestionEnd>)>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask(&self, question: OpencodeQuestion) {
        let mut open = self.open();
        if open.contains_key(&question.id) || open.len() >= MAX_OPEN {
            return;
        }
        let (sender, ends) = channel();
        open.insert(question.id.clone(), (question.session.clone(), sender));
        drop(open);
        let (server, folders) = (self.server.clone(), self.folders.clone());
        let held = self.open.clone();
        thread::spawn(move || {
            answer(&server, folders, &question, &ends);
            held.lock().unwrap_or_else(PoisonError::into_inner).remove(&question.id);
        });
    }

    /// Ends the questions that fit, by their id and session.
    fn end(&self, end: QuestionEnd, fits: impl Fn(&str, &str) -> bool) {
        for (id, (session, waiting)) in self.open().iter() {
            if fits(id, session) {
                // Nobody waits if the answer was ours.
                let _ = waiting.send(end);
            }
        }
    }
}

/// Waits until a question is answered, here or in OpenCode.
fn answer(
    server: &OpencodeServer,
    folders: ChatFolders,
    question: &OpencodeQuestion,
    ends: &Receiver<QuestionEnd>,
) {
    let open = question.open(now());
    let spec =
        Wait { folders, agent: AGENT, project: PathBuf::new(), question: open, caller: None };
    let is_late = Cell::new(false);
    let poll = || match ends.try_recv() {
        _ if is_late.get() => Some(QuestionEnd::Gone("it was answered in OpenCode")),
        Ok(end) => Some(end),
        Err(TryRecvError::Empty) => None,
        Err(TryRecvError::Disconnected) => Some(QuestionEnd::Gone("OpenCode is not followed")),
    };
    let waited =
        tokio::runtime::Builder::new_current_thread().enable_all().build().and_then(|runtime| {
            let deliver = |given: &ClientAnswer<'_>| {
                let reply = question.reply(given.answer, given.words);
                let sent = server.post(&reply.path, &reply.body.to_string());
                is_late.set(sent.as_ref().is_err_and(|e| e.kind() == io::ErrorKind::NotFound));
                sent
            };
            runtime.block_on(wait(spec, poll, std::future::pending(), deliver))
        });
    if let Err(error) = waited {
        // The question is OpenCode's all the same.
        tracing::warn!(%error, "a question of OpenCode cannot be answered from here");
    }
}
