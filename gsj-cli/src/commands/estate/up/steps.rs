//! The steps from a corpus to a server. Each looks at what is there and does what is missing, so that a run that was
//! killed between any two of them is gone on with by the next.

use std::sync::Arc;
use std::time::Duration;

use gsj_client::ServerStatus;
use gsj_cutoff::tokens::Secret;
use gsj_estate::home::{Home, Record, Serving, Standing, lock_digest, standing};
use gsj_estate::{Corpus, Recipe, ScaffoldOptions, Service, ingest, scaffold, taskbank};
use gsj_server::agent::Installed;
use gsj_server::config::Config;

use super::super::place::of;
use super::{Asker, Choice, choice, config, pins, secret, server};
use crate::commands::{serve, token};
use crate::error::{CliError, Context as _};
use crate::terminal::{progress, warn};

/// How long sessions may take to end before the server is started anew.
const DRAIN: Duration = Duration::from_secs(900);
/// How often a server that reads anew is looked at.
const LOOK: Duration = Duration::from_millis(200);

/// A run of `up`.
pub(super) struct Steps<'a> {
    pub(super) home: &'a Home,
    pub(super) choice: &'a Choice,
    pub(super) corpus: &'a Corpus,
    pub(super) recipe: Recipe,
    pub(super) asker: Asker,
    pub(super) record: Record,
    /// What was done, a few words each.
    pub(super) done: Vec<String>,
}

/// What stands at the end.
pub(super) struct Stands {
    pub(super) config: Config,
    pub(super) standing: Standing,
    pub(super) pins: pins::Settled,
    pub(super) serving: Serving,
    pub(super) health: ServerStatus,
}

