use std::net::TcpListener;
use std::sync::mpsc::channel;
use std::thread;

use tokio_tungstenite::accept_async;

use super::*;
use crate::backend::RemoteBackend;

/// A server that receives one message, sends one message and closes. Returns its address.
fn serve_once(text: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (stream, _) = listener.accept().unwrap();
            stream.set_nonblocking(true).unwrap();
            let mut socket = accept_async(TcpStream::from_std(stream).unwrap()).await.unwrap();
            let heard = socket.next().await.unwrap().unwrap();
            assert_eq!(heard, Message::text(READER_HELLO));
            socket.send(Message::text(text)).await.unwrap();
        });
    });
    address
}

#[test]
fn another_version_is_reported_with_a_next_step() {
    for (text, theirs) in [
        (r#"{"type":"ready","version":"9.9.9"}"#, "9.9.9"),
        (r#"{"type":"error","detail":"missing field `subscribe`"}"#, "an older version"),
        (r#"{"type":"ready"}"#, "another version"),
        ("hello", "another version"),
    ] {
        let (sender, _events) = channel();
        let refused =
            RemoteBackend::connect(&serve_once(text), Credentials::default(), sender).err();
        let message = refused.unwrap_or_else(|| panic!("{text}")).to_string();
        assert!(message.contains(theirs) && message.contains("install"), "{message}");
    }
}
