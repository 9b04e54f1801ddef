//! Answers for an OpenCode server that is followed: its permissions and questions are shown with the
//! session and can be answered there, beside its own dialog.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
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
    /// Tells whoever waits for the answer that the question is over.
    open: BTreeMap<String, Sender<QuestionEnd>>,
}

impl Questions {
    pub fn new(server: &OpencodeServer, data: &DataFolder) -> Questions {
        Questions { server: server.clone(), folders: folders(data), open: BTreeMap::new() }
    }

    pub fn take(&mut self, event: &AttachEvent<'_>) {
        match event {
            AttachEvent::Attached => self.ask_server(),
            AttachEvent::Received(event) => match QuestionEvent::of_event(event) {
                Some(QuestionEvent::Asked(question)) => self.ask(question),
                Some(QuestionEvent::Over(id, how)) => {
                    if let Some(waiting) = self.open.remove(&id) {
                        // Nobody waits if the answer was ours.
                        let _ = waiting.send(QuestionEnd::Answered(how));
                    }
                }
                None => {}
            },
            AttachEvent::Disconnected => self.forget(),
            AttachEvent::Lost(_) => {}
        }
    }

    /// What was asked before the connection: the server does not repeat its events.
    fn ask_server(&mut self) {
        let list = |path: &str| -> Vec<Value> {
            let listed = self.server.get(path);
            listed.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
        };
        let (permissions, forms) = (list("/permission"), list("/question"));
        let permissions = permissions.iter().filter_map(OpencodeQuestion::permission);
        let all: Vec<_> =
            permissions.chain(forms.iter().filter_map(OpencodeQuestion::form)).collect();
        all.into_iter().for_each(|question| self.ask(question));
    }

    fn ask(&mut self, question: OpencodeQuestion) {
        if self.open.contains_key(&question.id) || self.open.len() >= MAX_OPEN {
            return;
        }
        let (sender, ends) = channel();
        self.open.insert(question.id.clone(), sender);
        let (server, folders) = (self.server.clone(), self.folders.clone());
        thread::spawn(move || answer(&server, folders, &question, &ends));
    }

    fn forget(&mut self) {
        for waiting in std::mem::take(&mut self.open).into_values() {
            let _ = waiting.send(QuestionEnd::Gone("the connection to OpenCode was lost"));
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
    let poll = || match ends.try_recv() {
        Ok(end) => Some(end),
        Err(TryRecvError::Empty) => None,
        Err(TryRecvError::Disconnected) => Some(QuestionEnd::Gone("OpenCode is not followed")),
    };
    let waited =
        tokio::runtime::Builder::new_current_thread().enable_all().build().and_then(|runtime| {
            let deliver = |given: &ClientAnswer<'_>| {
                let reply = question.reply(given.answer, given.words);
                server.post(&reply.path, &reply.body.to_string())
            };
            runtime.block_on(wait(spec, poll, std::future::pending(), deliver))
        });
    if let Err(error) = waited {
        // The question is OpenCode's all the same.
        tracing::warn!(%error, "a question of OpenCode cannot be answered from here");
    }
}
