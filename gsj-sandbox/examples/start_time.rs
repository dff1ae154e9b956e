//! Measures how long a sandbox takes from the call of `start` until its command runs, and until it is gone.
//!
//! ```text
//! cargo run -p gsj-sandbox --example start_time -- 50
//! ```
//! The example is its own init, as `gsj` is.
#![expect(clippy::print_stdout, reason = "an example that reports on the terminal")]

use std::error::Error;
use std::fs::File;
use std::time::{Duration, Instant};

use gsj_sandbox::{Backend, InitProgram, Label, Launcher, LauncherOptions, Spec};

const INIT: &str = "sandbox-init";

fn main() -> Result<(), Box<dyn Error>> {
    let argument = std::env::args().nth(1);
    if argument.as_deref() == Some(INIT) {
        gsj_sandbox::init_main();
    }
    let rounds = argument.and_then(|number| number.parse().ok()).unwrap_or(20);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    for backend in [Backend::Bwrap, Backend::None] {
        runtime.block_on(measure(backend, rounds))?;
    }
    Ok(())
}

async fn measure(backend: Backend, rounds: usize) -> Result<(), Box<dyn Error>> {
    let launcher = Launcher::new(LauncherOptions::new("/tmp/gsj-sandbox-start-time"))?;
    let (mut up, mut gone) = (Vec::new(), Vec::new());
    for round in 0..rounds.max(1) {
        let mut spec = Spec::new(
            Label { run: "measure".to_owned(), session: format!("round-{round}") },
            vec!["sleep".to_owned(), "60".to_owned()],
            InitProgram { path: std::env::current_exe()?, args: vec![INIT.to_owned()] },
            File::create("/dev/null")?,
            File::create("/dev/null")?,
        );
        spec.backend = backend;
        spec.ports = vec![8080, 8790];
        let begun = Instant::now();
        let mut running = launcher.start(spec).await?;
        up.push(begun.elapsed());
        let begun = Instant::now();
        running.terminate(Duration::ZERO).await;
        gone.push(begun.elapsed());
    }
    for (what, mut times) in [("up", up), ("gone", gone)] {
        times.sort();
        println!(
            "{backend}: {what} after {:?} (median of {}), at most {:?}",
            times[times.len() / 2],
            times.len(),
            times[times.len() - 1]
        );
    }
    Ok(())
}
