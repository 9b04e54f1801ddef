//! The backend over this machine's archive. A thread of its own answers queries from the store (a slow
//! one has its own), and another one forwards updates; changes go to the `ChangeHandler` that the binary provides.

use std::sync::Arc;
use std::thread;

use tokio::sync::mpsc;
use unspool_query::live::Subscription;
use unspool_query::reader::{Query, Settings, answer};
use unspool_query::request::{ChangeHandler, Request};
use unspool_store::blocking::block_on;
use unspool_store::store::View;

use super::{Backend, BackendEvent, EventSender, QueryId};
use crate::event::AppEvent;

pub struct LocalBackend {
    queries: mpsc::UnboundedSender<(QueryId, Query)>,
    change_handler: ChangeHandler,
    sender: EventSender,
}

impl LocalBackend {
    /// Starts the threads that answer queries and forward updates.
    pub fn new<V: View>(
        view: V,
        settings: Settings,
        change_handler: ChangeHandler,
        mut updates: Subscription,
        sender: EventSender,
    ) -> std::io::Result<LocalBackend> {
        let (queries, mut incoming) = mpsc::unbounded_channel::<(QueryId, Query)>();
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        let responses = sender.clone();
        let settings = Arc::new(settings);
        thread::Builder::new().name("archive".to_owned()).spawn(move || {
            runtime.block_on(async {
                while let Some((number, query)) = incoming.recv().await {
                    if query.is_slow() {
                        let (view, settings) = (view.clone(), Arc::clone(&settings));
                        let responses = responses.clone();
                        thread::spawn(move || {
                            let answer = block_on(answer(&view, &settings, query));
                            let _ = responses
                                .send(AppEvent::Backend(BackendEvent::Response(number, answer)));
                        });
                        continue;
                    }
                    let answer = answer(&view, &settings, query).await;
                    if responses
                        .send(AppEvent::Backend(BackendEvent::Response(number, answer)))
                        .is_err()
                    {
                        return;
                    }
                }
            });
        })?;
        let forward = sender.clone();
        thread::Builder::new().name("updates".to_owned()).spawn(move || {
            while let Some(update) = updates.next_blocking() {
                if forward.send(AppEvent::Backend(BackendEvent::Update(update.notice()))).is_err() {
                    return;
                }
            }
        })?;
        Ok(LocalBackend { queries, change_handler, sender })
    }
}

impl Backend for LocalBackend {
    fn send_query(&self, number: QueryId, query: Query) {
        // The thread has ended only if the application is ending.
        let _ = self.queries.send((number, query));
    }

    fn change(&self, request: Request) {
        let (change_handler, sender) = (Arc::clone(&self.change_handler), self.sender.clone());
        thread::spawn(move || {
            let _ =
                sender.send(AppEvent::Backend(BackendEvent::ChangeDone(change_handler(request))));
        });
    }

    fn name(&self) -> Option<&str> {
        None
    }
}
