//! What an agent finds when it looks for a way out.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{
    ENGINE_KEY, Estate, SECRET, file_with, fixture, get, gsj, http, output, scripted_engine, text, until,
};

fn mint(case: &str, timestep: u32, episode: &str) -> String {
    let minted = output(gsj().args([
        "token",
        "mint",
        "--case",
        case,
        "--timestep",
        &timestep.to_string(),
        "--episode",
        episode,
    ]));
    assert!(minted.status.success(), "{}", text(&minted));
    String::from_utf8(minted.stdout).unwrap().trim().to_owned()
}

#[test]
fn nothing_of_the_host_and_nothing_of_the_future_is_in_reach() {
    let estate = Estate::new();
    estate.install("probe");
    let script = estate.path("script.json");
    std::fs::write(&script, json!([{"content": "done"}]).to_string()).unwrap();
    let engine = scripted_engine(&script, &[]);
    let config = estate.configure(&engine.url, "probe", |_| {});
    let server = estate.serve(&config);

    // The middle timestep of a case: there are pages after it.
    let cases = fixture("corpus/train/cases");
    let case = std::fs::read_dir(&cases).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).min().unwrap();
    let mut timesteps: Vec<u32> = std::fs::read_dir(cases.join(&case))
        .unwrap()
        .filter_map(|e| e.unwrap().file_name().to_string_lossy().strip_prefix("timestep-").and_then(|t| t.parse().ok()))
        .collect();
    timesteps.sort_unstable();
    let (timestep, last) = (timesteps[timesteps.len() / 2], timesteps[timesteps.len() - 1]);
    assert!(timestep < last);

    let engine_address = engine.url.strip_prefix("http://127.0.0.1:").unwrap().parse::<u16>().unwrap();
    let server_address = server.url.strip_prefix("http://127.0.0.1:").unwrap().parse::<u16>().unwrap();
    let ask = json!({
        "addresses": [["1.1.1.1", 80], ["10.0.0.1", 80], ["169.254.169.254", 80], ["192.168.0.1", 80], ["172.17.0.1", 80],
                      ["127.0.0.1", engine_address], ["127.0.0.1", server_address], ["::1", 80]],
        "host_paths": ["/root", "/work", "/var/lib", "/var/run", "/run/docker.sock", "/etc/shadow", "/etc/ssl", "/boot",
                       "/srv", "/mnt", "/home/user", estate.home.path(), project_path()],
        "tokens": [mint(&case, last, "other"), mint(&case, timestep, "other"), mint("case_9999", timestep, "other")],
    });
    let task = json!({
        "task_id": "probe", "instruction": ask.to_string(), "num_samples": 1, "timeout_seconds": 300,
        "agent": {"harness": "probe", "settings": {"case_id": case, "timestep": timestep}},
        "metadata": {"case_id": case, "timestep": timestep, "prompt_source": "free"},
    });
    let (status, answer) = http(&format!("{}/rollout/task/submit", server.url), "POST", Some(&task));
    assert_eq!(status, 200, "{answer}");

    // While it runs, no command line or environment of the sandbox shows a secret or a token.
    let ended = until("the probe", Duration::from_secs(300), || {
        let status = get(&format!("{}/rollout/task/probe", server.url));
        (status["status"] != "running").then_some(status)
    });
    let result = &ended["results"][0];
    assert_eq!(result["status"], "COMPLETED", "the probe itself came to its end: {}", result["error"]);
    let session = result["session_id"].as_str().unwrap();
    let artifacts = estate.path("state/artifacts").join(session);
    let report: Value = serde_json::from_slice(&std::fs::read(artifacts.join("out/probe.json")).unwrap()).unwrap();

    assert_eq!(report["loopback_open"], json!([8080, 8790]), "only the two ports of the session");
    for (address, found) in report["addresses"].as_object().unwrap() {
        assert_ne!(found, "open", "{address} must be out of reach");
    }
    assert!(report["dns"].as_str().unwrap().starts_with("failed"), "{}", report["dns"]);
    assert!(report["udp"].as_str().unwrap().starts_with("failed"), "{}", report["udp"]);
    assert_eq!(report["interfaces"], json!(["lo"]));
    assert_eq!(report["unix_sockets"], json!([]), "no socket of the host is bound in");
    for (path, there) in report["host_paths"].as_object().unwrap() {
        assert_eq!(there, false, "{path} is of the host");
    }
    let tops: BTreeSet<&str> =
        report["paths"].as_array().unwrap().iter().filter_map(|p| p.as_str().unwrap().split('/').nth(1)).collect();
    let allowed = BTreeSet::from([
        "bin",
        "dev",
        "etc",
        "home",
        "lib",
        "lib64",
        "lib32",
        "libx32",
        "opt",
        "proc",
        "run",
        "sbin",
        "sys",
        "tmp",
        "usr",
        "var",
        "workspace",
    ]);
    assert!(tops.is_subset(&allowed), "the root holds only what is listed: {tops:?}");
    assert_ne!(report["uid"], 0, "the agent is not root");

    let log = report["log"].as_array().unwrap();
    assert_eq!(log.len(), 1, "one commit: {log:?}");
    assert_eq!(report["remotes"], json!([]));
    assert_eq!(report["status"].as_array().unwrap().len(), 0, "a clean checkout: {}", report["status"]);

    let objects = std::fs::read(artifacts.join("out/objects.bin")).unwrap();
    let readable = std::fs::read(artifacts.join("out/readable.bin")).unwrap();
    assert!(objects.len() > 1000 && readable.len() > 1000, "the probe really read something");
    let pages = cases.join(&case).join(format!("timestep-{last}/pages"));
    for page in 1..=last {
        let bytes = std::fs::read(pages.join(format!("page_{page:04}.md"))).unwrap();
        let there = objects.windows(bytes.len()).any(|w| w == bytes);
        assert_eq!(there, page <= timestep, "page {page} at timestep {timestep}");
        if page > timestep {
            let readable_there = readable.windows(bytes.len()).any(|w| w == bytes);
            assert!(!readable_there, "page {page} is in some file");
        }
    }
    for canary in [SECRET, ENGINE_KEY] {
        let holds = |bytes: &[u8]| bytes.windows(canary.len()).any(|w| w == canary.as_bytes());
        assert!(!holds(&readable) && !holds(&objects), "a secret is readable inside");
        assert_eq!(file_with(estate.home.path(), canary.as_bytes()), None, "a secret is in a file of the estate");
    }
    let home = estate.home.path().to_str().unwrap();
    assert!(
        !readable.windows(home.len()).any(|w| w == home.as_bytes()) || {
            // Mount tables name the source of a bind by the kernel's own rule; nothing else may.
            let text = String::from_utf8_lossy(&readable).into_owned();
            text.lines().filter(|line| line.contains(home)).all(|line| line.contains(" - "))
        }
    );

    let tokens = report["tokens"].as_object().unwrap();
    assert_eq!(tokens["own"][0], 200, "{}", tokens["own"]);
    assert!(tokens["own"][1].as_str().unwrap().contains(&format!("\\\"timestep\\\": {timestep}")), "{}", tokens["own"]);
    for (name, answer) in tokens.iter().filter(|(name, _)| *name != "own") {
        assert_eq!(answer[0], 401, "{name}: {answer}");
    }
}

fn project_path() -> std::path::PathBuf {
    crate::support::project()
}
