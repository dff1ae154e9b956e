//! `cargo xtask docs`: the pages of `docs/` that come from the code.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{ExitCode, Stdio};

use crate::tools;

pub(crate) fn run() -> Result<(), ExitCode> {
    // A page for each id of a finding, from the catalogue of the validators.
    pages("docs/findings", "gsj-checks", "finding_pages")?;
    // A page for each part of a corpus, from the catalogue of its rules.
    pages("docs/rules", "gsj-estate", "rule_pages")?;
    configuration()
}

/// The pages of a folder, which an example of a crate prints. The folder is written anew: a page that is no more printed
/// goes.
fn pages(folder: &str, package: &str, example: &str) -> Result<(), ExitCode> {
    let text = printed(&["run", "--quiet", "--package", package, "--example", example])?;
    let mut parts = text.split_terminator('\0');
    let pages: BTreeMap<&str, &str> = std::iter::from_fn(|| Some((parts.next()?, parts.next()?))).collect();
    if pages.is_empty() {
        eprintln!("xtask: the example {example} of {package} printed no page");
        return Err(ExitCode::from(1));
    }
    let folder = tools::root().join(folder);
    let write = || {
        std::fs::create_dir_all(&folder)?;
        for entry in std::fs::read_dir(&folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.ends_with(".md") && !pages.contains_key(name.as_str()) {
                std::fs::remove_file(entry.path())?;
            }
        }
        pages.iter().try_for_each(|(name, text)| std::fs::write(folder.join(name), text))
    };
    wrote(&folder, write())
}

/// The reference of the configuration, from its types.
fn configuration() -> Result<(), ExitCode> {
    let page = printed(&["run", "--quiet", "--package", "gsj-cli", "--bin", "gsj", "--", "config", "reference"])?;
    let path = tools::root().join("docs/configuration.md");
    wrote(&path, std::fs::write(&path, page))
}

/// What a run of cargo prints.
fn printed(arguments: &[&str]) -> Result<String, ExitCode> {
    let output = tools::cargo().args(arguments).stderr(Stdio::inherit()).output();
    match output {
        Ok(output) if output.status.success() => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        Ok(_) => Err(ExitCode::from(1)),
        Err(error) => {
            eprintln!("xtask: start cargo: {error}");
            Err(ExitCode::from(2))
        }
    }
}

fn wrote(path: &Path, result: std::io::Result<()>) -> Result<(), ExitCode> {
    match result {
        Ok(()) => {
            eprintln!("xtask: wrote {}", path.display());
            Ok(())
        }
        Err(error) => {
            eprintln!("xtask: write {}: {error}", path.display());
            Err(ExitCode::from(1))
        }
    }
}
