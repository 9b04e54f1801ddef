//! What a search is said to look for. `suite/searches.rs` runs searches on a real archive.

use super::*;

#[track_caller]
fn is_said(typed: &str, expected: &str) {
    assert_eq!(describe(&TextQuery::parse(typed)), expected, "{typed}");
}

#[test]
fn queries_are_described_in_words() {
    is_said("Alpha", "the word “Alpha”");
    is_said("alpha beta", "the words “alpha” and “beta”");
    is_said("a b c", "the words “a”, “b” and “c”");
    is_said("rm -rf", "the text “rm -rf”");
    is_said("pars* x", "the word “x” and words that begin with “pars”");
    is_said(
        "alpha src/main.rs E0308:",
        "the word “alpha” and the texts “src/main.rs” and “E0308:”",
    );
    is_said("alpha -retry NOT a.b", "the word “alpha”, without the word “retry” or the text “a.b”");
    is_said("-\"a b\"", "the text “a b”");
    is_said("a b c d e f g h", "the words “a”, “b”, “c”, “d”, “e” and “f” and 2 more");
    let long = "x".repeat(100);
    is_said(&long, &format!("the word “{}…”", "x".repeat(80)));
}

fn without_hits(request: SearchRequest) -> Reading {
    let query = TextQuery::parse(&request.query);
    reading(&request, &query, false, None)
}

#[test]
fn no_hit_is_one_sentence_and_a_way_on() {
    let reading = without_hits(SearchRequest::new("rm -rf"));
    assert_eq!(reading.understood, "Nothing found for the text “rm -rf”.");
    let queries = |reading: &Reading| -> Vec<String> {
        reading.suggestions.iter().map(|it| it.query.clone()).collect()
    };
    assert_eq!(queries(&reading), ["rm NOT rf"]);
    assert_eq!(reading.suggestions[0].label, "Search for the word “rm”, without the word “rf”");
    let reading = without_hits(SearchRequest::new("alpha beta"));
    assert_eq!(queries(&reading), ["\"alpha beta\"", "alpha", "beta"]);
    let narrowed = SearchRequest { since: Some(0), ..SearchRequest::new("alpha") };
    let reading = without_hits(narrowed);
    assert_eq!(reading.understood, "Nothing found for the word “alpha” with these filters.");
    assert!(reading.suggestions[0].without_filters);
    let reading = without_hits(SearchRequest::new("-\"a b\""));
    assert_eq!(
        reading.understood,
        "This search only excludes the text “a b”. Add a word to search for."
    );
    assert_eq!(without_hits(SearchRequest::new("")).understood, "Type at least one word.");
}
