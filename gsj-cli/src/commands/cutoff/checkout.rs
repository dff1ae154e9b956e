//! `gsj cutoff checkout`: a cut of a repository, here or behind a URL.

use std::num::NonZeroU32;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use gsj_cutoff::{
    Credential, Cut, CutReport, CutRequest, CutoffError, Deny, FetchRefs, FetchRequest, History, Submodules, cut,
    fetch, parse_date,
};

use super::told;
use crate::environment;
use crate::error::{CliError, Context as _};
use crate::output::{self, Format, FormatArg};
use crate::terminal::{GREEN, paint};

pub(super) const EXAMPLES: &str = "Example:\n  gsj cutoff checkout --repo /srv/repos/o/harbor-lease.git --branch \
     timestep-12 --dest /tmp/w\n  gsj cutoff checkout --repo https://git.example/o/app.git --date 2026-01-31T00:00:00Z \
     --on main --dest /tmp/w\n  gsj cutoff checkout --repo ./app --commit 5f2d... --deny 9c1e... --dest /tmp/w";

#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("cut").required(true).args(["branch", "commit", "date"]))]
pub(super) struct Args {
    /// The repository: a path, a file:// URL or an https:// URL.
    #[arg(long)]
    repo: String,
    /// Cut at a branch's tip; `timestep-T` is an episode's cut and must hold exactly the pages 1..T
    #[arg(long)]
    branch: Option<String>,
    /// Cut at a commit, by its full id
    #[arg(long)]
    commit: Option<String>,
    /// Cut at the first commit of the branch's first-parent line that is not later, as 2026-01-31T12:00:00Z
    #[arg(long)]
    date: Option<String>,
    /// The branch that --date looks at [default: the repository's HEAD]
    #[arg(long, requires = "date")]
    on: Option<String>,
    /// How much of the past is kept: full, a number of commits, or none [default: none for --branch, else full]
    #[arg(long, value_parser = history)]
    history: Option<History>,
    /// Refuse a cut that reaches this commit, or `patch-id:ID` the same change under another id; may be repeated
    #[arg(long, value_name = "COMMIT")]
    deny: Vec<String>,
    /// What to do with submodules: keep the pinned commit and an empty folder, or refuse
    #[arg(long, value_enum, default_value_t = Modules::Keep)]
    submodules: Modules,
    /// Name of the variable that holds what an https repository asks for, TOKEN or USER:PASSWORD
    #[arg(long, value_name = "NAME")]
    credential_env: Option<String>,
    /// Where the checkout goes; must not exist or be empty.
    #[arg(long)]
    dest: PathBuf,
    /// The last page [default: the branch's number]
    #[arg(long, requires = "branch")]
    timestep: Option<u32>,
    /// The recipe that a case's repository was made by, stated in the evidence [default: sealed for `timestep-T`]
    #[arg(long, value_parser = ["sealed", "reference"])]
    recipe: Option<String>,
    /// The case id [default: the repository's name]
    #[arg(long)]
    case: Option<String>,
    /// How many bytes the objects may inflate to in all [default: 8 GiB and 64 for each byte of a pack]
    #[arg(long, value_name = "BYTES")]
    most_inflated: Option<u64>,
    #[command(flatten)]
    format: FormatArg,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Modules {
    Keep,
    Refuse,
}

fn history(text: &str) -> Result<History, String> {
    match text {
        "full" => Ok(History::Full),
        "none" => Ok(History::None),
        _ => text.parse().map(History::Depth).map_err(|_| "full, none, or a number of commits".to_owned()),
    }
}

pub(super) fn run(args: &Args) -> Result<ExitCode, CliError> {
    let at = place(args)?;
    let history = args.history.unwrap_or(if args.branch.is_some() { History::None } else { History::Full });
    let deny: Vec<Deny> = args.deny.iter().map(|text| denied(text)).collect();
    let remote = args.repo.contains("://") && !args.repo.starts_with("file://");
    if args.credential_env.is_some() && !remote {
        return Err(CliError::usage("--credential-env is for an https:// repository"));
    }
    let (source, clone_url, _fetched) = if remote {
        let fetched = Fetched::new()?;
        fetch_into(args, &at, history, &fetched.0)?;
        (fetched.0.clone(), args.repo.clone(), Some(fetched))
    } else {
        let path = args.repo.strip_prefix("file://").unwrap_or(&args.repo);
        let path = std::path::absolute(path).map_err(|error| CliError::usage(format!("--repo {path}: {error}")))?;
        let url = format!("file://{}", path.display());
        (path, url, None)
    };
    let episode = matches!(at, Cut::Timestep(_));
    let name = args.repo.trim_end_matches('/').rsplit('/').next().map(|name| name.trim_end_matches(".git").to_owned());
    let case = args.case.clone().or(name.filter(|_| episode));
    let report = cut(&CutRequest {
        history,
        most_inflated: args.most_inflated,
        deny: &deny,
        submodules: if args.submodules == Modules::Keep { Submodules::Keep } else { Submodules::Refuse },
        case_id: case.as_deref(),
        clone_url: Some(&clone_url),
        recipe: args.recipe.as_deref().or(episode.then_some("sealed")),
        ..CutRequest::new(&source, at, &args.dest)
    })
    .map_err(|error| told(&error))?;
    match args.format.resolve() {
        Format::Json => output::json(&document(&report).failed()?),
        Format::Human => lines(&report, &args.dest).iter().for_each(|line| output::line(line)),
    }
    Ok(ExitCode::SUCCESS)
}

/// Where to cut. A branch is a timestep's when it is called so, or when `--timestep` says so and agrees.
fn place(args: &Args) -> Result<Cut, CliError> {
    if let Some(date) = &args.date {
        let seconds = parse_date(date).map_err(|error| told(&error))?;
        return Ok(Cut::Date { seconds, branch: args.on.clone() });
    }
    if let Some(commit) = &args.commit {
        return Ok(Cut::Commit(commit.clone()));
    }
    let branch = args.branch.clone().unwrap_or_default();
    let number = branch.strip_prefix("timestep-").and_then(|number| number.parse::<u32>().ok());
    let canonical = number.filter(|number| *number > 0 && branch == format!("timestep-{number}"));
    match (args.timestep, canonical) {
        (None, None) => Ok(Cut::Branch(branch)),
        (None, Some(timestep)) => Ok(Cut::Timestep(timestep)),
        (Some(asked), Some(timestep)) if asked == timestep => Ok(Cut::Timestep(timestep)),
        (Some(timestep), _) => Err(told(&CutoffError::BranchTimestep { branch, timestep })),
    }
}

fn denied(text: &str) -> Deny {
    match text.strip_prefix("patch-id:") {
        Some(id) => Deny::PatchId(id.to_owned()),
        None => Deny::Commit(text.to_owned()),
    }
}

fn fetch_into(args: &Args, at: &Cut, history: History, into: &Path) -> Result<(), CliError> {
    let credential = match &args.credential_env {
        None => None,
        Some(name) => {
            let value = environment::value(name)
                .ok_or_else(|| CliError::usage(format!("--credential-env {name}: the variable is not set")))?;
            Some(Credential::new(&value).map_err(|error| told(&error))?)
        }
    };
    let timestep;
    let refs = match at {
        Cut::Timestep(number) => {
            timestep = format!("timestep-{number}");
            FetchRefs::Branch(&timestep)
        }
        Cut::Branch(branch) | Cut::Date { branch: Some(branch), .. } => FetchRefs::Branch(branch),
        Cut::Date { branch: None, .. } => FetchRefs::Head,
        Cut::Commit(_) => FetchRefs::All,
    };
    // What is denied may lie deeper than what is kept, and where a date or commit lies is not known before.
    let tip_known = matches!(at, Cut::Timestep(_) | Cut::Branch(_)) && args.deny.is_empty();
    let depth = match history {
        History::None if tip_known => Some(NonZeroU32::MIN),
        History::Depth(depth) if tip_known => Some(depth),
        _ => None,
    };
    let credential = credential.as_ref();
    let url = &args.repo;
    fetch(&FetchRequest { url, credential, refs, depth, program: Path::new("git"), certificates: None, into })
        .map_err(|error| told(&error))
}

/// A folder of our own for what a remote sent; removed when the cut is made.
struct Fetched(PathBuf);

impl Fetched {
    fn new() -> Result<Self, CliError> {
        let time = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |time| time.as_nanos());
        let folder = std::env::temp_dir().join(format!("gsj-cutoff-{}-{time}", std::process::id()));
        std::fs::DirBuilder::new()
            .mode(0o700)
            .create(&folder)
            .map_err(|error| CliError::usage(format!("create `{}`: {error}", folder.display())))?;
        Ok(Self(folder))
    }
}

