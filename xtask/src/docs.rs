//! `cargo xtask docs`: the pages of `docs/` that come from the code.

use std::process::ExitCode;

use crate::tools;

pub(crate) fn run() -> Result<(), ExitCode> {
    // A page for each id of a finding, from the catalogue of the validators.
    pages("docs/findings", "gsj-checks", "finding_pages")?;
    // A page for each part of a corpus, from the catalogue of its rules.
    pages("docs/rules", "gsj-estate", "rule_pages")?;
    configuration()
}

/// The pages of a folder, which an example of a crate writes.
fn pages(folder: &str, package: &str, example: &str) -> Result<(), ExitCode> {
    let folder = tools::root().join(folder);
    let mut pages = tools::cargo();
    pages.args(["run", "--quiet", "--package", package, "--example", example, "--"]).arg(&folder);
    tools::run(pages)?;
    eprintln!("xtask: wrote {}", folder.display());
    Ok(())
}

/// The reference of the configuration, from its types.
fn configuration() -> Result<(), ExitCode> {
    let mut reference = tools::cargo();
    reference.args(["run", "--quiet", "--package", "gsj-cli", "--bin", "gsj", "--", "config", "reference"]);
    let page = match reference.stderr(std::process::Stdio::inherit()).output() {
        Ok(output) if output.status.success() => output.stdout,
        Ok(_) => return Err(ExitCode::from(1)),
        Err(error) => {
            eprintln!("xtask: start cargo: {error}");
            return Err(ExitCode::from(2));
        }
    };
    let path = tools::root().join("docs/configuration.md");
    if let Err(error) = std::fs::write(&path, page) {
        eprintln!("xtask: write {}: {error}", path.display());
        return Err(ExitCode::from(1));
    }
    eprintln!("xtask: wrote {}", path.display());
    Ok(())
}
