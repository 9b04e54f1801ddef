//! Checks that names and ids lose keys.

use super::*;

/// An agent, a model or a server chooses names and ids, too.
#[test]
fn names_and_ids_lose_keys() {
    let key = "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8";
    let own = || key.to_owned();
    let tool = Tool { call_id: own(), name: format!("run {key}"), ..Tool::default() };
    let server = McpServer { name: own(), status: None, tools: vec![own()] };
    let bodies = vec![
        Body::Tool(Box::new(tool)),
        Body::Agent(Agents { call_id: own(), agents: vec![] }),
        Body::SkillLoad(SkillLoad { name: own(), call_id: Some(own()), text: String::new() }),
        Body::McpSnapshot(McpSnapshot { servers: vec![server] }),
        Body::Notice(Notice { code: own(), text: String::new() }),
        Body::Data(Data { kind: own(), payload: Json::string("x") }),
    ];
    let mut transcript = everywhere("nothing");
    let step = transcript.turns[0].steps.remove(0);
    let mut turn = turn(1, vec![], bodies);
    turn.steps = vec![Step { model: Some(key.into()), stop_reason: Some(key.into()), ..step }];
    transcript.turns = vec![turn];
    transcript.session.agent_session_id = own();
    redact(&mut transcript);
    let written = serde_json::to_string(&transcript).unwrap();
    assert!(!written.contains(key), "{written}");
    let Body::Tool(tool) = &transcript.turns[0].parts[0].body else { panic!() };
    assert_eq!(tool.name, "run [redacted:github-token:1]");
    let Body::Agent(agents) = &transcript.turns[0].parts[1].body else { panic!() };
    assert_eq!(agents.call_id, tool.call_id);
}
