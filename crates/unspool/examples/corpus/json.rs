//! JSON as `JSON.stringify` writes it, straight into bytes. A tree of values in between would cost
//! more than all the rest of the generator.

/// For each byte: 0 if it stands as it is, else the letter behind the backslash, `u` for a number.
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
    /// JSON that is written already.
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

    /// A string, with its quotes.
    pub fn text(&mut self, text: &str) -> &mut Json {
        self.raw("\"").inside(text).raw("\"")
    }

    /// A part of a string.
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

    /// A file as the Read tool of 2.1.325 shows it: number, tab, line. (Before 2.1.197 the number
    /// stood in six columns with an arrow behind it.)
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
