//! The edits of one file in the archive, from every session that may have written it.

use std::collections::hash_map::Entry;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use rustc_hash::{FxHashMap, FxHashSet};
use unspool_model::id::{PartId, SessionId, StepId};
use unspool_model::part::{Body, Part, Place};
use unspool_model::session::Step;
use unspool_model::tools::Family;
use unspool_store::rows::RowId;
use unspool_store::store::{EditedFile, EditedFiles, StoreError, View};
use unspool_view::present::blame::{EditPlace, TimedEdit, writes};
use unspool_view::present::format;

use super::LineEdit;
use super::file_history::FilePlace;
use crate::git::normal_path;

/// Parts loaded at once: inputs and outputs may be large.
const PARTS_PER_LOAD: usize = 64;
/// Characters of a prompt that are shown.
const PROMPT_CHARACTERS: usize = 120;

/// A call that changed the file.
#[derive(Clone)]
pub struct FoundEdit {
    pub row: RowId,
    pub session: SessionId,
    pub turn: u32,
    pub part: PartId,
    place: Place,
    step: Option<StepId>,
    at: Option<Timestamp>,
}

/// The edits of a file, and for each what it wrote.
pub async fn load_edits<V: View>(
    view: &V,
    file: &FilePlace,
) -> Result<(Vec<FoundEdit>, Vec<TimedEdit>), StoreError> {
    let last = |name: &String| name.rsplit('/').next().unwrap_or(name).to_owned();
    let names: FxHashSet<String> = file.names.iter().map(last).collect();
    let calls = view.edited_files(EditedFiles::Named(names.into_iter().collect())).await?;
    let mut places = Places::new(file);
    let mut turns: FxHashMap<(RowId, u32), TurnCalls> = FxHashMap::default();
    for call in calls {
        if places.of(&call.path, call.project.as_deref()).is_some() {
            turns.entry((call.row, call.turn)).or_insert_with(|| TurnCalls::new(&call)).add(&call);
        }
    }
    let mut turns: Vec<((RowId, u32), TurnCalls)> = turns.into_iter().collect();
    turns.sort_by_key(|(turn, _)| *turn);
    let (mut found, mut timed) = (Vec::new(), Vec::new());
    for ((row, turn), calls) in turns {
        for some in calls.places.chunks(PARTS_PER_LOAD) {
            for part in view.parts(row, turn, some.to_vec()).await? {
                let at = written_at(&part);
                for write in writes(&part) {
                    let path = write.moved_to.as_deref().unwrap_or(&write.path);
                    let project = calls.project.as_deref();
                    let place =
                        places.of(path, project).or_else(|| places.of(&write.path, project));
                    let Some(place) = place else { continue };
                    timed.push(TimedEdit {
                        at: at.map(|at| at.as_millisecond()),
                        place,
                        written: write.written,
                        step: write.step,
                    });
                    found.push(FoundEdit {
                        row,
                        session: calls.session,
                        turn,
                        part: part.id,
                        place: part.place,
                        step: part.step,
                        at,
                    });
                }
            }
        }
    }
    Ok((found, timed))
}

/// The calls of one turn that changed the file.
struct TurnCalls {
    session: SessionId,
    project: Option<String>,
    places: Vec<Place>,
}

impl TurnCalls {
    fn new(call: &EditedFile) -> TurnCalls {
        TurnCalls { session: call.session, project: call.project.clone(), places: Vec::new() }
    }

    fn add(&mut self, call: &EditedFile) {
        if !self.places.contains(&call.place) {
            self.places.push(call.place);
        }
    }
}

/// When a call wrote. An edit may wait long for a permission; a command may commit what it wrote
/// before it ends.
fn written_at(part: &Part) -> Option<Timestamp> {
    let is_command = matches!(&part.body, Body::Tool(tool)
        if Family::of(&tool.name) == Some(Family::RunShell));
    match is_command {
        true => part.started.or(part.ended),
        false => part.ended.or(part.started),
    }
}

/// Decides whether a path in a log is the file.
struct Places<'a> {
    file: &'a FilePlace,
    /// What was decided, by path and project.
    known: FxHashMap<(String, Option<String>), Option<EditPlace>>,
}

