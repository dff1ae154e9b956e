//! How sessions move on.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension as _, params};

use super::{
    Ended, Finished, PendingCallback, SessionRow, Store, StoreError, doing,
    rows::{RawSession, SESSION_COLUMNS, session_id, stored_result},
};
use crate::{
    id::SessionId,
    state::{SessionState, TaskState},
};

impl Store {
    /// Gives the session that has waited longest to the caller, in `INITIALIZING`.
    pub(crate) async fn claim(&self, now: f64) -> Result<Option<SessionRow>, StoreError> {
        self.call(move |connection| {
            let row = connection
                .prepare_cached(&format!(
                    "UPDATE sessions SET state = 'INITIALIZING', updated_at = ?1 WHERE position = \
                     (SELECT min(position) FROM sessions WHERE state = 'REGISTERED') \
                     RETURNING {SESSION_COLUMNS}"
                ))
                .map_err(doing("take the next session"))?
                .query_row([now], RawSession::read)
                .optional()
                .map_err(doing("take the next session"))?;
            row.map(SessionRow::try_from).transpose()
        })
        .await
    }

    /// Counts the sessions of the same run that were stored before this one.
    pub(crate) async fn index(&self, session: SessionId) -> Result<i64, StoreError> {
        self.call(move |connection| {
            connection
                .prepare_cached(
                    "SELECT count(o.position) FROM sessions s JOIN sessions o ON o.task_id = s.task_id \
                     AND o.run = s.run AND o.position < s.position WHERE s.session_id = ?1",
                )
                .map_err(doing("count a task's sessions"))?
                .query_row([session.as_str()], |row| row.get(0))
                .map_err(doing("count a task's sessions"))
        })
        .await
    }

    /// Counts the sessions that no worker has taken yet.
    pub(crate) async fn waiting(&self) -> Result<i64, StoreError> {
        self.call(|connection| {
            connection
                .query_row("SELECT count(*) FROM sessions WHERE state = 'REGISTERED'", [], |row| row.get(0))
                .map_err(doing("count waiting sessions"))
        })
        .await
    }

    /// Counts the sessions in each state.
    pub(crate) async fn states(&self) -> Result<Vec<(String, i64)>, StoreError> {
        const WHAT: &str = "count the sessions";
        self.call(|connection| {
            connection
                .prepare_cached("SELECT state, count(*) FROM sessions GROUP BY state ORDER BY state")
                .map_err(doing(WHAT))?
                .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
                .map_err(doing(WHAT))?
                .collect::<Result<_, _>>()
                .map_err(doing(WHAT))
        })
        .await
    }

    /// Records that a session came further; a session that has ended stays ended.
    pub(crate) async fn advance(&self, session: SessionId, state: SessionState, now: f64) -> Result<(), StoreError> {
        self.call(move |connection| {
            connection
                .prepare_cached(
                    "UPDATE sessions SET state = ?2, updated_at = ?3 WHERE session_id = ?1 \
                     AND state NOT IN ('COMPLETED', 'ERROR', 'TIMEOUT')",
                )
                .map_err(doing("record a session's state"))?
                .execute(params![session.as_str(), state.as_str(), now])
                .map_err(doing("record a session's state"))?;
            Ok(())
        })
        .await
    }

    /// Records how a session ended and where its result lies, and with the last one the task's end.
    ///
    /// One transaction: nobody sees a result without its session's end, or the reverse.
    pub(crate) async fn finish(&self, session: SessionId, ended: Ended, now: f64) -> Result<Finished, StoreError> {
        self.call(move |connection| finish(connection, &session, &ended, now)).await
    }

    /// Returns what an earlier life of this server was working on when it stopped.
    pub(crate) async fn interrupted(&self) -> Result<Vec<SessionRow>, StoreError> {
        self.call(|connection| {
            const DOING: &str = "look for interrupted sessions";
            let mut statement = connection
                .prepare(&format!(
                    "SELECT {SESSION_COLUMNS} FROM sessions WHERE state NOT IN \
                     ('REGISTERED', 'COMPLETED', 'ERROR', 'TIMEOUT') ORDER BY position"
                ))
                .map_err(doing(DOING))?;
            let rows = statement.query_map([], RawSession::read).map_err(doing(DOING))?;
            rows.map(|row| SessionRow::try_from(row.map_err(doing(DOING))?)).collect()
        })
        .await
    }

