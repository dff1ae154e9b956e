//! `gsj estate up`, `status` and `down`: from a folder of pages to collected traces, and back.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{
    ENGINE_KEY, Process, SECRET, agents_state, file_with, fixture, gsj, output, scripted_engine, shared, text, until,
};

/// A copy of a corpus, an engine, and a home that is taken away at the end.
struct Stand {
    root: tempfile::TempDir,
    engine: Process,
    agent: &'static str,
    state: PathBuf,
}

impl Stand {
    fn new() -> Self {
        Self::of(&fixture("corpus"), "light", None)
    }

    fn of(corpus: &Path, agent: &'static str, state: Option<PathBuf>) -> Self {
        let root = tempfile::Builder::new().prefix("gsj-up-").tempdir_in("/tmp").unwrap();
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let copied = Command::new("cp").arg("-r").arg(corpus).arg(root.path().join("corpus")).status().unwrap();
        assert!(copied.success());
        assert!(Command::new("chmod").args(["-R", "u+w"]).arg(root.path().join("corpus")).status().unwrap().success());
        for left in ["corpus.lock.json", "taskbank.parquet"] {
            drop(fs::remove_file(root.path().join("corpus").join(left)));
        }
        let state = state.unwrap_or_else(|| root.path().join("agents"));
        Self { root, engine: scripted_engine(&fixture("scripts/two-turns.json"), &[]), agent, state }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn home(&self) -> PathBuf {
        self.path("home")
    }

    /// A command about the estate.
    fn estate(&self, action: &str) -> Command {
        let mut command = gsj();
        command.args(["estate", action, "--format", "json", "--home"]).arg(self.home());
        command
    }

    /// The first `up`, with everything said.
    fn first(&self) -> Command {
        let mut command = self.estate("up");
        command.args(["-y", "--engine-url", &self.engine.url, "--engine-model", "gsj-scripted"]);
        command.args(["--engine-api-key-env", "GSJ_TEST_ENGINE_KEY", "--listen", "127.0.0.1:0"]);
        command.args(["--agent", self.agent, "--corpus"]).arg(self.path("corpus"));
        command.arg("--state").arg(&self.state);
        command
    }

    fn up(&self) -> Value {
        answer(&output(&mut self.first()))
    }

    /// `up` with nothing said but who answers.
    fn again(&self, yes: &[&str]) -> Output {
        output(self.estate("up").args(yes))
    }

    fn status(&self) -> (i32, Value) {
        let told = output(&mut self.estate("status"));
        (told.status.code().unwrap(), serde_json::from_slice(&told.stdout).unwrap_or(Value::Null))
    }

    /// Runs a command as it was printed, and gives the status of each session.
    fn run(&self, command: &str) -> Vec<String> {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("{command} --format json")]).current_dir(self.root.path());
        shell.env_remove("GSJ_PINS_PATH").env("GSJ_TEST_ENGINE_KEY", ENGINE_KEY);
        let ran = output(&mut shell);
        assert_eq!(ran.status.code(), Some(0), "{command}: {}", text(&ran));
        let lines = String::from_utf8_lossy(&ran.stdout).into_owned();
        let read = |line: &str| serde_json::from_str::<Value>(line).unwrap()["status"].as_str().unwrap().to_owned();
        lines.lines().map(read).collect()
    }
}

impl Drop for Stand {
    fn drop(&mut self) {
        drop(output(self.estate("down").args(["--deadline", "0", "--wipe", "-y"])));
    }
}

fn answer(ran: &Output) -> Value {
    assert_eq!(ran.status.code(), Some(0), "{}", text(ran));
    serde_json::from_slice(&ran.stdout).unwrap_or_else(|_| panic!("{}", text(ran)))
}

fn next(told: &Value) -> Vec<String> {
    told["next"].as_array().unwrap().iter().map(|line| line.as_str().unwrap().to_owned()).collect()
}

