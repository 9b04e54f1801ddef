//! Parses the Markdown of models into blocks: CommonMark with tables, task lists and
//! strikethrough. HTML stays text (law 8), line breaks stay line breaks (R-003-56).

use pulldown_cmark::{Alignment as MarkdownAlignment, CodeBlockKind, Event, Options, Parser, Tag};

use crate::block::{
    Alignment, Block, Check, Code, List, ListItem, Span, SpanStyle, Table, safe_link,
};

/// Deeper quotes and lists are flattened to this depth: blocks are processed recursively, and a
/// thousand `>` must not overflow the stack.
const MAX_DEPTH: usize = 16;

/// Parses Markdown into blocks.
pub fn blocks(text: &str) -> Vec<Block> {
    let mut builder = Builder::default();
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_TASKLISTS | Options::ENABLE_STRIKETHROUGH;
    for event in Parser::new_ext(text, options) {
        builder.take(event);
    }
    builder.finish()
}

#[derive(Default)]
struct Builder {
    /// Top-level blocks so far, outside any open container.
    root: Vec<Block>,
    stack: Vec<Frame>,
    /// Number of open containers beyond `MAX_DEPTH`, which have no frame.
    skipped: usize,
    spans: Vec<Span>,
    strong: usize,
    emphasis: usize,
    strike: usize,
    links: Vec<Link>,
    code: Option<Code>,
    table: Table,
    row: Vec<Vec<Span>>,
}

struct Frame {
    kind: FrameKind,
    blocks: Vec<Block>,
}

enum FrameKind {
    Quote,
    List(List),
    Item(Option<Check>),
}

struct Link {
    url: String,
    /// Index of the first span of the link text.
    from: usize,
}

