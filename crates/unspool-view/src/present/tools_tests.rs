use serde_json::{Value, json};
use unspool_model::json::Json;
use unspool_model::part::{Answer, Body, Decision, EarlierQuestion, QuestionItem, QuestionKind};

use super::*;
use crate::block::{Block, Check, DiffKind, ListItem, text_of};
use crate::lines::{LineOptions, layout};
use crate::plain::paint;

fn tool(name: &str, input: Value) -> Tool {
    Tool {
        name: name.into(),
        input: Some(Json::from(input)),
        state: ToolState::Completed,
        ..Tool::default()
    }
}

fn done(name: &str, input: Value, output: &str, result: Value) -> Tool {
    let result = Some(result).filter(|result| !result.is_null()).map(Json::from);
    Tool { output: Some(output.into()), result, ..tool(name, input) }
}

fn failed(name: &str, input: Value, output: &str) -> Tool {
    Tool { state: ToolState::Failed, ..done(name, input, output, Value::Null) }
}

fn painted(tool: &Tool) -> String {
    let block = Block::Card(Box::new(card(tool)));
    paint(&layout(&[block], 60, &LineOptions::default()))
}

#[track_caller]
fn shows(tool: &Tool, expected: &str) {
    assert_eq!(painted(tool), expected);
}

// R-003-53: one presenter per tool, with real inputs of Claude Code 2.1.
#[test]
fn shells() {
    let mut bash = done(
        "Bash",
        json!({"command": "npm test 2>&1 | tail -12", "description": "Test"}),
        "1..2\n# \x1b[32mpass\x1b[0m 2",
        json!({"stdout": "1..2"}),
    );
    bash.duration_ms = Some(159);
    shows(
        &bash,
        "● Bash  npm test 2>&1 | tail -12                 [OK] 159 ms\n  │ 1..2\n  │ # pass 2\n",
    );
    let bash = failed("Bash", json!({"command": "a\nb"}), "Exit code 3\nwarning");
    shows(
        &bash,
        "✕ Bash  a …                                  [FAILED] exit 3\n  │ a\n  │ b\n  │\n  │ warning\n  │ exit code 3\n",
    );
    let codex = done(
        "exec_command",
        json!({"cmd": "ls"}),
        "Chunk ID: 1\nWall time: 0.1\nProcess exited with code 0\nOutput:\na.rs\n",
        Value::Null,
    );
    shows(&codex, "● exec_command  ls                                      [OK]\n  │ a.rs\n");
}

#[test]
fn reading() {
    let result = json!({"type": "text", "file": {"filePath": "/w/a.ts", "content": "let a;\n", "numLines": 2, "startLine": 7, "totalLines": 90}});
    let read =
        done("Read", json!({"file_path": "/w/a.ts", "offset": 7, "limit": 1}), "7\tlet a;", result);
    shows(&read, "● Read  /w/a.ts  lines 7–7                              [OK]\n  │ 7  let a;\n");
    let body =
        card(&done("Read", json!({"file_path": "/w/a.py"}), "1\tx\n2\t\n3\ty", Value::Null)).body;
    let Some(Block::Code(code)) = body.first() else { panic!("code") };
    assert_eq!(
        (code.text.as_str(), code.first_line, code.language.as_deref()),
        ("x\n\ny", Some(1), Some("python"))
    );
    shows(
        &failed(
            "Read",
            json!({"file_path": "/w/no"}),
            "<tool_use_error>File does not exist.</tool_use_error>",
        ),
        "✕ Read  /w/no                                       [FAILED]\n  │ ✕ File does not exist.\n",
    );
}

/// Text, first line number and summary of a Read call.
fn read_of(name: &str, output: &str, result: Value) -> (String, Option<u64>, String) {
    let card = card(&done(name, json!({"file_path": "/w/a.py"}), output, result));
    let Some(Block::Code(code)) = card.body.first() else { panic!("code") };
    (code.text.clone(), code.first_line, text_of(&card.summary))
}

