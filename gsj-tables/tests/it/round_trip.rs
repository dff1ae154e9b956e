use crate::support::{opened, tasks, written};
use gsj_tables::{Ask, BankWriter, LONGEST_VALUE, Split, TableError, TaskRow};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

fn row() -> impl Strategy<Value = TaskRow> {
    let text = prop_oneof![any::<String>(), "[a-z \u{0}\u{10ffff}]{0,300}"].prop_filter("not empty", |t| !t.is_empty());
    let ask = prop_oneof![
        ("[A-Za-z0-9][A-Za-z0-9._-]{0,5}", text.clone()).prop_map(|(slug, text)| (slug, Ask::Free { text })),
        ("[a-c]", text).prop_map(|(name, card)| (name.clone(), Ask::Skill { name, card: card.into() })),
    ];
    let split = prop_oneof![Just(Split::Train), Just(Split::Eval)];
    ("[a-c][a-c_-]{0,2}", 1..=u32::MAX, split, ask, "[ -~]{1,20}").prop_map(|(case_id, timestep, split, ask, image)| {
        let (slug, ask) = ask;
        let prompt_id = match &ask {
            Ask::Free { .. } => format!("free:{slug}"),
            Ask::Skill { name, .. } => format!("skill:{name}"),
        };
        TaskRow { case_id, timestep, prompt_id, split, ask, sandbox_image: image.into() }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn what_is_written_is_read(rows in proptest::collection::vec(row(), 0..60), cut in 0_u64..70) {
        let ordered: BTreeMap<_, _> = rows.into_iter().map(|row| (row.key(), row)).collect();
        let rows: Vec<TaskRow> = ordered.into_values().collect();
        let bytes = written(&rows);
        prop_assert_eq!(&bytes, &written(&rows), "the same rows give the same bytes");
        let bank = opened(bytes);
        let read: Vec<TaskRow> = bank.all().collect::<Result<_, _>>().unwrap();
        prop_assert_eq!(&read, &rows);
        let rest: Vec<TaskRow> = bank.rows(cut..u64::MAX).collect::<Result<_, _>>().unwrap();
        prop_assert_eq!(&rest[..], rows.get(usize::try_from(cut).unwrap()..).unwrap_or_default());
    }
}

#[test]
fn rows_of_many_pages_and_groups_are_found_from_any_place() {
    // More rows than a page of 20,000 takes, then more bytes than a row group takes.
    let mut rows = tasks(2_300);
    for number in 0..20 {
        let mut large = rows[0].clone();
        large.case_id = format!("large_{number:02}");
        large.ask = Ask::Free { text: format!("{number}{}", " ".repeat(1 << 20)) };
        rows.push(large);
    }
    let bank = opened(written(&rows));
    assert_eq!((bank.facts().row_groups, bank.len()), (3, 20_720));
    for at in [0, 1, 9_999, 19_999, 20_000, 20_698, 20_706, 20_707, 20_719] {
        let found = bank.rows(at..at + 3).collect::<Result<Vec<_>, _>>().unwrap();
        let from = usize::try_from(at).unwrap();
        assert!(found == rows[from..(from + 3).min(rows.len())], "from row {at}");
    }
    assert!(bank.all().map(Result::unwrap).eq(rows));
    assert_eq!(bank.rows(20_720..20_721).count(), 0);
}

#[test]
fn a_bank_without_rows_is_a_bank() {
    let bank = opened(written(&[]));
    assert!(bank.is_empty() && bank.all().next().is_none());
    assert_eq!(bank.facts().row_groups, 1);
}

#[test]
fn large_cards_are_stored_once_in_a_row_group() {
    let card: Arc<str> = "long ".repeat(20_000).into();
    let rows: Vec<TaskRow> = tasks(100)
        .into_iter()
        .map(|mut row| {
            if let Ask::Skill { card: own, .. } = &mut row.ask {
                *own = card.clone();
            }
            row
        })
        .collect();
    let bytes = written(&rows);
    assert!(bytes.len() < 50_000, "{} bytes for one card of {}", bytes.len(), card.len());
    assert!(opened(bytes).all().map(Result::unwrap).eq(rows));
}

#[test]
fn rows_out_of_order_and_repeated_are_refused() {
    let rows = tasks(1);
    for (first, second) in [(1, 0), (3, 2), (4, 4)] {
        let mut writer = BankWriter::new(Vec::new()).unwrap();
        writer.push(&rows[first]).unwrap();
        let said = writer.push(&rows[second]).unwrap_err();
        assert!(matches!(said, TableError::Order { .. }), "{said}");
    }
    let said = {
        let mut writer = BankWriter::new(Vec::new()).unwrap();
        writer.push(&rows[1]).unwrap();
        writer.push(&rows[0]).unwrap_err().to_string()
    };
    assert_eq!(
        said,
        "the bank: task case_00000 timestep 8 free:B does not come after case_00000 timestep 8 free:a; tasks are \
         ordered by case, timestep and prompt, each once"
    );
}

#[test]
fn a_value_that_no_reader_would_take_is_refused() {
    let mut row = tasks(1).remove(0);
    row.ask = Ask::Free { text: "x".repeat(LONGEST_VALUE + 1) };
    let mut writer = BankWriter::new(Vec::new()).unwrap();
    let said = writer.push(&row).unwrap_err().to_string();
    assert!(said.contains("prompt_text is 16777217 bytes long"), "{said}");
    row.ask = Ask::Free { text: "x".repeat(LONGEST_VALUE) };
    writer.push(&row).unwrap();
    let (_, bytes) = writer.finish().unwrap();
    assert!(opened(bytes).all().map(Result::unwrap).eq([row]));
}

#[test]
fn a_full_disk_is_told() {
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let failed = BankWriter::new(Full).and_then(|writer| writer.finish()).map(drop);
    let Err(TableError::Write { source }) = failed else { panic!("{failed:?}") };
    assert_eq!(source.kind(), std::io::ErrorKind::StorageFull);
}
