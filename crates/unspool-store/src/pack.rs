//! The stored form of a part. Prose goes into a text column, uncompressed. Tool results and other
//! large bodies are stored once, by content digest. The rest is small and similar from part to
//! part. Contents and rests are packed with their neighbours into chunks that are compressed as
//! one: a frame for each payload took half as much space again.
//!
//! Payloads are JSON, so adding a field needs no migration.

use std::borrow::Cow;
use std::io::Write;

use jiff::Timestamp;
use memchr::{memchr, memchr2};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use unspool_model::json::Json;
use unspool_model::part::{Body, Part};
use unspool_model::provenance::{Evidence, Origin};
use xxhash_rust::xxh3::Xxh3;

/// Tool output and result of at least this many bytes are stored by content.
const LARGE_RESULT_BYTES: usize = 512;
/// So is any other body of at least this many bytes.
const LARGE_BODY_BYTES: usize = 16 * 1024;
/// zstd. Level 3 takes half as long again and saves a twentieth.
const COMPRESSION_LEVEL: i32 = 1;

#[derive(Debug, Error)]
pub enum PackError {
    #[error("a compressed payload cannot be read: {0}")]
    Frame(std::io::Error),
    #[error("a payload cannot be read: {0}")]
    Json(#[from] serde_json::Error),
    #[error("a payload is truncated")]
    Truncated,
}

/// The fields that are stored apart from the rest of a body.
#[derive(Default)]
struct Extracted {
    text: Option<String>,
    output: Option<String>,
    result: Option<Json>,
    body: Option<String>,
}

#[derive(Serialize)]
struct RestOut<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    started: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended: Option<Timestamp>,
    evidence: &'a [Evidence],
    origin: &'a Origin,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<&'a Body>,
}

#[derive(Deserialize)]
struct RestIn {
    #[serde(default)]
    started: Option<Timestamp>,
    #[serde(default)]
    ended: Option<Timestamp>,
    evidence: Vec<Evidence>,
    origin: Origin,
    #[serde(default)]
    body: Option<Body>,
}

/// A packed part.
pub struct Packed {
    /// Prose, for the text column.
    pub text: Option<String>,
    /// JSON for a chunk or the journal.
    pub rest: Vec<u8>,
    /// Large payload, stored once by digest.
    pub large: Option<LargePayload>,
}

/// A large payload before compression.
pub struct LargePayload {
    pub digest: u128,
    output: Option<String>,
    result: Option<String>,
    /// The `\n` and `\t` escapes of the result are replaced by the characters.
    plain: bool,
    body: Option<String>,
}

/// Splits a part into its stored pieces.
pub fn pack(mut part: Part) -> Result<Packed, PackError> {
    let mut extracted = take(&mut part.body);
    let mut body = Some(&part.body);
    let whole;
    // Of what is left, only these kinds can be large.
    if may_be_large(&part.body) {
        whole = serde_json::to_string(&part.body)?;
        if whole.len() >= LARGE_BODY_BYTES {
            extracted.body = Some(whole);
            body = None;
        }
    }
    let mut rest = Vec::with_capacity(512);
    let (evidence, origin) = (part.evidence.as_slice(), &part.origin);
    let out = RestOut { started: part.started, ended: part.ended, evidence, origin, body };
    serde_json::to_writer(&mut rest, &out)?;
    let Extracted { text, output, result, body } = extracted;
    let large = (output.is_some() || result.is_some() || body.is_some()).then(|| {
        let plain = result.as_ref().and_then(|result| unescape_line_ends(result.text()));
        let (result, plain) = match (plain, result) {
            (Some(plain), _) => (Some(plain), true),
            (None, result) => (result.map(|result| result.text().to_owned()), false),
        };
        LargePayload { digest: 0, output, result, plain, body }.digested()
    });
    Ok(Packed { text, rest, large })
}

impl LargePayload {
    fn pieces(&self) -> [Option<&str>; 3] {
        [self.output.as_deref(), self.result.as_deref(), self.body.as_deref()]
    }

    /// One line: the length of each piece, or `-` for none; then `1` if the result is stored with
    /// unescaped line ends, else `0`.
    fn header(&self) -> String {
        let lengths = self.pieces().map(|piece| match piece {
            Some(piece) => piece.len().to_string(),
            None => "-".to_owned(),
        });
        format!("{} {}\n", lengths.join(" "), u8::from(self.plain))
    }

    fn digested(mut self) -> LargePayload {
        let mut hash = Xxh3::new();
        hash.update(self.header().as_bytes());
        self.pieces().iter().flatten().for_each(|piece| hash.update(piece.as_bytes()));
        self.digest = hash.digest128();
        self
    }

