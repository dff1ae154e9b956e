//! Submitting, reading, listing and cancelling tasks.

use rusqlite::{Connection, OptionalExtension as _, params};
use serde_json::Value;

use super::{
    Cancelled, NewTask, RunKey, SessionRow, Store, StoreError, Submitted, TaskFilter, TaskRow, TaskSummary, doing,
    rows::{RawSession, SESSION_COLUMNS, task_id, task_state},
};
use crate::{
    id::TaskId,
    state::{SessionState, TaskState},
};

impl Store {
    /// Stores a task and its sessions, or finds that it is running already.
    pub(crate) async fn submit(&self, new: NewTask, now: f64) -> Result<Submitted, StoreError> {
        self.call(move |connection| submit(connection, &new, now)).await
    }

    /// Returns one run (the latest, or the one asked for) with its sessions in order.
    pub(crate) async fn task(
        &self,
        task: TaskId,
        run: Option<i64>,
    ) -> Result<Option<(TaskRow, Vec<SessionRow>)>, StoreError> {
        self.call(move |connection| {
            let Some(row) = find(connection, &task, run)? else { return Ok(None) };
            let sessions = sessions_of(connection, &row.key)?;
            Ok(Some((row, sessions)))
        })
        .await
    }

    /// Returns one stored run without its sessions.
    pub(crate) async fn run(&self, key: RunKey) -> Result<Option<TaskRow>, StoreError> {
        self.call(move |connection| find(connection, &key.task, Some(key.run))).await
    }

    /// Returns every task's latest status, by name.
    pub(crate) async fn statuses(&self) -> Result<Vec<(String, String)>, StoreError> {
        self.call(|connection| {
            let mut statement = connection
                .prepare_cached("SELECT task_id, status, max(run) FROM runs GROUP BY task_id ORDER BY task_id")
                .map_err(doing("list tasks"))?;
            let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).map_err(doing("list tasks"))?;
            rows.collect::<Result<_, _>>().map_err(doing("list tasks"))
        })
        .await
    }

    /// Lists tasks, newest first, each by its latest run.
    pub(crate) async fn tasks(&self, filter: TaskFilter) -> Result<Vec<TaskSummary>, StoreError> {
        self.call(move |connection| list(connection, &filter).map_err(doing("list tasks"))).await
    }

    /// Marks the latest run as cancelled and takes its waiting sessions away from the workers.
    ///
    /// Returns what was open; `None` when there is no such task.
    pub(crate) async fn cancel(&self, task: TaskId, now: f64) -> Result<Option<Cancelled>, StoreError> {
        self.call(move |connection| cancel(connection, &task, now)).await
    }
}

fn submit(connection: &mut Connection, new: &NewTask, now: f64) -> Result<Submitted, StoreError> {
    const DOING: &str = "store a task";
    let change = connection.transaction().map_err(doing(DOING))?;
    let latest = find(&change, &new.task, None)?;
    if let Some(row) = &latest
        && row.state == TaskState::Running
    {
        // Compared as values: a client may order its members differently when it asks again.
        let same = serde_json::from_str::<Value>(&row.request).is_ok_and(|old| old == new.request);
        return Ok(if same { Submitted::Same(row.key.clone()) } else { Submitted::Conflict });
    }
    let run = latest.map_or(1, |row| row.key.run.saturating_add(1));
    let warnings = Value::from(new.warnings.clone()).to_string();
    change
        .execute(
            "INSERT INTO runs (task_id, run, status, request, warnings, harness, model, source, \
             callback_url, created_at, updated_at) VALUES (?1, ?2, 'running', ?3, ?4, ?5, ?6, 'api', ?7, ?8, ?8)",
            params![
                new.task.as_str(),
                run,
                new.request.to_string(),
                warnings,
                new.harness,
                new.model,
                new.callback_url,
                now
            ],
        )
        .map_err(doing(DOING))?;
    {
        let mut insert = change
            .prepare_cached(
                "INSERT INTO sessions (session_id, task_id, run, state, created_at, updated_at) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?5)",
            )
            .map_err(doing(DOING))?;
        for session in &new.sessions {
            insert
                .execute(params![session.as_str(), new.task.as_str(), run, SessionState::Registered.as_str(), now])
                .map_err(doing(DOING))?;
        }
    }
    change.commit().map_err(doing(DOING))?;
    Ok(Submitted::New(RunKey { task: new.task.clone(), run }))
}

