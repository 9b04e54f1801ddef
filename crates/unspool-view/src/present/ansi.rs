//! Parses tool output with ANSI escapes into [`Terminal`] blocks. Keeps colours as data and drops
//! every other escape sequence, so that no surface can ever execute one (law 8).

use anstyle_parse::{DefaultCharAccumulator, Params, Parser, Perform};

use crate::block::{AnsiRun, AnsiStyle, Color, Terminal};

/// Lines beyond this are counted, not shown.
const MAX_LINES: usize = 50_000;
/// Longer lines continue on the next one, to keep overwrites cheap.
const MAX_CELLS: usize = 16_384;

/// Parses program output.
pub fn terminal(text: &str) -> Terminal {
    let mut screen = AnsiScreen::default();
    let body = text.strip_suffix('\n').unwrap_or(text);
    let mut omitted = 0;
    for line in body.split('\n') {
        if screen.lines.len() >= MAX_LINES {
            omitted += 1;
            continue;
        }
        // A fresh parser per line: an unterminated string escape would hide the rest of the
        // output. Colours are kept in the screen and carry over.
        if line.bytes().any(|byte| byte < 0x20 || byte == 0x7f) {
            let mut parser = Parser::<DefaultCharAccumulator>::new();
            line.bytes().for_each(|byte| parser.advance(&mut screen, byte));
        } else {
            line.chars().for_each(|c| screen.print(c));
        }
        screen.end_line();
    }
    if body.is_empty() {
        screen.lines.clear();
    }
    Terminal { lines: screen.lines, omitted, exit_code: None }
}

/// Program output as plain text without colours.
pub fn plain_text(text: &str) -> String {
    let lines = terminal(text).lines.into_iter();
    let lines: Vec<String> =
        lines.map(|runs| runs.into_iter().map(|run| run.text).collect()).collect();
    lines.join("\n")
}

#[derive(Default)]
struct AnsiScreen {
    lines: Vec<Vec<AnsiRun>>,
    cells: Vec<(char, AnsiStyle)>,
    cursor: usize,
    style: AnsiStyle,
    erase_pending: bool,
}

impl AnsiScreen {
    fn put(&mut self, c: char) {
        if self.cursor >= MAX_CELLS {
            self.end_line();
        }
        self.erase_pending = false;
        let cell = (c, self.style);
        match self.cells.get_mut(self.cursor) {
            Some(slot) => *slot = cell,
            None => self.cells.push(cell),
        }
        self.cursor += 1;
    }

    fn end_line(&mut self) {
        let mut runs: Vec<AnsiRun> = Vec::new();
        for (c, style) in self.cells.drain(..) {
            match runs.last_mut() {
                Some(run) if run.style == style => run.text.push(c),
                Some(_) | None => runs.push(AnsiRun { text: c.to_string(), style }),
            }
        }
        self.lines.push(runs);
        self.cursor = 0;
        self.erase_pending = false;
    }

    /// Moves to the first column and performs a pending erase. The erase is delayed until here:
    /// without a rewrite it would only hide output.
    fn home(&mut self) {
        if std::mem::take(&mut self.erase_pending) {
            self.cells.clear();
        }
        self.cursor = 0;
    }

    fn erase(&mut self, mode: u16) {
        if mode == 0 || self.cursor == 0 {
            self.cells.truncate(self.cursor);
        } else {
            self.erase_pending = true;
        }
    }

    fn apply_sgr(&mut self, params: &Params) {
        let style = &mut self.style;
        let mut params = params.iter();
        while let Some(param) = params.next() {
            let code = param.first().copied().unwrap_or(0);
            match code {
                0 => *style = AnsiStyle::default(),
                1 => style.bold = true,
                2 => style.dim = true,
                3 => style.italic = true,
                4 => style.underline = param.get(1) != Some(&0),
                7 => style.inverse = true,
                9 => style.strike = true,
                21 | 24 => style.underline = code == 21,
                22 => (style.bold, style.dim) = (false, false),
                23 => style.italic = false,
                27 => style.inverse = false,
                29 => style.strike = false,
                30..=37 => style.foreground = Some(Color::Indexed((code - 30) as u8)),
                39 => style.foreground = None,
                40..=47 => style.background = Some(Color::Indexed((code - 40) as u8)),
                49 => style.background = None,
                90..=97 => style.foreground = Some(Color::Indexed((code - 90 + 8) as u8)),
                100..=107 => style.background = Some(Color::Indexed((code - 100 + 8) as u8)),
                38 | 48 => {
                    // `38:5:n` comes as one parameter, the older `38;5;n` as several.
                    let color = if param.len() > 1 {
                        parse_color(&mut param.iter().skip(1).copied(), param.len() > 5)
                    } else {
                        parse_color(
                            &mut params.by_ref().map(|p| p.first().copied().unwrap_or(0)),
                            false,
                        )
                    };
                    if let Some(color) = color {
                        let ground =
                            if code == 38 { &mut style.foreground } else { &mut style.background };
                        *ground = Some(color);
                    }
                }
                // Blink never (C-18), conceal never (it would hide text), fonts never.
                _ => {}
            }
        }
    }
}

/// Parses the rest of an extended colour. `has_color_space`: skip the colour space id first.
fn parse_color(numbers: &mut dyn Iterator<Item = u16>, has_color_space: bool) -> Option<Color> {
    let byte = |number: u16| number.min(255) as u8;
    match numbers.next()? {
        5 => Some(Color::Indexed(byte(numbers.next()?))),
        2 => {
            if has_color_space {
                numbers.next()?;
            }
            let (red, green, blue) = (numbers.next()?, numbers.next()?, numbers.next()?);
            Some(Color::Rgb(byte(red), byte(green), byte(blue)))
        }
        _ => None,
    }
}

impl Perform for AnsiScreen {
    fn print(&mut self, c: char) {
        match c {
            '\u{7f}' => self.put('␡'),
            '\u{80}'..='\u{9f}' => self.put(char::REPLACEMENT_CHARACTER),
            _ => self.put(c),
        }
    }

    fn execute(&mut self, byte: u8) {
        match byte {
            b'\r' => self.home(),
            0x08 => self.cursor = self.cursor.saturating_sub(1),
            b'\t' => self.put('\t'),
            0x0b | 0x0c => self.end_line(),
            // Bell and shift bytes have no visible effect.
            0x07 | 0x0e | 0x0f => {}
            0x00..0x20 => self.put(char::from_u32(0x2400 + u32::from(byte)).unwrap_or('�')),
            _ => self.put(char::REPLACEMENT_CHARACTER),
        }
    }

    fn csi_dispatch(&mut self, params: &Params, between: &[u8], ignore: bool, action: u8) {
        if ignore || !between.is_empty() {
            return;
        }
        let first = params.iter().next().and_then(|param| param.first().copied()).unwrap_or(0);
        match action {
            b'm' => self.apply_sgr(params),
            // Progress bars erase their line before rewriting it; otherwise the tail of a longer
            // old line would remain.
            b'K' => self.erase(first),
            b'G' if first <= 1 => self.home(),
            _ => {}
        }
    }
}

#[cfg(test)]
#[path = "ansi_tests.rs"]
mod tests;
