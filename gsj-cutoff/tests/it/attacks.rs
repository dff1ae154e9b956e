//! What the author of a hostile repository, or of a hostile checkout, tries beside the forms in `hostile`.

use crate::git::{Case, apart, command, commit, fed, feed, git, handed, loose_path, pack_index, repository, request};
use crate::git::{tell, there, write};
use crate::hostile::{blob, bounded, entry, plant, refused};
use gix::zlib::Compression;
use gix::zlib::stream::deflate;
use gsj_cutoff::{Cut, CutRequest, CutoffError, Deny, Expectation, audit, checkout, cut};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

#[test]
#[ignore = "run by other tests, as a process of its own"]
fn audit_child() {
    let found = audit(&handed("GSJ_TEST_SOURCE"), &Expectation::default());
    tell(&found.map_or_else(|error| error.to_string(), |found| format!("{} leaks", found.leaks.len())));
}

fn audit_apart(dir: &Path) -> String {
    bounded(apart("attacks::audit_child", dir, dir)).expect("says something")
}

fn fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().expect("mkfifo runs").success());
}

fn link(target: &Path, path: &Path) {
    std::os::unix::fs::symlink(target, path).expect("links");
}

#[test]
fn refs_that_block_loop_or_lead_elsewhere_are_told() {
    if !there() {
        return;
    }
    type Change = fn(&Case, &Path);
    let changes: [(Change, &str); 7] = [
        (|_, path| fifo(path), "read `"),
        (|case, path| link(&case.root.path().join("secret"), path), "read `"),
        (|_, path| write(path, "ref: refs/heads/timestep-4\n"), "symbolic ref of more than 5 steps"),
        (|_, path| write(path, "ref: refs/../../secret\n"), "has no branch `timestep-4`"),
        (|_, path| write(path, "the secret of another file\n"), "its ref refs/heads/timestep-4 names no object"),
        (|case, _| fifo(&case.bare().join("packed-refs")), "read `"),
        (|case, _| link(Path::new("/dev/zero"), &case.bare().join("packed-refs")), "read `"),
    ];
    for (change, part) in changes {
        let case = Case::new();
        write(&case.root.path().join("secret"), "the secret of another file\n");
        let path = case.bare().join("refs/heads/timestep-4");
        // A clone has its refs packed.
        std::fs::remove_file(case.bare().join("packed-refs")).expect("removes");
        change(&case, &path);
        let dest = case.root.path().join("cut");
        let error = checkout(&request(&case.bare(), "timestep-4", 4, &dest)).expect_err("refused").to_string();
        assert!(error.contains(part) && !error.contains("the secret"), "{part} is not in: {error}");
    }
    let case = Case::new();
    git(&case.bare(), &["pack-refs", "--all"]);
    std::fs::remove_dir_all(case.bare().join("refs/heads")).expect("removes");
    link(&case.work().join(".git/refs/heads"), &case.bare().join("refs/heads"));
    refused(&case, &["refs/heads"]);
    // A branch that names a tag, and a name that is a folder of names.
    let case = Case::new();
    git(&case.bare(), &["tag", "-a", "v1", "-m", "annotated", "main"]);
    let tag = git(&case.bare(), &["rev-parse", "v1"]);
    write(&case.bare().join("refs/heads/timestep-4"), &tag);
    refused(&case, &[tag.trim(), "is a tag where a commit is needed"]);
    std::fs::create_dir_all(case.bare().join("refs/heads/timestep-3/empty")).expect("creates");
    checkout(&request(&case.bare(), "timestep-3", 3, &case.root.path().join("cut"))).expect("the packed one counts");
}

/// Both kinds of cut, since they read in different ways; gives their errors.
fn both(case: &Case) -> [CutoffError; 2] {
    [Cut::Timestep(4), Cut::Branch("timestep-4".into())].map(|at| {
        let dest = case.root.path().join("cut");
        let error = cut(&CutRequest::new(&case.bare(), at, &dest)).expect_err("refused");
        assert!(!dest.exists(), "nothing is left behind");
        error
    })
}

