//! What was scaffolded is served after an ingest, by a running `gsj serve` and by `gsj retrieval serve`.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::Output;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use gsj_cutoff::tokens::{Claims, Secret, mint, mint_admin};
use serde_json::{Value, json};

use crate::support::{Estate, Process, SECRET, fixture, gsj, output, text, until};

fn secret() -> Secret {
    Secret::new(SECRET.as_bytes().to_vec()).unwrap()
}

fn soon() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()).unwrap() + 300
}

/// One call with an admin token, or without a token: status and body.
pub(crate) fn asked(url: &str, method: &str, path: &str, admin: bool) -> (u16, String) {
    let host = url.strip_prefix("http://").unwrap();
    let mut stream = std::net::TcpStream::connect(host).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let bearer = match admin {
        true => format!("Authorization: Bearer {}\r\n", mint_admin(soon(), &secret()).unwrap()),
        false => String::new(),
    };
    let head = format!("{method} {path} HTTP/1.0\r\nHost: {host}\r\n{bearer}Content-Length: 0\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

pub(crate) fn health(url: &str) -> Value {
    serde_json::from_str(&asked(url, "GET", "/health", true).1).unwrap()
}

/// The pages that a search of an episode finds, or the whole answer when it is none.
pub(crate) fn pages(url: &str, case: &str, timestep: u32, query: &str) -> Result<Vec<u64>, Value> {
    let claims = Claims { case_id: case.into(), timestep, episode_id: "e2e".into(), exp: soon() };
    let path = format!("{url}/mcp/{}", mint(&claims, &secret()).unwrap());
    let host = url.strip_prefix("http://").unwrap();
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "search_case", "arguments": {"query": query}}})
    .to_string();
    let mut stream = std::net::TcpStream::connect(host).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let path = path.strip_prefix(url).unwrap();
    write!(
        stream,
        "POST {path} HTTP/1.0\r\nHost: {host}\r\nContent-Type: application/json\r\nAccept: */*\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let message = body.strip_prefix("event: message\r\ndata: ").unwrap_or(body);
    let message: Value = serde_json::from_str(message.trim()).unwrap();
    let Some(hits) = message.pointer("/result/structuredContent/result").and_then(Value::as_array) else {
        return Err(message);
    };
    Ok(hits.iter().map(|hit| hit["page"].as_u64().unwrap()).collect())
}

pub(crate) fn phase(estate: &Estate, name: &str, more: &[&str]) -> Output {
    let mut command = gsj();
    command.args(["estate", name, "--format", "json", "--corpus"]).arg(estate.path("corpus"));
    if matches!(name, "scaffold" | "verify") {
        command.arg("--base-url").arg(format!("file://{}", estate.path("repos").display()));
    }
    output(command.args(more))
}

pub(crate) fn done(estate: &Estate, name: &str, more: &[&str]) -> Value {
    let ran = phase(estate, name, more);
    assert_eq!(ran.status.code(), Some(0), "{name}: {}", text(&ran));
    let last = String::from_utf8_lossy(&ran.stdout).lines().last().unwrap_or("null").to_owned();
    serde_json::from_str(&last).unwrap_or(Value::Null)
}

/// Adds a sentence to a page of a case, in every timestep that has it.
pub(crate) fn edit(estate: &Estate, case: &str, page: u32, sentence: &str) {
    let folder = estate.path("corpus").join(case);
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let page = entry.path().join(format!("pages/page_{page:04}.md"));
        if page.is_file() {
            let content = std::fs::read_to_string(&page).unwrap();
            std::fs::write(page, format!("{content}\n{sentence}\n")).unwrap();
        }
    }
}

fn serving(estate: &Estate) -> Process {
    estate.install("light");
    let config = estate.configure("http://127.0.0.1:9", "light", |_| {});
    estate.serve(&config)
}

const STRANGER: &str = r#"{"status":"ok","nodes":1}"#;

