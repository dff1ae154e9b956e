//! The secret that signs the estate's retrieval tokens: drawn once, for its owner's eyes.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};

use gsj_estate::home::Home;

use crate::error::CliError;
use crate::terminal::progress;

/// The longest secret that is read, in bytes.
const LONGEST: u64 = 4096;

/// Reads the secret; refuses a file that others may read.
pub(crate) fn read(home: &Home) -> Result<String, CliError> {
    let path = home.secret();
    let fault = |error: std::io::Error| CliError::usage(format!("read `{}`: {error}", path.display()));
    let flags = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
    let file = File::options().read(true).custom_flags(flags).open(&path).map_err(fault)?;
    let mode = file.metadata().map_err(fault)?.mode();
    if mode & 0o077 != 0 {
        return Err(CliError::usage(format!("`{}` may be read by others", path.display()))
            .hint(format!("chmod 600 {}", path.display()))
            .hint("or delete it to have a new one drawn by `gsj estate up`"));
    }
    let mut text = String::new();
    file.take(LONGEST).read_to_string(&mut text).map_err(fault)?;
    Ok(text.trim().to_owned())
}

/// Draws the secret when there is none.
pub(super) fn ensure(home: &Home) -> Result<String, CliError> {
    let path = home.secret();
    if std::fs::symlink_metadata(&path).is_err() {
        let fault = |error: std::io::Error| CliError::usage(format!("write `{}`: {error}", path.display()));
        let secret = crate::commands::token::draw()?;
        let beside = home.root().join(".secret.tmp");
        // One that a killed run left; it was never used.
        drop(std::fs::remove_file(&beside));
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(&beside).map_err(fault)?;
        file.write_all(secret.as_bytes()).and_then(|()| file.sync_all()).map_err(fault)?;
        std::fs::rename(&beside, &path).map_err(fault)?;
        progress(&format!("drew the secret of this estate, in {} (for its owner only)", path.display()));
    }
    read(home)
}
