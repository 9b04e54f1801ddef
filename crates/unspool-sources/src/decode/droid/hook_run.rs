//! Runs of the user's hooks. The session file has a message for each, without content. One that
//! printed nothing and did not fail says only when a call began to run; others become notices.

use jiff::Timestamp;
use unspool_model::event::{CallRef, EventKind};
use unspool_model::part::{Body, Notice};
use unspool_model::provenance::Name;

use super::super::{Emitter, Fields, RecordOutcome};

pub(super) fn hook_run(emit: &mut Emitter<'_>, id: &str, message: &Fields<'_>) -> RecordOutcome {
    let event = message.string("hookEventName").unwrap_or_default();
    let ended = message.raw("hookEndTime").and_then(|ms| ms.parse().ok());
    emit.at = ended.and_then(|ms| Timestamp::from_millisecond(ms).ok()).or(emit.at);
    let mut texts: Vec<String> = Vec::new();
    for result in message.list("hookResults") {
        let code: i64 = result.read("exitCode").unwrap_or(0);
        let printed = ["stdout", "stderr"].map(|name| result.string(name).unwrap_or_default());
        let printed = printed.iter().map(|text| text.trim()).filter(|text| !text.is_empty());
        texts.extend(printed.map(str::to_owned));
        if code != 0 {
            texts.push(format!("exit code {code}"));
        }
    }
    let call = message.text("hookToolCallId").filter(|_| event == "PreToolUse");
    if let Some(call) = call {
        emit.push(EventKind::ToolStarted { call: CallRef::Id(call.as_ref().into()) });
    }
    if texts.is_empty() {
        return RecordOutcome::left_out(format!("hook/{event}"));
    }
    let text = format!("{event}: {}", texts.join("\n"));
    let notice = Notice { code: "hook-feedback".to_owned(), text };
    emit.push(EventKind::Part(Some(Name::Record(id.into())), Body::Notice(notice)));
    RecordOutcome::InParts
}
