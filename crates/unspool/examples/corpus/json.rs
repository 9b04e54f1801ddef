//! Writes JSON directly into bytes, in the format of `JSON.stringify`. An intermediate value tree
//! would cost more than the rest of the generator.

/// For each byte: 0 if it needs no escape, else the letter after the backslash (`u` for `\u00XX`).
const ESCAPES: [u8; 256] = {
    let mut escapes = [0; 256];
    let mut control = 0;
    while control < 0x20 {
        escapes[control] = b'u';
        control += 1;
    }
    escapes[0x08] = b'b';
    escapes[0x09] = b't';
    escapes[0x0a] = b'n';
    escapes[0x0c] = b'f';
    escapes[0x0d] = b'r';
    escapes[b'"' as usize] = b'"';
    escapes[b'\\' as usize] = b'\\';
    escapes
};

#[derive(Default)]
pub struct Json(pub Vec<u8>);

impl Json {
    /// Appends raw JSON.
    pub fn raw(&mut self, json: impl AsRef<[u8]>) -> &mut Json {
        self.0.extend_from_slice(json.as_ref());
        self
    }

    pub fn number(&mut self, number: u64) -> &mut Json {
        let mut digits = [0; 20];
        let mut at = digits.len();
        let mut left = number;
        loop {
            at -= 1;
            digits[at] = b'0' + (left % 10) as u8;
            left /= 10;
            if left == 0 {
                break;
            }
        }
        self.raw(&digits[at..])
    }

    /// Appends a string with its quotes.
    pub fn text(&mut self, text: &str) -> &mut Json {
        self.raw("\"").inside(text).raw("\"")
    }

    /// Appends escaped text inside a string.
    pub fn inside(&mut self, text: &str) -> &mut Json {
        let bytes = text.as_bytes();
        self.0.reserve(bytes.len() + bytes.len() / 16);
        let mut from = 0;
        for (at, &byte) in bytes.iter().enumerate() {
            let escape = ESCAPES[usize::from(byte)];
            if escape == 0 {
                continue;
            }
            self.0.extend_from_slice(&bytes[from..at]);
            if escape == b'u' {
                let digits = b"0123456789abcdef";
                self.0.extend_from_slice(b"\\u00");
                self.0.push(digits[usize::from(byte >> 4)]);
                self.0.push(digits[usize::from(byte & 15)]);
            } else {
                self.0.extend_from_slice(&[b'\\', escape]);
            }
            from = at + 1;
        }
        self.0.extend_from_slice(&bytes[from..]);
        self
    }

    /// A file in the Read tool's format of 2.1.325: number, tab, line. (Before 2.1.197 the number
    /// was padded to six columns and followed by an arrow.)
    pub fn numbered(&mut self, text: &str, first: usize) -> &mut Json {
        self.raw("\"");
        for (index, line) in text.split('\n').enumerate() {
            if index > 0 {
                self.raw("\\n");
            }
            self.number((first + index) as u64).raw("\\t").inside(line);
        }
        self.raw("\"")
    }
}
