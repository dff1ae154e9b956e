//! `gsj retrieval serve --config`: a service of its own over an estate's repositories.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::githost::{GitHost, PASSWORD};
use crate::reindex::{asked, done, edit, health, pages, phase};
use crate::serve::submit;
use crate::support::{Estate, Process, SECRET, file_with, fixture, gsj, output, scripted_engine, text, until};

/// The owner's folder among the repositories, and the cases.
fn repositories(estate: &Estate) -> (String, Vec<String>) {
    let owner = std::fs::read_dir(estate.path("repos")).unwrap().next().unwrap().unwrap().path();
    let names = std::fs::read_dir(&owner).unwrap().flatten().map(|entry| entry.file_name().into_string().unwrap());
    let mut cases: Vec<String> = names.filter_map(|name| name.strip_suffix(".full.git").map(str::to_owned)).collect();
    cases.sort();
    (owner.file_name().unwrap().to_str().unwrap().to_owned(), cases)
}

fn configure(estate: &Estate, base_url: &str, edit: impl FnOnce(&mut Value)) -> PathBuf {
    let (owner, repos) = repositories(estate);
    let mut config = json!({
        "source": {"base_url": base_url, "owner": owner, "repos": repos},
        "embedding": {"model": "m", "revision": "r"}, "chunking": {}, "search": {"default_k": 2},
        "index": {"path": "kept/index"}, "server": {"port": 0},
    });
    edit(&mut config);
    let path = estate.path("retrieval.yaml");
    std::fs::write(&path, config.to_string()).unwrap();
    path
}

fn serve(config: &PathBuf) -> Command {
    let mut command = gsj();
    command.env("GSJ_TEST_GIT", PASSWORD).args(["retrieval", "serve", "--config"]).arg(config);
    command
}

fn ready(url: &str) -> Value {
    until("the index", Duration::from_secs(120), || Some(health(url)).filter(|told| told["state"] != "indexing"))
}

#[test]
fn an_estate_in_a_folder_is_served_and_verified() {
    let estate = Estate::new();
    done(&estate, "taskbank", &[]);
    let config = configure(&estate, &format!("file://{}", estate.path("repos").display()), |_| {});
    let server = Process::start(&mut serve(&config));
    let url = server.url.as_str();
    let told = ready(url);
    assert_eq!(told["cases"]["ferry-contract"]["timesteps"], json!([6, 13, 20]), "{told}");
    assert!(estate.path("kept/index/index.json").is_file(), "relative to the file");
    done(&estate, "ingest", &["--mcp-url", url]);
    done(&estate, "verify", &["--mcp-url", url]);
    assert_eq!(pages(url, "ferry-contract", 20, "the ferry of the contract").map(|pages| pages.len()), Ok(2));
    assert_eq!(asked(url, "GET", "/metrics", false).0, 401);
    let metrics = asked(url, "GET", "/metrics", true).1;
    assert!(metrics.contains("gsj_retrieval_index_runs_total{result=\"ok\"} 2"), "{metrics}");
    drop(server);
    let server = Process::start(&mut serve(&config));
    assert_eq!(ready(&server.url)["index_reused"], true);
}

