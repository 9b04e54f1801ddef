//! What took the room in the prompts of one or more sessions, over all calls, as tables: by kind, by
//! MCP server, by source, and the tools that were sent and never called.

use rustc_hash::FxHashMap;
use unspool_model::prompt::{PieceKind, SourceShare};

use crate::block::{Alignment, Block, Span, Table};
use crate::present::format;

/// Rows of a table for people; the rest is one row.
pub const CONTEXT_ROWS: usize = 20;
/// Names of tools in a row.
const MAX_NAMES: usize = 6;
/// Tools of no MCP server.
pub const OWN_TOOLS: &str = "the agent's own";

/// What all calls of one or more sessions were sent.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct PromptContext {
    /// By source, most first.
    pub sources: Vec<SourceShare>,
    /// Schemas of tools that no session called, most first.
    pub unused_tools: Vec<SourceShare>,
}

/// What all calls were sent by the tools of one MCP server: schemas, calls and output.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ServerShare<'a> {
    pub server: &'a str,
    pub chars: u64,
    pub tokens: u64,
}

/// Tools of one MCP server that were sent and never called.
#[derive(Clone, PartialEq, Debug)]
pub struct UnusedServer<'a> {
    pub server: Option<&'a str>,
    pub tools: Vec<&'a str>,
    pub chars: u64,
    pub tokens: u64,
}

/// A row of a table: names, characters and tokens.
struct Row {
    names: Vec<String>,
    chars: u64,
    tokens: u64,
}

impl PromptContext {
    pub fn chars(&self) -> u64 {
        self.sources.iter().map(|share| share.chars).sum()
    }

    /// Unused tools by MCP server, most characters first.
    pub fn unused_servers(&self) -> Vec<UnusedServer<'_>> {
        let mut servers: Vec<UnusedServer<'_>> = Vec::new();
        // Few servers have a session, so a list will do.
        for share in &self.unused_tools {
            let tool = share.source.as_deref().unwrap_or_default();
            let at = servers.iter().position(|held| held.server == share.server());
            let at = at.unwrap_or_else(|| {
                let (tools, server) = (Vec::new(), share.server());
                servers.push(UnusedServer { server, tools, chars: 0, tokens: 0 });
                servers.len() - 1
            });
            if let Some(server) = servers.get_mut(at) {
                server.tools.push(tool);
                server.chars += share.chars;
                server.tokens += share.tokens;
            }
        }
        servers.sort_by_key(|server| std::cmp::Reverse(server.chars));
        servers
    }

    /// MCP servers, most characters first.
    pub fn servers(&self) -> Vec<ServerShare<'_>> {
        let mut sums: FxHashMap<&str, (u64, u64)> = FxHashMap::default();
        for share in &self.sources {
            let Some(server) = share.server() else { continue };
            let sum = sums.entry(server).or_default();
            sum.0 += share.chars;
            sum.1 += share.tokens;
        }
        let share = |(server, (chars, tokens))| ServerShare { server, chars, tokens };
        let mut servers: Vec<ServerShare<'_>> = sums.into_iter().map(share).collect();
        servers.sort_by(|a, b| (b.chars, a.server).cmp(&(a.chars, b.server)));
        servers
    }

    /// Which MCP servers took the most. `None` if there are none.
    pub fn servers_table(&self, limit: usize) -> Option<Block> {
        let row = |share: ServerShare<'_>| Row {
            names: vec![format::first_line(share.server, 60)],
            chars: share.chars,
            tokens: share.tokens,
        };
        let rows: Vec<Row> = self.servers().into_iter().map(row).collect();
        (!rows.is_empty()).then(|| self.table(&["MCP server"], rows, limit))
    }

    /// Which kinds took the most.
    pub fn kinds_table(&self) -> Block {
        let mut sums = [(0_u64, 0_u64); PieceKind::ALL.len()];
        for share in &self.sources {
            let sum = &mut sums[share.kind as usize];
            sum.0 += share.chars;
            sum.1 += share.tokens;
        }
        let mut rows: Vec<Row> = PieceKind::ALL
            .iter()
            .map(|kind| (kind, sums[*kind as usize]))
            .filter(|(_, (chars, _))| *chars > 0)
            .map(|(kind, (chars, tokens))| Row {
                names: vec![kind.label().to_owned()],
                chars,
                tokens,
            })
            .collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.chars));
        self.table(&["What"], rows, CONTEXT_ROWS)
    }

    /// Which sources took the most: instruction files, hooks, tools.
    pub fn sources_table(&self, limit: usize) -> Block {
        let row = |share: &SourceShare| Row {
            names: vec![share.kind.label().to_owned(), source(share)],
            chars: share.chars,
            tokens: share.tokens,
        };
        let named = |share: &&SourceShare| share.source.is_some();
        let rows = self.sources.iter().filter(named).map(row).collect();
        self.table(&["What", "From"], rows, limit)
    }

    /// Tools that were sent and never called, by MCP server. `None` if there are none.
    pub fn unused_table(&self, limit: usize) -> Option<Block> {
        let row = |server: UnusedServer<'_>| {
            let names =
                server.tools.iter().take(MAX_NAMES).map(|tool| format::first_line(tool, 60));
            let mut names = names.collect::<Vec<_>>().join(", ");
            if let Some(more) = server.tools.len().checked_sub(MAX_NAMES).filter(|more| *more > 0) {
                names.push_str(&format!(" and {more} more"));
            }
            let server_name = format::first_line(server.server.unwrap_or(OWN_TOOLS), 60);
            let names = vec![server_name, names];
            Row { names, chars: server.chars, tokens: server.tokens }
        };
        let rows: Vec<Row> = self.unused_servers().into_iter().map(row).collect();
        (!rows.is_empty()).then(|| self.table(&["MCP server", "Never called"], rows, limit))
    }

    fn table(&self, names: &[&str], rows: Vec<Row>, limit: usize) -> Block {
        let all = self.chars().max(1);
        let measured = self.sources.iter().any(|share| share.tokens > 0);
        let cells = |row: Row| {
            let percent = (u128::from(row.chars) * 200 / u128::from(all)).div_ceil(2);
            let tokens =
                if measured { format!("~{}", format::compact(row.tokens)) } else { String::new() };
            let figures = [format::compact(row.chars), format!("{percent} %"), tokens];
            let cells = row.names.into_iter().chain(figures);
            cells.map(|cell| vec![Span::plain(cell)]).collect()
        };
        let mut rows = rows;
        let rest = rows.split_off(rows.len().min(limit));
        if !rest.is_empty() {
            let mut label = vec![format!("{} more", rest.len())];
            label.resize(names.len(), String::new());
            let sum = |of: fn(&Row) -> u64| rest.iter().map(of).sum();
            rows.push(Row {
                names: label,
                chars: sum(|row| row.chars),
                tokens: sum(|row| row.tokens),
            });
        }
        let figures = ["Characters", "Share", "Tokens (shared out)"];
        let header = names.iter().chain(&figures).map(|name| vec![Span::plain(*name)]).collect();
        let mut alignments = vec![Alignment::Left; names.len()];
        alignments.extend([Alignment::Right; 3]);
        Block::Table(Table { alignments, header, rows: rows.into_iter().map(cells).collect() })
    }
}

/// Where a stretch is from: a file, a hook, a tool and its MCP server.
fn source(share: &SourceShare) -> String {
    let name = format::first_line(share.source.as_deref().unwrap_or_default(), 80);
    match share.server() {
        Some(server) => {
            let tool = name.rsplit("__").next().unwrap_or_default();
            format!("{}: {tool}", format::first_line(server, 60))
        }
        None => name,
    }
}
