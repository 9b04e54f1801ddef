//! Which three letters follow each other in the words of a block: a small map that says of most
//! blocks that a fragment cannot be in them, so that they need not be read, let alone unpacked.

/// Bits of a map. A block has about ten thousand different triples, so a fragment of seven letters
/// gets past one in some hundreds of maps by chance.
const BITS: usize = 1 << 15;

/// The triples of some words.
#[derive(Clone)]
pub(super) struct Triples(Vec<u8>);

impl Default for Triples {
    fn default() -> Self {
        Triples(vec![0; BITS / 8])
    }
}

impl Triples {
    pub(super) fn add(&mut self, word: &[u8]) {
        for triple in word.windows(3) {
            let bit = bit(triple);
            if let Some(byte) = self.0.get_mut(bit / 8) {
                *byte |= 1 << (bit % 8);
            }
        }
    }

    /// Hands the map over, and begins another.
    pub(super) fn take(&mut self) -> Vec<u8> {
        std::mem::take(self).0
    }
}

/// Whether words with this map may have this inside them. A map of another size says nothing.
pub(super) fn may_have(map: &[u8], inside: &[u8]) -> bool {
    let has = |bit: usize| map.get(bit / 8).is_none_or(|byte| byte & (1 << (bit % 8)) != 0);
    map.len() != BITS / 8 || inside.windows(3).all(|triple| has(bit(triple)))
}

fn bit(triple: &[u8]) -> usize {
    let number = triple.iter().fold(0u32, |number, byte| number << 8 | u32::from(*byte));
    (number.wrapping_mul(0x9E37_79B1) >> 17) as usize
}
