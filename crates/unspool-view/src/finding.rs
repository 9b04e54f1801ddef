//! Findings: what went wrong or cost more than it had to in a session, found by fixed rules. Each
//! rule is a file in `finding/` with one pure function over a [`History`], which is a session without
//! its texts; `across` has the findings that take several sessions. Meaning is never guessed: a rule
//! counts what the record says, and each finding names the parts that show it.

mod across;
mod call;
mod check;
mod command;
mod error_text;
mod history;
mod prompts;
mod rules;
mod times;

use serde::{Deserialize, Serialize};
use unspool_model::id::PartId;
use unspool_model::tool_time::ToolTime;

pub use across::{Shared, SharedFinding, across};
pub use check::{CallCheck, CheckError};
pub use error_text::error_line;
pub use history::{History, HistoryBuilder};
pub use prompts::PromptFacts;
pub use times::ToolTimes;

macro_rules! rules {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $module:ident, $label:literal, $unit:literal, $hint:literal;)*) => {
        /// What a rule looks for.
        #[derive(
            Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize,
        )]
        #[serde(rename_all = "kebab-case")]
        pub enum Rule {
            $($(#[$doc])* $variant,)*
        }

        impl Rule {
            pub const ALL: &[Rule] = &[$(Rule::$variant,)*];

            /// The name in JSON and on the command line.
            pub const fn name(self) -> &'static str {
                match self { $(Rule::$variant => $name,)* }
            }

            /// What people see.
            pub const fn label(self) -> &'static str {
                match self { $(Rule::$variant => $label,)* }
            }

            /// What its opportunities are, in the plural.
            pub const fn unit(self) -> &'static str {
                match self { $(Rule::$variant => $unit,)* }
            }

            /// What usually helps.
            pub const fn hint(self) -> &'static str {
                match self { $(Rule::$variant => $hint,)* }
            }

            fn find(self, history: &History) -> Found {
                match self { $(Rule::$variant => rules::$module::find(history),)* }
            }
        }
    };
}

rules! {
    FailsAgain = "fails-again", fails_again, "The same failure again", "calls",
        "say in an instruction file how this call works here";
    SameCallAgain = "same-call-again", same_call_again, "The same call again", "calls",
        "its result did not change: say when a second look is worth it";
    EditMissed = "edit-missed", edit_missed, "Edits of text that is not there", "edits",
        "have the file read again before it is edited";
    EditChurn = "edit-churn", edit_churn, "Lines written and then rewritten", "edits",
        "ask for a plan of the file before its first edit";
    ReadAgain = "read-again", read_again, "The same text read again", "reads",
        "name what is worth keeping in mind, or split the file";
    Denied = "denied", denied, "Denied calls", "calls",
        "allow the call in the agent's settings, or say that it is unwanted";
    Interrupted = "interrupted", interrupted, "Turns stopped and asked anew", "turns",
        "read what the next prompt says that the first one did not";
    SlowStep = "slow-step", slow_step, "Slow steps and waiting", "calls",
        "run it in the background, with a limit, or on less";
    Retries = "retries", retries, "Failed model calls and errors", "model calls",
        "look at the provider's limits and its status";
    ContextBlowUp = "context-blow-up", context_blow_up, "The context fills at once", "model calls",
        "have long outputs cut or searched, and files read in pieces";
    RuleGone = "rule-gone", rule_gone, "Instructions that were lost", "instruction files",
        "put it where the agent reads it for every call";
    RuleIgnored = "rule-ignored", rule_ignored, "Rules that were not followed", "calls",
        "word the rule for the moment at which it applies, or enforce it with a hook";
    IdleSchemas = "idle-schemas", idle_schemas, "Tools that are never called", "sessions",
        "turn the MCP server off where it is not used";
    PrefixChanged = "prefix-changed", prefix_changed, "Prompts that were not in the cache", "model calls",
        "keep what changes out of the beginning of the prompt";
}

impl Rule {
    pub fn of_name(name: &str) -> Option<Rule> {
        Rule::ALL.iter().copied().find(|rule| rule.name() == name)
    }
}

