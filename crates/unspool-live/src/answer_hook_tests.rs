use super::*;
use crate::client::{ClientError, attach};
use crate::host::process::identify;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::sleep;

fn question() -> HookQuestion {
    let payload = r#"{"session_id": "s", "hook_event_name": "PermissionRequest",
        "tool_name": "Bash", "tool_input": {"command": "ls"}}"#;
    HookQuestion::of_payload(payload).unwrap()
}

/// The agent and what it started must not answer: here, this process.
#[tokio::test]
async fn what_the_agent_started_is_not_served() {
    let data = tempfile::tempdir().unwrap();
    let at = |name: &str| data.path().join(name);
    let (chats, captures) = (at("chats"), at("streams"));
    let folders = ChatFolders { chats, captures, processes: at("processes") };
    let watch = || {
        let spool = at("spool");
        Watch::new(question(), Box::new(move || spool.clone()), None, Duration::from_secs(60))
    };
    for (caller, is_served) in [(Some(identify(std::process::id())), false), (None, true)] {
        let (end, ended) = oneshot::channel::<()>();
        let terminated = async { drop(ended.await) };
        let (folders, agent) = (folders.clone(), "claude-code");
        let spec =
            Wait { folders: folders.clone(), agent, question: question(), watch: watch(), caller };
        let waiting = wait(spec, terminated, |_| Err(io::Error::other("nobody answers")));
        let client = async {
            let folder = loop {
                let found = folders.all().into_iter().find(|folder| folder.read().is_some());
                match found {
                    Some(folder) => break folder,
                    None => sleep(Duration::from_millis(5)).await,
                }
            };
            let attached = attach(&folder).await;
            match attached {
                Ok(attached) => assert!(is_served && attached.state.answers_only),
                Err(error) => assert!(!is_served && matches!(error, ClientError::Silent)),
            }
            let _ = end.send(());
        };
        let (result, ()) = tokio::join!(waiting, client);
        result.unwrap();
        assert!(folders.all().is_empty());
    }
}
