//! Classifies text 64 bytes at a time into masks with one bit for each byte. Written so that the
//! compiler vectorises it, which is the only way without `unsafe`.

/// The 64 bytes from `base` on, padded with zeros.
#[inline]
pub(super) fn chunk(bytes: &[u8], base: usize) -> [u8; 64] {
    let rest = bytes.get(base..).unwrap_or_default();
    match rest.first_chunk::<64>() {
        Some(whole) => *whole,
        None => {
            let mut padded = [0; 64];
            padded[..rest.len()].copy_from_slice(rest);
            padded
        }
    }
}

/// A mask of the bytes for which `is` holds.
#[inline(always)]
fn mask_of(chunk: &[u8; 64], is: impl Fn(u8) -> bool) -> u64 {
    let ones = chunk.map(|byte| u8::from(is(byte)));
    let (eights, _) = ones.as_chunks::<8>();
    let mut mask = 0;
    for (index, eight) in eights.iter().enumerate() {
        // The multiplication moves the low bit of each byte into the highest byte.
        let gathered = u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        mask |= gathered << (8 * index);
    }
    mask
}

/// ASCII letters and digits, and every byte of a character outside ASCII.
#[inline]
pub(super) fn word_mask(chunk: &[u8; 64]) -> u64 {
    mask_of(chunk, |byte| {
        let letter = (byte | 0x20).wrapping_sub(b'a') < 26;
        let digit = byte.wrapping_sub(b'0') < 10;
        letter | digit | (byte >= 0x80)
    })
}

/// A mask of the occurrences of a byte.
#[inline]
pub(super) fn byte_mask(chunk: &[u8; 64], wanted: u8) -> u64 {
    mask_of(chunk, |byte| byte == wanted)
}

/// A mask of escaped bytes: those after a backslash that is not escaped itself. `carry` is 1 if the
/// first byte is escaped, and is updated for the next chunk. Branch-free: runs of backslashes that
/// start at an odd position are found by letting an addition carry through them.
#[inline]
pub(super) fn escaped_mask(slashes: u64, carry: &mut u64) -> u64 {
    const EVEN: u64 = 0x5555_5555_5555_5555;
    let slashes = slashes & !*carry;
    let behind = (slashes << 1) | *carry;
    let odd_starts = slashes & !EVEN & !behind;
    let (sum, overflow) = odd_starts.overflowing_add(slashes);
    *carry = u64::from(overflow);
    (EVEN ^ (sum << 1)) & behind
}
