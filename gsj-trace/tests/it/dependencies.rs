//! What a trainer compiles when it takes this crate alone.

use std::process::Command;

#[test]
fn without_features_no_tokenizer_template_engine_or_network_is_pulled_in() {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let tree = |features: &[&str]| {
        let out = Command::new(&cargo)
            .args(["tree", "--offline", "--edges", "normal,build", "--prefix", "none", "--format", "{p}"])
            .args(features)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .expect("cargo runs");
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8_lossy(&out.stdout).into_owned()
    };
    let has = |tree: &str, name: &str| tree.lines().any(|line| line.split(' ').next() == Some(name));
    let heavy = ["tokenizers", "onig", "minijinja", "minijinja-contrib", "serde_json", "tokio", "rustls", "gix"];
    let plain = tree(&[]);
    assert!(has(&plain, "sha2"), "the list can be read:\n{plain}");
    for name in heavy {
        assert!(!has(&plain, name), "{name} is in the default build:\n{plain}");
    }
    let whole = tree(&["--features", "tokenizer"]);
    assert!(
        has(&whole, "tokenizers") && has(&whole, "onig") && has(&whole, "minijinja"),
        "the feature brings them:\n{whole}"
    );
    assert!(!has(&whole, "tokio") && !has(&whole, "rustls"), "but no network:\n{whole}");
}