#[test]
fn a_configuration_that_cannot_be_used_ends_with_2_and_names_the_field() {
    let estate = Estate::new();
    let base = format!("file://{}", estate.path("repos").display());
    let refused = |edit: &dyn Fn(&mut Value), words: &[&str]| {
        let config = configure(&estate, &base, edit);
        let ran = output(&mut serve(&config));
        assert_eq!(ran.status.code(), Some(2), "{words:?}: {}", text(&ran));
        assert!(ran.stdout.is_empty() && !text(&ran).contains("listening"), "{}", text(&ran));
        for word in words {
            assert!(text(&ran).contains(word), "`{word}` in: {}", text(&ran));
        }
    };
    refused(&|config| config["search"]["method"] = json!("exact"), &["retrieval.yaml", "search.method", "exact"]);
    refused(&|config| config["server"]["prot"] = json!(1), &["retrieval.yaml", "prot"]);
    refused(&|config| drop(config.as_object_mut().unwrap().remove("chunking")), &["chunking", "missing"]);
    refused(&|config| config["auth"] = json!({"token_secret_env": "GSJ_NOT_SET"}), &["GSJ_NOT_SET", "not set"]);
    refused(&|config| config["source"]["auth_token_env"] = json!("GSJ_NOT_SET"), &["GSJ_NOT_SET", "not set"]);
    refused(&|config| config["decisions"] = json!({"file": "none.json"}), &["none.json"]);
    refused(&|config| config["server"]["tools_file"] = json!("none.json"), &["none.json"]);
    let ran = output(gsj().args(["retrieval", "serve", "--config", "/nonexistent/x.yaml"]));
    assert!(ran.status.code() == Some(2) && text(&ran).contains("/nonexistent/x.yaml"), "{}", text(&ran));
    let ran = output(gsj().args(["retrieval", "serve"]));
    assert_eq!(ran.status.code(), Some(2), "{}", text(&ran));
}

