//! Text or reasoning that is being streamed.

use serde::{Deserialize, Serialize};
use unspool_model::event::{EventKind, ProseDetail, ProseKind};
use unspool_model::json::Json;
use unspool_model::part::{Body, Failure};
use unspool_model::provenance::Name;

use super::super::fields::unescaped;
use super::super::{Emitter, Fields, JsonOutline};
use super::message::{exported_error, prose_kind_name, reasoning_detail};
use super::unmapped::UnmappedFields;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Prose {
    #[serde(rename = "voice")]
    pub prose_kind: ProseKind,
    pub name: Name,
    pub text: String,
    pub index: u32,
    /// The latest provider metadata.
    pub metadata: Option<Json>,
    /// The first half of a surrogate pair at the end of the last chunk, in its escaped form.
    pub half: String,
    /// Emit no deltas, only the complete text: the part with its name is closed, or belongs to a
    /// discarded attempt.
    pub quiet: bool,
}

impl Prose {
    pub fn attach(&mut self, fields: &Fields<'_>) {
        if let Some(metadata) = fields.json("providerMetadata") {
            self.metadata = Some(metadata);
        }
    }

    /// The text of a delta. JavaScript may split a string inside a surrogate pair: the first half
    /// is held back until the second arrives.
    pub fn take(&mut self, delta: &str) -> String {
        let inside = delta.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        let mut written = std::mem::take(&mut self.half) + inside.unwrap_or_default();
        if ends_in_half(&written) {
            self.half = written.split_off(written.len() - 6);
        }
        unescaped(&format!("\"{written}\""))
    }

    /// The error that our own export wrote as this text, without its words.
    fn error(&self) -> Option<Failure> {
        let mut outline = JsonOutline::default();
        let metadata = self.metadata.as_ref().filter(|_| self.prose_kind == ProseKind::Text)?;
        exported_error(&outline.read(metadata.text()).ok()?)
    }

    /// True if no delta is to be emitted.
    pub fn is_quiet(&self) -> bool {
        self.quiet || self.error().is_some()
    }

    pub fn end(mut self, emit: &mut Emitter<'_>, rest: &mut UnmappedFields, citations: Vec<Json>) {
        let left = std::mem::take(&mut self.half);
        self.text.push_str(&unescaped(&format!("\"{left}\"")));
        if let Some(failure) = self.error() {
            let Prose { name, text, .. } = self;
            let error = Body::Error(Failure { text, ..failure });
            return emit.push(EventKind::Part(Some(name), error));
        }
        let mut detail = ProseDetail { citations, ..ProseDetail::default() };
        if let Some(metadata) = self.metadata.take() {
            let mut outline = JsonOutline::default();
            let fields = outline.read(metadata.text()).unwrap_or_default();
            let (reasoning_detail, is_all) = reasoning_detail(&fields, self.text.is_empty());
            if self.prose_kind == ProseKind::Reasoning {
                detail = ProseDetail { citations: detail.citations, ..reasoning_detail };
            }
            let said = !self.text.trim().is_empty() || detail.redacted;
            if self.prose_kind == ProseKind::Text || !is_all || !said {
                rest.keep(self.index, "providerMetadata", metadata);
            }
        }
        let Prose { prose_kind, name, text, quiet, .. } = self;
        if text.trim().is_empty() && !detail.redacted {
            let kind = prose_kind_name(prose_kind);
            rest.keep(self.index, "type", Json::string(kind));
            rest.keep(self.index, "text", Json::string(&text));
            if let Some(citations) = written(&detail.citations) {
                rest.keep(self.index, "citations", citations);
            }
            return emit.push(EventKind::BlockEnded { block: name });
        }
        if quiet || !left.is_empty() || detail != ProseDetail::default() {
            emit.push(EventKind::ProseCompleted { prose_kind, block: Some(name), text, detail });
        } else {
            emit.push(EventKind::BlockEnded { block: name });
        }
    }
}

fn written(all: &[Json]) -> Option<Json> {
    let text = serde_json::to_string(all).ok().filter(|_| !all.is_empty())?;
    Json::parse(&text)
}

/// True if an escaped JSON string ends in the first half of a surrogate pair.
fn ends_in_half(written: &str) -> bool {
    let Some(at) = written.len().checked_sub(6) else { return false };
    let Some(escape) = written.get(at..).and_then(|end| end.strip_prefix("\\u")) else {
        return false;
    };
    let backslashes = written[..at].bytes().rev().take_while(|byte| *byte == b'\\').count();
    let unit = u16::from_str_radix(escape, 16);
    backslashes % 2 == 0 && matches!(unit, Ok(0xD800..=0xDBFF))
}
