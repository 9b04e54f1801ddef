use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;

/// Two ends of a connection; writes of the first one have this limit.
async fn connection(limit: Duration) -> (Pin<Box<TimeoutStream<TcpStream>>>, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    (with_write_limit(listener.accept().await.unwrap().0, limit), client)
}

#[tokio::test]
async fn a_client_that_never_reads_is_let_go() {
    let (mut server, client) = connection(Duration::from_millis(100)).await;
    let writing = async {
        loop {
            if let Err(error) = server.write_all(&[b'x'; 64 * 1024]).await {
                return error;
            }
        }
    };
    let error = timeout(Duration::from_secs(20), writing).await.expect("it ends");
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    drop(client);
}

#[tokio::test]
async fn a_client_that_reads_slowly_gets_everything() {
    let (mut server, mut client) = connection(Duration::from_secs(5)).await;
    let size = 8 * 1024 * 1024;
    let writing = tokio::spawn(async move { server.write_all(&vec![b'x'; size]).await });
    let (mut read, mut buffer) = (0, vec![0; 256 * 1024]);
    while read < size {
        read += client.read(&mut buffer).await.unwrap();
        sleep(Duration::from_millis(5)).await;
    }
    writing.await.unwrap().unwrap();
}
