//! N-gram bitmaps: the transposed block bitmaps (`ngrams.rs`) of up to 62 blocks. For each position
//! a bitmap tells which of its blocks have an n-gram there, so a lookup reads a few rows for each
//! bitmap instead of one for each block. `segment.rs` fills bitmaps while it writes blocks;
//! `term_postings.rs` queries them for the blocks that may contain a fragment.
//!
//! A bitmap is stored in slices of 256 positions, each a row of the database:
//!
//! ```text
//! log2 of the number of positions of the bitmap
//! the number of its blocks
//! for each position one bit for each block, without gaps
//! ```
//!
//! Missing or corrupt slices count as matches, so damage never hides a document.

use std::ops::Range;

use super::front_coding::WordUnpacker;
use super::ngrams::{BlockBitmap, MAX_POWER, MIN_POWER, NgramHashes, hashes, position};
use super::postings::CorruptIndex;

/// The blocks of a bitmap; the last bitmap of a segment may have fewer. Chosen so that four full
/// slices fill a page of the database.
pub(super) const BLOCKS_PER_BITMAP: usize = 62;
/// log2 of the positions of a slice.
const SLICE_POWER: u32 = 8;
const HEADER_BYTES: usize = 2;

/// The n-grams of up to 62 blocks of a segment.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NgramBitmap {
    /// In order.
    pub slices: Vec<Vec<u8>>,
}

impl NgramBitmap {
    /// The size of the bitmap in bytes.
    pub fn size(&self) -> usize {
        self.slices.iter().map(Vec::len).sum()
    }
}

/// Collects block bitmaps, in order, and transposes 62 of them at a time.
#[derive(Default)]
pub(super) struct BitmapBuilder(Vec<BlockBitmap>);

impl BitmapBuilder {
    /// Adds a block bitmap. Returns a transposed bitmap when one is complete.
    #[must_use]
    pub(super) fn add(&mut self, map: BlockBitmap) -> Option<NgramBitmap> {
        self.0.push(map);
        if self.0.len() == BLOCKS_PER_BITMAP { self.take() } else { None }
    }

    /// A bitmap of the remaining blocks, if any.
    pub(super) fn take(&mut self) -> Option<NgramBitmap> {
        let maps = std::mem::take(&mut self.0);
        let power = maps.iter().map(|map| map.power).max()?;
        let mut masks = vec![0u64; 1 << power];
        for (block, map) in maps.iter().enumerate() {
            // Widen a smaller bitmap: one of its positions covers several of the wider one, and
            // its n-gram may be at any of them.
            let width = 1 << (power - map.power);
            for position in map.positions() {
                let covered = masks.iter_mut().skip(position * width).take(width);
                covered.for_each(|mask| *mask |= 1 << block);
            }
        }
        let blocks = maps.len();
        let slices =
            masks.chunks(1 << SLICE_POWER).map(|masks| slice(power, blocks, masks)).collect();
        Some(NgramBitmap { slices })
    }
}

/// Recomputes the bitmaps of a segment from the words of its blocks, in order, to verify the stored
/// ones.
#[derive(Default)]
pub struct BitmapRebuilder {
    word_unpacker: WordUnpacker,
    ngrams: NgramHashes,
    maps: BitmapBuilder,
}

impl BitmapRebuilder {
    /// Adds the words of a block. Returns a bitmap when one is complete.
    pub fn add(&mut self, words: &[u8]) -> Result<Option<NgramBitmap>, CorruptIndex> {
        let words = self.word_unpacker.words(words)?;
        words.split(|byte| *byte == b'\n').for_each(|word| self.ngrams.add(word));
        Ok(self.maps.add(self.ngrams.take()))
    }

    /// The last bitmap.
    pub fn finish(mut self) -> Option<NgramBitmap> {
        self.maps.take()
    }
}

fn slice(power: u32, blocks: usize, masks: &[u64]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(length(power, blocks));
    bytes.extend([power as u8, blocks as u8]);
    let (mut waiting, mut bits) = (0u128, 0);
    for mask in masks {
        waiting |= u128::from(*mask) << bits;
        bits += blocks;
        while bits >= 8 {
            bytes.push(waiting as u8);
            waiting >>= 8;
            bits -= 8;
        }
    }
    bytes
}

/// The size of a slice in bytes. The number of positions is a multiple of eight, so no bits are
/// left over.
fn length(power: u32, blocks: usize) -> usize {
    HEADER_BYTES + (blocks << power.min(SLICE_POWER)) / 8
}

/// A slice that was read and is valid.
struct Slice {
    power: u32,
    blocks: usize,
    bytes: Vec<u8>,
}

