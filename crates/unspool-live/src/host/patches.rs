//! Updates of calls that the next one supersedes. Some agents send the whole output of a command
//! again with every piece of it, which is the square of the output on the wire. Updates of one call
//! are merged while they come faster than the budget, and the last one is always kept. Text is
//! never merged or dropped.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// Bytes of superseded updates that are recorded in a second.
const BYTES_PER_SECOND: i64 = 512_000;
/// The most bytes that wait. Beyond them updates are recorded as they come.
const MAX_HELD: usize = 16 * 1024 * 1024;
/// The fields of an update of a call. One with others is recorded as it comes.
const FIELDS: &[&str] = &[
    "sessionUpdate",
    "toolCallId",
    "title",
    "kind",
    "status",
    "content",
    "locations",
    "rawInput",
    "rawOutput",
    "_meta",
];
/// How many fields of the agent's own are merged.
const MAX_META: usize = 20;
/// A smaller update is always recorded.
const MIN_BYTES: usize = 2048;

#[derive(Default)]
pub struct Patches {
    /// What may still be spent, below zero after a large update, and when it was last raised.
    budget: i64,
    raised: Option<u64>,
    /// The merged update of each call that waits, and its bytes.
    held: BTreeMap<String, (Value, usize)>,
    held_bytes: usize,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    params: Params<'a>,
}

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow)]
    update: Update<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Update<'a> {
    #[serde(borrow)]
    session_update: Cow<'a, str>,
    #[serde(borrow, default)]
    tool_call_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    status: Option<Cow<'a, str>>,
}

impl Patches {
    /// True if a message waits: it is an update of an open call, and too much was spent.
    pub fn hold(&mut self, text: &str, now: u64) -> bool {
        self.raise(now);
        let Some(call) = superseded_call(text) else { return false };
        if !self.held.contains_key(&call) && self.budget > 0 {
            self.spend(text);
            return false;
        }
        let before = self.held.get(&call).map_or(0, |(_, bytes)| *bytes);
        if self.held_bytes - before + text.len() > MAX_HELD {
            return false;
        }
        let Ok(new) = serde_json::from_str::<Value>(text) else { return false };
        // Fields that no agent has would be kept beside those of the next update.
        let known = |fields: &serde_json::Map<String, Value>| {
            fields.keys().all(|name| FIELDS.contains(&name.as_str()))
        };
        let update = new.pointer("/params/update").and_then(Value::as_object);
        if !update.is_some_and(known) {
            return false;
        }
        self.held_bytes -= before;
        let (merged, bytes) = match self.held.remove(&call) {
            Some((mut held, _)) => {
                merge(&mut held, new);
                // Fields of earlier updates are kept beside those of this one.
                let bytes = held.to_string().len();
                (held, bytes)
            }
            None => (new, text.len()),
        };
        self.held_bytes += bytes;
        self.held.insert(call, (merged, bytes));
        true
    }

    fn release(&mut self, call: &str) -> Option<String> {
        let (held, bytes) = self.held.remove(call)?;
        self.held_bytes -= bytes;
        Some(held.to_string())
    }

    pub fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    /// The messages that must be recorded before this one. Text and other calls wait for nothing.
    pub fn release_for(&mut self, text: &str) -> Vec<String> {
        if self.held.is_empty() {
            return Vec::new();
        }
        let message = serde_json::from_str::<Message<'_>>(text).ok();
        let update = message.map(|message| message.params.update);
        let Some(update) = update else { return self.release_all() };
        match update.tool_call_id {
            Some(call) => self.release(&call).into_iter().collect(),
            None => Vec::new(),
        }
    }

    /// The messages that the budget allows by now.
    pub fn release_due(&mut self, now: u64) -> Vec<String> {
        self.raise(now);
        let mut due = Vec::new();
        // Merged updates may be more than what each of them was.
        while (self.budget > 0 || self.held_bytes > MAX_HELD)
            && let Some(call) = self.held.keys().next().cloned()
            && let Some(text) = self.release(&call)
        {
            self.spend(&text);
            due.push(text);
        }
        due
    }

    pub fn release_all(&mut self) -> Vec<String> {
        self.held_bytes = 0;
        std::mem::take(&mut self.held).into_values().map(|(held, _)| held.to_string()).collect()
    }

    fn raise(&mut self, now: u64) {
        let since = self.raised.replace(now).map_or(1000, |raised| now.saturating_sub(raised));
        let more = i64::try_from(since).unwrap_or(i64::MAX).saturating_mul(BYTES_PER_SECOND / 1000);
        self.budget = self.budget.saturating_add(more).min(BYTES_PER_SECOND);
    }

    fn spend(&mut self, text: &str) {
        self.budget = self.budget.saturating_sub(i64::try_from(text.len()).unwrap_or(i64::MAX));
    }
}

/// The call whose update this is, if a later one supersedes it.
fn superseded_call(text: &str) -> Option<String> {
    if text.len() < MIN_BYTES || !text.contains("\"tool_call_update\"") {
        return None;
    }
    let update = serde_json::from_str::<Message<'_>>(text).ok()?.params.update;
    let ended = matches!(update.status.as_deref(), Some("completed" | "failed"));
    (update.session_update == "tool_call_update" && !ended)
        .then(|| update.tool_call_id.map(Cow::into_owned))?
}

