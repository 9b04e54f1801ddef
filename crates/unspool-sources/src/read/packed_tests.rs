use super::*;

fn packed(text: &[u8]) -> Vec<u8> {
    zstd::encode_all(text, 19).unwrap()
}

#[test]
fn a_text_of_any_size_below_the_limit_is_whole() {
    let text = b"{\"type\":\"user\"}\n".repeat(1000);
    let mut unpacked =
        Unpacked::with_limit(io::Cursor::new(packed(&text)), text.len() as u64).unwrap();
    let mut read = Vec::new();
    unpacked.read_to_end(&mut read).unwrap();
    assert_eq!(read, text);
}

#[test]
fn a_large_file_may_unpack_to_more() {
    // Text that hardly compresses.
    let mut state = 1_u64;
    let mut byte = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    };
    let text: Vec<u8> = (0..100_000).map(|_| byte()).collect();
    let mut unpacked = Unpacked::with_limit(io::Cursor::new(packed(&text)), 10).unwrap();
    assert_eq!(io::copy(&mut unpacked, &mut io::sink()).unwrap(), 100_000);
}

#[test]
fn a_bomb_of_many_lines_is_cut_and_named() {
    let line = [b"{\"type\":\"x\",\"a\":\"".as_slice(), &[b'a'; 1000], b"\"}\n"].concat();
    let bomb = packed(&line.repeat(10_000));
    let mut unpacked = Unpacked::with_limit(&*bomb, 1_000_000).unwrap();
    let mut read = Vec::new();
    let error = unpacked.read_to_end(&mut read).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    assert!(read.len() < 2_000_000, "{}", read.len());
    let mut digest = Xxh3Default::new();
    digest.update(&bomb);
    let said = error.to_string();
    for what in [format!("{} compressed bytes", bomb.len()), format!("{:016x}", digest.digest())] {
        assert!(said.contains(&what), "{said}");
    }
}
