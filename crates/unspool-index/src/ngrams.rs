//! The n-grams of a block: a hashed bitmap of the 4-byte sequences in its words. It excludes most
//! blocks from a fragment search, so that they need not be read or unpacked. Neighbouring blocks
//! are stored as one transposed bitmap (`ngram_bitmaps.rs`).
//!
//! Trigrams are too common: with them two blocks in five pass, with 4-grams one in twelve
//! (fragments of seven letters, a million parts).

const NGRAM_BYTES: usize = 4;
/// log2 of the maximum number of positions. A full block has some thirty thousand different
/// n-grams, so about a third of the bits are set.
pub(super) const MAX_POWER: u32 = 16;
/// log2 of the minimum number of positions, for small blocks.
pub(super) const MIN_POWER: u32 = 6;

/// The n-gram hashes of the words of a block.
#[derive(Clone, Default)]
pub(super) struct NgramHashes(Vec<u32>);

/// One bit for each position.
pub(super) struct BlockBitmap {
    /// log2 of the number of positions.
    pub(super) power: u32,
    bits: Vec<u64>,
}

impl NgramHashes {
    pub(super) fn add(&mut self, word: &[u8]) {
        self.0.extend(hashes(word));
    }

    /// Returns the bitmap of the added words and resets.
    pub(super) fn take(&mut self) -> BlockBitmap {
        let power = (self.0.len() * 3 / 2).next_power_of_two().ilog2().clamp(MIN_POWER, MAX_POWER);
        let mut bits = vec![0; 1 << (power - MIN_POWER)];
        for hash in self.0.drain(..) {
            let position = position(hash, power);
            if let Some(bits) = bits.get_mut(position / 64) {
                *bits |= 1 << (position % 64);
            }
        }
        BlockBitmap { power, bits }
    }
}

impl BlockBitmap {
    /// The positions of the set bits, in order.
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

/// The n-gram hashes of a word.
pub(super) fn hashes(word: &[u8]) -> impl Iterator<Item = u32> {
    word.windows(NGRAM_BYTES).map(|ngram| {
        let number = ngram.iter().fold(0u32, |number, byte| number << 8 | u32::from(*byte));
        number.wrapping_mul(0x9E37_79B1)
    })
}

/// The position of an n-gram in a bitmap. Uses the upper bits: they are the well mixed ones of a
/// product, and a bitmap of half the size has an n-gram at half the position.
pub(super) fn position(hash: u32, power: u32) -> usize {
    (hash >> (u32::BITS - power)) as usize
}
