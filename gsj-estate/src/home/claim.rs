//! Taking the folder for oneself, and clearing it away.

use super::{Home, HomeError, LOCK, MARKER, PARTS, Record};
use crate::files::{self, Kind};
use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// The right to change an estate's folder, for as long as it is held.
#[derive(Debug)]
pub struct Claim {
    home: Home,
    _lock: File,
}

impl Home {
    /// Takes the folder for one process; makes it, with its marker, when it is not there.
    ///
    /// `who` is what another command is told meanwhile, for example `gsj estate up`.
    ///
    /// # Errors
    /// [`HomeError::Foreign`] when something else lies there, [`HomeError::Busy`] when another process has it.
    pub fn claim(&self, who: &str) -> Result<Claim, HomeError> {
        let root = self.root();
        match files::look(root).map_err(HomeError::io("look at", root))? {
            None => fs::DirBuilder::new()
                .recursive(true)
                .mode(0o755)
                .create(root)
                .map_err(HomeError::io("make the folder", root))?,
            Some(Kind::Directory) => {}
            Some(other) => return Err(HomeError::NoFolder { path: root.to_owned(), what: other.described() }),
        }
        if !self.is_one() && !self.is_empty()? {
            return Err(HomeError::Foreign { path: root.to_owned() });
        }
        let lock = self.lock(who)?;
        if !self.is_one() {
            // Whoever is allowed to work in the sandbox passes through here, whatever the caller's umask is.
            fs::set_permissions(root, fs::Permissions::from_mode(0o755)).map_err(HomeError::io("open", root))?;
            Record::default().write(self)?;
        }
        Ok(Claim { home: self.clone(), _lock: lock })
    }

    /// Whether nothing lies there but what a claim that was cut short leaves.
    fn is_empty(&self) -> Result<bool, HomeError> {
        let entries = files::list(self.root()).map_err(HomeError::io("list", self.root()))?;
        let unfinished = files::beside(Path::new(MARKER));
        Ok(entries.iter().all(|entry| entry.name == LOCK || Path::new(&entry.name) == unfinished))
    }

    fn lock(&self, who: &str) -> Result<File, HomeError> {
        let path = self.root().join(LOCK);
        loop {
            let mut file = File::options()
                .create(true)
                .truncate(false)
                .read(true)
                .write(true)
                .mode(0o644)
                .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
                .open(&path)
                .map_err(HomeError::io("open", &path))?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    let mut holder = String::new();
                    // Who it is is a courtesy; it may be between locking and writing its name.
                    let _read = io::Read::by_ref(&mut file).take(400).read_to_string(&mut holder);
                    let holder = holder.trim();
                    let holder = if holder.is_empty() { "another gsj".to_owned() } else { holder.to_owned() };
                    return Err(HomeError::Busy { path: self.root().to_owned(), holder });
                }
                Err(TryLockError::Error(source)) => return Err(HomeError::io("lock", &path)(source)),
            }
            // Who wiped the folder took this file with it: then the lock is on nothing.
            let same = fs::metadata(&path).ok().zip(file.metadata().ok());
            if same.is_none_or(|(there, here)| there.ino() != here.ino() || there.dev() != here.dev()) {
                continue;
            }
            let mut told = || {
                file.set_len(0)?;
                file.rewind()?;
                writeln!(file, "{who} (process {})", std::process::id())
            };
            told().map_err(HomeError::io("write", &path))?;
            return Ok(file);
        }
    }
}

impl Claim {
    /// The folder.
    #[must_use]
    pub fn home(&self) -> &Home {
        &self.home
    }