#[test]
fn repositories_of_a_host_are_copied_and_outlive_it() {
    let estate = Estate::new();
    done(&estate, "taskbank", &[]);
    let Some(host) = GitHost::start(&estate.path("repos")) else { return };
    let config = configure(&estate, &host.url, |config| {
        config["source"]["auth_token_env"] = json!("GSJ_TEST_GIT");
        config["source"]["clone_cache_dir"] = json!("kept/clones");
        config["source"]["recipe"] = json!("sealed");
    });
    // What a first copy that was stopped leaves behind.
    std::fs::create_dir_all(estate.path("kept/clones/ferry-contract.full.git")).unwrap();
    let server = Process::start(&mut serve(&config));
    let url = server.url.as_str();
    let first = ready(url);
    assert_eq!((&first["state"], first.get("error")), (&json!("ready"), None), "{first}");
    done(&estate, "verify", &["--mcp-url", url]);

    host.set_down(true);
    assert_eq!(asked(url, "POST", "/admin/reindex", true).0, 202);
    let without = ready(url);
    assert_eq!((&without["state"], &without["cases"]), (&json!("ready"), &first["cases"]), "the old one is served");
    let said = without["error"].as_str().unwrap().to_owned();
    assert!(said.contains("copy the repository of case") && !said.contains(PASSWORD), "{said}");
    assert_eq!(asked(url, "GET", "/health", false).1, r#"{"state":"ready"}"#);
    assert_eq!(pages(url, "ferry-contract", 20, "ferry").map(|pages| pages.is_empty()), Ok(false));
    edit(&estate, "eval/cases/ferry-contract", 5, "A block of quartzite was found.");
    done(&estate, "scaffold", &[]);
    let failed = phase(&estate, "ingest", &["--mcp-url", url]);
    assert_eq!(failed.status.code(), Some(3), "{}", text(&failed));

    host.set_down(false);
    done(&estate, "ingest", &["--mcp-url", url]);
    done(&estate, "taskbank", &[]);
    done(&estate, "verify", &["--mcp-url", url]);
    assert_eq!(pages(url, "ferry-contract", 20, "quartzite"), Ok(vec![5]));
    drop(server);
    for canary in [SECRET, PASSWORD] {
        assert_eq!(file_with(estate.home.path(), canary.as_bytes()), None);
    }
}

#[test]
fn a_first_index_that_fails_is_told_and_comes_back_by_itself() {
    let estate = Estate::new();
    let config = configure(&estate, &format!("file://{}", estate.path("repos").display()), |config| {
        config["source"]["repos"] = json!(["not-there-yet"]);
    });
    let server = Process::start(&mut serve(&config));
    let url = server.url.as_str();
    let told = ready(url);
    assert_eq!(told["state"], "error");
    assert!(told["error"].as_str().unwrap().contains("not-there-yet"), "{told}");
    assert_eq!(asked(url, "GET", "/health", false), (200, r#"{"state":"error"}"#.to_owned()));
    let refused = pages(url, "not-there-yet", 1, "x").expect_err("there is no index");
    assert!(refused["error"]["message"].as_str().unwrap().contains("state=ready"), "{refused}");
    let (owner, _) = repositories(&estate);
    let from = estate.path("repos").join(owner);
    std::fs::rename(from.join("ferry-contract.full.git"), from.join("not-there-yet.git")).unwrap();
    assert_eq!(asked(url, "POST", "/admin/reindex", true).0, 202);
    assert_eq!(ready(url)["state"], "ready");
}

#[test]
fn a_server_runs_sessions_over_the_repositories_of_a_host() {
    let estate = Estate::new();
    estate.install("light");
    done(&estate, "taskbank", &[]);
    let Some(host) = GitHost::start(&estate.path("repos")) else { return };
    let engine = scripted_engine(&fixture("scripts/two-turns.json"), &[]);
    let (owner, cases) = repositories(&estate);
    let config = estate.configure(&engine.url, "light", |config| {
        config["estate"] = json!({"clone_url_for": format!("{}/{owner}/{{case_id}}.git", host.url),
            "cases": cases, "credential_env": "GSJ_TEST_GIT"});
    });
    let mut without = gsj();
    let ran = output(without.args(["serve", "--config"]).arg(&config));
    assert!(ran.status.code() == Some(2) && text(&ran).contains("estate.credential_env"), "{}", text(&ran));
    let server = Process::start(gsj().env("GSJ_TEST_GIT", PASSWORD).args(["serve", "--config"]).arg(&config));
    let url = server.url.as_str();
    done(&estate, "verify", &["--mcp-url", url]);
    let ran = submit(&estate, &config, url, &["--task-id", "first"]);
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran));
    edit(&estate, "eval/cases/ferry-contract", 5, "A block of quartzite was found.");
    done(&estate, "scaffold", &[]);
    done(&estate, "ingest", &["--mcp-url", url]);
    assert_eq!(pages(url, "ferry-contract", 20, "quartzite"), Ok(vec![5]));
    host.set_down(true);
    assert_eq!(asked(url, "POST", "/admin/reindex", true).0, 202);
    let told = ready(url);
    assert!(told["error"].as_str().unwrap().contains("copy the case repositories"), "{told}");
    let ran = submit(&estate, &config, url, &["--task-id", "second"]);
    assert_eq!(ran.status.code(), Some(0), "sessions go on without the host: {}", text(&ran));
    drop(server);
    assert_eq!(file_with(estate.home.path(), PASSWORD.as_bytes()), None);
}

#[test]
fn clients_that_never_finish_do_not_hold_up_the_end() {
    let estate = Estate::new();
    let config = configure(&estate, &format!("file://{}", estate.path("repos").display()), |_| {});
    let mut server = Process::start(&mut serve(&config));
    ready(&server.url);
    let host = server.url.strip_prefix("http://").unwrap().to_owned();
    let head = "POST /mcp/none HTTP/1.1\r\nHost: x\r\n";
    let begun = ["", head, &format!("{head}Content-Length: 100\r\n\r\n{{")];
    let mut clients = begun.map(|begun| {
        let mut stream = TcpStream::connect(&host).unwrap();
        stream.write_all(begun.as_bytes()).unwrap();
        stream
    });
    // One that is served meanwhile.
    assert_eq!(asked(&server.url, "GET", "/health", false).0, 200);
    server.signal(Signal::TERM);
    assert!(server.wait().success(), "it ends while they are all connected");
    for client in &mut clients {
        client.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        drop(client.read_to_end(&mut Vec::new()));
    }
}
