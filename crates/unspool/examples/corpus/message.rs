//! Messages of the model as the log has them: one record per block, each with the id and the usage
//! of the message.

use anyhow::Result;

use crate::calls::Call;
use crate::json::Json;
use crate::random::Uuid;
use crate::session::Session;
use crate::sources::Place;
use crate::words::Spelling;

/// One block of a message, and the field that only records of its kind have.
pub struct Block {
    pub json: Json,
    pub field: String,
}

#[derive(Clone, Copy, Default)]
pub struct Usage {
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_creation: u64,
}

/// Why a message ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    Tools,
    End,
    /// The user stopped it; such a message has no final usage.
    Interrupted,
}

impl Session<'_> {
    /// Writes the message and returns the uuids of its records.
    pub fn say(&mut self, blocks: &[Block], stop: Stop) -> Result<Vec<Uuid>> {
        let written: usize = blocks.iter().map(|block| block.json.0.len()).sum();
        let random = &mut self.workshop.random;
        let usage = Usage {
            input: random.between(3, 12) as u64,
            output: if stop == Stop::Interrupted { 1 } else { (written as u64 / 4).max(2) },
            cache_read: self.cached,
            cache_creation: self.context.saturating_sub(self.cached),
        };
        self.cached = self.context;
        self.context += usage.output;
        self.usage.add(self.model, usage);
        let (id, request) = (random.identifier(), random.identifier());
        let reference = random.uuid();
        if self.logs_requests {
            self.note_request(&reference)?;
        }
        let mut uuids = Vec::new();
        for (index, block) in blocks.iter().enumerate() {
            let pause = self.workshop.random.between(200, 9_000) as i64;
            self.pass(pause);
            let uuid = self.workshop.random.uuid();
            let time = self.now();
            let (model, parent) = (self.model, self.journal.parent);
            let in_agent = self.journal.agent.is_some();
            let line = self.journal.begin(parent, None);
            line.raw("\"message\":{\"id\":\"msg_01").raw(id);
            line.raw("\",\"type\":\"message\",\"role\":\"assistant\",\"model\":").text(model);
            line.raw(",\"content\":[").raw(&block.json.0).raw("],\"stop_reason\":").raw(
                match stop {
                    Stop::Tools => "\"tool_use\"",
                    Stop::End => "\"end_turn\"",
                    Stop::Interrupted => "null",
                },
            );
            line.raw(",\"stop_sequence\":null,\"stop_details\":null,\"usage\":");
            usage.write(line);
            line.raw("},").raw(&block.field).raw("\"apiBlockIndex\":").number(index as u64);
            line.raw(",\"requestId\":\"req_01").raw(request).raw("\",\"requestRef\":\"");
            line.raw(reference).raw("\",\"requestedModel\":").text(model);
            line.raw(",\"promptCacheRequested\":\"5m\",");
            if in_agent {
                line.raw("\"attributionAgent\":\"general-purpose\",");
            }
            line.raw("\"type\":\"assistant\",\"uuid\":\"").raw(uuid).raw("\",\"timestamp\":");
            line.text(&time);
            if stop == Stop::Interrupted && index + 1 == blocks.len() {
                line.raw(",\"isAbortedMidStream\":true");
            }
            line.raw(",\"effort\":\"medium\",\"perTurnEffort\":\"medium\",\"madeBy\":\"model\",");
            self.journal.end(uuid)?;
            uuids.push(uuid);
        }
        Ok(uuids)
    }

    pub fn thinking(&mut self) -> Block {
        let (sources, random) = (self.workshop.sources, &mut self.workshop.random);
        let words =
            ((random.skewed(30, 1100) as f64 * self.workshop.scale.min(1.5)) as usize).max(8);
        let mut thought = String::new();
        sources.words.prose(&mut thought, random, words.min(self.workshop.limit / 6));
        let mut json = Json::default();
        json.raw("{\"type\":\"thinking\",\"thinking\":").text(&thought).raw(",\"signature\":\"");
        let length = random.between(50, 160) * 4;
        random.base64(&mut json.0, length);
        json.raw("\"}");
        let took = random.between(200, 30_000);
        Block {
            json,
            field: format!("\"thinkingDurationMs\":{took},\"thinkingDisplay\":\"updates\","),
        }
    }

    /// A text block; a long one is a small document with lists and code.
    pub fn text(&mut self, low: usize, high: usize, with: Option<&str>) -> Block {
        let (sources, random) = (self.workshop.sources, &mut self.workshop.random);
        let words = random.skewed(low, high).min(self.workshop.limit / 14).max(4);
        let mut text = String::new();
        if words > 120 {
            sources.words.prose(&mut text, random, words / 3);
            text.push_str("\n\n```rust\n");
            let place = Place { naming: self.workshop.naming, file: random.next() };
            sources.code(&mut text, random, place, words * 3);
            text.push_str("```\n\n");
            for _ in 0..random.between(2, 6) {
                text.push_str("- **");
                sources.words.name(&mut text, random.next(), Spelling::Camel);
                text.push_str("**: ");
                sources.words.prose(&mut text, random, words / 12);
                text.push('\n');
            }
        } else {
            sources.words.prose(&mut text, random, words);
        }
        if let Some(with) = with {
            text.push_str("\n\nSee `");
            text.push_str(with);
            text.push_str("`.");
        }
        let mut json = Json::default();
        json.raw("{\"type\":\"text\",\"text\":").text(text.trim_end()).raw("}");
        Block { json, field: String::new() }
    }

    pub fn block_of(&mut self, call: &Call, id: &[u8; 22]) -> Block {
        let mut json = Json::default();
        json.raw("{\"type\":\"tool_use\",\"id\":\"toolu_01").raw(id).raw("\",\"name\":");
        json.text(call.tool).raw(",\"input\":").raw(&call.input.0).raw("}");
        let took = self.workshop.random.between(10, 4000);
        Block { json, field: format!("\"toolInputStreamMs\":{took},") }
    }
}