fn said(ran: &Output) -> String {
    String::from_utf8_lossy(&ran.stderr).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Another page of a case, and with it another timestep with the prompts of the one before.
fn add_page(corpus: &Path) {
    let case = corpus.join("train/cases/harbor-lease");
    let (from, to) = (case.join("timestep-24"), case.join("timestep-25"));
    assert!(Command::new("cp").arg("-r").arg(&from).arg(&to).status().unwrap().success());
    fs::write(to.join("pages/page_0025.md"), "The parties met on the quay and signed.\n").unwrap();
}

#[test]
fn a_corpus_becomes_an_estate_and_its_tasks_are_collected() {
    let stand = Stand::new();
    let ran = output(&mut stand.first());
    let told = answer(&ran);
    assert_eq!(told["changed"], true);
    assert!(said(&ran).contains("taken on trust"), "{}", text(&ran));
    let episode = PathBuf::from(told["pins"]["bring_up"].as_str().unwrap());
    for file in ["system_prompt.txt", "tools.json", "session.log", "result.json"] {
        assert!(episode.join(file).is_file(), "{file} is for a person to read");
    }
    for folder in ["traces", "quarantine"] {
        assert_eq!(fs::read_dir(stand.home().join(folder)).unwrap().count(), 0, "nothing was delivered");
    }

    // The secret is in one file, for its owner, and was not printed.
    let secret = fs::read_to_string(stand.home().join("secret")).unwrap();
    assert!(secret.len() >= 32 && !text(&ran).contains(&secret));
    assert_eq!(fs::metadata(stand.home().join("secret")).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(file_with(&stand.home(), secret.as_bytes()), Some(stand.home().join("secret")));
    for canary in [SECRET, ENGINE_KEY] {
        assert_eq!(file_with(&stand.home(), canary.as_bytes()), None);
    }

    // The files are good ones, and the pins say of each value where it came from.
    let config = stand.home().join("rollout.yaml");
    assert_eq!(output(gsj().args(["config", "check"]).arg(&config)).status.code(), Some(0));
    let verified = output(gsj().args(["pins", "verify", "--format", "json"]).arg(stand.home().join("pins/pins.json")));
    let verified = answer(&verified);
    for check in verified["checks"].as_array().unwrap() {
        assert_eq!(check["outcome"], "confirmed", "{check}");
    }

    // Both printed commands work as they are, and every task is collected.
    let rows = told["bank"]["rows"].as_u64().unwrap();
    let ended: Vec<String> = next(&told).iter().flat_map(|command| stand.run(command)).collect();
    assert_eq!(ended.len() as u64, rows);
    assert!(ended.iter().all(|status| status == "accepted"), "{ended:?}");

    // Nothing changed: nothing is asked, and the server is the same.
    let same = answer(&stand.again(&[]));
    assert_eq!((&same["changed"], &same["server"]["pid"]), (&json!(false), &told["server"]["pid"]), "{same}");

    // A page more: without a terminal it is said that somebody has to say yes.
    add_page(&stand.path("corpus"));
    assert_eq!(stand.status().0, 1, "the corpus changed");
    let asked = stand.again(&[]);
    assert_eq!(asked.status.code(), Some(2), "{}", text(&asked));
    assert!(said(&asked).contains("to do: repositories of harbor-lease"), "{}", text(&asked));
    assert!(said(&asked).contains("There is no terminal") && said(&asked).contains("-y"), "{}", text(&asked));
    let more = answer(&stand.again(&["-y"]));
    assert!(more["bank"]["rows"].as_u64().unwrap() > rows);
    assert_eq!(more["server"]["pid"], told["server"]["pid"], "it read the pages anew, and went on");
    let prompt = format!(
        "{} submit --config {} --case harbor-lease --timestep 25 --prompt 'What was signed?'",
        env!("CARGO_BIN_EXE_gsj"),
        config.display()
    );
    assert_eq!(stand.run(&prompt), ["accepted"], "the server knows the new page");
    let (code, status) = stand.status();
    assert_eq!((code, &status["ok"]), (0, &json!(true)), "{status}");
    assert_eq!(status["sessions"]["detail"]["COMPLETED"].as_u64(), Some(rows + 1));

    // Down, again, up, away.
    assert_eq!(answer(&output(&mut stand.estate("down")))["stopped"], true);
    assert_eq!(stand.status().0, 1, "not running");
    assert_eq!(answer(&output(&mut stand.estate("down")))["stopped"], false);
    let back = answer(&stand.again(&["-y"]));
    assert_eq!(back["server"]["url"], told["server"]["url"], "the same address again");
    assert_eq!(stand.status().0, 0);
    let asked = output(stand.estate("down").arg("--wipe"));
    assert_eq!(asked.status.code(), Some(2), "not without being sure: {}", text(&asked));
    assert_eq!(stand.status().0, 0, "and nothing was stopped");
    assert_eq!(answer(&output(stand.estate("down").args(["--wipe", "-y"])))["wiped"], true);
    assert!(!stand.home().exists() && stand.path("corpus/corpus.yaml").is_file());
    let gone = output(&mut stand.estate("down"));
    assert_eq!(gone.status.code(), Some(2), "{}", text(&gone));
}

#[test]
fn what_changed_is_looked_at_again_and_what_was_edited_stays() {
    let mut stand = Stand::new();
    let told = stand.up();
    let config = stand.home().join("rollout.yaml");

    // A person's own settings stay; the server is started anew for them.
    let edited = fs::read_to_string(&config).unwrap().replace("sampling: {}", "sampling: {temperature: 0.5}");
    fs::write(&config, &edited).unwrap();
    let second = answer(&stand.again(&["-y"]));
    assert_ne!(second["server"]["pid"], told["server"]["pid"]);
    assert_eq!(fs::read_to_string(&config).unwrap(), edited);
    assert_eq!(answer(&stand.again(&[]))["changed"], false);

    // One that cannot be used is told by `status`, kept beside, and who said yes is told to what.
    fs::write(&config, format!("{edited}\nbogus: 1\n")).unwrap();
    let (code, status) = stand.status();
    assert!(code == 1 && status["config"]["says"].as_str().unwrap().contains("bogus"), "{status}");
    assert_eq!(status["agent"]["ok"], true, "{status}");
    let ran = stand.again(&["-y"]);
    answer(&ran);
    assert!(said(&ran).contains("unknown field `bogus`") && said(&ran).contains("yes (-y)"), "{}", text(&ran));
    assert!(fs::read_to_string(stand.home().join("rollout.yaml.before")).unwrap().contains("bogus"));
    fs::write(&config, &edited).unwrap();
    let bare = stand.again(&["-y", "--engine-url", "127.0.0.1:9"]);
    assert!(bare.status.code() == Some(2) && said(&bare).contains("--engine-url 127.0.0.1:9"), "{}", text(&bare));

    // Behind the wall only what the server takes is offered.
    fs::write(&config, edited.replace("split_wall: false", "split_wall: true")).unwrap();
    let walled = next(&answer(&stand.again(&["-y"])));
    assert!(!walled.is_empty() && walled.iter().all(|line| !line.contains("--split eval")), "{walled:?}");
    fs::write(&config, &edited).unwrap();
    answer(&stand.again(&["-y"]));

    // Other rules for the agent, another skill: one asks for a look, the other is derived.
    let rules = stand.path("corpus/AGENTS.md");
    fs::write(&rules, format!("{}\nBe brief.\n", fs::read_to_string(&rules).unwrap())).unwrap();
    let third = answer(&stand.again(&["-y"]));
    assert_ne!(third["pins"]["bring_up"], told["pins"]["bring_up"]);
    let card = stand.path("corpus/skills/summarize/SKILL.md");
    fs::write(&card, format!("{}\nOne page at most.\n", fs::read_to_string(&card).unwrap())).unwrap();
    let fourth = answer(&stand.again(&["-y"]));
    assert_eq!(fourth["pins"]["bring_up"], third["pins"]["bring_up"]);
    let ended: Vec<String> = next(&fourth).iter().flat_map(|command| stand.run(command)).collect();
    assert!(ended.iter().all(|status| status == "accepted"), "{ended:?}");

    // Another engine.
    stand.engine = scripted_engine(&fixture("scripts/two-turns.json"), &[]);
    let unasked = stand.again(&["--engine-url", &stand.engine.url]);
    assert_eq!(unasked.status.code(), Some(2), "{}", text(&unasked));
    assert!(said(&unasked).contains("to do: the engine:"), "{}", text(&unasked));
    let fifth = stand.again(&["-y", "--engine-url", &stand.engine.url, "--engine-api-key-env", "GSJ_TEST_ENGINE_KEY"]);
    let fifth = answer(&fifth);
    assert_ne!(fifth["server"]["pid"], fourth["server"]["pid"]);
    assert!(fs::read_to_string(&config).unwrap().contains(&stand.engine.url));
    assert!(stand.home().join("rollout.yaml.before").is_file(), "the edited one is kept");
    assert_eq!(stand.status().0, 0);

    // One that is not there is told of before anything is changed.
    let gone = stand.again(&["-y", "--engine-url", "http://127.0.0.1:9"]);
    assert_eq!(gone.status.code(), Some(3), "{}", text(&gone));
    let back = stand.again(&["-y", "--engine-url", &stand.engine.url, "--engine-api-key-env", "GSJ_TEST_ENGINE_KEY"]);
    answer(&back);
}

#[test]
fn findings_stop_it_as_validate_shows_them() {
    let stand = Stand::new();
    fs::write(stand.path("corpus/train/cases/harbor-lease/timestep-5/pages/page_0004.md"), "a\0b").unwrap();
    let ran = output(&mut stand.first());
    assert_eq!(ran.status.code(), Some(1), "{}", text(&ran));
    let validated =
        output(gsj().args(["estate", "validate", "--format", "json", "--corpus"]).arg(stand.path("corpus")));
    assert_eq!(String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&validated.stdout));
    assert!(!stand.home().exists(), "nothing was begun");

    fs::create_dir(stand.home()).unwrap();
    fs::write(stand.home().join("notes"), "mine").unwrap();
    let foreign = output(gsj().args(["estate", "down", "--wipe", "-y", "--home"]).arg(stand.home()));
    assert_eq!(foreign.status.code(), Some(2), "{}", text(&foreign));
    let foreign = output(&mut stand.first());
    assert_eq!(foreign.status.code(), Some(1), "the findings still come first: {}", text(&foreign));
    assert!(stand.home().join("notes").is_file());
}

#[test]
fn a_folder_that_no_sandbox_reaches_is_refused_before_anything_is_made() {
    let stand = Stand::new();
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let closed = stand.path("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
    let mut command = gsj();
    command.args([
        "estate",
        "up",
        "-y",
        "--engine-url",
        &stand.engine.url,
        "--engine-model",
        "gsj-scripted",
        "--corpus",
    ]);
    let ran = output(command.arg(stand.path("corpus")).arg("--home").arg(closed.join("home")));
    assert_eq!(ran.status.code(), Some(2), "{}", text(&ran));
    assert!(said(&ran).contains("chmod o+x"), "{}", text(&ran));
    assert_eq!(fs::read_dir(&closed).unwrap().count(), 0);
}

#[test]
fn the_second_of_two_is_told_who_is_at_work() {
    let mut stand = Stand::new();
    stand.engine = scripted_engine(&fixture("scripts/two-turns.json"), &["--latency-ms", "4000"]);
    let mut first = stand.first().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let lock = stand.home().join("up.lock");
    until("the first to be at work", Duration::from_secs(60), || {
        fs::read_to_string(&lock).ok().filter(|told| told.contains("gsj estate up"))
    });
    let second = output(&mut stand.first());
    assert_eq!(second.status.code(), Some(2), "{}", text(&second));
    assert!(said(&second).contains(&format!("gsj estate up (process {})", first.id())), "{}", text(&second));
    assert!(first.wait().unwrap().success());
}

#[test]
fn killed_at_any_moment_the_next_up_ends_the_same() {
    let undisturbed = Stand::new();
    let wanted = undisturbed.up();
    let stand = Stand::new();
    for moment in [20, 150, 400, 700, 1100, 1600, 2200, 3000] {
        let mut run = stand.first().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(moment));
        drop(run.kill());
        run.wait().unwrap();
    }
    let told = stand.up();
    for part in ["cases", "recipe"] {
        assert_eq!(told[part], wanted[part]);
    }
    assert_eq!(told["bank"]["rows"], wanted["bank"]["rows"]);
    let approved = |stand: &Stand| -> Value {
        let pins = fs::read(stand.home().join("pins/pins.json")).unwrap();
        serde_json::from_slice::<Value>(&pins).unwrap()["pins"].clone()
    };
    assert_eq!(approved(&stand), approved(&undisturbed));
    assert_eq!(stand.status().0, 0);
    let submit = format!(
        "{} submit --config {} --case harbor-lease --timestep 12 --prompt 'Summarise.'",
        env!("CARGO_BIN_EXE_gsj"),
        stand.home().join("rollout.yaml").display()
    );
    assert_eq!(stand.run(&submit), ["accepted"]);
    let left = fs::read_dir(stand.home().join("bring-up/sessions")).unwrap().count();
    assert_eq!(left, 0, "no episode's folder is left");
}

#[test]
fn the_staging_corpus_is_collected_in_both_splits() {
    let Some(corpus) = shared("data/staging-corpus") else { return };
    let stand = Stand::of(&corpus, "light", None);
    // Lock and bank elsewhere, as beside a corpus that cannot be written to.
    let told = answer(&output(stand.first().arg("--lock-dir").arg(stand.path("lock"))));
    collected(&stand, &told);
    assert!(!stand.path("corpus/taskbank.parquet").exists() && !stand.path("corpus/corpus.lock.json").exists());
    assert_eq!((stand.status().0, answer(&stand.again(&[]))["changed"].as_bool()), (0, Some(false)));
}

#[test]
fn the_real_agent_collects_both_corpora() {
    let Some(state) = agents_state() else { return };
    let Some(staging) = shared("data/staging-corpus") else { return };
    for corpus in [fixture("corpus"), staging] {
        let stand = Stand::of(&corpus, "pi", Some(state.clone()));
        let told = stand.up();
        collected(&stand, &told);
    }
}

fn collected(stand: &Stand, told: &Value) {
    let commands = next(told);
    assert_eq!(commands.len(), 2, "both splits are there");
    let ended: Vec<String> = commands.iter().flat_map(|command| stand.run(command)).collect();
    assert_eq!(Some(ended.len() as u64), told["bank"]["rows"].as_u64());
    assert!(ended.iter().all(|status| status == "accepted"), "{ended:?}");
}