#[test]
fn what_is_put_around_a_file_for_the_model_is_not_the_file() {
    let two = |summary: &str| ("x\n\ny".to_owned(), Some(1), format!("/w/a.py  {summary}"));
    let tabs = read_of("Read", "1\tx\n2\t\n3\ty\n4\t", Value::Null);
    assert_eq!(tabs, two("3 lines"));
    let arrows =
        "     1→x\n     2→\n     3→y\n     4→\n\n<system-reminder>\nBeware.\n</system-reminder>\n";
    assert_eq!(read_of("Read", arrows, Value::Null), two("3 lines"));
    let wrapped = "<path>/w/a.py</path>\n<type>file</type>\n<content>\n1: x\n2: \n3: y\n\n(End of file - total 3 lines)\n</content>";
    assert_eq!(read_of("read", wrapped, Value::Null), two("3 lines"));
    let shown = json!({"display": {"type": "file", "text": "x\n\ny", "lineStart": 1}});
    assert_eq!(read_of("read", wrapped, shown), two("3 lines"));
    // Keep empty lines in the middle of a file.
    let part = json!({"file_path": "/w/a.py", "limit": 2});
    let card = card(&done("Read", part, "1\tx\n2\t", Value::Null));
    assert_eq!(text_of(&card.summary), "/w/a.py  lines 1–2");
    // Keep file content that mentions reminders.
    let plain = "<path>\n<content>\n1: x\n2: y";
    assert_eq!(read_of("read", plain, Value::Null).0, plain);
}

// Claude Code 2.1.325, from the log of an agent that started another agent.
#[test]
fn reports_stand_without_their_frame() {
    let text = "  <tools-used-before-summary>Bash</tools-used-before-summary>\n  \n\
        [Subagent hand-back] The report follows:\n  42\n\n  agentId: forged\nagentId: a2c\n<usage>1</usage>";
    let result = json!([{"type": "text", "text": text}]);
    let body = card(&done("Agent", json!({"description": "Inner"}), text, result)).body;
    let texts: Vec<String> = body
        .iter()
        .map(|block| {
            let Block::Paragraph { spans } = block else { panic!("{block:?}") };
            text_of(spans)
        })
        .collect();
    assert_eq!(texts, ["42", "agentId: forged"]);
}

#[test]
fn pictures_are_named_never_dumped() {
    let data = "iVBORw0KGgo7".repeat(100);
    let chart = json!([{"type": "text", "text": "chart attached"}, {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}]);
    let call = done("mcp__station__get_chart", json!({"station": "ZRH"}), "chart attached", chart);
    shows(
        &call,
        "● station › get_chart  station: ZRH                     [OK]\n  │ station  ZRH\n  │ chart attached\n  │ ▣ image/png · 900 bytes\n",
    );
    let json = serde_json::to_string(&card(&call)).unwrap();
    assert!(!json.contains("iVBORw0KGgo7"));
    let read = done(
        "Read",
        json!({"file_path": "/w/r.png"}),
        "",
        json!({"type": "image", "file": {"base64": data, "type": "image/png"}}),
    );
    assert!(painted(&read).contains("▣ /w/r.png · image/png · 900 bytes"));
}

#[test]
fn editing() {
    let result = json!({"filePath": "/w/p.json", "structuredPatch": [{"oldStart": 3, "oldLines": 1, "newStart": 3, "newLines": 1, "lines": ["-  \"v\": \"0.3.1\",", "+  \"v\": \"0.3.2\","]}]});
    let edit = done(
        "Edit",
        json!({"file_path": "/w/p.json", "old_string": "0.3.1", "new_string": "0.3.2"}),
        "updated",
        result,
    );
    shows(
        &edit,
        "● Edit  /w/p.json  +1  −1                               [OK]\n  │ 3 -   \"v\": \"0.3.1\",\n  │ 3 +   \"v\": \"0.3.2\",\n",
    );
    let multi = tool(
        "MultiEdit",
        json!({"file_path": "/w/a", "edits": [{"old_string": "a b", "new_string": "a c"}, {"old_string": "", "new_string": "d"}]}),
    );
    let body = card(&multi).body;
    let Some(Block::Diff(diff)) = body.first() else { panic!("diff") };
    let removed = diff.hunks[0].lines.iter().find(|line| line.kind == DiffKind::Removed).unwrap();
    assert_eq!(
        removed
            .spans
            .iter()
            .filter(|span| span.changed)
            .map(|span| span.text.as_str())
            .collect::<String>(),
        "b"
    );
    assert_eq!(diff.hunks.len(), 2);
    let write = done(
        "Write",
        json!({"file_path": "/w/n.md", "content": "# T\n\nx\n"}),
        "created",
        json!({"type": "create", "structuredPatch": []}),
    );
    shows(
        &write,
        "● Write  /w/n.md  3 lines                               [OK]\n  │ 1  # T\n  │ 2\n  │ 3  x\n",
    );
    let patch = tool(
        "apply_patch",
        json!("*** Begin Patch\n*** Update File: a.rs\n@@\n-x\n+y\n*** End Patch"),
    );
    shows(
        &patch,
        "● apply_patch  a.rs  +1  −1                             [OK]\n  │ - x\n  │ + y\n",
    );
}

