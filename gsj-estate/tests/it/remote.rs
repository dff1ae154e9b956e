//! Scaffold and verify against a git host over http.

use crate::forge::{Forge, TOKEN};
use crate::support::{build, git, snapshot, synthetic};
use axum::http::{Method, StatusCode};
use gsj_estate::{
    Api, Corpus, EstateError, Host, Recipe, Remote, ScaffoldOptions, Scaffolded, VerifyOptions, scaffold, verify,
};
use std::fs;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;

fn push(root: &Path, remote: Remote, recipe: Recipe) -> Result<Scaffolded, EstateError> {
    let corpus = Corpus::read(root).expect("passes");
    scaffold(&corpus, &ScaffoldOptions::new(Host::Remote(remote), recipe))
}

fn failing(root: &Path, remote: Remote) -> Vec<String> {
    let corpus = Corpus::read(root).expect("passes");
    let report = verify(&corpus, &VerifyOptions::new(Host::Remote(remote))).expect("can be looked at");
    let of_bank = |rule: &str| rule.starts_with("verify.taskbank");
    let failures = report.failures().filter(|finding| !of_bank(finding.rule));
    failures.map(|finding| format!("{} {} {}", finding.rule, finding.scope, finding.where_)).collect()
}

fn count(calls: &[String], start: &str) -> usize {
    calls.iter().filter(|call| call.starts_with(start)).count()
}

#[test]
fn an_estate_on_a_host_is_made_once_and_reads_back_clean() {
    for recipe in [Recipe::Sealed, Recipe::Reference] {
        let Some(forge) = Forge::start() else { return };
        let root = synthetic(2);
        let made = push(root.path(), forge.remote(Some(TOKEN)), recipe).expect("pushes");
        assert!(made.repos.iter().all(|repo| repo.changed && repo.path.is_none()));
        let calls = forge.calls();
        assert_eq!(count(&calls, "GET /api/v1/user"), 1, "whose token it is, once a run: {calls:?}");
        assert_eq!(count(&calls, "POST /api/v1/user/repos"), made.repos.len());

        let folder = TempDir::new().expect("folder");
        let same = build(root.path(), folder.path(), recipe);
        assert_eq!(made.lock, same.lock, "the lock does not tell hosts apart");
        for repo in &same.repos {
            let name = repo.path.as_deref().and_then(Path::file_stem).expect("a name").to_string_lossy().into_owned();
            for (branch, id) in &repo.refs {
                let there = git(&forge.repository(&name), &["rev-parse", branch]).expect("git");
                assert_eq!(there.trim(), id, "{name} {branch}");
            }
        }
        assert_eq!(failing(root.path(), forge.remote(Some(TOKEN))), Vec::<String>::new());
        forge.calls();

        let again = push(root.path(), forge.remote(Some(TOKEN)), recipe).expect("looks");
        assert!(again.repos.iter().all(|repo| !repo.changed));
        let calls = forge.calls();
        let writes = calls.iter().filter(|call| call.contains("receive-pack") || !call.starts_with("GET"));
        assert_eq!(writes.filter(|call| !call.contains("upload-pack")).count(), 0, "{calls:?}");

        // What episodes may not read needs the token, and what is found says so.
        let report =
            verify(&Corpus::read(root.path()).expect("passes"), &VerifyOptions::new(Host::Remote(forge.remote(None))));
        for finding in report.expect("can be looked at").failures().filter(|finding| finding.rule == "verify.clone") {
            assert!(finding.detail.contains("GSJ_FORGEJO_TOKEN_GSJ_STAGING is not set"), "{}", finding.detail);
        }
        let without = failing(root.path(), forge.remote(None));
        let wanted = match recipe {
            Recipe::Sealed => vec!["verify.clone case_0000 full clone", "verify.clone case_0001 full clone"],
            Recipe::Reference => vec![],
        };
        assert_eq!(without, wanted);

        assert_eq!(forge.behaviour().leaks, Vec::<String>::new(), "the token stood in an argument list");
        assert_eq!(
            fs::read_dir(forge.scratch.path()).expect("lists").count(),
            0,
            "nothing is left in the scratch folder"
        );
        for (path, content) in snapshot(forge.root.path()).into_iter().chain(snapshot(root.path())) {
            assert!(!String::from_utf8_lossy(&content).contains(TOKEN), "the token is in {}", path.display());
        }
    }
}

#[test]
fn what_others_left_on_the_host_goes_away() {
    let Some(forge) = Forge::start() else { return };
    let root = synthetic(1);
    push(root.path(), forge.remote(Some(TOKEN)), Recipe::Reference).expect("pushes");
    let repository = forge.repository("case_0000");
    for change in
        [&["branch", "stray", "main"][..], &["tag", "v1", "main"], &["symbolic-ref", "HEAD", "refs/heads/stray"]]
    {
        git(&repository, change).expect("git");
    }
    let found = failing(root.path(), forge.remote(Some(TOKEN)));
    for finding in
        ["verify.refs case_0000 refs", "verify.other-refs case_0000 other refs", "verify.head case_0000 HEAD"]
    {
        assert!(found.iter().any(|found| found == finding), "{finding} is not among {found:?}");
    }
    assert!(push(root.path(), forge.remote(Some(TOKEN)), Recipe::Reference).expect("pushes").repos[0].changed);
    assert_eq!(failing(root.path(), forge.remote(Some(TOKEN))), Vec::<String>::new());

    // The branch that HEAD names goes with its timestep, and a case that is gone is told.
    push(root.path(), forge.remote(Some(TOKEN)), Recipe::Sealed).expect("pushes");
    fs::remove_dir_all(root.path().join("train/cases/case_0000/timestep-6")).expect("removes");
    push(root.path(), forge.remote(Some(TOKEN)), Recipe::Sealed).expect("pushes");
    assert_eq!(failing(root.path(), forge.remote(Some(TOKEN))), Vec::<String>::new());
    fs::rename(root.path().join("train/cases/case_0000"), root.path().join("train/cases/case_new")).expect("renames");
    let forgotten = push(root.path(), forge.remote(Some(TOKEN)), Recipe::Sealed).expect("pushes").forgotten;
    assert_eq!(forgotten.len(), 2, "{forgotten:?}");
    assert!(forgotten.iter().all(|one| !one.removed && one.why.is_some()), "{forgotten:?}");
    assert!(repository.exists(), "nothing is deleted on a host");
}

