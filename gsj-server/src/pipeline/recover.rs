//! After a crash: what an earlier life of this server left behind, ended and told of.

use std::{
    fs::File,
    io::{BufRead as _, BufReader},
    path::Path,
};

use gsj_trace::json::{Object, Value, ValueRef};

use super::{
    build::{Material, Recording, Timing, members},
    episode::Driver,
    verdict::Verdict,
    write::remove_unfinished,
};
use crate::{
    config::WorkspacePolicy,
    id::SessionId,
    state::SessionState,
    store::{Ended, SessionRow, StoreError, StoredResult},
};

/// Ends what was interrupted; sessions that nobody had taken wait on.
pub(super) async fn recover(driver: &Driver) -> Result<(), StoreError> {
    let places = &driver.equipment.places;
    for folder in [&places.traces, &places.quarantine] {
        match remove_unfinished(folder) {
            Ok(0) => {}
            Ok(removed) => {
                tracing::info!(folder = %folder.display(), removed, "removed files that a crash left unfinished");
            }
            Err(error) => tracing::warn!(folder = %folder.display(), %error, "look for unfinished files"),
        }
    }
    for row in driver.shared.store.interrupted().await? {
        let (session, was) = (row.session.clone(), row.state);
        if adopt(driver, &row).await? {
            tracing::info!(%session, was = was.as_str(), "the session's result had been written before the stop; taken over");
        } else {
            end(driver, row).await?;
            tracing::info!(%session, was = was.as_str(), "the session was interrupted by the stop and ends as ERROR");
        }
    }
    if driver.shared.config.server.workspaces == WorkspacePolicy::Drop {
        remove_folders(&places.sessions);
    }
    Ok(())
}

/// Removes what earlier lives left of their sessions' folders; no session runs yet.
fn remove_folders(sessions: &Path) {
    for entry in std::fs::read_dir(sessions).into_iter().flatten().flatten() {
        if let Err(error) = gsj_sandbox::remove_tree(&entry.path()) {
            tracing::warn!(folder = %entry.path().display(), %error, "remove an earlier session's folder");
        }
    }
}

/// Takes a result over that was written whole but not recorded: it must be neither lost nor made twice.
async fn adopt(driver: &Driver, row: &SessionRow) -> Result<bool, StoreError> {
    let shared = &driver.shared;
    let places = &driver.equipment.places;
    let written = |folder: &Path| {
        // Whatever the pins' mode was then: it is part of the name, and may have changed since.
        let start = format!("{}.", row.session);
        let mut entries = std::fs::read_dir(folder).ok()?.filter_map(Result::ok);
        entries.find(|entry| entry.file_name().to_string_lossy().starts_with(&start)).map(|entry| entry.path())
    };
    let found = written(&places.traces).map(|path| (path, true));
    let Some((path, accepted)) = found.or_else(|| written(&places.quarantine).map(|path| (path, false))) else {
        return Ok(false);
    };
    let Ok(bytes) = std::fs::read(&path) else { return Ok(false) };
    let Ok(document) = Value::parse(&bytes) else { return Ok(false) };
    // The body of a quarantine file stands at its end, and nothing but `}` follows it.
    let (offset, length, findings) = if accepted {
        (0, bytes.len(), 0)
    } else {
        const BEFORE: &[u8] = b",\"session_result\":";
        let Some(at) = bytes.windows(BEFORE.len()).position(|window| window == BEFORE) else { return Ok(false) };
        let findings = document.get("findings").and_then(ValueRef::as_array).map_or(0, gsj_trace::json::Array::len);
        (at + BEFORE.len(), bytes.len().saturating_sub(at + BEFORE.len() + 1), findings)
    };
    let result = document.get("session_result").unwrap_or_else(|| document.as_ref());
    let text = |key: &str| result.get(key).and_then(ValueRef::as_str);
    let state = text("status").and_then(SessionState::parse).filter(|state| state.is_terminal());
    let (Some(state), Some(id)) = (state, text("session_id")) else { return Ok(false) };
    if id != row.session.as_str() {
        return Ok(false);
    }
    let count = |pointer: &str| {
        result.pointer(pointer).and_then(ValueRef::as_i64).and_then(|count| usize::try_from(count).ok()).unwrap_or(0)
    };
    let ended = Ended {
        state,
        error: text("error").map(str::to_owned),
        timing: result.get("timing").map_or_else(|| "{}".to_owned(), ValueRef::to_json),
        accepted,
        findings,
        completions: count("/trajectory/metadata/record_count"),
        traces: result
            .pointer("/trajectory/traces")
            .and_then(ValueRef::as_array)
            .map_or(0, gsj_trace::json::Array::len),
        result: StoredResult { path, offset: wide(offset), length: wide(length) },
    };
    let finished = shared.store.finish(row.session.clone(), ended, shared.clock.seconds()).await?;
    shared.announce_end(&row.key, &row.session, state, &finished);
    Ok(true)
}

/// Writes the result of an interrupted session, with whatever its record still tells.
async fn end(driver: &Driver, row: SessionRow) -> Result<(), StoreError> {
    let shared = &driver.shared;
    let task = shared.store.run(row.key.clone()).await?;
    let stored = task.and_then(|task| serde_json::from_str::<serde_json::Value>(&task.request).ok());
    let request = stored.and_then(|stored| shared.read_request(&stored).ok());
    let mut metadata = Object::new();
    if let Some(request) = &request {
        metadata = members(&request.metadata);
    }
    let mut trace_metadata = metadata.clone();
    trace_metadata.insert("session_id", row.session.as_str().to_owned());
    trace_metadata.insert("task_id", row.key.task.as_str().to_owned());
    let log = driver.equipment.places.artifacts.join(row.session.as_str()).join("session.log");
    let (record, calls) = match read_record(&log, &row.session, row.key.task.as_str()) {
        Some((document, calls)) => (Some(Recording::Completions(document)), calls),
        None => (None, 0),
    };
    let material = Material {
        session: row.session.clone(),
        task: row.key.task.clone(),
        node_id: shared.config.server.node_id.clone(),
        verdict: Verdict::interrupted(row.state),
        record,
        calls,
        trace_metadata: Value::from(trace_metadata),
        metadata,
        timing: Timing::default(),
        options: driver.equipment.builder_options(request.as_ref()),
        prompt: request.map(|request| request.instruction),
    };
    driver.settle(row.key, row.session, material).await
}

/// Reads the record that a gateway kept: every whole line of a completed call.
fn read_record(log: &Path, session: &SessionId, task: &str) -> Option<(Value<'static>, usize)> {
    let mut reader = BufReader::new(File::open(log).ok()?);
    let mut completions = Vec::new();
    let mut line = Vec::new();
    loop {
        line.clear();
        match reader.read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
        // The last line may have been cut off by the crash.
        let Ok(mut record) = Value::parse(&line) else { continue };
        if record.get("outcome").and_then(ValueRef::as_str) != Some("completed") {
            continue;
        }
        if let Some(members) = record.as_object_mut() {
            members.remove("raw");
        }
        completions.push(record.into_owned());
    }
    let metadata = completions.first()?.get("metadata").map(ValueRef::to_owned)?;
    let calls = completions.len();
    let mut document = Object::new();
    document.insert("session_id", session.as_str().to_owned());
    document.insert("task_id", task.to_owned());
    document.insert("api_type", "openai_chat");
    document.insert("metadata", metadata);
    document.insert("completions", completions);
    Some((Value::from(document), calls))
}

fn wide(size: usize) -> u64 {
    u64::try_from(size).unwrap_or(u64::MAX)
}
