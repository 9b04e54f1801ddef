//! Which four letters follow each other in the words of a block: a small map that says of most
//! blocks that a fragment cannot be in them, so that they need not be read, let alone unpacked.
//! The maps of neighbouring blocks are kept as one sheet (`sheets.rs`).
//!
//! Of three letters most blocks have most: a map of triples let two blocks in five pass where one
//! of these lets one in twelve pass (fragments of seven letters, a million parts).

const LETTERS: usize = 4;
/// Positions of a map, at most, as a power of two: a full block has some thirty thousand different
/// runs, so that about a third of the bits are set.
pub(super) const MOST: u32 = 16;
/// A small block gets a small map.
pub(super) const FEWEST: u32 = 6;

/// The runs of letters in some words.
#[derive(Clone, Default)]
pub(super) struct Runs(Vec<u32>);

/// One bit for each position.
pub(super) struct Map {
    /// How many positions it has, as a power of two.
    pub(super) power: u32,
    bits: Vec<u64>,
}

impl Runs {
    pub(super) fn add(&mut self, word: &[u8]) {
        self.0.extend(hashes(word));
    }

    /// The map of what was added. Begins another.
    pub(super) fn take(&mut self) -> Map {
        let power = (self.0.len() * 3 / 2).next_power_of_two().ilog2().clamp(FEWEST, MOST);
        let mut bits = vec![0; 1 << (power - FEWEST)];
        for hash in self.0.drain(..) {
            let position = position(hash, power);
            if let Some(bits) = bits.get_mut(position / 64) {
                *bits |= 1 << (position % 64);
            }
        }
        Map { power, bits }
    }
}

impl Map {
    /// The positions that have something, in order.
    pub(super) fn positions(&self) -> impl Iterator<Item = usize> {
        self.bits.iter().enumerate().flat_map(|(index, bits)| {
            let mut left = *bits;
            std::iter::from_fn(move || {
                let lowest = (left != 0).then(|| left.trailing_zeros() as usize)?;
                left &= left - 1;
                Some(index * 64 + lowest)
            })
        })
    }
}

/// The runs of a word.
pub(super) fn hashes(word: &[u8]) -> impl Iterator<Item = u32> {
    word.windows(LETTERS).map(|run| {
        let number = run.iter().fold(0u32, |number, byte| number << 8 | u32::from(*byte));
        number.wrapping_mul(0x9E37_79B1)
    })
}

/// Where a run stands in a map. The upper bits of a product are the well mixed ones; and a map of
/// half the size has a run at half the position.
pub(super) fn position(hash: u32, power: u32) -> usize {
    (hash >> (u32::BITS - power)) as usize
}
