//! An archive in a temporary folder, and a client of its tools.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use unspool_ingest::report::Progress;
use unspool_ingest::service::archive::Archive;
use unspool_mcp::{Adaptations, MAX_LIMIT, McpServer, Reader, Scope, Settings};
use unspool_model::price::Prices;
use unspool_query::adaptations::AdaptationStore;
use unspool_query::findings::Reflection;
use unspool_query::request::{ReadReason, Request};
use unspool_redact::Rules;
use unspool_store::database::DatabaseView;

pub struct Machine {
    folder: tempfile::TempDir,
}

impl Machine {
    pub fn new() -> Machine {
        Machine { folder: tempfile::tempdir().unwrap() }
    }

    /// With these recordings of the repository.
    pub fn with_cases(cases: &[&str]) -> Machine {
        let machine = Machine::new();
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
        let mut logs = Vec::new();
        cases.iter().for_each(|case| add_logs(&fixtures.join(case), &mut logs));
        assert!(logs.len() >= cases.len(), "{logs:?}");
        machine.read(logs);
        machine
    }

    pub fn archive(&self) -> Archive {
        Archive::new(Some(self.folder.path().join("data")))
    }

    pub fn read(&self, paths: Vec<PathBuf>) {
        self.submit(Request::ReadFiles { paths, reason: ReadReason::Named });
    }

    pub fn submit(&self, request: Request) {
        self.archive().writer().unwrap().submit(request, &Progress::default()).unwrap();
    }

    /// Reads a log that a test wrote.
    pub fn read_text(&self, name: &str, text: &str) {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        self.read(vec![path]);
    }

    pub fn server(&self, scope: Scope) -> Client {
        self.client(scope, Some(Arc::new(Rules::standard())), None)
    }

    pub fn client(
        &self,
        scope: Scope,
        rules: Option<Arc<Rules>>,
        own_session: Option<&str>,
    ) -> Client {
        let own_session = own_session.map(str::to_owned);
        let reflection = Arc::new(Reflection::new(Rules::standard(), Vec::new()));
        let prices = Prices::default();
        let settings = Settings { rules, prices, scope, own_session, reflection };
        let store = AdaptationStore::new(&self.folder.path().join("data"), None);
        let reader = Reader::new(self.archive().view().unwrap(), settings)
            .with_adaptations(Adaptations { store, allows_edits: true });
        Client(McpServer::new(reader))
    }
}

/// The logs of a session and of its sub-agents below a folder.
fn add_logs(folder: &Path, logs: &mut Vec<PathBuf>) {
    for entry in folder.read_dir().unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            add_logs(&path, logs);
        } else if name == "log.jsonl" || name.starts_with("agent-") && name.ends_with(".jsonl") {
            logs.push(path);
        }
    }
}

pub struct Client(pub McpServer<DatabaseView>);

impl Client {
    /// A call with these arguments: the answer, or the message of the error.
    pub fn try_call(&self, tool: &str, arguments: Value) -> Result<Value, String> {
        let Value::Object(arguments) = arguments else { panic!("no object") };
        let limit = arguments.get("limit").and_then(Value::as_u64).unwrap_or(8_000);
        let answer = self.0.call(tool, arguments).expect("a tool");
        let answer = answer.map_err(|error| error.to_string())?;
        let chars = answer.document().to_string().chars().count() as u64;
        assert!(chars <= limit.clamp(2_000, MAX_LIMIT as u64), "{tool}: {chars} characters");
        assert_eq!(answer.document()["truncated"], !answer.document()["next"].is_null());
        Ok(answer.into_document())
    }

    #[track_caller]
    pub fn call(&self, tool: &str, arguments: Value) -> Value {
        self.try_call(tool, arguments.clone())
            .unwrap_or_else(|error| panic!("{tool} {arguments}: {error}"))
    }

    /// All items of the list of an answer, over all its pages.
    #[track_caller]
    pub fn all(&self, tool: &str, list: &str, arguments: Value) -> Vec<Value> {
        let Value::Object(mut arguments) = arguments else { panic!("no object") };
        let mut items = Vec::new();
        for _ in 0..10_000 {
            let answer = self.call(tool, Value::Object(arguments.clone()));
            items.extend(answer[list].as_array().unwrap().clone());
            match answer["next"].as_str() {
                None => return items,
                Some(next) => {
                    assert_ne!(arguments.get("after"), Some(&json!(next)), "{tool} stands still");
                    arguments.insert("after".to_owned(), next.into());
                }
            }
        }
        panic!("{tool} has no end");
    }

    pub fn sessions(&self) -> Vec<Value> {
        self.all("list_sessions", "sessions", json!({ "sub_agents": true }))
    }

    /// The id of the session with this title.
    #[track_caller]
    pub fn titled(&self, title: &str) -> String {
        let sessions = self.sessions();
        let is_titled = |it: &&Value| it["title"].as_str().is_some_and(|it| it.contains(title));
        let found = sessions.iter().find(is_titled);
        found.unwrap_or_else(|| panic!("{title}: {sessions:#?}"))["session"]
            .as_str()
            .unwrap()
            .to_owned()
    }
}

/// A log of Claude Code with one turn per prompt, each with reasoning, a call and a text.
pub struct Log {
    lines: String,
    session: String,
    folder: String,
    count: usize,
}

impl Log {
    pub fn new(session: &str, folder: &str) -> Log {
        let (session, folder) = (session.to_owned(), folder.to_owned());
        Log { lines: String::new(), session, folder, count: 0 }
    }

    fn record(&mut self, kind: &str, message: Value) {
        self.count += 1;
        let parent = (self.count > 1).then(|| format!("uuid-{}-{}", self.session, self.count - 1));
        let seconds = self.count;
        let record = json!({
            "parentUuid": parent,
            "isSidechain": false,
            "type": kind,
            "message": message,
            "uuid": format!("uuid-{}-{}", self.session, self.count),
            "timestamp": format!("2026-11-15T{:02}:{:02}:{:02}.000Z",
                seconds / 3600, seconds / 60 % 60, seconds % 60),
            "userType": "external",
            "cwd": self.folder,
            "sessionId": self.session,
            "version": "2.1.325",
            "gitBranch": "main",
        });
        self.lines.push_str(&format!("{record}\n"));
    }

    /// A prompt and the reply to it.
    pub fn turn(&mut self, user: &str, thought: &str, command: &str, output: &str, text: &str) {
        self.record("user", json!({ "role": "user", "content": user }));
        let id = self.count;
        let message = |content: Value| {
            json!({
                "id": format!("msg_{id}"), "type": "message", "role": "assistant",
                "model": "claude-opus-5-5", "content": [content],
                "usage": { "input_tokens": 10, "output_tokens": 5 },
            })
        };
        self.record(
            "assistant",
            message(json!({ "type": "thinking", "thinking": thought, "signature": "" })),
        );
        let call = json!({
            "type": "tool_use", "id": format!("toolu_{id}"), "name": "Bash",
            "input": { "command": command },
        });
        self.record("assistant", message(call));
        let result = json!({
            "role": "user",
            "content": [{ "type": "tool_result", "tool_use_id": format!("toolu_{id}"), "content": output }],
        });
        self.record("user", result);
        self.record("assistant", message(json!({ "type": "text", "text": text })));
    }

    pub fn text(&self) -> &str {
        &self.lines
    }
}
