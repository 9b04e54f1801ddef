//! Colour arithmetic: alpha blending, and the nearest of the sixteen ANSI colours.

use ratatui::style::Color;

pub type Rgb = (u8, u8, u8);

pub const fn rgb(hex: u32) -> Rgb {
    ((hex >> 16) as u8, (hex >> 8) as u8, hex as u8)
}

pub const fn colour(rgb: Rgb) -> Color {
    Color::Rgb(rgb.0, rgb.1, rgb.2)
}

/// Blends a colour with alpha (last byte) over the background: terminals have no transparency.
pub const fn over(hex: u32, ground: Rgb) -> Rgb {
    mixed(rgb(hex >> 8), hex as u8, ground)
}

pub const fn mixed(above: Rgb, share: u8, below: Rgb) -> Rgb {
    (
        channel(above.0, share, below.0),
        channel(above.1, share, below.1),
        channel(above.2, share, below.2),
    )
}

const fn channel(above: u8, share: u8, below: u8) -> u8 {
    let share = share as u32;
    ((above as u32 * share + below as u32 * (255 - share) + 127) / 255) as u8
}

/// The RGB value of a palette index. From 16 on it is the same in every terminal.
pub fn xterm_colour(index: u8) -> Rgb {
    match index {
        0..=15 => XTERM.get(usize::from(index)).copied().unwrap_or_default(),
        16..=231 => {
            let level = |step: u8| if step == 0 { 0 } else { 55 + 40 * step };
            let cube = index - 16;
            (level(cube / 36), level(cube / 6 % 6), level(cube % 6))
        }
        232..=255 => {
            let grey = 8 + 10 * (index - 232);
            (grey, grey, grey)
        }
    }
}

/// The usual values of the sixteen.
const XTERM: [Rgb; 16] = [
    (0, 0, 0),
    (205, 0, 0),
    (0, 205, 0),
    (205, 205, 0),
    (0, 0, 238),
    (205, 0, 205),
    (0, 205, 205),
    (229, 229, 229),
    (127, 127, 127),
    (255, 0, 0),
    (0, 255, 0),
    (255, 255, 0),
    (92, 92, 255),
    (255, 0, 255),
    (0, 255, 255),
    (255, 255, 255),
];

/// The nearest of the sixteen, by a distance weighted for human vision.
pub fn nearest_ansi(wanted: Rgb) -> u8 {
    let part = |one: u8, other: u8| i64::from(one) - i64::from(other);
    let distance = |colour: &Rgb| {
        let (r, g, b) =
            (part(wanted.0, colour.0), part(wanted.1, colour.1), part(wanted.2, colour.2));
        let mean = (i64::from(wanted.0) + i64::from(colour.0)) / 2;
        (512 + mean) * r * r + 1024 * g * g + (767 - mean) * b * b
    };
    let found = (0_u8..).zip(&XTERM).min_by_key(|(_, colour)| distance(colour));
    found.map_or(7, |(index, _)| index)
}
