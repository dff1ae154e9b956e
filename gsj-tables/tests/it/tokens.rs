use bytes::Bytes;
use gsj_tables::{TokenRow, TokenWriter};
use parquet::file::reader::{FileReader as _, SerializedFileReader};

pub(crate) fn rows() -> Vec<TokenRow> {
    (0..5_i32)
        .map(|n| TokenRow {
            session_id: format!("ses_{n}"),
            task_id: "nightly.case_1.12.skill:sum".into(),
            trace: n % 2,
            prompt_ids: (0..n * 3).collect(),
            response_ids: vec![151_645; usize::try_from(n).unwrap()],
            loss_mask: (0..n).map(|at| at % 2).collect(),
            response_logprobs: (0..n).map(|at| f64::from(at) * -0.1).collect(),
        })
        .collect()
}

pub(crate) fn table() -> Vec<u8> {
    let mut writer = TokenWriter::new(Vec::new()).unwrap();
    rows().into_iter().for_each(|row| writer.push(row).unwrap());
    writer.finish().unwrap()
}

#[test]
fn tokens_are_read_as_they_were_written() {
    let bytes = table();
    assert_eq!(bytes, table(), "the same rows give the same bytes");
    let reader = SerializedFileReader::new(Bytes::from(bytes)).unwrap();
    let found: Vec<String> = reader.get_row_iter(None).unwrap().map(|row| row.unwrap().to_string()).collect();
    assert_eq!(found.len(), 5);
    assert_eq!(
        found[2],
        "{session_id: \"ses_2\", task_id: \"nightly.case_1.12.skill:sum\", trace: 0, \
         prompt_ids: [0, 1, 2, 3, 4, 5], response_ids: [151645, 151645], loss_mask: [0, 1], \
         response_logprobs: [-0E0, -1E-1]}"
    );
    assert!(
        found[0].contains("prompt_ids: [], response_ids: [], loss_mask: [], response_logprobs: []"),
        "{}",
        found[0]
    );
}