impl Steps<'_> {
    /// Goes through all of them. `fresh`: the person was asked already.
    pub(super) fn walk(&mut self, fresh: bool) -> Result<Stands, CliError> {
        let other = self.choice.note(&mut self.record);
        let installed = choice::agent(self.choice, self.asker)?;
        let standing = standing(self.corpus, self.home, self.recipe).map_err(|error| of(&error))?;
        let serving = server::find(self.home)?;
        if !fresh {
            let due = self.due(&installed);
            self.ask(&other, &standing, due, serving.is_some())?;
        }
        self.done.extend(other);
        let secret = secret::ensure(self.home)?;
        let settings = &self.corpus.settings;
        let (config, became) =
            config::settle(self.home, self.choice, settings, self.recipe, &mut self.record, self.asker)?;
        self.keep()?;
        if became == config::Became::Written {
            self.done.push("wrote the configuration".to_owned());
        }
        serve::warn_of_backend(&config);
        let basis = pins::basis(self.choice, self.corpus, &config, &installed)?;
        let due = pins::due(self.home, &self.record, &basis);
        // Asked first: an engine that is not there is told of before the long work.
        let tail = due.is_some().then(|| pins::ask_engine(self.choice, &config)).transpose()?;
        let standing = self.build(standing)?;
        if let (Some(why), Some(tail)) = (due, tail) {
            progress(&format!("system prompt and tools have to be looked at: {why}"));
            pins::episode(self.home, self.corpus, &config, secret.clone(), &tail, basis, &mut self.record)?;
            self.keep()?;
            self.done.push("ran a bring-up episode".to_owned());
        }
        let pins = pins::settle(self.home, self.choice, self.corpus, &config, &mut self.record, self.asker)?;
        self.keep()?;
        if pins.written {
            self.done.push("wrote the pins".to_owned());
        }
        let serving = self.serve(&config, serving, &secret)?;
        let health = server::health(&serving)
            .map_err(|error| error.hint("`gsj estate down` ends it, and `gsj estate up` starts another"))?;
        Ok(Stands { config, standing, pins, serving, health })
    }

    /// Why an episode will be due, as far as the configuration that stands tells.
    fn due(&self, installed: &Installed) -> Option<String> {
        let config = config::read(self.home).ok()?;
        let basis = pins::basis(self.choice, self.corpus, &config, installed).ok()?;
        pins::due(self.home, &self.record, &basis)
    }

    fn keep(&self) -> Result<(), CliError> {
        self.record.write(self.home).usage().map(drop)
    }

    /// Says what is to be done, and asks whether it may be.
    fn ask(&self, other: &[String], standing: &Standing, due: Option<String>, serves: bool) -> Result<(), CliError> {
        let mut todo: Vec<String> = other.to_vec();
        let some = |ids: &[String]| {
            let more = if ids.len() > 3 { format!(" and {} more", ids.len() - 3) } else { String::new() };
            format!("{}{more}", ids.iter().take(3).map(String::as_str).collect::<Vec<_>>().join(", "))
        };
        if !standing.changed.is_empty() {
            todo.push(format!("repositories of {}", some(&standing.changed)));
        }
        if !standing.left.is_empty() {
            todo.push(format!("cases that left the corpus: {}", some(&standing.left)));
        }
        if !standing.bank.unchanged {
            todo.push(format!("the task bank, {} tasks", standing.bank.rows));
        }
        if let Some(why) = due {
            todo.push(format!("a bring-up episode against {} ({why})", self.choice.engine.url));
        }
        if !serves {
            todo.push("starting the server".to_owned());
        }
        if todo.is_empty() {
            return Ok(());
        }
        for one in &todo {
            progress(&format!("to do: {one}"));
        }
        self.asker.confirm("Go on?")
    }

    /// Makes the repositories and the task bank what the corpus gives.
    fn build(&mut self, before: Standing) -> Result<Standing, CliError> {
        if before.is_unchanged() {
            return Ok(before);
        }
        let options = ScaffoldOptions::folder(&self.home.repos(), self.recipe);
        let made = scaffold(self.corpus, &options).map_err(|error| of(&error))?;
        let changed = made.repos.iter().filter(|repo| repo.changed).count();
        if changed > 0 {
            progress(&format!(
                "made {changed} of {} repositories in {}",
                made.repos.len(),
                self.home.repos().display()
            ));
            self.done.push(format!("made {changed} repositories"));
        }
        for one in &made.forgotten {
            match &one.why {
                None => progress(&format!("took away {}", one.url)),
                Some(why) => {
                    warn(&format!(
                        "the repository of {} stays, which the corpus gives no longer: {why}: {}",
                        one.case_id, one.url
                    ));
                }
            }
        }
        let bank = taskbank(self.corpus, false).map_err(|error| of(&error))?;
        if bank.changed {
            let counts = bank.counts;
            progress(&format!("task bank: {} tasks, {} train and {} eval", counts.rows, counts.train, counts.eval));
            self.done.push(format!("wrote the task bank of {} tasks", counts.rows));
        }
        standing(self.corpus, self.home, self.recipe).map_err(|error| of(&error))
    }

    /// Has one server run with what is there now.
    fn serve(&mut self, config: &Config, running: Option<Serving>, secret: &str) -> Result<Serving, CliError> {
        let lock = lock_digest(self.corpus).map_err(|error| of(&error))?;
        let same = self.record.served.as_ref() == Some(&lock);
        let serving = match running {
            Some(running) => match server::outdated(self.home, &running) {
                None if same => running,
                None => {
                    self.reindex(&running, secret)?;
                    running
                }
                Some(why) => {
                    self.restart(&running, why)?;
                    server::start(self.home, config)?
                }
            },
            None => {
                let started = server::start(self.home, config)?;
                self.done.push("started the server".to_owned());
                started
            }
        };
        self.record.served = Some(lock);
        self.keep()?;
        Ok(serving)
    }

    /// Has the running server read the repositories anew; its sessions keep what they began with.
    fn reindex(&mut self, running: &Serving, secret: &str) -> Result<(), CliError> {
        let secret = Secret::new(secret.as_bytes().to_vec()).usage()?;
        let mut service = Service::new(&server::url(running), secret, Arc::new(token::now)).usage()?;
        service.interval = LOOK;
        progress("the server reads the repositories anew");
        let read = ingest(&self.corpus.lock_dir, &service).map_err(|error| of(&error))?;
        self.done.push(format!("had the server read {} cases", read.cases));
        Ok(())
    }

    fn restart(&mut self, running: &Serving, why: &str) -> Result<(), CliError> {
        let under_way = match server::health(running) {
            Ok(status) => server::under_way(&status),
            Err(_silent) => 0,
        };
        progress(&format!("the server has to be started anew: {why}"));
        self.asker.confirm(&match under_way {
            0 => "Start the server anew?".to_owned(),
            n => format!("The server has {n} sessions under way. Let them end and start it anew?"),
        })?;
        server::stop(self.home, running, DRAIN)?;
        self.done.push(format!("started the server anew ({why})"));
        Ok(())
    }
}
