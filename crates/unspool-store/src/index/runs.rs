//! Which four letters follow each other in the words of a block: a small map that says of most
//! blocks that a fragment cannot be in them, so that they need not be read, let alone unpacked.
//!
//! Of three letters most blocks have most: a map of triples let two blocks in five pass where one
//! of these lets one in twelve pass (fragments of seven letters, a million parts).

const LETTERS: usize = 4;
/// Bits of a map, at most: a full block has some thirty thousand different runs, so that about a
/// third of the bits are set.
const BITS: usize = 1 << 16;
/// A small block gets a small map.
const FEWEST_BITS: usize = 1 << 6;

/// The runs of letters in some words.
#[derive(Clone, Default)]
pub(super) struct Runs(Vec<u32>);

impl Runs {
    pub(super) fn add(&mut self, word: &[u8]) {
        self.0.extend(word.windows(LETTERS).map(hash));
    }

    /// The map of what was added. Begins another.
    pub(super) fn take(&mut self) -> Vec<u8> {
        let bits = (self.0.len() * 3 / 2).next_power_of_two().clamp(FEWEST_BITS, BITS);
        let mut map = vec![0; bits / 8];
        for hash in self.0.drain(..) {
            let bit = place(hash, bits);
            if let Some(byte) = map.get_mut(bit / 8) {
                *byte |= 1 << (bit % 8);
            }
        }
        map
    }
}

/// Whether words with this map may have this inside them. A map of an impossible size says nothing.
pub(super) fn may_have(map: &[u8], inside: &[u8]) -> bool {
    let bits = map.len() * 8;
    if !(FEWEST_BITS..=BITS).contains(&bits) || !bits.is_power_of_two() {
        return true;
    }
    inside.windows(LETTERS).all(|run| {
        let bit = place(hash(run), bits);
        map.get(bit / 8).is_none_or(|byte| byte & (1 << (bit % 8)) != 0)
    })
}

fn hash(run: &[u8]) -> u32 {
    let number = run.iter().fold(0u32, |number, byte| number << 8 | u32::from(*byte));
    number.wrapping_mul(0x9E37_79B1)
}

/// The upper bits of a product are the well mixed ones.
fn place(hash: u32, bits: usize) -> usize {
    (hash >> (32 - bits.trailing_zeros())) as usize
}
