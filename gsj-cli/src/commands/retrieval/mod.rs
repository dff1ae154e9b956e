//! `gsj retrieval`: the retrieval tools alone.

mod embeddings;
mod serve;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use embeddings::EmbeddingsArgs;
use gsj_retrieval::{Explanation, Library, PageHit, Vector};
use gsj_trace::outline::wrap;

use crate::error::{CliError, Context as _};
use crate::output::{self, Format, FormatArg};
use crate::terminal::{self, BOLD, DIM, paint, progress};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  gsj retrieval search --corpus fixtures/corpus --case harbor-lease --timestep 12 'drying shed'"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Search the pages of a case that are visible at a timestep.
    #[command(
        after_help = "Example:\n  gsj retrieval search --corpus fixtures/corpus --case harbor-lease --timestep 12 'drying shed'"
    )]
    Search(Question),
    /// Show what each word of a query adds to a page's score.
    #[command(
        after_help = "Example:\n  gsj retrieval explain --corpus fixtures/corpus --case harbor-lease --timestep 12 --page 3 'drying shed'"
    )]
    Explain {
        /// The page to explain [default: the best ones]
        #[arg(long)]
        page: Option<u32>,
        #[command(flatten)]
        question: Question,
    },
    /// Serve the four tools over MCP.
    #[command(after_help = serve::EXAMPLE)]
    Serve(serve::Args),
}

/// What is asked of which pages.
#[derive(Debug, clap::Args)]
struct Question {
    /// The corpus folder.
    #[arg(long)]
    corpus: PathBuf,
    /// The case id.
    #[arg(long)]
    case: String,
    /// The last visible page.
    #[arg(long)]
    timestep: u32,
    /// Most pages.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    k: u16,
    /// What to look for.
    query: String,
    #[command(flatten)]
    format: FormatArg,
    // Last, since its heading holds for all options behind it.
    #[command(flatten)]
    embeddings: EmbeddingsArgs,
}

impl Question {
    /// The corpus, and the query's vector where pages are ranked by vectors.
    fn open(&self) -> Result<(Library, Option<Arc<Vector>>), CliError> {
        let library = self.embeddings.embed(Library::from_corpus_dir(&self.corpus).usage()?)?;
        let near = library.embedder().map_or(Ok(None), |embedder| embedder.query_blocking(&self.query));
        let near = near.map_err(|error| embeddings::told(&error))?;
        Ok((library, near))
    }

    fn hits(&self, library: &Library, near: Option<&Vector>) -> Result<Vec<PageHit>, CliError> {
        library.search_case_near(&self.case, self.timestep, &self.query, near, usize::from(self.k)).usage()
    }

    fn say_that_none_is_found(&self) {
        progress(&format!("no page of {} up to {} holds a word of the query", self.case, self.timestep));
    }
}

pub(crate) fn run(args: Args) -> Result<ExitCode, CliError> {
    match args.action {
        Action::Search(question) => search(&question),
        Action::Explain { question, page } => explain(&question, page),
        Action::Serve(args) => serve::run(&args),
    }
}

fn search(question: &Question) -> Result<ExitCode, CliError> {
    let (library, near) = question.open()?;
    let hits = question.hits(&library, near.as_deref())?;
    if hits.is_empty() {
        question.say_that_none_is_found();
    }
    for hit in &hits {
        match question.format.resolve() {
            Format::Json => output::json(hit),
            Format::Human => {
                let score = paint(DIM, &format!("{:.3}", hit.score));
                output::line(&format!("{} {score}", paint(BOLD, &hit.file)));
                let excerpt: String = hit.text.split_whitespace().collect::<Vec<_>>().join(" ");
                output::line(&format!("    {}", excerpt.chars().take(160).collect::<String>()));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn explain(question: &Question, page: Option<u32>) -> Result<ExitCode, CliError> {
    let (library, near) = question.open()?;
    let pages = match page {
        Some(page) => vec![page],
        None => question.hits(&library, near.as_deref())?.into_iter().map(|hit| hit.page).collect(),
    };
    let (case, timestep, query) = (&question.case, question.timestep, &question.query);
    let mut found = false;
    for page in pages {
        if let Some(why) = library.explain_near(case, timestep, query, near.as_deref(), page).usage()? {
            found = true;
            show(&why, question.format.resolve());
        }
    }
    match page {
        _ if found => {}
        Some(page) => progress(&format!("page {page} of {case} holds no word of the query")),
        None => question.say_that_none_is_found(),
    }
    Ok(ExitCode::SUCCESS)
}

fn times_of(count: u8) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

fn show(why: &Explanation, format: Format) {
    if format == Format::Json {
        output::json(why);
        return;
    }
    let digits = if why.fused.is_some() { 5 } else { 3 };
    output::line(&format!("{} {:.digits$}", paint(BOLD, &format!("md/page_{:04}.md", why.page)), why.score));
    if let Some(fused) = &why.fused {
        let rank = |rank: Option<usize>| rank.map_or("none".to_owned(), |rank| rank.to_string());
        let cosine = fused.cosine.map_or(String::new(), |cosine| format!(", cosine {cosine:.3}"));
        output::line(&format!(
            "    rank by words {} (counts {:.2}), by vectors {}{cosine}; identifiers {}",
            rank(fused.rank_by_words),
            fused.weight_of_words,
            rank(fused.rank_by_vectors),
            fused.identifiers
        ));
        for line in fused.nearest.iter().flat_map(|nearest| wrap(nearest, terminal::width().saturating_sub(13))) {
            output::line(&format!("    nearest: {}", paint(DIM, &line)));
        }
    }
    for line in wrap(&why.unit, terminal::width().saturating_sub(4)) {
        output::line(&format!("    {}", paint(DIM, &line)));
    }
    for term in &why.terms {
        let times = match (term.held_by, term.count) {
            (0, _) => "stand together".to_owned(),
            (1, 0) => "not here, in 1 other sentence".to_owned(),
            (held, 0) => format!("not here, in {held} other sentences"),
            (1, count) => format!("{} here, in no other sentence", times_of(count)),
            (held, count) => format!("{} here, in {held} sentences", times_of(count)),
        };
        output::line(&format!("    {:>7.3}  {:<24} {times}", term.adds, term.term));
    }
}