#[test]
fn objects_that_are_not_what_their_name_says_are_never_handed_out() {
    if !there() {
        return;
    }
    let ids = |case: &Case| {
        ["AGENTS.md", "md/page_0002.md"]
            .map(|path| git(&case.bare(), &["rev-parse", &format!("timestep-4:{path}")]).trim().to_owned())
    };
    // Loose: the content of one under the name of the other.
    let case = Case::new();
    let [rules, page] = ids(&case);
    let pack = std::fs::read_dir(case.bare().join("objects/pack")).expect("lists").next();
    assert!(pack.is_none(), "a clone on one machine has its objects loose");
    let loose = loose_path(&case.bare(), &page);
    std::fs::remove_file(&loose).expect("removes");
    std::fs::copy(loose_path(&case.bare(), &rules), loose).expect("copies");
    for error in both(&case) {
        assert!(error.to_string().contains("holds the content of"), "{error}");
    }
    // Packed: the index has the places of the two the wrong way round.
    let case = Case::new();
    git(&case.bare(), &["gc", "-q"]);
    let folder = case.root.path().join("as-worktree");
    std::fs::create_dir(&folder).expect("creates");
    link(&case.bare(), &folder.join(".git"));
    let index = pack_index(&folder);
    let mut bytes = std::fs::read(&index).expect("reads");
    let count = bytes[8 + 255 * 4..].iter().take(4).fold(0, |count, byte| count << 8 | usize::from(*byte));
    let place = |id: &String| {
        let id = hex::decode(id).expect("hex");
        let at = (0..count).find(|at| bytes[1_032 + at * 20..][..20] == id).expect("is in the index");
        1_032 + count * 24 + at * 4
    };
    let [rules, page] = ids(&case).map(|id| place(&id));
    for byte in 0..4 {
        bytes.swap(rules + byte, page + byte);
    }
    std::fs::remove_file(&index).expect("removes");
    std::fs::write(&index, bytes).expect("writes");
    for error in both(&case) {
        assert!(error.to_string().contains("holds the content of"), "{error}");
    }
}

#[test]
fn a_name_that_stands_twice_is_refused() {
    if !there() {
        return;
    }
    let case = Case::new();
    let id = blob(&case, b"another");
    // Among the entries of the tree is `AGENTS.md` already.
    let bytes = [entry("100644", b"AGENTS.md", &id), entry("100644", b"AGENTS.md", &id)].concat();
    let tree = feed(&case.bare(), &["hash-object", "-t", "tree", "-w", "--literally", "--stdin"], &bytes);
    plant(&case, "40000", b"twice", tree.trim());
    refused(&case, &["twice/AGENTS.md", "stands there twice"]);
}

#[test]
fn what_a_commit_embeds_is_text_and_names_no_parent() {
    if !there() {
        return;
    }
    let case = Case::new();
    let bare = case.bare();
    let [tip, later] = ["timestep-4", "main"].map(|name| git(&bare, &["rev-parse", name]).trim().to_owned());
    let tree = git(&bare, &["rev-parse", "timestep-4^{tree}"]).trim().to_owned();
    let who = "a <a@a.invalid> 1767225600 +0000";
    let made = |extra: &str, late: &str| {
        let text = format!(
            "tree {tree}\nparent {tip}\nauthor {who}\n{late}committer {who}\n{extra}gpgsig -----BEGIN\n parent \
             {later}\n tree {later}\n -----END\n\nsubject\n\nparent {later}\n"
        );
        let id = fed(&bare, &["hash-object", "-t", "commit", "-w", "--literally", "--stdin"], text.as_bytes());
        git(&bare, &["update-ref", "refs/heads/signed", &id]);
        id
    };
    let mergetag = format!("mergetag object {later}\n type commit\n tag v9\n tagger {who}\n \n parent {later}\n");
    let id = made(&mergetag, "");
    let dest = case.root.path().join("cut");
    let at = Cut::Branch("signed".into());
    let report = cut(&CutRequest::new(&bare, at.clone(), &dest)).expect("cuts");
    assert_eq!(report.evidence.commit, id);
    assert_eq!(report.evidence.commits.to_string(), git(&bare, &["rev-list", "--count", &id]).trim());
    assert_eq!(git(&dest, &["status", "--porcelain"]), "");
    // A parent where git reads none any more.
    std::fs::remove_dir_all(&dest).expect("removes");
    made("", &format!("parent {later}\n"));
    let error = cut(&CutRequest::new(&bare, at, &dest)).expect_err("refused").to_string();
    assert!(error.contains("is no valid commit"), "{error}");
}

