//! A client of the changes that knows only their JSON: no type or function of the model, no ranks.
//! It does what docs/web.md says about `changes`, and must end with the product's transcript.

use std::cmp::Reverse;

use serde_json::{Map, Value, json};

/// A session as a client holds it.
pub struct JsonClient {
    session: Value,
    turns: Vec<Value>,
}

impl JsonClient {
    /// Starts from a transcript in JSON, which may be empty.
    pub fn new(transcript: &Value) -> JsonClient {
        let turns = transcript["turns"].as_array().unwrap().clone();
        JsonClient { session: transcript["session"].clone(), turns }
    }

    pub fn apply(&mut self, change: &Value) {
        let (kind, change) = change.as_object().unwrap().iter().next().unwrap();
        let id = |field: &str| change[field].as_str().unwrap_or_default();
        match kind.as_str() {
            "session-updated" => {
                self.session["state"] = change["state"].clone();
                self.session["facts"] = change["facts"].clone();
                for field in ["parent", "forked_from"] {
                    self.session[field] = change["facts"][field].clone();
                }
            }
            "turn-opened" => self.turns.push(new_turn(&change["turn"])),
            "turn-updated" => patch_turn(self.turn(id("turn")), &change["patch"]),
            "turn-renamed" => self.turn(id("turn"))["id"] = change["to"].clone(),
            "turn-merged" => self.merge_turns(id("turn"), id("into"), &change["take"]),
            "step-updated" => {
                let steps = list(self.turn(id("turn")), "steps");
                steps.retain(|step| step["step"]["id"] != change["step"]["id"]);
                steps.push(json!({ "place": change["place"], "step": change["step"] }));
            }
            "step-removed" => {
                let steps = list(self.turn(id("turn")), "steps");
                steps.retain(|step| step["step"]["id"] != change["step"]);
                for part in names(&change["parts"]) {
                    self.part(part)["step"] = change["previous"].clone();
                }
            }
            "part-opened" => {
                list(self.turn(id("turn")), "parts").push(change["part"].clone());
            }
            "part-delta" => grow(self.part(id("part")), id("field"), id("text")),
            "part-updated" => patch_part(self.part(id("part")), &change["patch"]),
            "part-renamed" => self.part(id("part"))["id"] = change["to"].clone(),
            "part-merged" => {
                let gone = self.remove_part(id("part"));
                merge_part(self.part(id("into")), &gone, &change["take"]);
            }
            "part-moved" => {
                let mut part = self.remove_part(id("part"));
                part["step"] = Value::Null;
                list(self.turn(id("to")), "parts").push(part);
            }
            "part-removed" => {
                self.remove_part(id("part"));
            }
            "prompt-recorded" | "snapshot-taken" | "event-skipped" => {}
            other => panic!("docs/web.md does not describe {other}"),
        }
    }

    /// The transcript, in the form of [`comparable`].
    pub fn transcript(mut self) -> Value {
        self.turns.sort_by_key(|turn| turn["number"].as_u64());
        for turn in &mut self.turns {
            let steps = list(turn, "steps");
            steps.sort_by_key(|step| step["place"].as_i64());
            steps.iter_mut().for_each(|step| *step = step["step"].take());
            let parts = list(turn, "parts");
            parts.retain(|part| part["origin"]["foreign"] != json!(true));
            parts.sort_by_key(|part| part["place"].as_i64());
        }
        comparable(json!({ "session": self.session, "turns": self.turns }))
    }

    fn turn(&mut self, id: &str) -> &mut Value {
        self.turns.iter_mut().rev().find(|turn| turn["id"] == id).unwrap()
    }

    fn part(&mut self, id: &str) -> &mut Value {
        // Almost always one of the newest.
        let mut parts =
            self.turns.iter_mut().rev().flat_map(|turn| list(turn, "parts").iter_mut().rev());
        parts.find(|part| part["id"] == id).unwrap()
    }

    fn remove_part(&mut self, id: &str) -> Value {
        for turn in &mut self.turns {
            let parts = list(turn, "parts");
            if let Some(at) = parts.iter().position(|part| part["id"] == id) {
                return parts.remove(at);
            }
        }
        panic!("no part {id}");
    }

    fn merge_turns(&mut self, gone: &str, into: &str, take: &Value) {
        let at = self.turns.iter().position(|turn| turn["id"] == gone).unwrap();
        let mut gone = self.turns.remove(at);
        let kept = self.turn(into);
        for field in names(take) {
            kept[field] = gone[field].take();
        }
        for all in ["steps", "parts"] {
            list(kept, all).append(list(&mut gone, all));
        }
    }
}