#[test]
fn searching() {
    let grep = done(
        "Grep",
        json!({"pattern": "Cache", "output_mode": "content"}),
        "a.ts:4:class Cache",
        json!({"mode": "content", "numLines": 1}),
    );
    shows(
        &grep,
        "● Grep  Cache  1 line                                   [OK]\n  │ a.ts:4:class Cache\n",
    );
    let glob = done("Glob", json!({"pattern": "**/*.ts"}), "a.ts\nb.ts", json!({"numFiles": 2}));
    shows(
        &glob,
        "● Glob  **/*.ts  2 files                                [OK]\n  │ a.ts\n  │ b.ts\n",
    );
    let found = done(
        "ToolSearch",
        json!({"query": "select:WebFetch"}),
        "",
        json!({"matches": ["WebFetch"]}),
    );
    shows(&found, "● ToolSearch  select:WebFetch                           [OK]\n  │ • WebFetch\n");
}

#[test]
fn planning() {
    let todos = tool(
        "TodoWrite",
        json!({"todos": [{"content": "one", "status": "completed"}, {"content": "two", "status": "in_progress"}, {"content": "three", "status": "pending"}]}),
    );
    shows(
        &todos,
        "● TodoWrite  1 of 3 tasks done                          [OK]\n  │ ☑ one\n  │ ◐ two\n  │ ☐ three\n",
    );
    let update = done(
        "TaskUpdate",
        json!({"taskId": "1", "status": "completed"}),
        "Updated",
        json!({"statusChange": {"from": "pending", "to": "completed"}}),
    );
    shows(&update, "● TaskUpdate  #1 pending → completed                    [OK]\n");
    let create = done(
        "TaskCreate",
        json!({"subject": "Fix", "description": "now"}),
        "",
        json!({"task": {"id": "2"}}),
    );
    shows(&create, "● TaskCreate  #2 Fix                                    [OK]\n  │ now\n");
    let plan = tool("ExitPlanMode", json!({"plan": "# Plan\n\n1. Add\n2. Swap\n"}));
    shows(
        &plan,
        "● ExitPlanMode  Plan                                    [OK]\n  │ # Plan\n  │\n  │ 1. Add\n  │ 2. Swap\n",
    );
}

#[test]
fn web() {
    let result = json!({"query": "q", "results": ["Looking.", {"content": [{"title": "Docs", "url": "https://e.org/d"}]}]});
    let search = done("WebSearch", json!({"query": "limits"}), "…", result);
    shows(
        &search,
        "● WebSearch  limits                                     [OK]\n  │ Looking.\n  │\n  │ • Docs  https://e.org/d\n",
    );
    let fetch = card(&done(
        "WebFetch",
        json!({"url": "https://e.org", "prompt": "read"}),
        "**bold**",
        json!({"code": 200, "bytes": 2048}),
    ));
    assert_eq!(text_of(&fetch.summary), "https://e.org  200  2.0 KB");
    assert_eq!(fetch.summary[0].style.link.as_deref(), Some("https://e.org"));
}

