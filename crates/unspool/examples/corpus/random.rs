//! The generator's only random source. A seed decides every byte, so no clock, address or hash-map
//! order may influence the output.

/// SplitMix64: one addition and one mix per number, fast enough for the inner loop.
#[derive(Clone)]
pub struct Random {
    state: u64,
}

/// A formatted uuid, because it is repeated in many records.
pub type Uuid = [u8; 36];

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
const HEXADECIMAL: &[u8; 16] = b"0123456789abcdef";
const BASE_58: &[u8; 58] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
const BASE_64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Spreads the bits of a number; names and files are functions of such numbers.
pub fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(STEP);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// A hash that is the same on every machine.
pub fn digest(bytes: &[u8]) -> u64 {
    let mut sum = 0xcbf2_9ce4_8422_2325u64;
    for chunk in bytes.chunks(8) {
        let mut eight = [0; 8];
        eight[..chunk.len()].copy_from_slice(chunk);
        sum = mix(sum ^ u64::from_le_bytes(eight));
    }
    sum ^ bytes.len() as u64
}

impl Random {
    pub fn new(seed: u64) -> Random {
        Random { state: mix(seed) }
    }

    pub fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(STEP);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`; 0 if `limit` is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        ((u128::from(self.next()) * limit as u128) >> 64) as usize
    }

    pub fn between(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high.saturating_sub(low) + 1)
    }

    /// True with a probability of `thousandths` / 1000.
    pub fn chance(&mut self, thousandths: usize) -> bool {
        self.below(1000) < thousandths
    }

    pub fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A size with a long tail: mostly near `low`, rarely near `high`.
    pub fn skewed(&mut self, low: usize, high: usize) -> usize {
        let ratio = high.max(low + 1) as f64 / low.max(1) as f64;
        (low.max(1) as f64 * ratio.powf(self.fraction())) as usize
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    pub fn uuid(&mut self) -> Uuid {
        let mut bits = [0u8; 16];
        bits[..8].copy_from_slice(&self.next().to_le_bytes());
        bits[8..].copy_from_slice(&self.next().to_le_bytes());
        bits[6] = (bits[6] & 0x0f) | 0x40;
        bits[8] = (bits[8] & 0x3f) | 0x80;
        let mut written = [b'-'; 36];
        let mut at = 0;
        for (index, byte) in bits.iter().enumerate() {
            if matches!(index, 4 | 6 | 8 | 10) {
                at += 1;
            }
            written[at] = HEXADECIMAL[usize::from(byte >> 4)];
            written[at + 1] = HEXADECIMAL[usize::from(byte & 15)];
            at += 2;
        }
        written
    }

    pub fn hexadecimal(&mut self, out: &mut String, length: usize) {
        let mut bits = 0;
        for index in 0..length {
            if index % 16 == 0 {
                bits = self.next();
            }
            out.push(char::from(HEXADECIMAL[(bits & 15) as usize]));
            bits >>= 4;
        }
    }

    /// The suffix of `msg_01`, `toolu_01` and `req_01` ids.
    pub fn identifier(&mut self) -> [u8; 22] {
        let mut written = [0; 22];
        for byte in &mut written {
            *byte = BASE_58[self.below(58)];
        }
        written
    }

    pub fn digits(&mut self, out: &mut String, length: usize) {
        let mut number = self.next();
        for _ in 0..length {
            out.push(char::from(b'0' + (number % 10) as u8));
            number /= 10;
        }
    }

    /// Base64 without padding, ten letters per number drawn.
    pub fn base64(&mut self, out: &mut Vec<u8>, length: usize) {
        let end = out.len() + length;
        out.reserve(length + 10);
        while out.len() < end {
            let mut bits = self.next();
            for _ in 0..10 {
                out.push(BASE_64[(bits & 63) as usize]);
                bits >>= 6;
            }
        }
        out.truncate(end);
    }
}