    /// Records whether a session's callback was taken.
    pub(crate) async fn callback_done(&self, session: SessionId, delivered: bool) -> Result<(), StoreError> {
        self.call(move |connection| {
            connection
                .execute(
                    "UPDATE sessions SET callback = ?2 WHERE session_id = ?1",
                    params![session.as_str(), if delivered { "delivered" } else { "failed" }],
                )
                .map_err(doing("record a callback"))?;
            Ok(())
        })
        .await
    }

    /// Returns the first results whose delivery is still owed.
    pub(crate) async fn pending_callbacks(&self) -> Result<Vec<PendingCallback>, StoreError> {
        self.call(|connection| {
            const DOING: &str = "look for open callbacks";
            let mut statement = connection
                .prepare(
                    "SELECT s.session_id, r.callback_url, s.result_path, s.result_offset, s.result_length \
                     FROM sessions s JOIN runs r ON r.task_id = s.task_id AND r.run = s.run \
                     WHERE s.callback = 'pending' AND r.callback_url IS NOT NULL \
                     AND s.result_path IS NOT NULL ORDER BY s.position LIMIT 256",
                )
                .map_err(doing(DOING))?;
            let rows = statement
                .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?)))
                .map_err(doing(DOING))?;
            rows.map(|row| {
                let (session, url, path, offset, length) = row.map_err(doing(DOING))?;
                Ok(PendingCallback { session: session_id(session)?, url, result: stored_result(path, offset, length)? })
            })
            .collect()
        })
        .await
    }
}

fn finish(connection: &mut Connection, session: &SessionId, ended: &Ended, now: f64) -> Result<Finished, StoreError> {
    const DOING: &str = "record a session's end";
    let change = connection.transaction().map_err(doing(DOING))?;
    let (task, run, callback_url): (String, i64, Option<String>) = change
        .query_row(
            "SELECT s.task_id, s.run, r.callback_url FROM sessions s \
             JOIN runs r ON r.task_id = s.task_id AND r.run = s.run WHERE s.session_id = ?1",
            [session.as_str()],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )
        .map_err(doing(DOING))?;
    change
        .execute(
            "UPDATE sessions SET state = ?2, updated_at = ?3, error = ?4, timing = ?5, accepted = ?6, \
             findings = ?7, completions = ?8, traces = ?9, result_path = ?10, result_offset = ?11, \
             result_length = ?12, callback = ?13 WHERE session_id = ?1",
            params![
                session.as_str(),
                ended.state.as_str(),
                now,
                ended.error,
                ended.timing,
                ended.accepted,
                count(ended.findings),
                count(ended.completions),
                count(ended.traces),
                path_text(&ended.result.path)?,
                i64::try_from(ended.result.offset).unwrap_or(i64::MAX),
                i64::try_from(ended.result.length).unwrap_or(i64::MAX),
                callback_url.as_ref().map(|_url| "pending"),
            ],
        )
        .map_err(doing(DOING))?;
    let (total, open, completed): (i64, i64, i64) = change
        .query_row(
            "SELECT count(*), sum(state NOT IN ('COMPLETED', 'ERROR', 'TIMEOUT')), \
             sum(state = 'COMPLETED') FROM sessions WHERE task_id = ?1 AND run = ?2",
            params![task, run],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )
        .map_err(doing(DOING))?;
    let state = match (open, completed) {
        (1.., _) => TaskState::Running,
        (_, 0) => TaskState::Failed,
        _ => TaskState::Completed,
    };
    change
        .execute(
            "UPDATE runs SET status = ?3, updated_at = ?4 WHERE task_id = ?1 AND run = ?2",
            params![task, run, state.as_str(), now],
        )
        .map_err(doing(DOING))?;
    change.commit().map_err(doing(DOING))?;
    Ok(Finished {
        state,
        completed: u64::try_from(completed).unwrap_or(0),
        total: u64::try_from(total).unwrap_or(0),
        callback_url,
    })
}

fn count(value: usize) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn path_text(path: &Path) -> Result<&str, StoreError> {
    path.to_str()
        .ok_or_else(|| StoreError::Row { what: "result path (it must be UTF-8)", value: path.display().to_string() })
}
