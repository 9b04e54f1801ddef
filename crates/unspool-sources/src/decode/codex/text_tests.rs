use unspool_model::event::ToolEnd;

use super::{OutputStatus, said, script, words};

#[test]
fn outputs_say_how_a_call_ended() {
    let of = |tool: &str, output: &str| said(tool, output);
    let exited = "Chunk ID: f1\nWall time: 0.0 seconds\nProcess exited with code 1\nOutput:\nno\n";
    assert_eq!(of("exec_command", exited), OutputStatus::Ended(ToolEnd::Failed, Some(1)));
    let runs =
        "Chunk ID: a0\nWall time: 1.0 seconds\nProcess running with session ID 83\nOutput:\n";
    assert_eq!(of("exec_command", runs), OutputStatus::Runs("83".to_owned()));
    // Text printed by the command must not be read as a header.
    let hostile = "Chunk ID: f1\nProcess exited with code 0\nOutput:\nProcess exited with code 9\n";
    assert_eq!(of("exec_command", hostile), OutputStatus::Ended(ToolEnd::Completed, Some(0)));
    let printed = "Process exited with code 9";
    assert_eq!(of("mcp_tool", printed), OutputStatus::Ended(ToolEnd::Completed, None));
    let cut = "Wall time: 2.2 seconds\naborted by user";
    assert_eq!(of("exec_command", cut), OutputStatus::Ended(ToolEnd::Interrupted, None));
    let no =
        "exec_command failed: CreateProcess { message: \"Rejected(\\\"rejected by user\\\")\" }";
    assert_eq!(of("exec_command", no), OutputStatus::Ended(ToolEnd::Denied, None));
    let bad = "agent_name must use only lowercase letters";
    assert_eq!(of("spawn_agent", bad), OutputStatus::Ended(ToolEnd::Failed, None));
}

#[test]
fn commands_are_read_as_a_shell_reads_them() {
    let of = |command: &str| words(command).and_then(|words| script(&words));
    assert_eq!(of("/bin/bash -lc 'rg --files'").as_deref(), Some("rg --files"));
    assert_eq!(of(r#"/bin/bash -lc "rg -n 'a|b' src""#).as_deref(), Some("rg -n 'a|b' src"));
    assert_eq!(of(r"bash -lc 'it'\''s'").as_deref(), Some("it's"));
    assert_eq!(of("/bin/bash -lc ls").as_deref(), Some("ls"));
    assert_eq!(of("git status"), None);
    assert_eq!(of("bash -lc 'open"), None);
}