#[test]
fn delegating() {
    let input =
        json!({"description": "Inspect", "prompt": "Look at it.", "subagent_type": "Explore"});
    let result = json!({"status": "completed", "content": [{"type": "text", "text": "<tools-used-before-summary>Bash</tools-used-before-summary>\n"}, {"type": "text", "text": "Found **it**."}]});
    shows(
        &done("Agent", input, "[Subagent hand-back] …", result),
        "● Agent  Explore  Inspect                               [OK]\n  │ ▸ Prompt — Look at it.\n  │\n  │ Found it.\n",
    );
    let skill = done(
        "Skill",
        json!({"skill": "notes", "args": "v1"}),
        "Launching skill: notes",
        Value::Null,
    );
    shows(
        &skill,
        "● Skill  notes  v1                                      [OK]\n  │ Launching skill: notes\n",
    );
}

// R-003-12: open questions in full, answered ones as a compact record.
#[test]
fn asking() {
    let input = json!({"questions": [{"question": "Which unit?", "header": "Unit", "multiSelect": false, "options": [{"label": "C", "description": "metric"}, {"label": "F"}]}]});
    let mut ask = tool("AskUserQuestion", input.clone());
    ask.state = ToolState::Running;
    shows(
        &ask,
        "◐ AskUserQuestion  Which unit?                     [WAITING]\n  │ ? Unit  Which unit?\n  │   ○ C  metric\n  │   ○ F\n  │   Answer in the agent's terminal: arrow keys choose,\n  │   enter confirms, esc declines\n",
    );
    let answered =
        done("AskUserQuestion", input, "answered", json!({"answers": {"Which unit?": "F"}}));
    shows(
        &answered,
        "● AskUserQuestion  Which unit?                          [OK]\n  │ ? Unit  Which unit? → F\n",
    );
    let question = card(&answered).question.unwrap();
    assert_eq!(
        question.items[0].options.iter().map(|o| o.chosen).collect::<Vec<_>>(),
        [false, true]
    );
    let mut single = tool("ask_user", json!({"question": "Which unit?", "choices": ["C", "F"]}));
    single.state = ToolState::Running;
    assert!(painted(&single).contains("  │ ? Which unit?\n  │   ○ C\n  │   ○ F\n  │   Answer in"));
    let mut denied =
        failed("Bash", json!({"command": "rm -rf build"}), "The user doesn't want to proceed.");
    denied.state = ToolState::Denied;
    denied.answer = Some(Answer {
        decision: Decision::Denied,
        text: "keep build/".into(),
        choices: vec![],
        observed: true,
        by: None,
    });
    shows(
        &denied,
        "✕ Bash  rm -rf build                         [FAILED] denied\n  │ ✕ denied  keep build/\n  │ ✕ The user doesn't want to proceed.\n",
    );
}

// R-003-12, R-X-09: each question with its answer, the newest one last.
#[test]
fn asking_again() {
    let question = |text: &str| Question {
        request_id: None,
        kind: QuestionKind::Permission,
        items: vec![QuestionItem { question: text.into(), ..QuestionItem::default() }],
    };
    let answer = |decision: Decision| Answer {
        decision,
        text: decision.name().into(),
        choices: vec![],
        observed: true,
        by: None,
    };
    let mut call = tool("Bash", json!({"command": "make"}));
    call.state = ToolState::Running;
    call.earlier = vec![EarlierQuestion {
        question: question("Run in the sandbox?"),
        answer: answer(Decision::Allowed),
    }];
    call.question = Some(question("Run outside?"));
    let shown = painted(&call);
    let first = shown.find("? Run in the sandbox?\n  │ ✓ allowed\n  │ ? Run outside?\n");
    assert!(first.is_some() && shown.contains("[WAITING]"), "{shown}");
    call.answer = Some(answer(Decision::Denied));
    let shown = painted(&call);
    assert!(shown.contains("✓ allowed\n  │ ? Run outside?\n  │ ✕ denied\n"), "{shown}");
}

