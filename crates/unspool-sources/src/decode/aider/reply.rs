//! Reasoning inside a reply: between tags that aider adds, or that the model writes itself. The end
//! tag is missing if the reply stopped during reasoning.

/// The tag that aider puts around reasoning, with its constant suffix.
const TAGS: [&str; 2] = ["thinking-content-7bbeb8e1441453ad999a0bbba8a46d4b", "think"];

/// The reasoning of a reply and the rest of it, in order.
pub(super) fn split_reasoning(reply: &str) -> (Option<&str>, &str) {
    for tag in TAGS {
        let Some(rest) = reply.strip_prefix(&format!("<{tag}>")) else { continue };
        return match rest.split_once(&format!("</{tag}>")) {
            Some((reasoning, text)) => (Some(reasoning.trim()), text.trim()),
            None => (Some(rest.trim()), ""),
        };
    }
    (None, reply)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasoning_is_before_the_text() {
        assert_eq!(split_reasoning("<think>\n\na\n\n</think>\n\nb"), (Some("a"), "b"));
        assert_eq!(split_reasoning("<think>\na"), (Some("a"), ""));
        assert_eq!(split_reasoning("b <think>"), (None, "b <think>"));
    }
}
