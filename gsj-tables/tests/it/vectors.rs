//! The reference's banks, and what stands in them.

use crate::support::{opened, raw, shared, written};
use gsj_tables::{Bank, RawRow, TaskRow};
use serde_json::{Value, json};

fn row(row: &RawRow) -> Value {
    json!({
        "case_id": row.case_id, "timestep": row.timestep, "prompt_id": row.prompt_id, "split": row.split,
        "prompt_source": row.prompt_source, "prompt_text": row.prompt_text,
        "skill_card_text": row.skill_card_text.as_deref(), "sandbox_image": row.sandbox_image.as_deref(),
    })
}

#[test]
fn the_references_banks_hold_the_expected_rows_and_ours_the_same() {
    let Some(expected) = shared("vectors/corpus/expected-taskbank.json") else { return };
    let expected: Value = serde_json::from_slice(&std::fs::read(expected).unwrap()).unwrap();
    for (name, rows) in [("staging", 12), ("minimal", 4)] {
        let path = shared(&format!("vectors/corpus/taskbank-{name}.parquet")).expect("beside the rows");
        let bank = Bank::open(&path).unwrap();
        let found: Vec<Value> = raw(&bank).iter().map(row).collect();
        assert_eq!(found.len(), rows);
        assert_eq!(Value::from(found), expected[name], "{name}");

        let tasks: Vec<TaskRow> = bank.all().collect::<Result<_, _>>().unwrap();
        assert_eq!(raw(&opened(written(&tasks))), raw(&bank), "{name} written by us");
        let facts = bank.facts();
        assert_eq!(facts.created_by.as_deref(), Some("parquet-cpp-arrow version 25.0.1"));
        assert_eq!((facts.row_groups, facts.compression), (1, vec!["snappy".to_owned()]));
    }
}
