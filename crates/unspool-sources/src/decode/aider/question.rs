//! Questions with their answers: `Add file to the chat? (Y)es/(N)o/(D)on't ask again [Yes]: y`. aider
//! writes both when it has the answer.

/// A question, and the letter or the text that answered it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AnsweredQuestion<'t> {
    pub question: &'t str,
    pub answer: &'t str,
}

impl AnsweredQuestion<'_> {
    /// What the question is about: the line before it, or all lines before it if it is about several
    /// commands.
    pub fn subject<'s>(&self, before: &'s str) -> &'s str {
        if self.question.starts_with("Run shell commands?") {
            return before;
        }
        before.lines().last().unwrap_or_default()
    }

    pub fn is_yes(&self) -> bool {
        let first = self.answer.trim().chars().next();
        first.is_none_or(|letter| matches!(letter.to_ascii_lowercase(), 'y' | 'a'))
    }
}

pub(super) fn answered_question(line: &str) -> Option<AnsweredQuestion<'_>> {
    let (question, rest) = line.split_once(" (Y)es/(N)o")?;
    let (_, answer) = rest.split_once("]: ").or_else(|| rest.split_once("]:"))?;
    Some(AnsweredQuestion { question, answer: answer.trim() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_follows_its_question() {
        let line = "Run shell command? (Y)es/(N)o/(D)on't ask again [Yes]: d";
        let found = answered_question(line);
        assert_eq!(found, Some(AnsweredQuestion { question: "Run shell command?", answer: "d" }));
        assert!(!found.is_some_and(|question| question.is_yes()));
        assert!(answered_question("Create it? (Y)es/(N)o [Yes]: a").is_some_and(|q| q.is_yes()));
        assert_eq!(answered_question("Running ls"), None);
        let subject =
            |question: &'static str| AnsweredQuestion { question, answer: "" }.subject("a\nb");
        assert_eq!(subject("Run shell command?"), "b");
        assert_eq!(subject("Run shell commands?"), "a\nb");
    }
}
