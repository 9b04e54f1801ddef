use super::Prompts;

#[test]
fn versions_that_record_requests() {
    let recorded = |version: &str| {
        let mut prompts = Prompts::default();
        prompts.note_version(version);
        prompts.is_recorded
    };
    for version in ["2.1.325", "2.1.198", "2.2.0", "3.0", "2.1.400-beta.1"] {
        assert!(recorded(version), "{version}");
    }
    // Hashing the messages of a log that has no requests would be work for nothing.
    for version in ["2.1.197", "2.0.999", "1.0.100", "", "unknown", "2"] {
        assert!(!recorded(version), "{version}");
    }
}
