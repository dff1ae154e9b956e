//! The subcommands.

mod agent;
mod check;
mod config;
mod cutoff;
mod demo;
mod engine;
mod estate;
mod gates;
mod given;
mod pins;
mod reconstruct;
mod retrieval;
mod runtime;
mod serve;
mod show;
mod submit;
mod token;
mod trace;

use std::process::ExitCode;

use crate::error::CliError;

/// What to do.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Run one real episode on the built-in corpus and show its trajectory.
    Demo(demo::Args),
    /// Serve the rollout API, gateway, retrieval and workers.
    Serve(serve::Args),
    /// Submit tasks, wait, re-validate and collect.
    Submit(submit::Args),
    /// Run the validators on session results.
    Check(check::Args),
    /// Build trajectories from completion sessions.
    Reconstruct(reconstruct::Args),
    /// Show one session result as a person reads it.
    Show(show::Args),
    /// Make, show, compare and verify the approved sets.
    Pins(pins::Args),
    /// Render traces anew and compare token ids.
    Trace(trace::Args),
    /// Run the scripted engine, for demos and tests.
    Engine(engine::Args),
    /// Install, list and verify agents.
    Agent(agent::Args),
    /// Check a configuration or print its schema.
    Config(config::Args),
    /// Make and audit truncated checkouts.
    Cutoff(cutoff::Args),
    /// Mint and verify scoped tokens.
    Token(token::Args),
    /// Search a corpus, or serve the retrieval tools alone.
    Retrieval(retrieval::Args),
    /// Validate a corpus folder and turn it into repositories.
    Estate(estate::Args),
}

impl Command {
    /// Whether it goes on until it is stopped, so that its log is for operators.
    pub(crate) fn serves(&self) -> bool {
        matches!(self, Self::Serve(_))
    }

    pub(crate) fn run(self) -> Result<ExitCode, CliError> {
        match self {
            Self::Demo(args) => demo::run(args),
            Self::Serve(args) => serve::run(args),
            Self::Submit(args) => submit::run(args),
            Self::Check(args) => check::run(args),
            Self::Reconstruct(args) => reconstruct::run(args),
            Self::Show(args) => show::run(&args),
            Self::Pins(args) => pins::run(args),
            Self::Trace(args) => trace::run(args),
            Self::Engine(args) => engine::run(args),
            Self::Agent(args) => agent::run(args),
            Self::Config(args) => config::run(&args),
            Self::Cutoff(args) => cutoff::run(args),
            Self::Token(args) => token::run(args),
            Self::Retrieval(args) => retrieval::run(args),
            Self::Estate(args) => estate::run(args),
        }
    }
}
