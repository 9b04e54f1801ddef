//! Where a name or a value stands on its line.

/// Most bytes between a name and its value, or before a name on its line.
pub(super) const MAX_GAP_BYTES: usize = 40;

/// The end of the white space at an offset.
pub(super) fn spaces(bytes: &[u8], from: usize) -> usize {
    let gap = bytes.get(from..).unwrap_or_default().iter().take(MAX_GAP_BYTES);
    from + gap.take_while(|byte| matches!(byte, b' ' | b'\t')).count()
}

/// The first line of a YAML block scalar (`password: >-`), which is indented more than its name.
pub(super) fn block_scalar(bytes: &[u8], at: usize, name: usize) -> Option<usize> {
    let sign = bytes.get(at..)?;
    let header = sign.iter().take(4).take_while(|byte| b"|>+-123456789".contains(byte)).count();
    if !matches!(sign.first()?, b'|' | b'>') {
        return None;
    }
    let end = spaces(bytes, at + header);
    let line = match bytes.get(end..)? {
        [b'\n', ..] => end + 1,
        [b'\r', b'\n', ..] => end + 2,
        // An escaped line end, in JSON inside JSON.
        escaped => {
            let slashes = escaped.iter().take(8).take_while(|byte| **byte == b'\\').count();
            let ends = slashes > 0 && escaped.get(slashes) == Some(&b'n');
            ends.then_some(end + slashes + 1)?
        }
    };
    let indented = |from: usize| {
        let rest = bytes.get(from..).unwrap_or_default().iter().take(2 * MAX_GAP_BYTES);
        from + rest.take_while(|byte| matches!(byte, b' ' | b'\t' | b'+')).count()
    };
    let before = bytes.get(name.saturating_sub(2 * MAX_GAP_BYTES)..name)?;
    let ends = |pair: &[u8]| pair.ends_with(b"\n") || pair == b"\\n";
    let column = before.windows(2).rev().take_while(|pair| !ends(pair)).count();
    let start = name - column;
    let value = indented(line);
    (value - line > indented(start) - start).then_some(value)
}

/// True if only editor, diff or list prefixes precede the name on its line.
pub(super) fn starts_line(bytes: &[u8], from: usize) -> bool {
    let before = bytes.get(from.saturating_sub(MAX_GAP_BYTES)..from).unwrap_or_default();
    for byte in before.iter().rev() {
        match byte {
            b'\n' | b'\r' => return true,
            b' ' | b'\t' | b'-' | b'+' | b'"' | b'\'' | b'|' | b'>' | b'*' => {}
            b'0'..=b'9' | b':' => {}
            // `→` after a line number.
            0xE2 | 0x86 | 0x92 => {}
            b'n' | b'\\' => return true,
            _ => return false,
        }
    }
    from <= MAX_GAP_BYTES
}

pub(super) fn ends_line(bytes: &[u8], end: usize) -> bool {
    let rest = bytes.get(spaces(bytes, end)..).unwrap_or_default();
    match rest.first() {
        None | Some(b'\n' | b'\r' | b'#' | b'"') => true,
        Some(b',') => matches!(rest.get(1), None | Some(b'\n' | b'\r')),
        Some(b'\\') => matches!(rest.get(1), Some(b'n' | b'r')),
        Some(_) => false,
    }
}
