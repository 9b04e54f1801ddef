//! One self-contained HTML file: the session page with its styles, without network access. Parts
//! far down are stored as text and inserted on scroll (`saved.js`), so that a session of 100,000
//! parts opens.

use std::io::Write;

use maud::{DOCTYPE, PreEscaped, html};
use unspool_model::id::SessionId;
use unspool_model::summary::Summary;
use unspool_view::present::{Item, format};

use super::turn_views::TurnViews;
use super::{Options, ProjectError, Projection, SessionStream, WriteMethod};
use crate::html::session_head::{HeadFigures, session_head};
use crate::html::text::safe;
use crate::html::{dom, style, turn};

pub const PROJECTION: Projection = Projection {
    name: "html",
    title: "HTML, one file",
    extension: "html",
    media_type: "text/html; charset=utf-8",
    about: "the page as one self-contained HTML file, sub-agents included",
    has_notes: true,
    has_turns: true,
    method: WriteMethod::Projected(write),
};

/// Parts in the initial DOM.
const INLINE_PARTS: usize = 1500;
/// Deferred parts are inserted in chunks of this size.
const DEFERRED_CHUNK_PARTS: usize = 60;
/// Sub-agents that are included.
const MAX_AGENTS: usize = 500;

const SCRIPT: &str = include_str!("../../assets/saved.js");

fn write(
    stream: SessionStream<'_>,
    options: &Options,
    out: &mut dyn Write,
) -> Result<(), ProjectError> {
    let title = title(&stream.head);
    let style = style::sheet();
    let policy = html_policy();
    let head = html! {
        (DOCTYPE)
        head {
            meta charset="utf-8";
            meta http-equiv="Content-Security-Policy" content=(policy);
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="dark light";
            meta name="referrer" content="no-referrer";
            title { (title) " · Unspool" }
            style { (PreEscaped(style)) }
        }
    };
    out.write_all(head.into_string().as_bytes())?;
    out.write_all(b"<body class=\"saved\"><main id=\"main\">")?;
    let mut page = Page { options, out, written: 0 };
    let mut seen = vec![stream.head.session.id];
    let mut waiting = page.session(stream, &mut seen)?;
    while !waiting.is_empty() {
        let agent = waiting.remove(0);
        waiting.extend(page.session(agent, &mut seen)?);
    }
    let out = page.out;
    writeln!(out, "</main><script>{SCRIPT}</script></body></html>")?;
    Ok(())
}

/// The content security policy of the file: only the inline script may run, and nothing may be
/// loaded.
pub fn html_policy() -> String {
    format!(
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{}'; \
         base-uri 'none'; form-action 'none'",
        base64(&digest(SCRIPT))
    )
}

fn title(head: &Summary) -> String {
    let title = head.title.as_deref().unwrap_or(&head.session.agent_session_id);
    format::first_line(&safe(title), 120)
}

struct Page<'o> {
    options: &'o Options,
    out: &'o mut dyn Write,
    /// Parts written so far.
    written: usize,
}

impl Page<'_> {
    /// Writes a session. Returns the sub-agents it started that are not included yet.
    fn session<'a>(
        &mut self,
        stream: SessionStream<'a>,
        seen: &mut Vec<SessionId>,
    ) -> Result<Vec<SessionStream<'a>>, ProjectError> {
        let id = stream.head.session.id;
        let notes = stream.notes.clone();
        let figures = HeadFigures { notes, ..HeadFigures::default() };
        let head = session_head(&stream.head, &self.options.prices, &figures).into_string();
        // The id may occur once per page, and sub-agents follow.
        let head = head.replacen(" id=\"session-head\"", "", 1);
        write!(
            self.out,
            "<article class=\"transcript\" id=\"s-{id}\">{head}<div class=\"turns\">"
        )?;
        let mut views = TurnViews { stream };
        let mut agents = Vec::new();
        while let Some((view, started)) = views.next_with_agents()? {
            for id in started {
                let Some(agent) = views.stream.sub_agent(&id)? else { continue };
                let session = agent.head.session.id;
                if seen.len() <= MAX_AGENTS && !seen.contains(&session) {
                    seen.push(session);
                    agents.push(agent);
                }
            }
            let (id, label) = (dom::turn(view.id), view.header.label());
            write!(self.out, "<section class=\"turn\" id=\"{id}\" aria-label=\"{label}\">")?;
            self.put(&turn::opening(&view))?;
            let mut chunk = String::new();
            let mut count = 0;
            for item in &view.items {
                chunk.push_str(&turn::item(&view, item).into_string());
                count += match item {
                    Item::Part(_) => 1,
                    Item::Reasoning(block) => block.parts.len(),
                };
                if count >= DEFERRED_CHUNK_PARTS {
                    self.parts(&chunk, count)?;
                    chunk.clear();
                    count = 0;
                }
            }
            self.parts(&chunk, count)?;
            self.out.write_all(b"</section>")?;
        }
        self.out.write_all(b"</div></article>\n")?;
        Ok(agents)
    }

    /// Writes parts directly, or deferred.
    fn parts(&mut self, html: &str, count: usize) -> Result<(), ProjectError> {
        self.written += count;
        if self.written <= INLINE_PARTS {
            return self.put(html);
        }
        // The text must not close the script element that holds it.
        let kept = local(html).replace("</", "<\\/");
        write!(
            self.out,
            "<div class=\"later\" data-parts=\"{count}\"></div><script type=\"text/plain\">{kept}</script>"
        )?;
        Ok(())
    }

    fn put(&mut self, html: &str) -> Result<(), ProjectError> {
        self.out.write_all(local(html).as_bytes())?;
        Ok(())
    }
}

/// Turns links to sessions into anchors of this page. Agent text is escaped and contains no quotes,
/// so this matches only our own attributes.
fn local(html: &str) -> String {
    html.replace(" href=\"/s/", " href=\"#s-")
}

fn digest(text: &str) -> Vec<u8> {
    let hex = unspool_model::id::sha256(text.as_bytes());
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    hex.as_bytes().chunks(2).filter_map(byte).collect()
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for three in bytes.chunks(3) {
        let bits = three.iter().fold(0, |bits, byte| bits << 8 | u32::from(*byte));
        let bits = bits << (8 * (3 - three.len()));
        for nth in 0..4 {
            let sign = ALPHABET[(bits >> (18 - 6 * nth) & 63) as usize];
            out.push(if nth <= three.len() { char::from(sign) } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    // Test vectors of RFC 4648.
    #[test]
    fn base64_is_that_of_everybody() {
        for (text, wanted) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")]
        {
            assert_eq!(base64(text.as_bytes()), wanted);
        }
    }
}
