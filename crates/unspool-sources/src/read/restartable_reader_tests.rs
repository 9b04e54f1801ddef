use std::io::{Cursor, Read, Seek, SeekFrom};

use super::RestartableReader;

fn read(replay: &mut RestartableReader, length: usize) -> String {
    let mut bytes = vec![0; length];
    let read = replay.read(&mut bytes).unwrap();
    String::from_utf8(bytes[..read].to_vec()).unwrap()
}

#[test]
fn it_can_be_read_from_anywhere() {
    let mut replay = RestartableReader::new(|| Ok(Box::new(Cursor::new("one two three"))));
    assert_eq!(read(&mut replay, 3), "one");
    assert_eq!(replay.seek(SeekFrom::Start(8)).unwrap(), 8);
    assert_eq!(read(&mut replay, 9), "three");
    assert_eq!(replay.seek(SeekFrom::Start(4)).unwrap(), 4);
    assert_eq!(read(&mut replay, 3), "two");
    assert_eq!(replay.seek(SeekFrom::Current(-3)).unwrap(), 4);
    assert_eq!(read(&mut replay, 3), "two");
    assert_eq!(replay.seek(SeekFrom::End(-5)).unwrap(), 8);
    assert_eq!(read(&mut replay, 3), "thr");
    assert_eq!(replay.seek(SeekFrom::Start(99)).unwrap(), 99);
    assert_eq!(read(&mut replay, 3), "");
    assert_eq!(replay.seek(SeekFrom::Start(0)).unwrap(), 0);
    assert_eq!(read(&mut replay, 3), "one");
}

#[test]
fn what_cannot_be_begun_is_an_error() {
    let mut replay = RestartableReader::new(|| Err(std::io::Error::other("gone")));
    assert!(replay.read(&mut [0; 4]).is_err());
    assert!(replay.seek(SeekFrom::End(0)).is_err());
}