/// A transcript with the order of evidence, which is a set, and absent fields made uniform.
pub fn comparable(mut transcript: Value) -> Value {
    for turn in list(&mut transcript, "turns") {
        let inherited = turn["inherited"] == json!(true);
        turn["inherited"] = json!(inherited);
        for part in list(turn, "parts") {
            list(part, "evidence").sort_by_key(|evidence| Reverse(evidence.to_string()));
            if let Some(tool) = part["body"].get_mut("tool").and_then(Value::as_object_mut)
                && tool
                    .get("earlier")
                    .is_none_or(|earlier| *earlier == json!([]) || earlier.is_null())
            {
                tool.remove("earlier");
            }
        }
    }
    transcript
}

fn new_turn(id: &Value) -> Value {
    json!({
        "id": id, "number": 0, "trigger": "user", "user": [], "thinking_mode": false,
        "state": "running", "abandoned": false, "started": null, "ended": null,
        "steps": [], "parts": [], "origin": null,
    })
}

fn patch_turn(turn: &mut Value, patch: &Value) {
    for (field, value) in set_fields(patch) {
        match field.as_str() {
            "user_replayed" => {
                let leading = value.as_array().unwrap();
                let user = list(turn, "user");
                user.splice(..leading.len().min(user.len()), leading.iter().cloned());
            }
            "user_added" => {}
            // An array of one: the end may be taken back.
            "ended" => turn["ended"] = value[0].clone(),
            _ => turn[field] = value.clone(),
        }
    }
    list(turn, "user").extend(patch["user_added"].as_array().unwrap().iter().cloned());
}

fn patch_part(part: &mut Value, patch: &Value) {
    for (field, value) in set_fields(patch) {
        match field.as_str() {
            "evidence" => add_evidence(part, value),
            "tool" => {}
            "place" | "step" | "started" | "ended" | "origin" | "body" => {
                part[field] = value.clone();
            }
            "text" | "open" | "citations" | "signature" | "signer" | "redacted" | "duration_ms" => {
            }
            other => panic!("docs/web.md does not describe {other}"),
        }
    }
    let (kind, body) = part["body"].as_object_mut().unwrap().iter_mut().next().unwrap();
    let own: &[&str] = match kind.as_str() {
        "text" => &["text", "open", "citations"],
        "reasoning" => &["text", "open", "redacted", "duration_ms"],
        _ => &[],
    };
    for field in own.iter().filter(|field| !patch[**field].is_null()) {
        body[*field] = patch[*field].clone();
    }
    if kind == "reasoning" && !patch["signature"].is_null() {
        body["signature"] = patch["signature"].clone();
        if patch["signer"].is_null() {
            body.as_object_mut().unwrap().remove("signer");
        } else {
            body["signer"] = patch["signer"].clone();
        }
    }
    if kind == "tool" {
        for (field, value) in patch["tool"].as_object().into_iter().flatten() {
            // The call was asked about again: the patch has the new answer, if there is one.
            if field == "earlier" {
                body["answer"] = patch["tool"]["answer"].clone();
            }
            // These two are absent if unset, and may be null themselves.
            if !value.is_null() || field == "input" || field == "result" {
                body[field] = value.clone();
            }
        }
    }
}

/// A merged part passes on its records, and the fields that the change names: those of the part,
/// and those of its tool.
fn merge_part(kept: &mut Value, gone: &Value, take: &Value) {
    add_evidence(kept, &gone["evidence"]);
    for field in names(take) {
        // A state comes with what the feeds called it, where its exit code says otherwise.
        let reported = &gone["body"]["tool"]["reported_state"];
        if field == "state" && !reported.is_null() {
            kept["body"]["tool"]["reported_state"] = reported.clone();
        }
        // A question comes with those that were asked before it.
        if field == "question" {
            kept["body"]["tool"]["earlier"] = gone["body"]["tool"]["earlier"].clone();
        }
        if gone.get(field).is_some() {
            kept[field] = gone[field].clone();
        } else {
            kept["body"]["tool"][field] = gone["body"]["tool"][field].clone();
        }
    }
}

fn grow(part: &mut Value, field: &str, text: &str) {
    let (_, body) = part["body"].as_object_mut().unwrap().iter_mut().next().unwrap();
    let field = if field == "input" { "input_text" } else { field };
    body[field] = json!(body[field].as_str().unwrap_or_default().to_owned() + text);
}

fn add_evidence(part: &mut Value, more: &Value) {
    let evidence = list(part, "evidence");
    for record in more.as_array().unwrap() {
        if !evidence.contains(record) {
            evidence.push(record.clone());
        }
    }
}

fn set_fields(patch: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let fields: &Map<String, Value> = patch.as_object().unwrap();
    fields.iter().filter(|(_, value)| !value.is_null())
}

fn names(take: &Value) -> impl Iterator<Item = &str> {
    take.as_array().into_iter().flatten().filter_map(Value::as_str)
}

fn list<'a>(of: &'a mut Value, field: &str) -> &'a mut Vec<Value> {
    of[field].as_array_mut().unwrap()
}