impl Usage {
    fn write(&self, line: &mut Json) {
        line.raw("{\"input_tokens\":").number(self.input);
        line.raw(",\"cache_creation_input_tokens\":").number(self.cache_creation);
        line.raw(",\"cache_read_input_tokens\":").number(self.cache_read);
        line.raw(",\"output_tokens\":").number(self.output);
        line.raw(
            ",\"output_tokens_details\":{\"thinking_tokens\":0},\"server_tool_use\":\
             {\"web_search_requests\":0,\"web_fetch_requests\":0},\"service_tier\":\"standard\",\
             \"cache_creation\":{\"ephemeral_1h_input_tokens\":",
        );
        line.number(self.cache_creation).raw(
            ",\"ephemeral_5m_input_tokens\":0},\"inference_geo\":\"not_available\",\
             \"iterations\":[],\"speed\":\"standard\",\"fallback_credit\":null}",
        );
    }
}

/// Usage by model, each message counted once, as in `cost-state`.
#[derive(Default)]
pub struct Used {
    pub models: Vec<(&'static str, Usage)>,
}

impl Used {
    fn add(&mut self, model: &'static str, usage: Usage) {
        let index = self.models.iter().position(|(name, _)| *name == model).unwrap_or_else(|| {
            self.models.push((model, Usage::default()));
            self.models.len() - 1
        });
        let sum = &mut self.models[index].1;
        sum.input += usage.input;
        sum.output += usage.output;
        sum.cache_read += usage.cache_read;
        sum.cache_creation += usage.cache_creation;
    }

    /// The fields of a `cost-state` record.
    pub fn fields(&self, starts: i64, took: i64) -> String {
        let price = |usage: &Usage| {
            (usage.input as f64 * 5.0
                + usage.output as f64 * 25.0
                + usage.cache_read as f64 * 0.5
                + usage.cache_creation as f64 * 10.0)
                / 1e6
        };
        let models: Vec<String> = self
            .models
            .iter()
            .map(|(name, usage)| {
                format!(
                    "\"{name}\":{{\"inputTokens\":{},\"outputTokens\":{},\"thinkingTokens\":0,\
                     \"cacheReadInputTokens\":{},\"cacheCreationInputTokens\":{cached},\
                     \"cacheCreationEphemeral5mInputTokens\":0,\
                     \"cacheCreationEphemeral1hInputTokens\":{cached},\"webSearchRequests\":0,\
                     \"costUSD\":{}}}",
                    usage.input,
                    usage.output,
                    usage.cache_read,
                    price(usage),
                    cached = usage.cache_creation,
                )
            })
            .collect();
        let total: f64 = self.models.iter().map(|(_, usage)| price(usage)).sum();
        format!(
            ",\"totalCostUSD\":{total},\"totalAPIDuration\":{took},\
             \"totalAPIDurationWithoutRetries\":{took},\"totalToolDuration\":1535,\
             \"totalLinesAdded\":9,\"totalLinesRemoved\":2,\"totalDuration\":{took},\
             \"startTime\":{starts},\"modelUsage\":{{{}}},\"hasUnknownModelCost\":false",
            models.join(",")
        )
    }
}
