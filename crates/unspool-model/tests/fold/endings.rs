//! The end rule: whatever the reason, nothing is left open, the reason is shown, and there is a
//! reply.

use unspool_model::event::EndReason::{
    self, Completed, Failed, Idle, Interrupted, Lost, Superseded,
};
use unspool_model::event::ProseKind::{Reasoning, Text};
use unspool_model::event::{EventKind, ToolEnd};
use unspool_model::session::{SessionState, Trigger};

use crate::script::*;

fn reasons() -> [EndReason; 5] {
    [Completed, Failed(Some("boom".to_owned())), Interrupted, Idle, Superseded]
}

#[test]
fn every_end_leaves_nothing_open() {
    // R-X-02 R-X-01 R-003-18
    for reason in reasons() {
        let run = reply([
            grew(Reasoning, "hm"),
            input_grew("t0", "Bash", "{"),
            called("t1", "Bash"),
            output_grew("t1", "half"),
            called("t2", "Task"),
            background_started("t2", "bg"),
            grew_in(Text, block("m", 7), "par"),
            over(reason.clone()),
        ]);
        let parts = run.parts();
        assert_eq!(
            parts[..6],
            [
                r#"reasoning:"hm""#,
                "tool t0 interrupted",
                r#"tool t1 interrupted "half""#,
                "tool t2 interrupted",
                "agents of t2: bg background",
                r#"text:"par""#,
            ],
            "{reason:?}"
        );
        assert_ne!(run.state(), "running", "{reason:?}");
    }
}

