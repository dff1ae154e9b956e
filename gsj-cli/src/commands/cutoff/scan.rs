//! `gsj cutoff scan`: text of later pages in files and traces.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use gsj_cutoff::scan::{Fingerprints, Match};

use crate::error::CliError;
use crate::output::{self, Format, FormatArg};
use crate::terminal::{GREEN, RED, paint};

pub(super) const EXAMPLE: &str = "Example:\n  gsj cutoff scan --forbid corpus/train/cases/c/timestep-18/pages --allow corpus/train/cases/c/timestep-5/pages trace.json";

/// How much of a match is shown, in bytes.
const SHOWN: usize = 200;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A folder of pages `page_NNNN.md` whose text must not occur. Pages that are allowed too may be among them
    #[arg(long, value_name = "PAGES_DIR", required = true)]
    forbid: Vec<PathBuf>,
    /// A folder of pages, or a file (rules, a skill, a prompt), whose text may occur
    #[arg(long, value_name = "PAGES_DIR", required = true)]
    allow: Vec<PathBuf>,
    /// The files to search, or `-`: traces, transcripts, tool outputs, in JSON or not
    #[arg(required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    format: FormatArg,
}

pub(super) fn run(args: &Args) -> Result<ExitCode, CliError> {
    let mut later: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
    for folder in &args.forbid {
        for path in listed(folder)? {
            if let Some(page) = page(&path) {
                let text = read(&path)?;
                later.entry(page).and_modify(|pages| pages.extend([b"\n\n", &text[..]].concat())).or_insert(text);
            }
        }
    }
    if later.is_empty() {
        let looked = args.forbid.iter().map(|folder| format!("`{}`", folder.display())).collect::<Vec<_>>().join(", ");
        return Err(
            CliError::usage(format!("--forbid: no page in {looked}")).hint("pages are files named page_NNNN.md")
        );
    }
    let mut visible = Vec::new();
    for allowed in &args.allow {
        for path in listed(allowed)? {
            visible.push(read(&path)?);
        }
    }
    let prints = Fingerprints::of(later, visible);
    let format = args.format.resolve();
    let mut found = 0;
    for file in &args.files {
        for (hit, text) in search(&prints, file)? {
            found += 1;
            match format {
                Format::Json => output::json(&serde_json::json!({
                    "source": file.display().to_string(), "page": hit.page, "start": hit.span.start, "end": hit.span.end,
                    "text": text,
                })),
                Format::Human => output::line(&format!(
                    "{} {} bytes {}..{}: page {}: {text:?}",
                    paint(RED, "later text"),
                    file.display(),
                    hit.span.start,
                    hit.span.end,
                    hit.page
                )),
            }
        }
    }
    if format == Format::Human && found == 0 {
        output::line(&paint(GREEN, "no text of a later page"));
    }
    Ok(if found == 0 { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// All matches in a file, each with the beginning of its text.
fn search(prints: &Fingerprints, path: &Path) -> Result<Vec<(Match, String)>, CliError> {
    let fault = |error: std::io::Error| CliError::usage(format!("read `{}`: {error}", path.display()));
    if path.as_os_str() == "-" {
        let mut text = Vec::new();
        std::io::stdin().read_to_end(&mut text).map_err(fault)?;
        let quoted = |hit: Match| {
            let end = hit.span.end.min(hit.span.start + SHOWN);
            let quote = String::from_utf8_lossy(&text[hit.span.start..end]).into_owned();
            (hit, quote)
        };
        return Ok(prints.scan(&text).into_iter().map(quoted).collect());
    }
    let mut file = File::open(path).map_err(fault)?;
    let mut scanner = prints.scanner();
    let mut piece = vec![0; 1 << 20];
    loop {
        match file.read(&mut piece).map_err(fault)? {
            0 => break,
            count => scanner.push(&piece[..count]),
        }
    }
    let mut matches = Vec::new();
    for hit in scanner.finish() {
        file.seek(SeekFrom::Start(hit.span.start as u64)).map_err(fault)?;
        let mut quote = Vec::new();
        (&mut file).take((hit.span.len().min(SHOWN)) as u64).read_to_end(&mut quote).map_err(fault)?;
        matches.push((hit, String::from_utf8_lossy(&quote).into_owned()));
    }
    Ok(matches)
}

/// The files of a folder, sorted; or the file itself.
fn listed(path: &Path) -> Result<Vec<PathBuf>, CliError> {
    let fault = |error: std::io::Error| CliError::usage(format!("read `{}`: {error}", path.display()));
    if !std::fs::metadata(path).map_err(fault)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(fault)? {
        let entry = entry.map_err(fault)?;
        if entry.file_type().map_err(fault)?.is_file() {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}

fn read(path: &Path) -> Result<Vec<u8>, CliError> {
    std::fs::read(path).map_err(|error| CliError::usage(format!("read `{}`: {error}", path.display())))
}

/// The number of a file `page_NNNN.md`.
fn page(path: &Path) -> Option<u32> {
    let digits = path.file_name()?.to_str()?.strip_prefix("page_")?.strip_suffix(".md")?;
    (digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_digit())).then(|| digits.parse().ok())?
}