/// Lays a newer update over an older one: a field that it has replaces the older one.
fn merge(held: &mut Value, mut new: Value) {
    let update = new.pointer_mut("/params/update").map(Value::take);
    let into = held.pointer_mut("/params/update").and_then(Value::as_object_mut);
    let (Some(Value::Object(fields)), Some(into)) = (update, into) else { return };
    for (name, value) in fields {
        match (name.as_str(), into.get_mut(&name), value) {
            ("_meta", Some(Value::Object(meta)), Value::Object(new)) if meta.len() < MAX_META => {
                meta.extend(new);
            }
            (_, _, value) => drop(into.insert(name, value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn update(call: &str, size: usize, status: &str) -> String {
        let text = "x".repeat(size);
        let mut update = json!({"sessionUpdate": "tool_call_update", "toolCallId": call,
            "content": [{"type": "content", "content": {"type": "text", "text": text}}]});
        if !status.is_empty() {
            update["status"] = json!(status);
        }
        json!({"method": "session/update", "params": {"sessionId": "s", "update": update}})
            .to_string()
    }

    /// A growing output: what is recorded is bounded by time, and the last update is recorded.
    #[test]
    fn an_output_that_grows_costs_its_size_and_not_the_square() {
        let (mut patches, mut recorded, mut sent) = (Patches::default(), Vec::new(), 0);
        for nth in 1..=500usize {
            let now = 20 * nth as u64;
            let text = update("c", nth * 4_000, "");
            sent += text.len();
            recorded.extend(patches.release_due(now));
            if !patches.hold(&text, now) {
                recorded.extend(patches.release_for(&text));
                recorded.push(text);
            }
        }
        let end = update("c", 2_000_000, "completed");
        recorded.extend(patches.release_for(&end));
        let bytes: usize = recorded.iter().map(String::len).sum();
        assert!(sent > 500_000_000, "{sent}");
        // Ten seconds of budget, one update that overdraws it, and the last one.
        assert!(bytes < 10_000_000, "{bytes}");
        let longest = recorded.iter().map(String::len).max().unwrap();
        assert!(longest >= 2_000_000, "the last update is recorded");
        assert!(!patches.is_holding());
    }

    #[test]
    fn the_fields_of_merged_updates_are_kept() {
        let mut patches = Patches { raised: Some(0), ..Patches::default() };
        let mut first: Value = serde_json::from_str(&update("c", 3000, "in_progress")).unwrap();
        first["params"]["update"]["title"] = json!("cargo test");
        assert!(patches.hold(&first.to_string(), 0));
        assert!(patches.hold(&update("c", 4000, ""), 0));
        assert!(patches.release_for(&update("d", 10, "completed")).is_empty());
        let chunk = json!({"params": {"update": {"sessionUpdate": "agent_message_chunk"}}});
        assert!(patches.release_for(&chunk.to_string()).is_empty());
        let merged = patches.release_for(&update("c", 10, "completed"));
        let merged: Value = serde_json::from_str(&merged[0]).unwrap();
        let update = &merged["params"]["update"];
        assert_eq!(
            (&update["title"], &update["status"]),
            (&json!("cargo test"), &json!("in_progress"))
        );
        assert_eq!(update["content"][0]["content"]["text"].as_str().unwrap().len(), 4000);
    }

    /// Agents may send anything: arrays where objects are meant, and fields that nobody knows.
    #[test]
    fn strange_updates_are_recorded_as_they_come() {
        let mut patches = Patches { raised: Some(0), ..Patches::default() };
        let text = "x".repeat(3000);
        let update = json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "title": text});
        for message in [json!({"params": [update]}), json!([[{"update": update}]])] {
            for _ in 0..3 {
                assert!(!patches.hold(&message.to_string(), 0));
            }
        }
        let mut unknown = update.clone();
        unknown["field"] = json!("value");
        assert!(!patches.hold(&json!({"params": {"update": unknown}}).to_string(), 0));
        assert!(patches.hold(&json!({"params": {"update": update}}).to_string(), 0));
    }

    #[test]
    fn a_reply_releases_everything() {
        let mut patches = Patches { raised: Some(0), ..Patches::default() };
        assert!(patches.hold(&update("c", 3000, ""), 0));
        assert_eq!(patches.release_for(r#"{"id":3,"result":{"stopReason":"end_turn"}}"#).len(), 1);
    }

    /// Each update has another large field, and a small one follows: what is held is what all of
    /// them were.
    #[test]
    fn what_is_held_is_bounded_by_what_was_merged() {
        let mut patches = Patches { raised: Some(0), ..Patches::default() };
        let mut recorded = 0;
        for call in 0..20 {
            for field in ["content", "rawInput", "rawOutput", "locations", "title"] {
                let mut update = json!({"sessionUpdate": "tool_call_update",
                    "toolCallId": call.to_string()});
                update[field] = json!("x".repeat(1_000_000));
                let text = json!({"params": {"sessionId": "s", "update": update}}).to_string();
                if !patches.hold(&text, 0) {
                    recorded += 1;
                }
                recorded += patches.release_due(0).len();
                let held: usize =
                    patches.held.values().map(|(held, _)| held.to_string().len()).sum();
                assert!(held <= MAX_HELD + 2_000_000, "{held}");
            }
        }
        assert!(recorded > 0);
    }
}
