//! A rule of the user in a form that a program can check: calls that must not be made while the
//! rule's text is in the prompt.

use std::fmt;

use regex::Regex;
use serde::{Deserialize, Serialize};

use super::call::Call;

/// Which calls a rule forbids: `tool=Bash input~"^npm "`. The input is the command of a shell tool,
/// the path of a file tool, and the input as JSON of any other tool.
#[derive(Clone, Debug)]
pub struct CallCheck {
    /// What the prompt has to say for the rule to apply.
    pub text: String,
    tool: Option<String>,
    input: Option<Regex>,
}

/// Why a check cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CheckError(String);

impl fmt::Display for CheckError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; write it as tool=NAME input~\"REGULAR EXPRESSION\"", self.0)
    }
}

impl std::error::Error for CheckError {}

impl CallCheck {
    /// `text` is what the prompt says, `never` which calls that forbids.
    pub fn new(text: &str, never: &str) -> Result<CallCheck, CheckError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(CheckError("the rule has no text to look for in prompts".to_owned()));
        }
        let mut check = CallCheck { text: text.to_owned(), tool: None, input: None };
        let mut rest = never.trim();
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix("tool=") {
                let (name, after) = after.split_once(char::is_whitespace).unwrap_or((after, ""));
                check.tool = Some(name.to_owned()).filter(|name| !name.is_empty());
                rest = after.trim_start();
            } else if let Some(after) = rest.strip_prefix("input~\"") {
                let (pattern, after) = after
                    .rsplit_once('"')
                    .ok_or_else(|| CheckError(format!("`{rest}` has no closing quote")))?;
                let pattern = Regex::new(pattern).map_err(|error| {
                    let why = error.to_string();
                    CheckError(format!("`{pattern}`: {}", why.lines().last().unwrap_or_default()))
                })?;
                check.input = Some(pattern);
                rest = after.trim();
            } else {
                return Err(CheckError(format!("`{rest}` is no condition")));
            }
        }
        if check.tool.is_none() && check.input.is_none() {
            return Err(CheckError("the rule forbids no call".to_owned()));
        }
        Ok(check)
    }

    /// True for a call of the tool that the rule speaks of.
    pub(super) fn is_about(&self, call: &Call) -> bool {
        self.tool.as_ref().is_none_or(|tool| *tool == call.tool)
    }

    pub(super) fn forbids(&self, call: &Call) -> bool {
        let input = || call.checked_input();
        self.is_about(call) && self.input.as_ref().is_none_or(|regex| regex.is_match(input()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_that_cannot_be_read_says_why() {
        let why = |never: &str| CallCheck::new("rule", never).err().map(|error| error.to_string());
        let form = "; write it as tool=NAME input~\"REGULAR EXPRESSION\"";
        assert_eq!(why(""), Some(format!("the rule forbids no call{form}")));
        assert_eq!(why("Bash"), Some(format!("`Bash` is no condition{form}")));
        assert_eq!(why("input~\"a"), Some(format!("`input~\"a` has no closing quote{form}")));
        assert_eq!(why("input~\"(\""), Some(format!("`(`: error: unclosed group{form}")));
        assert_eq!(why("tool=Bash"), None);
        assert_eq!(why("tool=Bash input~\"say \"hi\"\""), None, "quotes inside");
        assert!(CallCheck::new(" ", "tool=Bash").is_err());
    }
}