#[test]
fn folders_in_folders_without_end_are_refused_by_every_walk() {
    if !there() {
        return;
    }
    let case = Case::new();
    let bare = case.bare();
    // Each tree must be there before the next is written, so they come as one pack.
    let mut id = gix::ObjectId::from_hex(blob(&case, b"leaf").as_bytes()).expect("an id");
    let mut mode = "100644";
    let mut entries = Vec::new();
    for _ in 0..20_000 {
        let bytes = entry(mode, b"d", &id.to_string());
        id = gix::objs::compute_hash(gix::hash::Kind::Sha1, gix::objs::Kind::Tree, &bytes).expect("digests");
        entries.push((2_u8, bytes.len(), Vec::new(), bytes));
        mode = "40000";
    }
    index_pack(&bare, &pack(entries));
    plant(&case, "40000", b"deep", &id.to_string());
    refused(&case, &["nested too deeply"]);
    // On top of it a tree without it, so that only the past is deep.
    let clean = git(&bare, &["rev-parse", "main^{tree}"]);
    let top = fed(&bare, &["commit-tree", "-m", "top", "-p", "timestep-4", clean.trim()], b"");
    git(&bare, &["update-ref", "refs/heads/top", &top]);
    let dest = case.root.path().join("cut");
    let deny = [Deny::PatchId("0".repeat(40))];
    for deny in [&[][..], &deny] {
        let request = CutRequest { deny, ..CutRequest::new(&bare, Cut::Branch("top".into()), &dest) };
        let error = cut(&request).expect_err("refused").to_string();
        assert!(error.contains("nested too deeply"), "{error}");
    }
}

/// An entry of a pack: kind, size of what is inflated, what stands before the stream, and the content.
type Packed = (u8, usize, Vec<u8>, Vec<u8>);

/// A pack of entries, whose number its head states.
fn pack(entries: Vec<Packed>) -> Vec<u8> {
    let mut out = [&b"PACK\0\0\0\x02"[..], &u32::try_from(entries.len()).expect("few").to_be_bytes()].concat();
    for (kind, size, before, content) in entries {
        let (mut rest, mut byte) = (size >> 4, kind << 4 | (size & 0xf) as u8);
        while rest > 0 {
            out.push(byte | 0x80);
            byte = (rest & 0x7f) as u8;
            rest >>= 7;
        }
        out.push(byte);
        out.extend(before);
        let mut stream = deflate::Write::new(Vec::new(), Compression::BEST_SPEED);
        stream.write_all(&content).expect("writes");
        stream.flush().expect("writes");
        out.extend(stream.into_inner());
    }
    let mut digest = gix::hash::hasher(gix::hash::Kind::Sha1);
    digest.update(&out);
    out.extend_from_slice(digest.try_finalize().expect("digests").as_slice());
    out
}

fn index_pack(bare: &Path, pack: &[u8]) {
    feed(bare, &["index-pack", "--stdin"], pack);
}

