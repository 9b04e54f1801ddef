//! What a chat without a surface waits for, as one channel: the host, signals, standard input.

use std::io::{self, BufRead};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use tokio::signal::unix::{SignalKind, signal};
use unspool_live::protocol::HostMessage;

pub enum Event {
    Host(HostMessage),
    /// The host has ended.
    Closed,
    Interrupt,
    /// The system wants this process to end.
    Terminate,
    /// A line of standard input.
    Command(String),
    InputEnd,
}

pub struct Events {
    pub receiver: Receiver<Event>,
}

impl Events {
    pub fn start(
        mut messages: tokio::sync::mpsc::Receiver<HostMessage>,
        reads_input: bool,
    ) -> Events {
        let (sender, receiver) = channel();
        let host = sender.clone();
        thread::spawn(move || {
            while let Some(message) = messages.blocking_recv() {
                if host.send(Event::Host(message)).is_err() {
                    return;
                }
            }
            let _ = host.send(Event::Closed);
        });
        let signals = sender.clone();
        thread::spawn(move || wait_for_signals(&signals));
        if reads_input {
            thread::spawn(move || {
                for line in io::stdin().lock().lines().map_while(Result::ok) {
                    if !line.trim().is_empty() && sender.send(Event::Command(line)).is_err() {
                        return;
                    }
                }
                let _ = sender.send(Event::InputEnd);
            });
        }
        Events { receiver }
    }
}

/// The agent is in a group of its own, so no signal reaches it unless we pass it on.
fn wait_for_signals(events: &Sender<Event>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
    let Ok(runtime) = runtime else { return };
    runtime.block_on(async {
        let (Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)) = (
            signal(SignalKind::interrupt()),
            signal(SignalKind::terminate()),
            signal(SignalKind::hangup()),
        ) else {
            return;
        };
        loop {
            let event = tokio::select! {
                _ = interrupt.recv() => Event::Interrupt,
                _ = terminate.recv() => Event::Terminate,
                _ = hangup.recv() => Event::Terminate,
            };
            if events.send(event).is_err() {
                return;
            }
        }
    });
}
