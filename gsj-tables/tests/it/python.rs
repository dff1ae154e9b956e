//! What the libraries that trainers use make of our banks, and what we make of theirs.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use crate::support::{raw, tasks, written};
use crate::tokens;
use gsj_tables::{Bank, RawRow, TaskRow};
use serde_json::{Value, json};

fn row(row: &RawRow) -> Value {
    json!({
        "case_id": row.case_id, "timestep": row.timestep, "prompt_id": row.prompt_id, "split": row.split,
        "prompt_source": row.prompt_source, "prompt_text": row.prompt_text,
        "skill_card_text": row.skill_card_text.as_deref(), "sandbox_image": row.sandbox_image.as_deref(),
    })
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = entries.filter(|name| name.ends_with(".parquet")).collect();
    names.sort();
    names
}

fn tokens_are_right(said: &Value) {
    let list = |of: &str| format!("list<element: {of} not null>");
    let schema = json!([
        ["session_id", "string", false],
        ["task_id", "string", false],
        ["trace", "int32", false],
        ["prompt_ids", list("int32"), false],
        ["response_ids", list("int32"), false],
        ["loss_mask", list("int8"), false],
        ["response_logprobs", list("double"), false],
    ]);
    assert_eq!(said["schema"], schema);
    let rows = tokens::rows().into_iter().map(|row| {
        json!({
            "session_id": row.session_id, "task_id": row.task_id, "trace": row.trace, "prompt_ids": row.prompt_ids,
            "response_ids": row.response_ids, "loss_mask": row.loss_mask, "response_logprobs": row.response_logprobs,
        })
    });
    assert_eq!(said["rows"], Value::from_iter(rows));
}

#[test]
fn pyarrow_polars_and_datasets_read_our_banks_and_we_read_theirs() {
    let Some(python) = std::env::var_os("GSJ_TEST_TABLES_PYTHON") else {
        eprintln!("SKIPPED: no pyarrow, polars and datasets here; `cargo xtask test --all` installs them");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let (ours, theirs) = (folder.path().join("ours"), folder.path().join("theirs"));
    std::fs::create_dir_all(&ours).unwrap();
    std::fs::create_dir_all(&theirs).unwrap();
    let banks: BTreeMap<&str, Vec<TaskRow>> =
        [("empty.parquet", tasks(0)), ("some.parquet", tasks(7)), ("two-groups.parquet", tasks(8_000))].into();
    for (name, rows) in &banks {
        std::fs::write(ours.join(name), written(rows)).unwrap();
    }
    std::fs::create_dir(ours.join("tokens")).unwrap();
    std::fs::write(ours.join("tokens/tokens.parquet"), tokens::table()).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/banks.py");
    let ran = Command::new(python).arg(script).arg(&ours).arg(&theirs).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));

    let mut seen = Vec::new();
    for line in String::from_utf8(ran.stdout).unwrap().lines() {
        let said: Value = serde_json::from_str(line).unwrap();
        let (library, name) = (said["library"].as_str().unwrap(), said["bank"].as_str().unwrap());
        if name == "tokens.parquet" {
            tokens_are_right(&said);
            continue;
        }
        let (text, number) = if library == "polars" { ("String", "Int64") } else { ("string", "int64") };
        let schema: Vec<Value> = [
            "case_id",
            "timestep",
            "prompt_id",
            "split",
            "prompt_source",
            "prompt_text",
            "skill_card_text",
            "sandbox_image",
        ]
        .iter()
        .map(|column| json!([column, if *column == "timestep" { number } else { text }, true]))
        .collect();
        assert_eq!(said["schema"], Value::from(schema), "{library} {name}");
        let rows = &banks[name];
        assert_eq!(said["count"], rows.len(), "{library} {name}");
        let shown: Vec<&TaskRow> = if rows.len() > 1000 {
            rows.first().into_iter().chain(rows.last()).collect()
        } else {
            rows.iter().collect()
        };
        let wanted: Vec<Value> = shown.into_iter().map(|task| row(&RawRow::from(task))).collect();
        assert_eq!(said["rows"], Value::from(wanted), "{library} {name}");
        seen.push(format!("{library} {name}"));
    }
    assert_eq!(seen.len(), 8, "three libraries, three banks, but for one of the empty one: {seen:?}");

    let written_by_others = names(&theirs);
    assert_eq!(written_by_others.len(), 10, "{written_by_others:?}");
    let wanted: Vec<RawRow> = banks["some.parquet"].iter().map(RawRow::from).collect();
    for name in written_by_others {
        let bank = Bank::open(&theirs.join(&name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(raw(&bank), wanted, "{name}");
        for at in [1, 6, 7, 40, 62] {
            assert_eq!(
                bank.raw_rows(at..at + 1).next().unwrap().unwrap(),
                wanted[usize::try_from(at).unwrap()],
                "{name}"
            );
        }
    }
    // The files are named by what is to be said of them.
    let odd = names(&theirs.join("odd"));
    assert_eq!(odd.len(), 9, "{odd:?}");
    for name in odd {
        let read =
            Bank::open(&theirs.join("odd").join(&name)).and_then(|bank| bank.all().collect::<Result<Vec<_>, _>>());
        let said = read.expect_err(&name).to_string();
        let said = said.split_once(".parquet` ").unwrap().1;
        assert!(said.contains(name.trim_end_matches(".parquet")), "{said}");
    }
}
