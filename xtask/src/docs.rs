//! `cargo xtask docs`: the pages of `docs/` that come from the code.

use std::process::ExitCode;

use crate::tools;

pub(crate) fn run() -> Result<(), ExitCode> {
    findings()?;
    configuration()
}

/// A page for each id of a finding, from the catalogue of the validators.
fn findings() -> Result<(), ExitCode> {
    let folder = tools::root().join("docs/findings");
    let mut pages = tools::cargo();
    pages.args(["run", "--quiet", "--package", "gsj-checks", "--example", "finding_pages", "--"]).arg(&folder);
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
