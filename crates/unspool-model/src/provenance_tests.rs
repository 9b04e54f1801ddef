use super::{HiddenReason, Name, Origin};

#[test]
fn the_reason_a_part_is_hidden_survives_storage_under_the_old_name() {
    let fragment = Origin {
        names: vec![Name::ContentFragment(7, 0, 1)],
        hidden: Some(HiddenReason::CoveredFragment),
        ..Origin::default()
    };
    let call = Origin {
        names: vec![Name::Call("c".into())],
        hidden: Some(HiddenReason::SubAgentCall),
        ..Origin::default()
    };
    let shown = Origin { names: vec![Name::Call("c".into())], ..Origin::default() };
    for (origin, stored) in [(fragment, "true"), (call, "true"), (shown, "false")] {
        let text = serde_json::to_string(&origin).unwrap();
        assert!(text.contains(&format!("\"foreign\":{stored}")), "{text}");
        assert_eq!(serde_json::from_str::<Origin>(&text).unwrap(), origin);
    }
}
