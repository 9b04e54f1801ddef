use super::*;

#[test]
fn bars_grow_by_eighths() {
    assert_eq!(bar(8, 8, 2), "██");
    assert_eq!(bar(4, 8, 2), "█");
    assert_eq!(bar(5, 8, 2), "█▎");
    assert_eq!(bar(15, 16, 2), "█▉");
    assert_eq!(bar(1, 1_000_000, 2), "▏");
    assert_eq!(bar(0, 8, 2), "");
    assert_eq!(bar(0, 0, 2), "");
    assert_eq!(bar(u64::MAX, u64::MAX, 3), "███");
    assert_eq!(bar(9, 8, 2), "██");
}

#[test]
fn sparklines_have_a_column_for_each_value() {
    assert_eq!(sparkline(&[]), "");
    assert_eq!(sparkline(&[0, 0]), "  ");
    assert_eq!(sparkline(&[1, 2, 3, 4, 5, 6, 7, 8]), "▁▂▃▄▅▆▇█");
    assert_eq!(sparkline(&[1, 0, u64::MAX]), "▁ █");
}
