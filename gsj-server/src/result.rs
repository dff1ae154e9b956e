//! Stored session results: reading their bytes back.

use std::io::SeekFrom;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _};

use crate::store::{SessionRow, StoredResult};

/// Reads the bytes of a result exactly as they were written.
pub(crate) async fn read_stored(stored: &StoredResult) -> std::io::Result<Vec<u8>> {
    let mut file = tokio::fs::File::open(&stored.path).await?;
    file.seek(SeekFrom::Start(stored.offset)).await?;
    let mut bytes = Vec::new();
    file.take(stored.length).read_to_end(&mut bytes).await?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length == stored.length) {
        Ok(bytes)
    } else {
        Err(std::io::Error::new(std::io::ErrorKind::UnexpectedEof, "the file is shorter than when it was written"))
    }
}

/// What stands in an answer for a result whose file is gone: it says so and claims nothing.
pub(crate) fn missing_result(session: &SessionRow, node_id: &str, error: &std::io::Error) -> String {
    let path = session.result.as_ref().map(|stored| stored.path.display().to_string()).unwrap_or_default();
    let timing = session.timing.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or(Value::Null);
    json!({
        "session_id": session.session,
        "task_id": session.key.task,
        "status": session.state,
        "trajectory": null,
        "timing": timing,
        "node_id": node_id,
        "error": format!("the stored result `{path}` can't be read: {error}"),
        "metadata": {},
    })
    .to_string()
}
