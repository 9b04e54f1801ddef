//! Messages and results: a text, or a list of text, image and audio parts (since 1.6).

use unspool_model::part::File;

use super::super::Fields;

/// One piece of a message.
pub(super) enum Piece {
    Text(String),
    File(File),
}

/// The pieces of a message, in order.
pub(super) fn pieces(fields: &Fields<'_>, name: &str) -> Vec<Piece> {
    if let Some(text) = fields.string(name) {
        return vec![Piece::Text(text)];
    }
    let raw = fields.raw(name).unwrap_or_default();
    if !raw.is_empty() && !raw.starts_with('[') {
        // Not valid, and kept as it is.
        return vec![Piece::Text(raw.to_owned())];
    }
    let piece = |(raw, part): (&str, Fields<'_>)| {
        if let Some(text) = part.string("text") {
            return Piece::Text(text);
        }
        let source = part.fields("source");
        if !source.has("path") {
            // Neither of the format's kinds: kept as it is.
            return Piece::Text(raw.to_owned());
        }
        let (media_type, url) = (source.string("media_type"), source.string("path"));
        Piece::File(File { media_type, url, ..File::default() })
    };
    fields.items(name).map(piece).collect()
}

/// The texts of a message, joined. None if it is neither a text nor a list.
pub(super) fn text(fields: &Fields<'_>, name: &str) -> Option<String> {
    if fields.is_text(name) {
        return fields.string(name);
    }
    fields.raw(name).filter(|raw| raw.starts_with('['))?;
    let text = |piece| match piece {
        Piece::Text(text) => Some(text),
        Piece::File(_) => None,
    };
    let texts: Vec<String> = pieces(fields, name).into_iter().filter_map(text).collect();
    Some(texts.join("\n"))
}

/// True if a message has more than text.
pub(super) fn has_files(fields: &Fields<'_>, name: &str) -> bool {
    pieces(fields, name).iter().any(|piece| match piece {
        Piece::File(_) => true,
        Piece::Text(_) => false,
    })
}