impl Builder {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(_) => self.end(event),
            Event::Text(text) => match &mut self.code {
                Some(code) => code.text.push_str(&text),
                None => self.push(&text),
            },
            Event::Code(text) => {
                let mut style = self.style();
                style.code = true;
                self.push_span(Span { text: text.to_string(), style });
            }
            Event::Html(text)
            | Event::InlineHtml(text)
            | Event::InlineMath(text)
            | Event::DisplayMath(text)
            | Event::FootnoteReference(text) => self.push(&text),
            Event::SoftBreak | Event::HardBreak => self.push("\n"),
            Event::Rule => {
                self.flush();
                self.add(Block::Rule);
            }
            Event::TaskListMarker(done) => {
                if let Some(Frame { kind: FrameKind::Item(check), .. }) = self.stack.last_mut() {
                    *check = Some(if done { Check::Done } else { Check::Open });
                }
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph => {
                self.flush();
                self.loosen();
            }
            Tag::Heading { .. } | Tag::HtmlBlock | Tag::MetadataBlock(_) => self.flush(),
            Tag::BlockQuote(_) => self.open(FrameKind::Quote),
            Tag::List(start) => {
                self.open(FrameKind::List(List { start, tight: true, items: Vec::new() }));
            }
            Tag::Item => self.open(FrameKind::Item(None)),
            Tag::CodeBlock(kind) => {
                self.flush();
                let language = match kind {
                    CodeBlockKind::Fenced(info) => {
                        info.split([' ', ',', '{']).next().filter(|l| !l.is_empty()).map(Into::into)
                    }
                    CodeBlockKind::Indented => None,
                };
                self.code = Some(Code { language, ..Code::default() });
            }
            Tag::Table(alignments) => {
                self.flush();
                let alignments = alignments.into_iter().map(alignment).collect();
                self.table = Table { alignments, ..Table::default() };
            }
            Tag::TableHead | Tag::TableRow => self.row.clear(),
            Tag::TableCell => self.spans.clear(),
            Tag::Emphasis => self.emphasis += 1,
            Tag::Strong => self.strong += 1,
            Tag::Strikethrough => self.strike += 1,
            Tag::Link { dest_url, .. } => {
                self.links.push(Link { url: dest_url.to_string(), from: self.spans.len() });
            }
            // Images are never fetched: show the alt text and the URL.
            Tag::Image { dest_url, .. } => {
                self.push_span(Span::plain("🖼 ").dim());
                self.links.push(Link { url: dest_url.to_string(), from: self.spans.len() });
            }
            Tag::FootnoteDefinition(_)
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition => self.flush(),
            Tag::Superscript | Tag::Subscript => {}
        }
    }

    fn end(&mut self, event: Event<'_>) {
        use pulldown_cmark::TagEnd;
        let Event::End(tag) = event else { return };
        match tag {
            TagEnd::Paragraph
            | TagEnd::HtmlBlock
            | TagEnd::MetadataBlock(_)
            | TagEnd::FootnoteDefinition
            | TagEnd::DefinitionList
            | TagEnd::DefinitionListTitle
            | TagEnd::DefinitionListDefinition => self.flush(),
            TagEnd::Heading(level) => {
                let spans = std::mem::take(&mut self.spans);
                self.add(Block::Heading { level: level as u8, spans });
            }
            TagEnd::BlockQuote(_) | TagEnd::List(_) | TagEnd::Item => self.close(),
            TagEnd::CodeBlock => {
                if let Some(mut code) = self.code.take() {
                    if code.text.ends_with('\n') {
                        code.text.pop();
                    }
                    self.add(Block::Code(code));
                }
            }
            TagEnd::Table => {
                let table = std::mem::take(&mut self.table);
                self.add(Block::Table(table));
            }
            TagEnd::TableHead => self.table.header = std::mem::take(&mut self.row),
            TagEnd::TableRow => self.table.rows.push(std::mem::take(&mut self.row)),
            TagEnd::TableCell => self.row.push(std::mem::take(&mut self.spans)),
            TagEnd::Emphasis => self.emphasis = self.emphasis.saturating_sub(1),
            TagEnd::Strong => self.strong = self.strong.saturating_sub(1),
            TagEnd::Strikethrough => self.strike = self.strike.saturating_sub(1),
            TagEnd::Link | TagEnd::Image => self.end_link(),
            TagEnd::Superscript | TagEnd::Subscript => {}
        }
    }

    fn style(&self) -> SpanStyle {
        SpanStyle {
            strong: self.strong > 0,
            emphasis: self.emphasis > 0,
            strike: self.strike > 0,
            link: self.links.last().and_then(|link| safe_link(&link.url)),
            ..SpanStyle::default()
        }
    }

    fn push(&mut self, text: &str) {
        let style = self.style();
        self.push_span(Span { text: text.to_owned(), style });
    }

    fn push_span(&mut self, span: Span) {
        // Link text starts a new span, so that `end_link` can find it.
        let from = self.links.last().map_or(0, |link| link.from);
        let own = self.spans.len() > from;
        match self.spans.last_mut() {
            Some(last) if own && last.style == span.style => last.text.push_str(&span.text),
            Some(_) | None => self.spans.push(span),
        }
    }

    /// Ends a link. A URL that is not safe to link to, or that has no text, is printed: the text of
    /// a link may hide its target.
    fn end_link(&mut self) {
        let Some(link) = self.links.pop() else { return };
        let shown: String =
            self.spans.iter().skip(link.from).map(|span| span.text.as_str()).collect();
        if shown.is_empty() {
            let text = if link.url.is_empty() { "link" } else { &link.url };
            self.push_span(Span::plain(text).link(&link.url));
        } else if safe_link(&link.url).is_none() && shown != link.url && !link.url.is_empty() {
            self.push_span(Span::plain(format!(" ({})", link.url)).dim());
        }
    }

    fn add(&mut self, block: Block) {
        match self.stack.last_mut() {
            Some(frame) => frame.blocks.push(block),
            None => self.root.push(block),
        }
    }

    /// Ends the current paragraph. Items of a tight list have text without a paragraph event, so
    /// the start or end of any block may have to flush.
    fn flush(&mut self) {
        let mut spans = std::mem::take(&mut self.spans);
        if let Some(last) = spans.last_mut() {
            last.text.truncate(last.text.trim_end_matches('\n').len());
        }
        spans.retain(|span| !span.text.is_empty());
        if !spans.is_empty() {
            self.add(Block::Paragraph { spans });
        }
    }

    /// A paragraph directly in an item makes its list loose.
    fn loosen(&mut self) {
        if let [
            ..,
            Frame { kind: FrameKind::List(list), .. },
            Frame { kind: FrameKind::Item(_), .. },
        ] = self.stack.as_mut_slice()
        {
            list.tight = false;
        }
    }

    fn open(&mut self, kind: FrameKind) {
        self.flush();
        if self.stack.len() >= MAX_DEPTH {
            self.skipped += 1;
        } else {
            self.stack.push(Frame { kind, blocks: Vec::new() });
        }
    }

    fn close(&mut self) {
        self.flush();
        if self.skipped > 0 {
            self.skipped -= 1;
            return;
        }
        let Some(Frame { kind, blocks }) = self.stack.pop() else { return };
        match kind {
            FrameKind::Quote => self.add(Block::Quote { blocks }),
            FrameKind::Item(check) => {
                if let Some(Frame { kind: FrameKind::List(list), .. }) = self.stack.last_mut() {
                    list.items.push(ListItem { check, blocks });
                }
            }
            FrameKind::List(mut list) => {
                // Blocks of items beyond `MAX_DEPTH` end up here.
                if !blocks.is_empty() {
                    list.items.push(ListItem { check: None, blocks });
                }
                self.add(Block::List(list));
            }
        }
    }

    fn finish(mut self) -> Vec<Block> {
        self.flush();
        while !self.stack.is_empty() {
            self.skipped = 0;
            self.close();
        }
        self.root
    }
}

fn alignment(alignment: MarkdownAlignment) -> Alignment {
    match alignment {
        MarkdownAlignment::None => Alignment::None,
        MarkdownAlignment::Left => Alignment::Left,
        MarkdownAlignment::Center => Alignment::Center,
        MarkdownAlignment::Right => Alignment::Right,
    }
}

#[cfg(test)]
#[path = "markdown_tests.rs"]
mod tests;
