use super::*;

fn session(name: &str) -> SessionId {
    SessionId::of("claude-code", name)
}

// R-002-28
#[test]
fn a_busy_session_does_not_delay_another() {
    let (busy, quiet) = (session("busy"), session("quiet"));
    let begun = Instant::now();
    let at = |millis: u64| begun + Duration::from_millis(millis);
    let mut waiting = QuietSessions::default();
    assert_eq!(waiting.next_due(), None);
    waiting.note(quiet, at(0));
    let mut taken = Vec::new();
    for step in 0..30 {
        waiting.note(busy, at(step * 100));
        let due = waiting.take_due(at(step * 100));
        taken.extend(due.into_iter().map(|session| (step * 100, session)));
    }
    assert_eq!(taken, [(700, quiet)]);
    // The busy one is due after its own last update.
    assert_eq!(waiting.take_due(at(2900 + 699)), []);
    assert!(waiting.next_due().is_some_and(|due| due <= at(2900 + 700)));
    assert_eq!(waiting.take_due(at(2900 + 700)), [busy]);
    assert_eq!((waiting.next_due(), waiting.due.len()), (None, 0));
}

#[test]
fn a_session_that_is_due_late_is_put_in_order() {
    let sessions = [session("a"), session("b"), session("c")];
    let begun = Instant::now();
    let at = |millis: u64| begun + Duration::from_millis(millis);
    let mut waiting = QuietSessions::default();
    for (nth, session) in (0..).zip(sessions) {
        waiting.note(session, at(nth * 100));
    }
    waiting.note(sessions[0], at(150));
    assert_eq!(waiting.take_due(at(700)), []);
    assert_eq!(waiting.take_due(at(800)), [sessions[1]]);
    assert_eq!(waiting.take_due(at(1000)), [sessions[0], sessions[2]]);
}
