use std::path::PathBuf;

use serde_json::json;

use super::{Ended, NewTask, RunKey, Store, Submitted, TaskFilter, rows::StoredResult};
use crate::{
    id::{SessionId, TaskId},
    state::{SessionState, TaskState},
};

fn task(name: &str) -> TaskId {
    TaskId::new(name).expect("a plain name")
}

fn new(name: &str, sessions: usize, body: serde_json::Value) -> NewTask {
    NewTask {
        task: task(name),
        request: body,
        warnings: vec!["unknown field".to_owned()],
        harness: "pi".to_owned(),
        model: Some("m".to_owned()),
        callback_url: None,
        sessions: (0..sessions).map(|_| SessionId::draw().expect("random bits")).collect(),
    }
}

fn ended(state: SessionState) -> Ended {
    Ended {
        state,
        error: None,
        timing: "{}".to_owned(),
        accepted: state == SessionState::Completed,
        findings: 0,
        completions: 3,
        traces: 1,
        result: StoredResult { path: PathBuf::from("/t/x.json"), offset: 4, length: 9 },
    }
}

#[tokio::test]
async fn submitting_is_idempotent_while_running_and_anew_after() {
    let dir = tempfile::tempdir().expect("a folder");
    let (store, thread) = Store::open(&dir.path().join("s.sqlite")).expect("a fresh store opens");
    let key = |run| RunKey { task: task("t"), run };
    let first = store.submit(new("t", 1, json!({"a": 1, "b": 2})), 1.0).await.expect("stores");
    assert_eq!(first, Submitted::New(key(1)));
    let again = store.submit(new("t", 1, json!({"b": 2, "a": 1})), 2.0).await.expect("answers");
    assert_eq!(again, Submitted::Same(key(1)), "member order must not matter");
    let other = store.submit(new("t", 1, json!({"a": 2})), 3.0).await.expect("answers");
    assert_eq!(other, Submitted::Conflict);

    let claimed = store.claim(4.0).await.expect("claims").expect("one waits");
    assert_eq!(claimed.state, SessionState::Initializing);
    assert!(store.claim(4.0).await.expect("answers").is_none(), "the repeat added no session");
    let end = store.finish(claimed.session.clone(), ended(SessionState::Error), 5.0).await.expect("finishes");
    assert_eq!((end.state, end.completed, end.total), (TaskState::Failed, 0, 1));

    let rerun = store.submit(new("t", 2, json!({"a": 2})), 6.0).await.expect("stores");
    assert_eq!(rerun, Submitted::New(key(2)));
    let (old, sessions) = store.task(task("t"), Some(1)).await.expect("reads").expect("run 1 stays readable");
    assert_eq!(old.state, TaskState::Failed);
    assert_eq!(sessions[0].result, Some(ended(SessionState::Error).result));
    let (latest, _) = store.task(task("t"), None).await.expect("reads").expect("exists");
    assert_eq!(latest.key.run, 2);
    thread.close(&store).await;
}

#[tokio::test]
async fn state_survives_and_tells_what_was_interrupted() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("s.sqlite");
    let (store, thread) = Store::open(&path).expect("opens");
    store.submit(new("t", 3, json!({})), 1.0).await.expect("stores");
    let running = store.claim(2.0).await.expect("claims").expect("one");
    store.advance(running.session.clone(), SessionState::Running, 3.0).await.expect("moves");
    let done = store.claim(2.0).await.expect("claims").expect("two");
    store.finish(done.session.clone(), ended(SessionState::Completed), 4.0).await.expect("ends");
    store.advance(done.session.clone(), SessionState::Running, 5.0).await.expect("ignored");
    thread.close(&store).await;

    let (store, thread) = Store::open(&path).expect("opens again");
    let found = store.interrupted().await.expect("reads");
    assert_eq!(
        found.iter().map(|row| (&row.session, row.state)).collect::<Vec<_>>(),
        [(&running.session, SessionState::Running)],
        "an ended session never runs again, a waiting one was not interrupted"
    );
    assert_eq!(store.waiting().await.expect("counts"), 1);
    thread.close(&store).await;
    assert!(matches!(store.waiting().await, Err(super::StoreError::Closed)), "what comes too late is refused");
}

