//! Writes the pages of `docs/rules/`: `cargo run -p gsj-estate --example rule_pages -- docs/rules`.
#![expect(clippy::print_stderr, reason = "a tool talks to its user")]

use std::path::PathBuf;
use std::process::ExitCode;

use gsj_estate::rule_pages;

fn main() -> ExitCode {
    let Some(folder) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: rule_pages FOLDER");
        return ExitCode::from(2);
    };
    match write(&folder) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("write the pages of `{}`: {error}", folder.display());
            ExitCode::from(1)
        }
    }
}

/// Writes the folder anew: a page whose rules are gone goes too.
fn write(folder: &std::path::Path) -> std::io::Result<()> {
    let pages = rule_pages();
    std::fs::create_dir_all(folder)?;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_page = name.to_string_lossy().ends_with(".md");
        if is_page && !pages.iter().any(|page| name == page.name.as_str()) {
            std::fs::remove_file(entry.path())?;
        }
    }
    pages.iter().try_for_each(|page| std::fs::write(folder.join(&page.name), &page.text))
}
