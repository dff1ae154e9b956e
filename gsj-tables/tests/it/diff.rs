use crate::support::{opened, tasks, written};
use gsj_tables::{Ask, Change, Split, TableError, diff};

#[test]
fn each_difference_is_told_once_and_in_order() {
    let before = tasks(3);
    let mut after = before.clone();
    after[26].split = Split::Eval;
    after[26].sandbox_image = "other:2".into();
    let removed = after.remove(11);
    after[4].ask = Ask::Free { text: "otherwise".into() };
    let mut added = before[0].clone();
    added.case_id = "case_00000b".into();
    after.insert(9, added.clone());
    let (one, two) = (opened(written(&before)), opened(written(&after)));
    let found: Vec<Change> = diff(&one, &two).collect::<Result<_, _>>().unwrap();
    let wanted = [
        Change::Changed { key: before[4].key(), columns: vec!["prompt_text"] },
        Change::Added(added.key()),
        Change::Removed(removed.key()),
        Change::Changed { key: before[26].key(), columns: vec!["split", "sandbox_image"] },
    ];
    assert_eq!(found, wanted);
    assert_eq!(diff(&one, &one).count(), 0);
    assert_eq!(diff(&opened(written(&[])), &one).count(), 27, "all of them are new");
}

#[test]
fn a_bank_in_another_order_is_not_compared() {
    // The first case is renamed in the file, to stand after the second.
    let mut rows = tasks(2);
    for row in &mut rows {
        row.case_id = if row.case_id.ends_with('0') { "aq7z" } else { "bk3m" }.into();
    }
    let good = opened(written(&rows));
    let mut bytes = written(&rows);
    while let Some(at) = bytes.windows(4).position(|window| window == b"aq7z") {
        bytes[at] = b'z';
    }
    let shuffled = opened(bytes);
    let said = diff(&good, &shuffled).find_map(Result::err).unwrap();
    assert!(matches!(said, TableError::Order { .. }), "{said}");
    assert!(said.to_string().starts_with("`bank`: task bk3m timestep 8 free:B does not come after"), "{said}");
}