    /// Removes everything of the estate and, when nothing else lies there, the folder. Links are removed, not followed;
    /// what is not ours is left, and named in the answer. `remove_tree` removes a folder whole.
    ///
    /// The marker goes last: a wipe that was cut short can be repeated.
    ///
    /// # Errors
    /// The first part that cannot be removed.
    pub fn wipe(self, remove_tree: impl Fn(&Path) -> io::Result<()>) -> Result<Vec<PathBuf>, HomeError> {
        let root = self.home.root();
        for part in PARTS.iter().filter(|part| **part != LOCK) {
            let path = root.join(part);
            remove(&path, &remove_tree).map_err(HomeError::io("remove", &path))?;
        }
        let mut left = Vec::new();
        for entry in files::list(root).map_err(HomeError::io("list", root))? {
            let path = root.join(&entry.name);
            if entry.name.starts_with('.') && entry.name.ends_with(".tmp") && entry.kind == Kind::File {
                fs::remove_file(&path).map_err(HomeError::io("remove", &path))?;
            } else if entry.name != LOCK && entry.name != MARKER {
                left.push(path);
            }
        }
        for last in [MARKER, LOCK] {
            let path = root.join(last);
            remove(&path, &remove_tree).map_err(HomeError::io("remove", &path))?;
        }
        if left.is_empty() {
            fs::remove_dir(root).map_err(HomeError::io("remove", root))?;
        }
        Ok(left)
    }
}

fn remove(path: &Path, remove_tree: impl Fn(&Path) -> io::Result<()>) -> io::Result<()> {
    match files::look(path)? {
        None => Ok(()),
        Some(Kind::Directory) => remove_tree(path),
        Some(_) => fs::remove_file(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home() -> (tempfile::TempDir, Home) {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path().join("estate"));
        (folder, home)
    }

    #[test]
    fn one_at_a_time_and_the_other_is_told_who() {
        let (_folder, home) = home();
        let claim = home.claim("gsj estate up").unwrap();
        let busy = home.claim("gsj estate down").unwrap_err().to_string();
        assert!(busy.contains(&format!("gsj estate up (process {})", std::process::id())), "{busy}");
        drop(claim);
        assert!(home.claim("gsj estate down").is_ok());
    }

    #[test]
    fn what_is_not_ours_is_refused_and_what_a_kill_left_is_taken() {
        let (_folder, home) = home();
        fs::create_dir(home.root()).unwrap();
        for left in [LOCK, ".estate.json.tmp"] {
            fs::write(home.root().join(left), "").unwrap();
        }
        drop(home.claim("x").unwrap());
        fs::remove_file(home.marker()).unwrap();
        fs::write(home.root().join("notes.txt"), "").unwrap();
        assert!(matches!(home.claim("x"), Err(HomeError::Foreign { .. })));
        let link = Home::new(home.root().with_file_name("link"));
        std::os::unix::fs::symlink(home.root(), link.root()).unwrap();
        assert!(matches!(link.claim("x"), Err(HomeError::NoFolder { what: "a symbolic link", .. })));
    }

    #[test]
    fn a_wipe_follows_no_link_and_leaves_what_is_not_ours() {
        let (folder, home) = home();
        let claim = home.claim("x").unwrap();
        let outside = folder.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("precious"), "").unwrap();
        std::os::unix::fs::symlink(&outside, home.traces()).unwrap();
        std::os::unix::fs::symlink(&outside, home.secret()).unwrap();
        fs::create_dir(home.state()).unwrap();
        std::os::unix::fs::symlink(&outside, home.state().join("link")).unwrap();
        fs::write(home.root().join("notes.txt"), "").unwrap();
        let left = claim.wipe(|path| fs::remove_dir_all(path)).unwrap();
        assert_eq!(left, [home.root().join("notes.txt")]);
        assert!(outside.join("precious").is_file());
        assert_eq!(fs::read_dir(home.root()).unwrap().count(), 1, "everything of ours is gone");

        fs::remove_file(home.root().join("notes.txt")).unwrap();
        let again = home.claim("x").unwrap().wipe(|path| fs::remove_dir_all(path)).unwrap();
        assert!(again.is_empty() && !home.root().exists());
    }
}