impl Slice {
    fn of(bytes: Vec<u8>) -> Option<Slice> {
        let [power, blocks] = *bytes.first_chunk::<HEADER_BYTES>()?;
        let (power, blocks) = (u32::from(power), usize::from(blocks));
        let sound = (MIN_POWER..=MAX_POWER).contains(&power)
            && (1..=BLOCKS_PER_BITMAP).contains(&blocks)
            && bytes.len() == length(power, blocks);
        sound.then_some(Slice { power, blocks, bytes })
    }

    /// The mask of the blocks that have an n-gram at a position of the slice.
    fn mask(&self, position: usize) -> u64 {
        let at = position * self.blocks;
        let mut bits = [0; 16];
        let from = self.bytes.get(HEADER_BYTES + at / 8..).unwrap_or_default();
        bits.iter_mut().zip(from.iter().take(9)).for_each(|(bit, byte)| *bit = *byte);
        (u128::from_le_bytes(bits) >> (at % 8)) as u64 & all(self.blocks)
    }
}

/// A mask of this many blocks, fewer than 64.
fn all(blocks: usize) -> u64 {
    (1 << blocks) - 1
}

/// The n-gram hashes of each term. A block must have all n-grams of at least one term.
pub(super) struct NgramQuery(Vec<Vec<u32>>);

impl NgramQuery {
    pub(super) fn new<'n>(terms: impl Iterator<Item = &'n [u8]>) -> NgramQuery {
        NgramQuery(terms.map(|term| hashes(term).collect()).collect())
    }

    /// The numbers of the blocks that may contain one of the terms, in order. `read` loads a slice,
    /// by the number of its bitmap and its own.
    pub(super) fn blocks<E>(
        &self,
        read: &mut dyn FnMut(usize, usize) -> Result<Option<Vec<u8>>, E>,
    ) -> Result<Vec<Range<usize>>, E> {
        let mut ranges = Vec::new();
        // A term without n-grams is too short to filter by.
        let vague = self.0.iter().any(Vec::is_empty);
        let mut number = 0;
        while !vague && let Some(first) = read(number, 0)? {
            let mut bitmap = OpenBitmap { number, slices: vec![(0, Slice::of(first))] };
            let mask = bitmap.blocks(&self.0, read)?;
            for block in (0..BLOCKS_PER_BITMAP).filter(|block| mask & (1 << block) != 0) {
                add(&mut ranges, number * BLOCKS_PER_BITMAP + block);
            }
            number += 1;
        }
        // Blocks without a bitmap count as matches.
        let behind = number * BLOCKS_PER_BITMAP;
        match ranges.last_mut() {
            Some(Range { end, .. }) if *end == behind => *end = usize::MAX,
            Some(_) | None => ranges.push(behind..usize::MAX),
        }
        Ok(ranges)
    }
}

fn add(ranges: &mut Vec<Range<usize>>, block: usize) {
    match ranges.last_mut() {
        Some(Range { end, .. }) if *end == block => *end += 1,
        Some(_) | None => ranges.push(block..block + 1),
    }
}

/// A bitmap with the slices read so far: None for an unreadable slice.
struct OpenBitmap {
    number: usize,
    slices: Vec<(usize, Option<Slice>)>,
}

impl OpenBitmap {
    fn blocks<E>(
        &mut self,
        terms: &[Vec<u32>],
        read: &mut dyn FnMut(usize, usize) -> Result<Option<Vec<u8>>, E>,
    ) -> Result<u64, E> {
        let Some((_, Some(Slice { power, blocks, .. }))) = self.slices.first() else {
            return Ok(all(BLOCKS_PER_BITMAP));
        };
        let (power, blocks) = (*power, *blocks);
        let mut any = 0;
        for ngrams in terms {
            let mut mask = all(blocks);
            for ngram in ngrams {
                let place = position(*ngram, power);
                let slice = self.slice(place >> SLICE_POWER, read)?;
                if let Some(slice) = slice.filter(|it| (it.power, it.blocks) == (power, blocks)) {
                    mask &= slice.mask(place % (1 << SLICE_POWER));
                }
                if mask == 0 {
                    break;
                }
            }
            any |= mask;
        }
        // Blocks beyond the last one of the bitmap count as matches.
        Ok(any | all(BLOCKS_PER_BITMAP) & !all(blocks))
    }

    fn slice<E>(
        &mut self,
        number: usize,
        read: &mut dyn FnMut(usize, usize) -> Result<Option<Vec<u8>>, E>,
    ) -> Result<Option<&Slice>, E> {
        let loaded = self.slices.iter().position(|(loaded, _)| *loaded == number);
        let index = match loaded {
            Some(index) => index,
            None => {
                let bytes = read(self.number, number)?;
                self.slices.push((number, bytes.and_then(Slice::of)));
                self.slices.len() - 1
            }
        };
        Ok(self.slices.get(index).and_then(|(_, slice)| slice.as_ref()))
    }
}