    pub fn size(&self) -> usize {
        self.header().len() + self.pieces().iter().flatten().map(|piece| piece.len()).sum::<usize>()
    }

    /// Appends it to a chunk.
    pub fn append_to(&self, chunk: &mut Vec<u8>) {
        chunk.extend_from_slice(self.header().as_bytes());
        self.pieces().iter().flatten().for_each(|piece| chunk.extend_from_slice(piece.as_bytes()));
    }

    /// Compresses it as a chunk of its own, without copying the payload first.
    pub fn compress(&self) -> Result<Vec<u8>, PackError> {
        let header = self.header();
        let mut stream =
            zstd::stream::Encoder::new(Vec::new(), COMPRESSION_LEVEL).map_err(PackError::Frame)?;
        stream.set_pledged_src_size(Some(self.size() as u64)).map_err(PackError::Frame)?;
        let pieces = self.pieces().into_iter().flatten().map(str::as_bytes);
        for piece in std::iter::once(header.as_bytes()).chain(pieces) {
            stream.write_all(piece).map_err(PackError::Frame)?;
        }
        stream.finish().map_err(PackError::Frame)
    }
}

/// A reusable compression context.
pub struct Compressor(zstd::bulk::Compressor<'static>);

impl Compressor {
    pub fn new() -> Result<Compressor, PackError> {
        Ok(Compressor(zstd::bulk::Compressor::new(COMPRESSION_LEVEL).map_err(PackError::Frame)?))
    }

    pub fn compress(&mut self, chunk: &[u8]) -> Result<Vec<u8>, PackError> {
        self.0.compress(chunk).map_err(PackError::Frame)
    }
}

/// Decompresses a frame.
pub fn decompress(data: &[u8]) -> Result<Vec<u8>, PackError> {
    // Do not trust the content size of a frame header beyond this limit.
    const MAX_FRAME_BYTES: usize = 64 * 1024 * 1024;
    match zstd::bulk::Decompressor::upper_bound(data).filter(|size| *size <= MAX_FRAME_BYTES) {
        Some(size) => zstd::bulk::decompress(data, size).map_err(PackError::Frame),
        None => zstd::stream::decode_all(data).map_err(PackError::Frame),
    }
}

/// How much of a part to unpack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extent {
    Whole,
    /// Everything except a large result. A result mostly repeats the output beside it, most
    /// searches are decided without it, and checking and copying it is most of the work.
    WithoutResult,
}

/// Reassembles a part. Its id, place and step come from columns.
pub fn unpack(
    part: PartKey,
    rest: &[u8],
    text: Option<String>,
    large: Option<&[u8]>,
    extent: Extent,
) -> Result<Part, PackError> {
    let rest: RestIn = serde_json::from_slice(rest)?;
    let mut extracted = Extracted { text, ..Extracted::default() };
    if let Some(large) = large {
        unpack_large(large, &mut extracted, extent)?;
    }
    let mut body = match (rest.body, &extracted.body) {
        (Some(body), _) => body,
        (None, Some(whole)) => serde_json::from_str(whole)?,
        (None, None) => return Err(PackError::Truncated),
    };
    restore(&mut body, extracted);
    let PartKey { id, place, step } = part;
    let RestIn { started, ended, evidence, origin, .. } = rest;
    Ok(Part { id, place, step, started, ended, evidence, origin, body })
}

/// The fields of a part that are stored only in columns.
pub struct PartKey {
    pub id: unspool_model::id::PartId,
    pub place: unspool_model::part::Place,
    pub step: Option<unspool_model::id::StepId>,
}

fn unpack_large(large: &[u8], extracted: &mut Extracted, extent: Extent) -> Result<(), PackError> {
    let ([output, result, body], plain) = pieces(large).ok_or(PackError::Truncated)?;
    extracted.output = output.map(str::to_owned);
    extracted.body = body.map(str::to_owned);
    if let Some(raw) = result.filter(|_| extent == Extent::Whole) {
        let raw = original_json(raw, plain);
        extracted.result = Some(Json::parse(&raw).ok_or(PackError::Truncated)?);
    }
    Ok(())
}

/// The result that `Extent::WithoutResult` skipped, as the source wrote it. Not checked to be
/// valid JSON.
pub fn left_out(large: &[u8]) -> Option<Cow<'_, str>> {
    let ([_, result, _], plain) = pieces(large)?;
    Some(original_json(result?, plain))
}

