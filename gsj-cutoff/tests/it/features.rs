//! What each feature brings, as cargo itself tells.

use std::process::Command;

/// The names of the crates that a choice of features takes in, tests aside.
fn crates(features: &str) -> Option<Vec<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--locked", "--edges", "normal", "--prefix", "none", "--no-default-features"])
        .args(["--features", features, "--manifest-path", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")])
        .output()
        .ok()?;
    if !output.status.success() {
        eprintln!("SKIPPED: cargo tree: {}", String::from_utf8_lossy(&output.stderr));
        return None;
    }
    let name = |line: &str| line.split(' ').next().unwrap_or_default().to_owned();
    Some(String::from_utf8_lossy(&output.stdout).lines().map(name).collect())
}

#[test]
fn tokens_bring_no_git_and_git_brings_no_tokens() {
    let (Some(tokens), Some(git), Some(fetch)) = (crates("tokens"), crates("git"), crates("fetch")) else { return };
    let git_part = |name: &String| name.starts_with("gix") || name == "imara-diff" || name.starts_with("zlib");
    let token_part = |name: &String| matches!(&name[..], "jsonwebtoken" | "rsa" | "hmac" | "p256" | "ed25519-dalek");
    assert!(tokens.iter().any(token_part) && git.iter().any(git_part), "both are there where they are asked for");
    assert_eq!(tokens.iter().find(|name| git_part(name)), None);
    assert_eq!(git.iter().find(|name| token_part(name)), None);
    for stack in ["reqwest", "tokio", "rustls", "hyper", "curl"] {
        assert!(!fetch.iter().any(|name| name == stack), "fetching brings no {stack}");
    }
    for choice in [&tokens, &git, &fetch] {
        let others: Vec<_> = choice.iter().filter(|name| name.starts_with("gsj-") && *name != "gsj-cutoff").collect();
        assert!(others.is_empty(), "no other crate of ours: {others:?}");
    }
}
