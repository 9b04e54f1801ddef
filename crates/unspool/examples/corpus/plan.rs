//! The plan of a corpus: the number of sessions, and the size, project and time of each.

use crate::random::{Random, mix};
use crate::sources::{NamingStyle, Sources};
use crate::words::Spelling;

/// 2026-07-01T08:00:00Z.
const FIRST_DAY: i64 = 1_782_892_800_000;
const DAYS: f64 = 120.0;
const DAY: f64 = 86_400_000.0;
/// Bytes of the smallest session: a prompt and a reply.
const SMALLEST: f64 = 3_300.0;
/// Extra records of a session beyond those its size requires: the last steps are short.
const RECORDS_AT_THE_END: f64 = 12.0;

/// The record size for which the output sizes were chosen: with this many bytes of text and of
/// surrounding JSON per record, outputs are not scaled.
const BYTES_AROUND_TEXT: f64 = 930.0;
const BYTES_OF_TEXT: f64 = 3_100.0;

pub struct Project {
    pub naming: NamingStyle,
    pub folder: String,
    /// The name of its folder in Claude Code's `projects`.
    pub slug: String,
    pub branch: String,
}

pub struct Planned {
    pub seed: u64,
    pub project: usize,
    pub bytes: u64,
    pub records: u64,
    pub starts: i64,
}

pub struct Plan {
    pub projects: Vec<Project>,
    pub sessions: Vec<Planned>,
    /// Sub-agents have separate files; a corpus with an exact number of files has none.
    pub with_agents: bool,
}

impl Plan {
    pub fn new(
        sources: &Sources,
        seed: u64,
        bytes: u64,
        records: u64,
        sessions: usize,
        with_agents: bool,
    ) -> Plan {
        let mut random = Random::new(seed);
        let count = (3 + sessions / 18).min(40);
        let projects = (0..count).map(|_| Project::new(sources, &mut random)).collect();
        let even = bytes as f64 / sessions as f64;
        let floor = SMALLEST.min(even * 0.85);
        // A few are very large, most are small, and neighbours differ.
        let mut weights: Vec<f64> = (0..sessions)
            .map(|rank| (rank as f64 + 5.0).powf(-1.5) * (0.5 + random.fraction()))
            .collect();
        let sum: f64 = weights.iter().sum();
        for index in (1..weights.len()).rev() {
            weights.swap(index, random.below(index + 1));
        }
        let above = (bytes as f64 - floor * sessions as f64).max(0.0);
        let per_byte = records as f64 / bytes.max(1) as f64;
        let sessions = (0..sessions)
            .map(|index| {
                let own = floor + above * weights[index] / sum;
                let day = DAYS * (index as f64 + random.fraction()) / sessions as f64;
                Planned {
                    seed: mix(seed ^ mix(index as u64 + 1)),
                    project: random.below(count).min(random.below(count)),
                    bytes: own as u64,
                    records: (own * per_byte - RECORDS_AT_THE_END)
                        .max(own * per_byte / 2.0)
                        .max(2.0) as u64,
                    starts: FIRST_DAY + (day * DAY) as i64,
                }
            })
            .collect();
        Plan { projects, sessions, with_agents }
    }
}

impl Project {
    fn new(sources: &Sources, random: &mut Random) -> Project {
        let bits = random.next();
        let mut name = String::new();
        sources.words.name(&mut name, bits, Spelling::Snake);
        let folder = format!("/home/dev/{}", name.replace('_', "-"));
        let slug = folder.chars().map(|letter| if letter.is_alphanumeric() { letter } else { '-' });
        let branch = match random.below(3) {
            0 => "main".to_owned(),
            1 => format!("feature/{name}"),
            _ => "develop".to_owned(),
        };
        Project { naming: sources.naming(bits), slug: slug.collect(), folder, branch }
    }
}

/// The factor for output sizes that gives records of this average size.
pub fn scale(bytes_per_record: f64) -> f64 {
    ((bytes_per_record - BYTES_AROUND_TEXT) / BYTES_OF_TEXT).clamp(0.01, 40.0)
}