// C-22, R-003-53: unknown tools are shown completely.
#[test]
fn unknown_tools() {
    let call = done(
        "frobnicate",
        json!({"zeta": 1, "alpha": "two words", "deep": {"a": [1]}}),
        r#"{"ok":true}"#,
        Value::Null,
    );
    let text = painted(&call);
    // `Json::from(Value)` sorts keys; JSON from a source keeps its order.
    assert!(
        text.starts_with("● frobnicate  alpha: two words, zeta: 1                 [OK]\n"),
        "{text}"
    );
    assert!(text.contains("  │ zeta   1\n") && text.contains("  │   \"ok\": true\n"), "{text}");
    let streaming =
        Tool { name: "Bash".into(), input_text: r#"{"command": "np"#.into(), ..Tool::default() };
    shows(
        &streaming,
        "○ Bash  {\"command\": \"np                            [RUNNING]\n  │ {\"command\": \"np\n",
    );
    let bare = Tool { name: "Read".into(), ..Tool::default() };
    shows(&bare, "○ Read                                             [RUNNING]\n");
}

// R-000-21 fixes these words; R-000-08: what was interrupted is never [OK].
#[test]
fn badges() {
    let says = |state, word: &str, more: Option<&str>| {
        let badge = badge(state);
        assert_eq!((badge.word.as_ref(), badge.state.as_deref()), (word, more));
    };
    says(ToolState::Pending, "[RUNNING]", None);
    says(ToolState::Running, "[RUNNING]", None);
    says(ToolState::Completed, "[OK]", None);
    says(ToolState::Failed, "[FAILED]", None);
    says(ToolState::Denied, "[FAILED]", Some("denied"));
    says(ToolState::Interrupted, "[FAILED]", Some("interrupted"));
}

#[test]
fn r_003_43_what_is_to_be_done_follows_from_the_calls() {
    let call = |name: &str, input: &str, result: &str, state: ToolState| {
        Body::Tool(Box::new(Tool {
            name: name.to_owned(),
            state,
            input: Some(Json::from(serde_json::from_str::<Value>(input).unwrap())),
            result: Some(Json::from(serde_json::from_str::<Value>(result).unwrap())),
            ..Tool::default()
        }))
    };
    let shown = |calls: &[Body]| {
        let mut tasks = Tasks::default();
        calls.iter().for_each(|body| tasks.take(body));
        let Block::List(list) = tasks.block() else { panic!("no list") };
        let text = |item: &ListItem| {
            let Block::Paragraph { spans } = &item.blocks[0] else { panic!("no words") };
            (item.check.unwrap(), text_of(spans))
        };
        (tasks.counts(), list.items.iter().map(text).collect::<Vec<_>>())
    };
    let todo = r#"{"todos": [{"content": "a", "status": "completed"}, {"content": "b"}]}"#;
    let plan = r#"{"plan": [{"step": "c", "status": "in_progress"}]}"#;
    let done = ToolState::Completed;
    let first = call("TodoWrite", todo, "{}", done);
    let task = |check, text: &str| (check, text.to_owned());
    let two = vec![task(Check::Done, "a"), task(Check::Open, "b")];
    assert_eq!(shown(std::slice::from_ref(&first)), ((2, 1), two.clone()));
    // A denied list changes nothing; an accepted one replaces all earlier lists.
    let refused = call("TodoWrite", plan, "{}", ToolState::Failed);
    assert_eq!(shown(&[first.clone(), refused]).1, two);
    let other = call("update_plan", plan, "{}", done);
    assert_eq!(shown(&[first, other]).1, [task(Check::Running, "c")]);
    // Single tasks, by the ids assigned to them.
    let create = |subject: &str, id: &str| {
        let input = format!(r#"{{"subject": "{subject}"}}"#);
        call("TaskCreate", &input, &format!(r#"{{"task": {{"id": "{id}"}}}}"#), done)
    };
    let update = r#"{"taskId": "2", "status": "completed", "subject": "y"}"#;
    let calls = [create("w", "1"), create("x", "2"), call("TaskUpdate", update, "{}", done)];
    assert_eq!(shown(&calls), ((2, 1), vec![task(Check::Open, "w"), task(Check::Done, "y")]));
    assert_eq!(shown(&[call("Bash", "{}", "{}", done)]).0, (0, 0));
}