/// A pack of one blob and so many deltas, each on the one before: it replaces the last four bytes.
fn chain(length: u32) -> (Vec<u8>, String) {
    let mut content = b"the base of them all: 0000".to_vec();
    let size = u8::try_from(content.len()).expect("short");
    let mut entries: Vec<Packed> = vec![(3, content.len(), Vec::new(), content.clone())];
    let mut at = Vec::new();
    let mut distance = pack(entries.clone()).len() - 20 - 12;
    for number in 1..=length {
        let new = number.to_be_bytes();
        let delta = [&[size, size, 0x90, size - 4, 4][..], &new].concat();
        content.truncate(content.len() - 4);
        content.extend(new);
        let one = (6, delta.len(), vec![u8::try_from(distance).expect("short")], delta);
        if number <= 2 {
            at.push(pack(vec![one.clone()]).len() - 20 - 12);
        }
        // All deltas are equally long, since what differs in them does not compress.
        distance = at[at.len() - 1];
        entries.push(one);
    }
    let id = gix::objs::compute_hash(gix::hash::Kind::Sha1, gix::objs::Kind::Blob, &content).expect("digests");
    (pack(entries), id.to_string())
}

#[test]
fn a_chain_of_fifty_thousand_deltas_ends() {
    if !there() {
        return;
    }
    for (length, fits) in [(4_000, true), (50_000, false)] {
        let case = Case::new();
        let (pack, id) = chain(length);
        index_pack(&case.bare(), &pack);
        plant(&case, "100644", b"end-of-chain", &id);
        if fits {
            let dest = case.root.path().join("cut");
            checkout(&request(&case.bare(), "timestep-4", 4, &dest)).expect("cuts");
        } else {
            refused(&case, &["end-of-chain", "endless chain of deltas"]);
        }
        // As a checkout, the same is read in order and told.
        let folder = case.root.path().join("hostile");
        git(case.root.path(), &["clone", "-q", "--no-checkout", "case.git", "hostile"]);
        let hostile = folder.join(".git/objects/pack");
        std::fs::remove_dir_all(&hostile).expect("removes");
        crate::git::copy(&case.bare().join("objects/pack"), &hostile);
        assert!(audit_apart(&folder).contains("leaks"));
        let leaks = audit(&folder, &Expectation::default()).expect("audits").leaks;
        let endless = leaks.iter().filter(|leak| leak.what.contains("endless chain")).count();
        assert_eq!(endless > 0, !fits, "{length} deltas");
    }
}

#[test]
fn packs_that_claim_what_they_do_not_have_are_told() {
    if !there() {
        return;
    }
    let (root, work) = repository();
    commit(&work, "file.txt", "text\n");
    let source = root.path().join("source.git");
    git(root.path(), &["clone", "-q", "--bare", "work", "source.git"]);
    let dest = root.path().join("cut");
    let at = || Cut::Branch("main".into());
    cut(&CutRequest::new(&source, at(), &dest)).expect("cuts");
    for where_ in [8, 8 + 255 * 4] {
        // The count of the pack, then that of the index.
        let copy = root.path().join(format!("copy-{where_}"));
        crate::git::copy(&dest, &copy);
        let index = pack_index(&copy);
        let path = if where_ == 8 { index.with_extension("pack") } else { index };
        let mut bytes = std::fs::read(&path).expect("reads");
        bytes[where_..where_ + 4].copy_from_slice(&u32::MAX.to_be_bytes());
        std::fs::remove_file(&path).expect("removes");
        std::fs::write(&path, bytes).expect("writes");
        let said = audit_apart(&copy);
        assert!(said != "0 leaks", "{said}");
        // And as a source, it gives what it really has or nothing.
        let again = root.path().join(format!("again-{where_}"));
        match cut(&CutRequest::new(&copy, at(), &again)) {
            Ok(report) => assert_eq!(report.evidence.commits, 1),
            Err(error) => assert!(!again.exists(), "{error}"),
        }
    }
}