#[test]
fn trouble_passes_and_a_refusal_does_not() {
    let Some(forge) = Forge::start() else { return };
    let root = synthetic(1);
    let with = |token: &str| push(root.path(), forge.remote(Some(token)), Recipe::Reference);
    let set = |change: fn(&mut crate::forge::Behaviour)| change(&mut forge.behaviour());
    let message = |result: Result<Scaffolded, EstateError>| {
        let error = result.expect_err("refused");
        assert!(!error.to_string().contains(TOKEN), "{error}");
        (error.is_remote(), error.to_string())
    };

    let (remote, said) = message(with("another-token"));
    assert!(said.contains("/api/v1/user`"), "the place that was asked is named: {said}");
    assert!(remote && said.contains("401") && said.contains("GSJ_FORGEJO_TOKEN_GSJ_STAGING"), "{said}");
    set(|behaviour| behaviour.login = Some("somebody"));
    let (remote, said) = message(with(TOKEN));
    assert!(!remote && said.contains("`somebody`") && said.contains("`gsj-staging`"), "{said}");
    set(|behaviour| behaviour.login = None);
    for (status, word) in
        [(StatusCode::FORBIDDEN, "403"), (StatusCode::CONFLICT, "409"), (StatusCode::NOT_FOUND, "404")]
    {
        forge.behaviour().refuse = Some((Method::POST, status));
        let (remote, said) = message(with(TOKEN));
        assert!(remote && said.contains(word), "{said}");
    }
    set(|behaviour| behaviour.refuse = None);
    assert!(!root.path().join("corpus.lock.json").exists(), "no lock for what was not pushed");

    // Three at each of the steps: whose token, the repository, its refs, the push.
    set(|behaviour| behaviour.trouble = 3);
    assert!(with(TOKEN).expect("passes").repos[0].changed);
    fs::remove_dir_all(forge.repository("case_0000")).expect("removes");
    set(|behaviour| behaviour.trouble = 1);
    assert!(with(TOKEN).expect("passes").repos[0].changed);

    set(|behaviour| behaviour.trouble = u32::MAX);
    let mut remote = forge.remote(Some(TOKEN));
    remote.patience = Duration::from_millis(300);
    let (is_remote, said) = message(push(root.path(), remote.clone(), Recipe::Reference));
    assert!(is_remote && said.contains("503"), "{said}");
    remote.api = Api::None;
    let (is_remote, said) = message(push(root.path(), remote, Recipe::Reference));
    assert!(is_remote && said.contains("503"), "{said}");
}

#[test]
fn a_host_without_an_api_is_pushed_to_and_one_that_is_not_there_is_told() {
    let Some(forge) = Forge::start() else { return };
    let root = synthetic(1);
    let mut remote = forge.remote(Some(TOKEN));
    remote.api = Api::None;
    remote.patience = Duration::from_millis(300);
    let error = push(root.path(), remote.clone(), Recipe::Reference).expect_err("there is no such repository");
    let said = error.to_string();
    assert!(error.is_remote() && said.contains("case_0000.git") && said.contains("are made before, empty"), "{said}");
    git(forge.root.path(), &["init", "-q", "--bare", "-b", "main", "gsj-staging/case_0000.git"]).expect("git");
    let mut unknown = remote.clone();
    unknown.token = forge.remote(Some("another-token")).token;
    let error = push(root.path(), unknown, Recipe::Reference).expect_err("the credential is not accepted");
    let said = error.to_string();
    assert!(error.is_remote() && said.contains("GSJ_FORGEJO_TOKEN_GSJ_STAGING is not accepted"), "{said}");
    push(root.path(), remote, Recipe::Reference).expect("pushes");
    assert_eq!(count(&forge.calls(), "GET /api"), 0);
    assert_eq!(failing(root.path(), forge.remote(None)), Vec::<String>::new());

    let error = push(root.path(), forge.remote(None), Recipe::Reference).expect_err("a push needs a credential");
    assert!(matches!(error, EstateError::Credential { .. }), "{error}");
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("binds").local_addr().expect("an address");
    let mut gone =
        Remote::new(&format!("http://{free}"), None, "git".into(), std::env::temp_dir()).expect("an address");
    gone.token = forge.remote(Some(TOKEN)).token;
    gone.patience = Duration::from_millis(300);
    let error = push(root.path(), gone, Recipe::Reference).expect_err("nobody is there");
    assert!(error.is_remote() && error.to_string().contains("cannot be reached"), "{error}");
}

#[test]
fn a_dry_run_makes_nothing_on_the_host() {
    let Some(forge) = Forge::start() else { return };
    let root = synthetic(1);
    let corpus = Corpus::read(root.path()).expect("passes");
    let mut options = ScaffoldOptions::new(Host::Remote(forge.remote(Some(TOKEN))), Recipe::Sealed);
    options.dry_run = true;
    assert!(scaffold(&corpus, &options).expect("looks").repos.iter().all(|repo| repo.changed));
    assert!(forge.calls().iter().all(|call| call.starts_with("GET")));
    assert!(!root.path().join("corpus.lock.json").exists() && !forge.repository("case_0000").exists());
}
