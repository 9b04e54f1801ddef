//! The application without a terminal, for tests and benchmarks: queries are answered synchronously
//! from a store, and the caller moves the clock.

use std::time::{Duration, Instant};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use unspool_model::change::Urgency;
use unspool_model::id::{PartId, SessionId};
use unspool_model::price::Prices;
use unspool_query::live::{Update, WriteNotice};
use unspool_query::reader::{Query, Settings, answer};
use unspool_redact::Rules;
use unspool_store::blocking::block_on;
use unspool_store::store::{Store, Viewer};

use crate::backend::BackendEvent;
use crate::event::AppEvent;
use crate::keys::{Keys, KeysError};
use crate::state::{Effect, State};
use crate::theme::Theme;
use crate::transcript::TranscriptPane;
use crate::view;

pub struct TestHarness<S: Store> {
    archive: S::View,
    settings: Settings,
    state: State,
    theme: Theme,
    now: Instant,
    outputs: Vec<String>,
    window_queries: usize,
}

/// Effects that have not been run yet.
pub struct PendingEffects(Vec<Effect>);

impl<S: Store> TestHarness<S> {
    pub fn new(store: S, size: (u16, u16), theme: Theme) -> Result<TestHarness<S>, KeysError> {
        let now = Instant::now();
        let (mut state, effects) = State::new(Keys::new([])?, size, now);
        state.motion = false;
        let settings = Settings::new(Prices::default(), Rules::standard());
        let outputs = Vec::new();
        let archive = store.view(Viewer::Sole);
        let window_queries = 0;
        let mut test_harness =
            TestHarness { archive, settings, state, theme, now, outputs, window_queries };
        test_harness.run_effects(effects);
        Ok(test_harness)
    }

    /// Answers queries, and keeps what would be copied or saved. Ignores all other effects.
    fn run_effects(&mut self, effects: Vec<Effect>) {
        let mut waiting = effects;
        while let Some(effect) = waiting.pop() {
            if let Effect::Copy(text) | Effect::Save { text, .. } = effect {
                self.outputs.push(text);
            } else if let Effect::Query(number, query) = effect {
                self.window_queries += usize::from(matches!(query, Query::Window { .. }));
                let answer = block_on(answer(&self.archive, &self.settings, query));
                let event = AppEvent::Backend(BackendEvent::Response(number, answer));
                waiting.extend(self.state.take(event, self.now));
            }
        }
    }

    /// What was copied or saved since the last call.
    pub fn take_outputs(&mut self) -> Vec<String> {
        std::mem::take(&mut self.outputs)
    }

    /// The number of queries for a part of the open session since the last call.
    pub fn take_window_queries(&mut self) -> usize {
        std::mem::take(&mut self.window_queries)
    }

    /// Reports that a session was written to.
    pub fn notify_write(&mut self, session: SessionId, urgency: Urgency) {
        let write = Update::Written(WriteNotice { session, urgency });
        self.take(AppEvent::Backend(BackendEvent::Update(write)));
    }

    pub fn take(&mut self, event: AppEvent) {
        let effects = self.state.take(event, self.now);
        self.run_effects(effects);
    }

    /// Presses keys: letters, `\n` for Enter, `\x1b` for Escape, `\x0f` for Ctrl-O.
    pub fn press(&mut self, keys: &str) {
        for letter in keys.chars() {
            let (code, modifiers) = match letter {
                '\n' => (KeyCode::Enter, KeyModifiers::NONE),
                '\x1b' => (KeyCode::Esc, KeyModifiers::NONE),
                '\x05' => (KeyCode::Char('e'), KeyModifiers::CONTROL),
                '\x19' => (KeyCode::Char('y'), KeyModifiers::CONTROL),
                '\x0f' => (KeyCode::Char('o'), KeyModifiers::CONTROL),
                letter => (KeyCode::Char(letter), KeyModifiers::NONE),
            };
            self.take(AppEvent::Key(KeyEvent::new(code, modifiers), self.now));
        }
    }

    /// Presses keys and returns the effects unrun, as with a backend on its own thread.
    pub fn press_without_responses(&mut self, keys: &str) -> PendingEffects {
        let mut pending = PendingEffects(Vec::new());
        for letter in keys.chars() {
            let key = KeyEvent::new(KeyCode::Char(letter), KeyModifiers::NONE);
            pending.0.extend(self.state.take(AppEvent::Key(key, self.now), self.now));
        }
        pending
    }

    /// The responses that a backend would send.
    pub fn responses(&self, pending: PendingEffects) -> Vec<AppEvent> {
        let queries = pending.0.into_iter().filter_map(|effect| {
            if let Effect::Query(number, query) = effect { Some((number, query)) } else { None }
        });
        let answer = |(number, query)| {
            let answer = block_on(answer(&self.archive, &self.settings, query));
            AppEvent::Backend(BackendEvent::Response(number, answer))
        };
        queries.map(answer).collect()
    }

    /// Delivers responses, and drops the effects they cause.
    pub fn deliver(&mut self, responses: Vec<AppEvent>) {
        for event in responses {
            self.state.take(event, self.now);
        }
    }

    pub fn resize(&mut self, width: u16, height: u16) {
        self.take(AppEvent::Resize(width, height));
    }

    /// Advances the clock.
    pub fn advance_time(&mut self, time: Duration) {
        self.now += time;
        let effects = self.state.tick(self.now);
        self.run_effects(effects);
    }

    pub fn draw(&self) -> Buffer {
        let (width, height) = self.state.size;
        let area = Rect::new(0, 0, width, height);
        let mut buffer = Buffer::empty(area);
        view::draw(&self.state, &self.theme, area, &mut buffer);
        buffer
    }

    /// Opens a session.
    pub fn open(&mut self, id: &str) {
        let effect = self.state.open_named(id, None);
        self.run_effects(vec![effect]);
    }

    /// The loaded calls outside reasoning blocks, and whether they show more than one line by
    /// default.
    pub fn calls(&self) -> Vec<(PartId, bool)> {
        self.state.transcript().map(TranscriptPane::calls).unwrap_or_default()
    }

    /// The part that keys act on in the open session.
    pub fn selected_part(&self) -> Option<PartId> {
        self.state.transcript()?.selected_part()
    }

    /// The screen as text.
    pub fn text(&self) -> String {
        let buffer = self.draw();
        let mut out = String::new();
        for y in 0..buffer.area.height {
            let mut row = String::new();
            let mut hidden = 0;
            for x in 0..buffer.area.width {
                let Some(cell) = buffer.cell((x, y)) else { continue };
                // Skip the second cell of a wide character.
                if hidden > 0 {
                    hidden -= 1;
                    continue;
                }
                row.push_str(cell.symbol());
                hidden = unspool_view::lines::width(cell.symbol()).saturating_sub(1);
            }
            out.push_str(row.trim_end());
            out.push('\n');
        }
        out
    }
}