#[test]
fn a_submodule_whose_address_is_an_option_starts_nothing() {
    if !there() {
        return;
    }
    let case = Case::new();
    let marker = case.root.path().join("ran");
    let url = format!("-u./payload; touch {}", marker.display());
    let text = format!("[submodule \"x\"]\n\tpath = x\n\turl = \"{url}\"\n\tupdate = !touch {}\n", marker.display());
    let id = blob(&case, text.as_bytes());
    plant(&case, "100644", b".gitmodules", &id);
    let dest = case.root.path().join("cut");
    checkout(&request(&case.bare(), "timestep-4", 4, &dest)).expect("cuts");
    assert!(!marker.exists(), "nothing was run");
    assert!(!dest.join(".git/modules").exists());
}

#[test]
fn a_checkout_that_leans_on_another_repository_is_told() {
    if !there() {
        return;
    }
    let (root, work) = repository();
    commit(&work, "file.txt", "text\n");
    let dest = root.path().join("cut");
    let made = |name: &str, content: &str| {
        let _ = std::fs::remove_dir_all(&dest);
        cut(&CutRequest::new(&work, Cut::Branch("main".into()), &dest)).expect("cuts");
        write(&dest.join(".git").join(name), content);
        audit(&dest, &Expectation::default()).expect("audits").leaks
    };
    for (name, content) in [
        ("commondir", "../../work/.git\n"),
        ("gitdir", "/elsewhere/.git\n"),
        ("objects/info/alternates", "../../../work/.git/objects\n"),
        ("objects/info/alternates", "/elsewhere/objects\n"),
        ("objects/info/http-alternates", "https://h.invalid/objects\n"),
    ] {
        let leaks = made(name, content);
        assert!(leaks.iter().any(|leak| leak.where_ == format!(".git/{name}")), "{name} is not among {leaks:?}");
    }
    let error = cut(&CutRequest::new(&dest, Cut::Branch("main".into()), &root.path().join("x")));
    assert!(error.is_ok(), "alternates that lead nowhere are passed over");
    write(&dest.join(".git/commondir"), "../../work/.git\n");
    let error = cut(&CutRequest::new(&dest, Cut::Branch("main".into()), &root.path().join("y"))).expect_err("refused");
    assert!(error.to_string().contains("second working tree"), "{error}");
}

/// A repository with a commit, four files of 60 MiB that hardly differ, and thousands of small ones between them.
fn heavy() -> (TempDir, PathBuf) {
    let (root, work) = repository();
    commit(&work, "file.txt", "text\n");
    let mut child = command(&work, &["fast-import", "--quiet"]).stdin(Stdio::piped()).spawn().expect("git runs");
    let mut input = BufWriter::new(child.stdin.take().expect("is piped"));
    let mut large = vec![0_u8; 60 << 20];
    let mut put = |content: &[u8]| {
        writeln!(input, "blob\ndata {}", content.len()).expect("takes it");
        input.write_all(content).expect("takes it");
        writeln!(input).expect("takes it");
    };
    for part in 0..2_u8 {
        for number in 0..2 {
            large[usize::from(part)] = number + 1;
            put(&large);
        }
        for number in 0..4_000 {
            put(format!("small {part} {number}").as_bytes());
        }
    }
    drop(input);
    assert!(child.wait().expect("git ends").success());
    (root, work)
}

#[test]
fn several_threads_together_keep_within_the_memory_of_one() {
    if !there() {
        return;
    }
    let (_root, work) = heavy();
    assert!(audit_apart(&work).contains("leaks"));
}

#[test]
fn what_inflates_to_more_than_is_honest_is_an_error_that_says_what_to_do() {
    if !there() {
        return;
    }
    let (root, work) = repository();
    commit(&work, "file.txt", &"text\n".repeat(1_000));
    let dest = root.path().join("cut");
    let request =
        CutRequest { most_inflated: Some(4_000), ..CutRequest::new(&work, Cut::Branch("main".into()), &dest) };
    let error = cut(&request).expect_err("more than that").to_string();
    assert!(error.contains("more than 4000 bytes") && error.contains("`most_inflated`"), "{error}");
    assert!(!dest.exists());
    cut(&CutRequest { most_inflated: Some(40_000), ..request }).expect("is enough");
}