fn find(connection: &Connection, task: &TaskId, run: Option<i64>) -> Result<Option<TaskRow>, StoreError> {
    const DOING: &str = "read a task";
    let row = connection
        .prepare_cached(
            "SELECT task_id, run, status, request, warnings, cancelled FROM runs \
             WHERE task_id = ?1 AND (?2 IS NULL OR run = ?2) ORDER BY run DESC LIMIT 1",
        )
        .map_err(doing(DOING))?
        .query_row(params![task.as_str(), run], |row| {
            Ok((
                row.get::<_, String>(0)?,
                row.get::<_, i64>(1)?,
                row.get::<_, String>(2)?,
                row.get::<_, String>(3)?,
                row.get::<_, String>(4)?,
                row.get::<_, bool>(5)?,
            ))
        })
        .optional()
        .map_err(doing(DOING))?;
    let Some((task, run, state, request, warnings, cancelled)) = row else {
        return Ok(None);
    };
    Ok(Some(TaskRow {
        key: RunKey { task: task_id(task)?, run },
        state: task_state(state)?,
        request,
        warnings,
        cancelled,
    }))
}

fn sessions_of(connection: &Connection, key: &RunKey) -> Result<Vec<SessionRow>, StoreError> {
    const DOING: &str = "read the sessions of a task";
    let mut statement = connection
        .prepare_cached(&format!(
            "SELECT {SESSION_COLUMNS} FROM sessions WHERE task_id = ?1 AND run = ?2 ORDER BY position"
        ))
        .map_err(doing(DOING))?;
    let rows = statement.query_map(params![key.task.as_str(), key.run], RawSession::read).map_err(doing(DOING))?;
    rows.map(|row| SessionRow::try_from(row.map_err(doing(DOING))?)).collect()
}

fn list(connection: &Connection, filter: &TaskFilter) -> rusqlite::Result<Vec<TaskSummary>> {
    let mut statement = connection.prepare_cached(
        "SELECT r.task_id, r.status, r.harness, r.model, count(s.position), \
           coalesce(sum(s.state = 'COMPLETED'), 0), coalesce(sum(s.state IN ('ERROR', 'TIMEOUT')), 0), \
           avg(s.traces), avg(s.completions), r.created_at, r.updated_at, r.source \
         FROM runs r LEFT JOIN sessions s ON s.task_id = r.task_id AND s.run = r.run \
         WHERE r.run = (SELECT max(run) FROM runs o WHERE o.task_id = r.task_id) \
           AND (?1 IS NULL OR r.status = ?1) AND (?2 IS NULL OR r.harness = ?2) \
           AND (?3 IS NULL OR r.created_at >= ?3) \
         GROUP BY r.task_id, r.run ORDER BY r.created_at DESC, r.rowid DESC LIMIT ?4",
    )?;
    let rows = statement.query_map(
        params![filter.status.map(TaskState::as_str), filter.harness, filter.since, filter.limit],
        |row| {
            Ok(TaskSummary {
                task_id: row.get(0)?,
                status: row.get(1)?,
                harness: row.get(2)?,
                model: row.get(3)?,
                num_samples: row.get(4)?,
                completed_sessions: row.get(5)?,
                errored_sessions: row.get(6)?,
                mean_reward: None,
                mean_traces: row.get(7)?,
                mean_completions: row.get(8)?,
                created_at: row.get(9)?,
                updated_at: row.get(10)?,
                source: row.get(11)?,
            })
        },
    )?;
    rows.collect()
}

fn cancel(connection: &mut Connection, task: &TaskId, now: f64) -> Result<Option<Cancelled>, StoreError> {
    const DOING: &str = "cancel a task";
    let change = connection.transaction().map_err(doing(DOING))?;
    let Some(row) = find(&change, task, None)? else { return Ok(None) };
    let (key, cancelled) = (row.key, row.cancelled);
    let open: Vec<SessionRow> =
        sessions_of(&change, &key)?.into_iter().filter(|session| !session.state.is_terminal()).collect();
    let (mut waiting, active): (Vec<_>, Vec<_>) =
        open.into_iter().partition(|session| session.state == SessionState::Registered);
    let ended = waiting.is_empty() && active.is_empty();
    let first = !cancelled && !ended;
    if first {
        change
            .execute(
                "UPDATE runs SET cancelled = 1, updated_at = ?3 WHERE task_id = ?1 AND run = ?2",
                params![key.task.as_str(), key.run, now],
            )
            .map_err(doing(DOING))?;
    }
    for session in &mut waiting {
        change
            .execute(
                "UPDATE sessions SET state = ?2, updated_at = ?3 WHERE session_id = ?1",
                params![session.session.as_str(), SessionState::PostRun.as_str(), now],
            )
            .map_err(doing(DOING))?;
        session.state = SessionState::PostRun;
    }
    change.commit().map_err(doing(DOING))?;
    Ok(Some(Cancelled { key, first, waiting, active }))
}