#[test]
fn a_marker_says_why_and_stands_last() {
    // R-X-01 R-004-18
    let table = [
        (Completed, "completed", None),
        (Failed(Some("boom".to_owned())), "failed", Some(r#"error:"boom""#)),
        (Failed(None), "failed", Some(r#"error:"The turn failed.""#)),
        (Interrupted, "interrupted", Some("notice:interrupted")),
        (Idle, "completed", None),
        (Superseded, "completed", None),
    ];
    for (reason, state, marker) in table {
        let run = reply([grew(Text, "par"), over(reason.clone())]);
        assert_eq!(run.state(), state, "{reason:?}");
        let mut expected = vec![r#"text:"par""#];
        expected.extend(marker);
        assert_eq!(run.parts(), expected, "{reason:?}");
    }
}

#[test]
fn a_source_that_says_why_is_not_repeated() {
    // R-004-16: exactly one.
    let failed_by_itself = reply([failed(Some("e"), "API Error"), over(Failed(None))]);
    assert_eq!(failed_by_itself.parts(), [r#"error:"API Error""#]);
    let late = reply([over(Failed(None)), failed(Some("e"), "API Error")]);
    assert_eq!(late.parts(), [r#"error:"API Error""#]);
    let stopped = reply([grew(Text, "a"), notice(Some("n"), "interrupted"), over(Interrupted)]);
    assert_eq!(stopped.parts(), [r#"text:"a""#, "notice:interrupted"]);
}

#[test]
fn an_error_that_was_overcome_does_not_explain_an_interruption() {
    // R-X-01: a stopped marker is appended.
    let run = reply([
        failed(Some("e"), "overloaded, retrying"),
        said(Text, "it works again"),
        over(Interrupted),
    ]);
    assert_eq!(run.parts().last().unwrap(), "notice:interrupted", "{:?}", run.parts());
}

#[test]
fn what_a_failed_turn_failed_of_is_not_lost() {
    // R-X-01, law 4: an older notice or another error does not explain this end.
    let why = || over(Failed(Some("quota exceeded".to_owned())));
    let after_notice = reply([notice(Some("n"), "interrupted"), said(Text, "a"), why()]);
    assert_eq!(after_notice.parts().last().unwrap(), r#"error:"quota exceeded""#);
    let after_error = reply([failed(Some("e"), "overloaded"), said(Text, "a"), why()]);
    assert_eq!(after_error.parts().last().unwrap(), r#"error:"quota exceeded""#);
}

#[test]
fn every_turn_has_a_reply_after_its_end() {
    // R-004-17
    let table = [
        (Completed, "notice:no-reply"),
        (Failed(Some("boom".to_owned())), r#"error:"boom""#),
        (Interrupted, "notice:interrupted"),
        (Idle, "notice:no-reply"),
        (Superseded, "notice:no-reply"),
    ];
    for (reason, expected) in table {
        assert_eq!(reply([over(reason.clone())]).parts(), [expected], "{reason:?}");
    }
    // A turn that still runs shows the user's message only (R-004-19).
    let run = reply([]);
    assert!(run.parts().is_empty());
    assert_eq!(run.turn().user, [words("p1")]);
}

#[test]
fn a_late_reply_takes_the_place_of_the_missing_one() {
    // R-004-17 R-004-19
    let run = reply([over(Completed), said(Text, "here after all")]);
    assert_eq!(run.parts(), [r#"text:"here after all""#]);
    let cut = reply([over(Interrupted), said(Text, "late")]);
    assert_eq!(cut.parts(), [r#"text:"late""#, "notice:interrupted"]);
}

#[test]
fn a_command_needs_no_reply() {
    // R-004-17, design: a command's own output is its reply.
    let names = vec![prompt_name("p1")];
    let command =
        EventKind::TurnStarted { names, trigger: Trigger::Command, user: vec![words("/clear")] };
    assert!(fold([command.into(), over(Completed)]).parts().is_empty());
}

#[test]
fn the_next_prompt_ends_the_turn_before() {
    // R-X-02 R-004-01
    let run = fold([
        prompt("p1"),
        grew(Text, "par"),
        called("t1", "Bash"),
        prompt("p2"),
        grew(Text, "new"),
    ]);
    assert_eq!(
        run.turns(),
        [
            vec![r#"text:"par""#, "tool t1 interrupted", "notice:interrupted"],
            vec![r#"text…:"new""#]
        ]
    );
    let numbers: Vec<_> = run.transcript().turns.iter().map(|turn| turn.number).collect();
    assert_eq!(numbers, [1, 2]);
}

#[test]
fn a_foreground_tool_without_an_end_cannot_hang_the_turn() {
    // R-X-13
    let run = reply([called("t1", "Bash"), over(Idle)]);
    assert_eq!(run.parts(), ["tool t1 interrupted", "notice:interrupted"]);
    assert_eq!(run.state(), "interrupted");
}

#[test]
fn deltas_after_the_end_leave_no_streaming_part() {
    // R-X-02: either the turn is reopened, or the prose is closed.
    for reason in reasons() {
        for late in [grew(Text, "late"), grew_in(Reasoning, block("m", 0), "late")] {
            let run = reply([said(Text, "a"), over(reason.clone()), late]);
            let streams = run.parts().iter().any(|part| part.contains('…'));
            assert!(!streams || run.state() == "running", "{reason:?}: {:?}", run.parts());
            assert!(format!("{:?}", run.parts()).contains("late"), "{reason:?}");
        }
    }
}

#[test]
fn the_end_from_another_feed_closes_streamed_prose() {
    // R-X-02
    let mut run = fold([
        prompt("p1").stream(),
        grew_in(Text, block("m", 0), "ab").stream(),
        prompt("p1"),
        over(Interrupted),
    ]);
    assert_eq!(run.parts(), [r#"text:"ab""#, "notice:interrupted"]);
    run.apply(grew_in(Text, block("m", 0), "c").stream());
    assert_eq!(run.parts(), [r#"text:"abc""#, "notice:interrupted"]);
    run.apply(grew_in(Text, block("m", 1), "d").stream());
    let streams = run.parts().iter().any(|part| part.contains('…'));
    assert!(!streams || run.state() == "running", "{:?}", run.parts());
}

#[test]
fn a_turn_that_goes_on_is_not_ended() {
    // Design, end rule: for example a hook's "stop" that the agent had to ignore.
    let mut run = reply([step("m1"), said(Text, "a"), over(Completed)]);
    run.apply_all([step("m2"), called("t1", "Bash")]);
    assert_eq!(run.state(), "running");
    assert!(run.turn().ended.is_none());
    run.apply_all([ended("t1", ToolEnd::Completed, ""), over(Completed)]);
    assert_eq!(run.parts(), [r#"text:"a""#, "tool t1 completed"]);
    assert_eq!(run.state(), "completed");
}

#[test]
fn an_end_that_says_more_is_believed() {
    // R-X-01 R-002-41: never a completed turn that was in fact interrupted.
    let run = reply([said(Text, "a"), over(Idle), over(Interrupted)]);
    assert_eq!(run.state(), "interrupted");
    let run = reply([said(Text, "a"), over(Interrupted), over(Completed)]);
    assert_eq!(run.state(), "interrupted");
}

#[test]
fn a_failure_without_a_message_may_be_an_interruption() {
    // Law 5: in either order. A failure that has a message stays one.
    let both = |reason: EndReason, log_first: bool| {
        let mut ends = [over(reason).in_turn("p1"), over(Interrupted).stream().in_turn("p1")];
        if !log_first {
            ends.reverse();
        }
        let mut run = fold([prompt("p1"), prompt("p1").stream(), said(Text, "a")]);
        run.apply_all(ends);
        run.state()
    };
    for log_first in [true, false] {
        assert_eq!(both(Failed(None), log_first), "interrupted");
        assert_eq!(both(Failed(Some("boom".to_owned())), log_first), "failed");
        assert_eq!(both(Completed, log_first), "completed");
    }
}

// R-002-07
#[test]
fn an_end_that_nobody_saw_is_unknown_until_somebody_says_more() {
    let one = || vec![prompt("p1"), said(Text, "one"), over(EndReason::Unseen)];
    assert_eq!(fold(one()).state(), "unknown");
    let mut more = one();
    more.push(over(EndReason::Interrupted));
    assert_eq!(fold(more).state(), "interrupted");
    let mut next = one();
    next.push(prompt("p2"));
    assert_eq!(fold(next).transcript().turns[0].state.name(), "unknown");
}

#[test]
fn a_turn_whose_agent_is_gone_is_interrupted_until_it_goes_on() {
    // R-X-13
    let mut run = reply([called("t1", "Bash"), called("t2", "Bash"), over(Lost)]);
    let lost = ["tool t1 interrupted", "tool t2 interrupted", "notice:interrupted"];
    assert_eq!((run.state(), run.parts()), ("interrupted", lost.map(str::to_owned).to_vec()));
    assert_eq!(run.restarted().parts(), lost);
    // The result of a call means that the agent is there, also after a restart.
    for mut run in [run.restarted(), std::mem::replace(&mut run, reply([]))] {
        run.apply(ended("t1", ToolEnd::Completed, ""));
        assert_eq!((run.state(), &*run.parts()[1]), ("running", "tool t2 running"));
        run.apply_all([ended("t2", ToolEnd::Completed, ""), said(Text, "a"), over(Completed)]);
        assert_eq!(run.parts(), ["tool t1 completed", "tool t2 completed", r#"text:"a""#]);
    }
    // A turn without a call was cut off as well.
    let mut run = reply([said(Reasoning, "hm"), over(Lost)]);
    assert_eq!(run.state(), "interrupted");
    run.apply(said(Text, "a").stream().in_turn("p1"));
    assert_eq!(run.state(), "running", "another feed of the turn goes on");
}

#[test]
fn what_a_log_says_outweighs_that_its_agent_was_gone() {
    // Laws 2 and 5: reading the log from its start gives the same.
    let with = |end: Line| reply([said(Text, "a"), over(Lost), end]);
    assert_eq!(with(over(Completed)).state(), "completed");
    assert_eq!(with(over(Failed(None))).state(), "failed");
    let superseded = fold([prompt("p1"), said(Text, "a"), over(Lost), prompt("p2")]);
    let plain = fold([prompt("p1"), said(Text, "a"), prompt("p2")]);
    assert_eq!(superseded.turns(), plain.turns());
    assert_eq!(superseded.transcript().turns[0].state, plain.transcript().turns[0].state);
    // The recorder does not overrule a source.
    assert_eq!(reply([said(Text, "a"), over(Completed), over(Lost)]).state(), "completed");
}

#[test]
fn a_turn_that_began_after_the_end_of_a_session_takes_the_end_back() {
    // Law 5: feeds come in any order, and times decide.
    let end = |second| Line::from(EventKind::SessionEnded).hook().at(second);
    let turn = |id: &str, second| prompt(id).at(second);
    let state = |run: &Run| run.transcript().session.state;
    let (ended, resumed) = (SessionState::Ended, SessionState::default());
    let mut run = fold([turn("p1", 1), over(Completed).at(2), end(3)]);
    assert_eq!(state(&run), ended);
    for mut run in [run.restarted(), std::mem::replace(&mut run, fold([]))] {
        run.apply(said(Text, "late").in_turn("p1").at(4));
        assert_eq!(state(&run), ended, "what arrives late is no new turn");
        run.apply(turn("p2", 5));
        assert_eq!(state(&run), resumed);
        assert_eq!(state(&run.restarted()), resumed);
        run.apply(end(3).key(90));
        assert_eq!(state(&run), resumed, "an end that was before it");
        run.apply(end(6).key(91));
        assert_eq!(state(&run), ended);
        run.apply(turn("p3", 7));
        assert_eq!(state(&run), resumed);
    }
    assert_eq!(state(&fold([end(3), turn("p1", 1)])), ended);
    assert_eq!(state(&fold([end(3), turn("p2", 5), turn("p1", 1)])), resumed);
    // A process that opens the session again does so too, before its first prompt, in any order.
    let resume = |second| Line::from(EventKind::SessionResumed).hook().at(second);
    for lines in [[turn("p1", 1), end(3), resume(5)], [resume(5), end(3), turn("p1", 1)]] {
        let mut run = fold(lines);
        assert_eq!(state(&run), resumed);
        assert_eq!(state(&run.restarted()), resumed);
        run.apply(end(6).key(92));
        assert_eq!(state(&run), ended);
    }
    assert_eq!(state(&fold([turn("p1", 1), resume(2), end(3)])), ended);
    // An end without a time is the last thing that happens.
    let mut untimed = end(3);
    untimed.at = Some(None);
    assert_eq!(state(&fold([untimed, turn("p1", 1)])), ended);
}
