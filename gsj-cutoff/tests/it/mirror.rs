//! Mirrors of a real `git http-backend` that asks for a password.

use crate::fetch::{SECRET, serve};
use crate::git::{Case, git, snapshot, there};
use gsj_cutoff::{Credential, CutoffError, MirrorRequest, mirror};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

fn wanted<'a>(url: &'a str, credential: &'a Credential, into: &'a Path) -> MirrorRequest<'a> {
    let program = Path::new("git");
    MirrorRequest { url, credential: Some(credential), program, certificates: None, into, stop: &|| false }
}

fn credential() -> Credential {
    Credential::new(&format!("user:{SECRET}")).expect("usable")
}

fn heads(repository: &Path) -> String {
    git(repository, &["for-each-ref", "--format=%(refname) %(objectname)"])
}

#[test]
fn branches_come_move_and_go_with_the_remotes() {
    if !there() {
        return;
    }
    let case = Case::new();
    let (base, seen) = serve(case.root.path().to_owned());
    let (url, into, credential) = (format!("{base}/case.git"), case.root.path().join("copy.git"), credential());
    mirror(&wanted(&url, &credential, &into)).expect("made");
    assert_eq!(heads(&into), heads(&case.bare()));

    let bare = case.bare();
    git(&bare, &["branch", "timestep-9", "timestep-1"]);
    git(&bare, &["branch", "-D", "timestep-3"]);
    git(&bare, &["branch", "-f", "timestep-4", "timestep-2"]);
    git(&bare, &["update-ref", "refs/heads/main", "timestep-1"]);
    mirror(&wanted(&url, &credential, &into)).expect("brought up to date");
    assert_eq!(heads(&into), heads(&bare), "forced, pruned and new");
    git(&bare, &["tag", "later", "timestep-4"]);
    mirror(&wanted(&url, &credential, &into)).expect("brought up to date");
    assert!(!heads(&into).contains("refs/tags"), "branches only");

    assert!(!seen.lock().expect("lock").in_arguments, "the secret stands in a process list");
    for (path, _, content) in snapshot(&into) {
        assert!(!String::from_utf8_lossy(&content).contains(SECRET), "{} holds the secret", path.display());
    }
}

#[test]
fn a_first_copy_that_was_stopped_is_made_again() {
    if !there() {
        return;
    }
    let case = Case::new();
    let (base, _) = serve(case.root.path().to_owned());
    let (url, credential) = (format!("{base}/case.git"), credential());
    type Spoil = (&'static str, fn(&Path));
    let spoiled: [Spoil; 4] = [
        ("an empty folder", |_| {}),
        ("a folder of something else", |into| fs::write(into.join("notes"), "x").expect("written")),
        ("a repository without objects", |into| {
            fs::create_dir(into.join("objects")).expect("made");
            fs::write(into.join("HEAD"), "ref: refs/heads/main\n").expect("written");
        }),
        ("what was being made", |into| fs::create_dir_all(into.with_file_name(".copy.git.new/x")).expect("made")),
    ];
    for (what, spoil) in spoiled {
        let folder = tempfile::tempdir().expect("a folder");
        let into = folder.path().join("copy.git");
        fs::create_dir(&into).expect("made");
        spoil(&into);
        mirror(&wanted(&url, &credential, &into)).expect(what);
        assert_eq!(heads(&into), heads(&case.bare()), "{what}");
        assert_eq!(fs::read_dir(folder.path()).expect("lists").count(), 1, "{what}: nothing is left beside it");
    }
}

#[test]
fn a_remote_that_refuses_leaves_the_copy_and_says_so_without_the_secret() {
    if !there() {
        return;
    }
    let case = Case::new();
    let (base, _) = serve(case.root.path().to_owned());
    let (url, into) = (format!("{base}/case.git"), case.root.path().join("copy.git"));
    mirror(&wanted(&url, &credential(), &into)).expect("made");
    let before = heads(&into);
    let wrong = Credential::new("user:not-the-password").expect("usable");
    match mirror(&wanted(&url, &wrong, &into)) {
        Err(CutoffError::Fetch { url: told, reason }) => {
            assert_eq!(told, url);
            assert!(reason.contains("fatal:") && !reason.contains("not-the-password"), "{reason}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(heads(&into), before);
    fs::rename(case.bare(), case.root.path().join("away.git")).expect("moved");
    mirror(&wanted(&url, &credential(), &into)).expect_err("it is gone");
    assert_eq!(heads(&into), before);
}

#[test]
fn a_remote_that_says_nothing_is_given_up_when_it_is_told_to() {
    if !there() {
        return;
    }
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("binds");
    let url = format!("http://{}/case.git", silent.local_addr().expect("address"));
    let folder = tempfile::tempdir().expect("a folder");
    let (into, credential, stop) = (folder.path().join("copy.git"), credential(), AtomicBool::new(false));
    let told = || stop.load(Ordering::SeqCst);
    let error = std::thread::scope(|scope| {
        let request = MirrorRequest { stop: &told, ..wanted(&url, &credential, &into) };
        let mirroring = scope.spawn(move || mirror(&request));
        std::thread::sleep(Duration::from_millis(200));
        stop.store(true, Ordering::SeqCst);
        mirroring.join().expect("no panic").expect_err("given up")
    });
    assert!(error.to_string().contains("told to stop"), "{error}");
    assert!(!into.exists());
}