#[tokio::test]
async fn lists_are_newest_first_and_filtered() {
    let dir = tempfile::tempdir().expect("a folder");
    let (store, _thread) = Store::open(&dir.path().join("s.sqlite")).expect("opens");
    for (name, at) in [("old", 1.0), ("new", 2.0)] {
        store.submit(new(name, 2, json!({})), at).await.expect("stores");
    }
    let names = |filter| {
        let store = store.clone();
        async move {
            let rows = store.tasks(filter).await.expect("lists");
            rows.into_iter().map(|row| row.task_id).collect::<Vec<_>>()
        }
    };
    let all = TaskFilter { limit: 10, ..TaskFilter::default() };
    assert_eq!(names(all.clone()).await, ["new", "old"]);
    assert_eq!(names(TaskFilter { since: Some(1.5), ..all.clone() }).await, ["new"]);
    assert_eq!(names(TaskFilter { limit: 1, ..all.clone() }).await, ["new"]);
    let failed = TaskFilter { status: Some(TaskState::Failed), ..all };
    assert!(names(failed).await.is_empty());
}

#[tokio::test]
async fn cancelling_takes_waiting_sessions_from_the_workers() {
    let dir = tempfile::tempdir().expect("a folder");
    let (store, _thread) = Store::open(&dir.path().join("s.sqlite")).expect("opens");
    store.submit(new("t", 2, json!({})), 1.0).await.expect("stores");
    let active = store.claim(2.0).await.expect("claims").expect("one");
    let super::Cancelled { key, first, waiting, active: running } =
        store.cancel(task("t"), 3.0).await.expect("cancels").expect("there is one");
    assert_eq!((key.run, first, waiting.len(), running.len()), (1, true, 1, 1));
    assert_eq!(running[0].session, active.session);
    assert!(store.claim(4.0).await.expect("answers").is_none(), "nothing waits any more");
    assert!(store.run(key).await.expect("reads").expect("exists").cancelled);
    let again = store.cancel(task("t"), 5.0).await.expect("answers").expect("there is one");
    assert!(!again.first, "it was cancelled before");
    for session in waiting.into_iter().chain(running) {
        store.finish(session.session, ended(SessionState::Completed), 6.0).await.expect("ends");
    }
    store.submit(new("t", 1, json!({})), 7.0).await.expect("stores");
    let alone = store.claim(8.0).await.expect("claims").expect("one");
    store.finish(alone.session, ended(SessionState::Completed), 9.0).await.expect("ends");
    let over = store.cancel(task("t"), 10.0).await.expect("answers").expect("there is one");
    assert!(!over.first && over.waiting.is_empty() && over.active.is_empty(), "{over:?}");
    assert!(!store.run(over.key).await.expect("reads").expect("exists").cancelled, "what has ended was not cancelled");
    assert!(store.cancel(task("nobody"), 3.0).await.expect("answers").is_none());
}

#[tokio::test]
async fn sessions_are_counted_from_zero_in_each_run() {
    let dir = tempfile::tempdir().expect("a folder");
    let (store, _thread) = Store::open(&dir.path().join("s.sqlite")).expect("opens");
    for name in ["a", "b"] {
        store.submit(new(name, 3, json!({})), 1.0).await.expect("stores");
    }
    let (_, sessions) = store.task(task("b"), None).await.expect("reads").expect("exists");
    for (wanted, row) in (0_i64..).zip(sessions) {
        assert_eq!(store.index(row.session).await.expect("counts"), wanted);
    }
}

#[tokio::test]
async fn a_newer_schema_is_refused_with_its_number() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("s.sqlite");
    let plain = rusqlite::Connection::open(&path).expect("opens");
    plain.pragma_update(None, "user_version", 99).expect("writes");
    drop(plain);
    let error = Store::open(&path).expect_err("a newer file must not be written to");
    assert!(error.to_string().contains("schema 99"), "{error}");
}