#[test]
fn a_running_server_serves_what_was_scaffolded_after_an_ingest() {
    let estate = Estate::new();
    let server = serving(&estate);
    let url = server.url.as_str();
    done(&estate, "taskbank", &[]);
    assert_eq!(asked(url, "GET", "/health", false), (200, STRANGER.to_owned()));
    assert_eq!(asked(url, "POST", "/admin/reindex", false).0, 401);
    assert_eq!(asked(url, "GET", "/admin/reindex", true).0, 405);
    assert_eq!(asked(url, "GET", "/metrics", false).0, 401);
    let first = health(url);
    assert_eq!((&first["status"], &first["nodes"], &first["state"]), (&json!("ok"), &json!(1), &json!("ready")));
    assert_eq!(first["cases"]["ferry-contract"]["timesteps"], json!([6, 13, 20]), "{first}");
    let served = format!("\ngsj_retrieval_cases {}\n", first["cases"].as_object().unwrap().len());
    let (status, counters) = asked(url, "GET", "/metrics", true);
    assert!(status == 200 && counters.contains(&served), "{status} {counters}");
    assert!(estate.path("state/index/index.json").is_file(), "the index is kept in the state folder");
    assert_eq!(pages(url, "ferry-contract", 20, "quartzite"), Ok(vec![]));

    edit(&estate, "eval/cases/ferry-contract", 5, "A block of quartzite was found.");
    done(&estate, "scaffold", &[]);
    let stale = phase(&estate, "verify", &["--mcp-url", url]);
    assert!(stale.status.code() == Some(1) && text(&stale).contains("verify.mcp-facts"), "{}", text(&stale));
    let told = done(&estate, "ingest", &["--mcp-url", url]);
    assert_eq!((&told["by_commit"], &told["triggers"]), (&json!(true), &json!(1)));
    done(&estate, "taskbank", &[]);
    done(&estate, "verify", &["--mcp-url", url]);
    assert_eq!(pages(url, "ferry-contract", 20, "quartzite"), Ok(vec![5]));
    assert_eq!(pages(url, "ferry-contract", 4, "quartzite"), Ok(vec![]));
    let second = health(url);
    assert_ne!(second["fingerprint"], first["fingerprint"]);
    assert_eq!(second["index_reused"], false);

    // A case that leaves, and a timestep that leaves another case.
    std::fs::remove_dir_all(estate.path("corpus/eval/cases/ferry-contract/timestep-13")).unwrap();
    let gone = std::fs::read_dir(estate.path("corpus/train/cases")).unwrap().flatten().next().unwrap();
    let gone = gone.file_name().into_string().unwrap();
    std::fs::remove_dir_all(estate.path("corpus/train/cases").join(&gone)).unwrap();
    done(&estate, "scaffold", &[]);
    done(&estate, "ingest", &["--mcp-url", url]);
    done(&estate, "taskbank", &[]);
    done(&estate, "verify", &["--mcp-url", url]);
    let third = health(url);
    assert_eq!(third["cases"].get(&gone), None, "{third}");
    assert_eq!(third["cases"]["ferry-contract"]["timesteps"], json!([6, 20]));
    assert_eq!(asked(url, "GET", "/health", false), (200, STRANGER.to_owned()));
}

#[test]
fn an_ingest_while_index_runs_go_on_ends_with_what_was_pushed() {
    let estate = Estate::new();
    let server = serving(&estate);
    let url = server.url.as_str();
    for round in 0..3 {
        edit(&estate, "eval/cases/ferry-contract", 5, &format!("It was said for the {round}th time."));
        let (made, told) = std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..60 {
                    assert_eq!(asked(url, "POST", "/admin/reindex", true).0, 202);
                    std::thread::sleep(Duration::from_millis(5));
                }
            });
            (phase(&estate, "scaffold", &[]), phase(&estate, "ingest", &["--mcp-url", url]))
        });
        assert_eq!(made.status.code(), Some(0), "round {round}: {}", text(&made));
        assert_eq!(told.status.code(), Some(0), "round {round}: {}", text(&told));
    }
    until("the last run", Duration::from_secs(60), || (health(url)["state"] == "ready").then_some(()));
    done(&estate, "taskbank", &[]);
    done(&estate, "verify", &["--mcp-url", url]);
}

#[test]
fn a_session_that_runs_keeps_the_cases_it_began_with() {
    // The repository is taken away and the server told so: it goes on with what is left, and comes back with it.
    let estate = Estate::new();
    let server = serving(&estate);
    let url = server.url.as_str();
    let owner = std::fs::read_dir(estate.path("repos")).unwrap().next().unwrap().unwrap().path();
    std::fs::rename(&owner, estate.path("away")).unwrap();
    assert_eq!(asked(url, "POST", "/admin/reindex", true), (202, r#"{"reindex":"started","state":"indexing"}"#.into()));
    let failed =
        until("the run", Duration::from_secs(60), || Some(health(url)).filter(|told| told["state"] == "ready"));
    assert!(failed["error"].as_str().unwrap().contains("gsj estate scaffold"), "{failed}");
    assert_eq!(pages(url, "ferry-contract", 20, "ferry").map(|pages| pages.is_empty()), Ok(false));
    let told = phase(&estate, "ingest", &["--mcp-url", url]);
    assert!(told.status.code() == Some(3) && text(&told).contains("index failed"), "{}", text(&told));
    std::fs::rename(estate.path("away"), &owner).unwrap();
    done(&estate, "ingest", &["--mcp-url", url]);
    assert_eq!(health(url).get("error"), None);
}

#[test]
fn the_service_alone_reads_its_folder_anew_and_keeps_its_index() {
    let estate = Estate::new();
    let start = |more: &[&str]| {
        let mut command = gsj();
        command.args(["retrieval", "serve", "--port", "0", "--corpus"]).arg(estate.path("corpus"));
        Process::start(command.arg("--index").arg(estate.path("index")).args(more))
    };
    let server = start(&[]);
    let url = server.url.as_str();
    assert_eq!(asked(url, "GET", "/health", false), (200, r#"{"state":"ready"}"#.to_owned()));
    assert_eq!(health(url)["index_reused"], false);
    edit(&estate, "eval/cases/ferry-contract", 5, "A block of quartzite was found.");
    assert_eq!(pages(url, "ferry-contract", 20, "quartzite"), Ok(vec![]));
    let told = done(&estate, "ingest", &["--mcp-url", url]);
    assert_eq!(told["by_commit"], false, "a folder has no commits");
    assert_eq!(pages(url, "ferry-contract", 20, "quartzite"), Ok(vec![5]));
    drop(server);
    let server = start(&[]);
    assert_eq!(health(&server.url)["index_reused"], true, "it was kept");
    assert!(!Path::new(&fixture("corpus")).join("index").exists());
}