/// The pieces of a large payload, and whether its result has unescaped line ends.
fn pieces(large: &[u8]) -> Option<([Option<&str>; 3], bool)> {
    let text = std::str::from_utf8(large).ok()?;
    let (header, mut rest) = text.split_once('\n')?;
    let mut pieces = [None; 3];
    for (piece, length) in pieces.iter_mut().zip(header.split(' ')) {
        if let Ok(length) = length.parse() {
            let (found, behind) = rest.split_at_checked(length)?;
            *piece = Some(found);
            rest = behind;
        }
    }
    Some((pieces, header.ends_with(" 1")))
}

fn original_json(result: &str, plain: bool) -> Cow<'_, str> {
    if plain { Cow::Owned(escape_line_ends(result)) } else { Cow::Borrowed(result) }
}

/// Replaces `\n` and `\t` escapes in JSON by the characters. A result mostly repeats the output
/// beside it; unescaped, it repeats it byte for byte and compresses to almost nothing. None if the
/// replacement could not be reversed.
fn unescape_line_ends(raw: &str) -> Option<String> {
    let bytes = raw.as_bytes();
    if memchr2(b'\n', b'\t', bytes).is_some() || memchr(b'\\', bytes).is_none() {
        return None;
    }
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = memchr(b'\\', rest.as_bytes()) {
        out.push_str(&rest[..at]);
        let escape = rest.get(at..at + 2)?;
        match escape {
            "\\n" => out.push('\n'),
            "\\t" => out.push('\t'),
            escape => out.push_str(escape),
        }
        rest = &rest[at + 2..];
    }
    out.push_str(rest);
    Some(out)
}

/// The inverse of `unescape_line_ends`.
fn escape_line_ends(plain: &str) -> String {
    let mut out = String::with_capacity(plain.len() + plain.len() / 16);
    let mut rest = plain;
    while let Some(at) = memchr2(b'\n', b'\t', rest.as_bytes()) {
        out.push_str(&rest[..at]);
        out.push_str(if rest.as_bytes()[at] == b'\n' { "\\n" } else { "\\t" });
        rest = &rest[at + 1..];
    }
    out.push_str(rest);
    out
}

fn take(body: &mut Body) -> Extracted {
    let mut extracted = Extracted::default();
    if let Some(text) = prose(body) {
        extracted.text = Some(std::mem::take(text));
    }
    if let Body::Tool(tool) = body {
        let size = tool.output.as_ref().map_or(0, String::len)
            + tool.result.as_ref().map_or(0, |result| result.text().len());
        if size >= LARGE_RESULT_BYTES {
            extracted.output = tool.output.take();
            extracted.result = tool.result.take();
        }
    }
    extracted
}

fn restore(body: &mut Body, extracted: Extracted) {
    if let (Some(held), Some(text)) = (prose(body), extracted.text) {
        *held = text;
    }
    if let Body::Tool(tool) = body {
        if extracted.output.is_some() {
            tool.output = extracted.output;
        }
        if extracted.result.is_some() {
            tool.result = extracted.result;
        }
    }
}

/// The prose of a body that goes into the text column.
fn prose(body: &mut Body) -> Option<&mut String> {
    match body {
        Body::Text(text) => Some(&mut text.text),
        Body::Interjection(said) => Some(&mut said.text),
        Body::Notice(notice) => Some(&mut notice.text),
        Body::Error(failure) => Some(&mut failure.text),
        // Reasoning is long and rarely queried in SQL: it is compressed with the rest.
        Body::Reasoning(_)
        | Body::Tool(_)
        | Body::Agent(_)
        | Body::TaskList(_)
        | Body::SkillLoad(_)
        | Body::McpSnapshot(_)
        | Body::ContextInfo(_)
        | Body::Compaction(_)
        | Body::File(_)
        | Body::Source(_)
        | Body::Patch(_)
        | Body::Data(_) => None,
    }
}

fn may_be_large(body: &Body) -> bool {
    match body {
        Body::Tool(tool) => {
            tool.input.as_ref().map_or(0, |input| input.text().len()) + tool.input_text.len()
                >= LARGE_BODY_BYTES
        }
        Body::Text(_) | Body::Reasoning(_) | Body::Interjection(_) | Body::Notice(_) => false,
        Body::Error(_)
        | Body::Agent(_)
        | Body::TaskList(_)
        | Body::SkillLoad(_)
        | Body::McpSnapshot(_)
        | Body::ContextInfo(_)
        | Body::Compaction(_)
        | Body::File(_)
        | Body::Source(_)
        | Body::Patch(_)
        | Body::Data(_) => true,
    }
}

#[cfg(test)]
#[path = "pack_tests.rs"]
mod tests;