impl Drop for Fetched {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

/// The evidence; with what else is to be told, where there is something.
fn document(report: &CutReport) -> Result<serde_json::Value, serde_json::Error> {
    let mut value = serde_json::to_value(&report.evidence)?;
    if let Some(object) = value.as_object_mut() {
        if !report.later_dated.is_empty() {
            object.insert("later_dated".to_owned(), serde_json::to_value(&report.later_dated)?);
        }
        if !report.submodules.is_empty() {
            object.insert("submodules".to_owned(), serde_json::to_value(&report.submodules)?);
        }
    }
    Ok(value)
}

fn lines(report: &CutReport, dest: &Path) -> Vec<String> {
    let evidence = &report.evidence;
    let branch =
        evidence.branch.as_ref().map_or("no branch, HEAD is detached".to_owned(), |name| format!("branch {name}"));
    let history = match (evidence.commits, evidence.shallow) {
        (1, true) => "1 commit, shallow".to_owned(),
        (1, false) => "1 commit".to_owned(),
        (count, _) => format!("{count} commits"),
    };
    let mut lines = vec![
        format!("{} {}", paint(GREEN, "cut"), dest.display()),
        format!("  commit   {}, {branch}", evidence.commit),
        format!("  tree     {}", evidence.tree),
        format!("  history  {history}, {} objects", evidence.objects.count),
    ];
    if let (Some(min), Some(max)) = (evidence.pages.min, evidence.pages.max) {
        lines.push(format!("  pages    {} ({min} to {max})", evidence.pages.count));
    }
    for later in &report.later_dated {
        lines.push(format!("  later    {} says of itself that it is of @{}", later.commit, later.seconds));
    }
    for submodule in &report.submodules {
        lines.push(format!("  pinned   {} at {}", submodule.path, submodule.commit));
    }
    lines.push("  audit    no leak".to_owned());
    lines
}
