//! The words of a comparison, which the command line and the page share.

use unspool_model::verdict::{self, Comparison, Verdict};

use super::{ArmDocument, Verification};

impl Verification {
    /// How the groups were made.
    pub fn design_words(&self) -> &'static str {
        match self.design {
            "trial" => "a trial: both groups are of the same time",
            _ => "before and after: the sessions without it are older",
        }
    }

    /// Both groups with their names.
    pub fn arms(&self) -> [(&'static str, &ArmDocument); 2] {
        [("without", &self.without), ("with", &self.with)]
    }

    /// `20 of 20 edits in 5 sessions  100 % (95 %: 88 % to 100 %)`
    pub fn arm_words(&self, arm: &ArmDocument) -> String {
        let sessions = if arm.sessions == 1 { "session" } else { "sessions" };
        let (events, opportunities) = (arm.events, arm.opportunities);
        let counted =
            format!("{events} of {opportunities} {} in {} {sessions}", self.unit, arm.sessions);
        match (arm.rate, arm.interval) {
            (Some(rate), Some([low, high])) => {
                let [rate, low, high] = [rate, low, high].map(percent);
                format!("{counted}  {rate} (95 %: {low} to {high})")
            }
            (_, _) => counted,
        }
    }

    /// What else there is to know, each with what it is about.
    pub fn notes(&self) -> Vec<(&'static str, String)> {
        let mut notes = Vec::new();
        if let Some(lower) = self.probability_lower {
            notes.push(("", format!("fewer with a probability of {}", percent(lower))));
        }
        if self.design_effect > 1.05 {
            let effect = self.design_effect;
            let what = format!("the counts are worth 1/{effect:.1} of independent ones");
            notes.push(("", format!("sessions differ: {what}")));
        }
        let cost = &self.cost;
        notes.push((
            "cost",
            format!(
                "{} characters in each of {} calls, {} in all",
                cost.chars_per_call, cost.calls, cost.chars
            ),
        ));
        for rose in &self.rose {
            let rate = |rate: Option<f64>| rate.map(percent).unwrap_or_default();
            let (from, to) = (rate(rose.without), rate(rose.with));
            notes.push(("rose", format!("{}: {from} without it, {to} with it", rose.rule)));
        }
        notes.extend(self.confounders.iter().map(|other| ("differs", other.clone())));
        let left_out = self.left_out.iter();
        notes.extend(left_out.map(|(why, count)| ("left out", format!("{count}: {why}"))));
        notes
    }
}

pub fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// What the verdict says, or why there is none.
pub fn because(compared: &Comparison) -> String {
    match (compared.verdict, compared.lower) {
        (Verdict::Fewer, Some(lower)) => {
            format!("the rate is lower with a probability of {}", percent(lower))
        }
        (Verdict::More, Some(lower)) => {
            format!("the rate is higher with a probability of {}", percent(1.0 - lower))
        }
        (Verdict::Same, _) => {
            format!("the rates differ by less than {} points", verdict::SAME_WITHIN * 100.0)
        }
        (Verdict::TooLittle | Verdict::Fewer | Verdict::More, _) => {
            let mut missing = Vec::new();
            for (name, arm) in [("without", &compared.without), ("with", &compared.with)] {
                if arm.sessions < verdict::MIN_SESSIONS {
                    let needed = verdict::MIN_SESSIONS;
                    missing.push(format!("{} of {needed} sessions {name} it", arm.sessions));
                }
                if arm.opportunities < verdict::MIN_OPPORTUNITIES {
                    let (has, needed) = (arm.opportunities, verdict::MIN_OPPORTUNITIES);
                    missing.push(format!("{has} of {needed} opportunities {name} it"));
                }
            }
            match missing.is_empty() {
                true => "the difference may be chance".to_owned(),
                false => missing.join(", "),
            }
        }
    }
}