/// One finding.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Finding {
    pub rule: Rule,
    /// What is the same when it happens again, in this session or in another one.
    pub signature: String,
    /// What happened, in one line.
    pub title: String,
    /// How often.
    pub count: u64,
    /// How often it could have happened.
    pub opportunities: u64,
    pub cost: Cost,
    /// The parts that show it, in their order. Of many the first and the last ones.
    pub evidence: Vec<Evidence>,
}

/// What a finding cost. `None`: not known, or nothing that can be counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Cost {
    pub calls: Option<u64>,
    pub duration_ms: Option<u64>,
    /// The duration may include waiting for a person.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_include_waiting: bool,
    pub tokens: Option<u64>,
    /// The tokens are estimated from characters.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tokens_are_estimated: bool,
    pub chars: Option<u64>,
}

/// A part that shows a finding.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Evidence {
    pub turn: u32,
    /// The model call of the turn, if the finding is about its prompt.
    pub step: Option<u32>,
    /// `None` if no part is left that shows it: a model call without a reply.
    pub part: Option<PartId>,
    /// What is to be seen there.
    pub what: String,
}

/// What a rule found in a session, and in how many places it looked.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Found {
    pub opportunities: u64,
    pub findings: Vec<Finding>,
}

/// How many parts a finding names.
const MAX_EVIDENCE: usize = 12;
/// Characters of a line of evidence or of a title.
const MAX_LINE_CHARS: usize = 200;
/// About how many characters a token has.
const CHARS_PER_TOKEN: u64 = 4;

impl Finding {
    /// Every text in it that is from a session, for redaction.
    pub fn texts_mut(&mut self) -> impl Iterator<Item = &mut String> {
        let Finding { rule: _, signature, title, count: _, opportunities: _, cost: _, evidence } =
            self;
        let what = evidence.iter_mut().map(|evidence| &mut evidence.what);
        [signature, title].into_iter().chain(what)
    }
}

impl Cost {
    pub fn add(&mut self, other: Cost) {
        let sum = |mine: &mut Option<u64>, others: Option<u64>| {
            if let Some(others) = others {
                *mine = Some(mine.unwrap_or(0).saturating_add(others));
            }
        };
        sum(&mut self.calls, other.calls);
        sum(&mut self.duration_ms, other.duration_ms);
        sum(&mut self.tokens, other.tokens);
        sum(&mut self.chars, other.chars);
        self.tokens_are_estimated |= other.tokens_are_estimated;
        self.may_include_waiting |= other.may_include_waiting;
    }

    /// Of a call that ran for so long, if that is known.
    fn of_call(time: Option<ToolTime>) -> Cost {
        Cost {
            calls: Some(1),
            duration_ms: time.map(|time| time.ran_ms),
            may_include_waiting: time.is_some_and(|time| time.may_include_waiting),
            ..Cost::default()
        }
    }

    /// Of texts with so many characters.
    fn of_chars(chars: u64) -> Cost {
        Cost {
            chars: Some(chars),
            tokens: Some(chars / CHARS_PER_TOKEN),
            tokens_are_estimated: true,
            ..Cost::default()
        }
    }
}

/// All findings of a session by rule, in the order of `Rule::ALL`, the most frequent of a rule first.
pub fn findings(history: &History) -> Vec<(Rule, Found)> {
    let all = Rule::ALL.iter().map(|rule| (*rule, rule.find(history)));
    let sorted = all.map(|(rule, mut found)| {
        found.findings.sort_by(|a, b| weight(b).cmp(&weight(a)).then(a.title.cmp(&b.title)));
        (rule, found)
    });
    sorted.collect()
}

/// Findings that were made more often come first, of those the ones that cost more time or tokens.
pub fn weight(finding: &Finding) -> (u64, u64, u64) {
    let Cost { duration_ms, tokens, .. } = finding.cost;
    (finding.count, duration_ms.unwrap_or(0), tokens.unwrap_or(0))
}

/// The first and the last ones, if there are too many to name.
fn cut(mut evidence: Vec<Evidence>) -> Vec<Evidence> {
    if evidence.len() > MAX_EVIDENCE {
        evidence.drain(MAX_EVIDENCE / 2..evidence.len() - MAX_EVIDENCE / 2);
    }
    evidence
}

#[cfg(test)]
#[path = "finding/test_sessions.rs"]
mod test_sessions;
