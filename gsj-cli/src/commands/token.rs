//! `gsj token`: scoped retrieval tokens.

use std::io::Read as _;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use gsj_cutoff::tokens::{self, Claims, Secret};

use crate::environment;
use crate::error::{CliError, Context as _, Kind};
use crate::output::{self, Format, FormatArg};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  gsj token mint --case harbor-lease --timestep 12 --episode try-1 | gsj token verify -"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Mint a token for one case, timestep and episode.
    #[command(after_help = "Example:\n  gsj token mint --case harbor-lease --timestep 12 --episode try-1")]
    Mint {
        /// The case id.
        #[arg(long)]
        case: String,
        /// The last page that the token lets through.
        #[arg(long)]
        timestep: u32,
        /// The episode, for logs.
        #[arg(long)]
        episode: String,
        /// Life of the token, in seconds.
        #[arg(long, default_value_t = 3600)]
        ttl: u32,
        /// Name of the variable that holds the secret.
        #[arg(long, default_value = environment::TOKEN_SECRET)]
        secret_env: String,
    },
    /// Verify a token from standard input and print its claims.
    #[command(after_help = "Example:\n  gsj token verify - < token.txt")]
    Verify {
        /// `-`: tokens are read from standard input, so that none stands in a process list.
        #[arg(value_parser = ["-"])]
        input: String,
        /// Name of the variable that holds the secret; given several times, any of them may have signed
        #[arg(long, value_name = "NAME", default_value = environment::TOKEN_SECRET)]
        secret_env: Vec<String>,
        /// How late the token may be, in seconds.
        #[arg(long, default_value_t = 30)]
        leeway: u32,
        #[command(flatten)]
        format: FormatArg,
    },
}

pub(crate) fn run(args: Args) -> Result<ExitCode, CliError> {
    match args.action {
        Action::Mint { case, timestep, episode, ttl, secret_env } => {
            let secret = secret(&secret_env)?;
            let claims = Claims { case_id: case, timestep, episode_id: episode, exp: now() + i64::from(ttl) };
            output::line(&tokens::mint(&claims, &secret).usage()?);
        }
        Action::Verify { input: _, secret_env, leeway, format } => {
            let secrets = secret_env.iter().map(|name| secret(name)).collect::<Result<Vec<_>, _>>()?;
            let mut token = String::new();
            std::io::stdin()
                .take(64 << 10)
                .read_to_string(&mut token)
                .map_err(|error| CliError::usage(format!("read the token from standard input: {error}")))?;
            let claims = tokens::verify(token.trim(), &secrets, now(), i64::from(leeway)).failed()?;
            match format.resolve() {
                Format::Json => output::json(&serde_json::json!({
                    "case_id": claims.case_id, "timestep": claims.timestep, "episode_id": claims.episode_id, "exp": claims.exp,
                })),
                Format::Human => output::line(&format!(
                    "valid: case {}, pages 1..{}, episode {}, {} s left",
                    claims.case_id,
                    claims.timestep,
                    claims.episode_id,
                    claims.exp - now()
                )),
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads the secret of a service that runs from the variable of that name.
pub(crate) fn secret(name: &str) -> Result<Secret, CliError> {
    secret_or(
        name,
        &[
            "it must be the secret that the service was started with; a fresh one fits none that runs".to_owned(),
            format!(
                "of an estate that `gsj estate up` made: export {name}=\"$(cat HOME/secret)\", HOME being its folder"
            ),
        ],
    )
}

/// Reads the secret that a service is to be started with; any will do.
pub(crate) fn secret_to_serve(name: &str) -> Result<Secret, CliError> {
    secret_or(name, &[format!("export {name}=$(head -c 32 /dev/urandom | base64)")])
}

fn secret_or(name: &str, hints: &[String]) -> Result<Secret, CliError> {
    let unset = || {
        let error = CliError::usage(format!("the environment variable {name} is not set"));
        hints.iter().fold(error, CliError::hint)
    };
    Secret::new(environment::value(name).ok_or_else(unset)?.into_bytes()).usage()
}

/// Draws a secret: 32 random bytes in hexadecimal.
pub(crate) fn draw() -> Result<String, CliError> {
    use std::fmt::Write as _;
    let mut bytes = [0_u8; 32];
    std::fs::File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .map_err(|error| CliError::new(Kind::Failed, format!("read /dev/urandom: {error}")))?;
    let mut text = String::with_capacity(64);
    for byte in bytes {
        let _infallible = write!(text, "{byte:02x}");
    }
    Ok(text)
}

/// Seconds since 1970.
pub(crate) fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).ok().and_then(|d| i64::try_from(d.as_secs()).ok()).unwrap_or_default()
}
