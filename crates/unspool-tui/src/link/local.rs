//! The backend over this machine's archive. A thread of its own answers queries from the store;
//! changes go to the `ChangeHandler` that the binary provides.

use std::sync::Arc;
use std::thread;

use tokio::sync::mpsc;
use unspool_core::price::Prices;
use unspool_engine::reader::{Query, answer};
use unspool_engine::request::Request;
use unspool_store::store::Store;

use super::{Ear, Link, Number, Told};
use crate::event::Event;

/// Applies a change and returns a message for the status line.
pub type Changer = Arc<dyn Fn(Request) -> Result<String, String> + Send + Sync>;

pub struct Local {
    wishes: mpsc::UnboundedSender<(Number, Query)>,
    changer: Changer,
    ear: Ear,
}

impl Local {
    /// Starts the thread that answers queries.
    pub fn new<S: Store>(
        store: S,
        prices: Prices,
        changer: Changer,
        ear: Ear,
    ) -> std::io::Result<Local> {
        let (wishes, mut wished) = mpsc::unbounded_channel::<(Number, Query)>();
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        let told = ear.clone();
        thread::Builder::new().name("archive".to_owned()).spawn(move || {
            runtime.block_on(async {
                while let Some((number, wish)) = wished.recv().await {
                    let answer = answer(&store, &prices, wish).await;
                    if told.send(Event::Told(Told::Answered(number, answer))).is_err() {
                        return;
                    }
                }
            });
        })?;
        Ok(Local { wishes, changer, ear })
    }
}

impl Link for Local {
    fn ask(&self, number: Number, wish: Query) {
        // The thread has ended only if the application is ending.
        let _ = self.wishes.send((number, wish));
    }

    fn change(&self, request: Request) {
        let (changer, ear) = (Arc::clone(&self.changer), self.ear.clone());
        thread::spawn(move || {
            let _ = ear.send(Event::Told(Told::Done(changer(request))));
        });
    }

    fn name(&self) -> Option<&str> {
        None
    }
}