impl<'a> Places<'a> {
    fn new(file: &'a FilePlace) -> Places<'a> {
        Places { file, known: FxHashMap::default() }
    }

    fn of(&mut self, path: &str, project: Option<&str>) -> Option<EditPlace> {
        let key = (path.to_owned(), project.map(str::to_owned));
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let place = self.decide(path, project);
        self.known.insert(key, place);
        place
    }

    fn decide(&self, path: &str, project: Option<&str>) -> Option<EditPlace> {
        let project = project.map(Path::new);
        let whole = match project {
            Some(project) => normal_path(&project.join(path)),
            None => normal_path(Path::new(path)),
        };
        if self.is_named(&whole) {
            return Some(EditPlace::Here);
        }
        let folder = whole.parent()?;
        // The log may name it through a symbolic link.
        if let Ok(real) = folder.canonicalize() {
            let real = real.join(whole.file_name()?);
            return self.is_named(&real).then_some(EditPlace::Here);
        }
        // A folder of this machine is another project. One that is not here may be a copy.
        let is_gone = project.is_some_and(|project| !project.exists());
        let inside = whole.strip_prefix(project?).ok()?.to_string_lossy().into_owned();
        (is_gone && self.file.names.contains(&inside)).then_some(EditPlace::Elsewhere)
    }

    fn is_named(&self, path: &Path) -> bool {
        let inside = |folder: &PathBuf| {
            path.strip_prefix(folder)
                .is_ok_and(|inside| self.file.names.contains(inside.to_string_lossy().as_ref()))
        };
        self.file.folders.iter().any(inside)
    }
}

/// The models of a turn's steps.
struct TurnModels {
    by_step: FxHashMap<StepId, String>,
    first: Option<String>,
}

impl TurnModels {
    fn new(steps: &[Step]) -> TurnModels {
        let named = steps.iter().filter_map(|step| Some((step.id, step.model.as_deref()?)));
        TurnModels {
            by_step: named.clone().map(|(id, model)| (id, model.to_owned())).collect(),
            first: named.map(|(_, model)| model.to_owned()).next(),
        }
    }

    /// The model of a step. An edit of no known step is given the first model of its turn.
    fn of(&self, step: Option<StepId>) -> Option<String> {
        step.and_then(|step| self.by_step.get(&step)).or(self.first.as_ref()).cloned()
    }
}

/// What people want to know about edits.
pub async fn describe<V: View>(
    view: &V,
    edits: &[&FoundEdit],
) -> Result<Vec<LineEdit>, StoreError> {
    let mut agents: FxHashMap<SessionId, String> = FxHashMap::default();
    let mut prompts: FxHashMap<RowId, FxHashMap<u32, String>> = FxHashMap::default();
    let mut models: FxHashMap<(RowId, u32), TurnModels> = FxHashMap::default();
    let mut sessions: Vec<SessionId> = edits.iter().map(|edit| edit.session).collect();
    sessions.sort_unstable();
    sessions.dedup();
    for stored in view.sessions_by_id(sessions).await? {
        let session = &stored.summary.session;
        agents.insert(session.id, session.agent.clone());
        let said = view.prompts(stored.row).await?;
        let lines =
            said.iter().map(|it| (it.number, format::first_line(&it.said, PROMPT_CHARACTERS)));
        prompts.insert(stored.row, lines.filter(|(_, line)| !line.is_empty()).collect());
    }
    let mut described = Vec::with_capacity(edits.len());
    for edit in edits {
        let turn = (edit.row, edit.turn);
        let models = match models.entry(turn) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let head = view.head(edit.row, edit.turn).await?;
                let steps = head.as_ref().map(|head| head.steps.as_slice());
                entry.insert(TurnModels::new(steps.unwrap_or_default()))
            }
        };
        let model = models.of(edit.step);
        described.push(LineEdit {
            session: edit.session,
            agent: agents.get(&edit.session).cloned().unwrap_or_default(),
            turn: edit.turn,
            part: edit.part,
            place: edit.place,
            model,
            prompt: prompts.get(&edit.row).and_then(|lines| lines.get(&edit.turn)).cloned(),
            at: edit.at,
        });
    }
    Ok(described)
}
