//! Copying an episode's deliverables out of a folder that nobody can be trusted to have left as it seems.
//!
//! Every step down is an `openat` without following links, relative to a folder that is held open, so
//! nothing that was renamed or linked meanwhile can lead elsewhere. Regular files only; names cleaned.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Read as _},
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    },
    path::Path,
};

use rustix::{
    fs::{Dir, FileType, Mode, OFlags, fstat, openat},
    io::Errno,
};

use crate::config::AgentLimits;

/// How deep folders may lie in each other.
const DEEPEST: usize = 16;
/// Most entries that are looked at; what an agent can make in a second is not walked for an hour.
const MOST_ENTRIES: usize = 20_000;
/// The empty file that a checkout has in `out`; no deliverable unless something was written to it.
const KEEP: &[u8] = b".gitkeep";
/// Longest cleaned name, in bytes.
const LONGEST_NAME: usize = 200;

/// What was copied and what was not.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Harvest {
    /// Files copied, by their cleaned path, in order.
    pub(super) files: Vec<String>,
    /// Bytes copied.
    pub(super) bytes: u64,
    /// What was left behind and why, in order; at most 100 of them are named.
    pub(super) skipped: Vec<String>,
}

/// Copies the deliverables below `workspace/out` to `target`, which is made when there are any.
///
/// A folder `out` that is not there gives an empty harvest.
pub(super) fn harvest(workspace: &Path, target: &Path, limits: &AgentLimits) -> io::Result<Harvest> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
    let root = rustix::fs::open(workspace, flags, Mode::empty())?;
    let out = match openat(&root, "out", flags, Mode::empty()) {
        Ok(out) => out,
        Err(Errno::NOENT) => return Ok(Harvest::default()),
        Err(Errno::NOTDIR | Errno::LOOP) => {
            return Ok(Harvest { skipped: vec!["out: not a folder".to_owned()], ..Harvest::default() });
        }
        Err(error) => return Err(error.into()),
    };
    let mut walk = Walk { limits, harvest: Harvest::default(), entries: 0 };
    walk.folder(&out, target, "", 0)?;
    Ok(walk.harvest)
}

struct Walk<'a> {
    limits: &'a AgentLimits,
    harvest: Harvest,
    entries: usize,
}

impl Walk<'_> {
    fn folder(&mut self, from: &OwnedFd, to: &Path, shown: &str, depth: usize) -> io::Result<()> {
        let mut names = Vec::new();
        for entry in Dir::read_from(from)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                names.push(entry.file_name().to_owned());
            }
            if names.len() > MOST_ENTRIES {
                break;
            }
        }
        // The order of a folder is the file system's; what is kept when a limit is hit must not depend on it.
        names.sort();
        let mut taken = BTreeMap::new();
        for name in names {
            self.entries += 1;
            let clean = distinct(clean(&name.to_string_lossy()), &mut taken);
            let path = if shown.is_empty() { clean.clone() } else { format!("{shown}/{clean}") };
            if self.entries > MOST_ENTRIES {
                self.skip(&path, "too many entries");
                return Ok(());
            }
            // NONBLOCK: opening a pipe must not wait for a writer.
            let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::RDONLY | OFlags::CLOEXEC;
            let file = match openat(from.as_fd(), &*name, flags, Mode::empty()) {
                Ok(file) => file,
                Err(Errno::LOOP) => {
                    self.skip(&path, "a link");
                    continue;
                }
                Err(error) => {
                    self.skip(&path, &format!("cannot be opened ({error})"));
                    continue;
                }
            };
            let found = fstat(&file)?;
            match FileType::from_raw_mode(found.st_mode) {
                FileType::Directory if depth + 1 >= DEEPEST => self.skip(&path, "too deep"),
                FileType::Directory => self.folder(&file, &to.join(&clean), &path, depth + 1)?,
                // The checkout's own, which keeps the folder in the repository.
                FileType::RegularFile if depth == 0 && name.to_bytes() == KEEP && found.st_size == 0 => {
                    taken.remove(&clean);
                }
                FileType::RegularFile => {
                    let size = u64::try_from(found.st_size).unwrap_or(u64::MAX);
                    self.file(file, size, to, &clean, path)?;
                }
                _ => self.skip(&path, "not a regular file"),
            }
        }
        Ok(())
    }

    fn file(&mut self, from: OwnedFd, size: u64, to: &Path, name: &str, path: String) -> io::Result<()> {
        let left = self.limits.artifact_total_bytes.saturating_sub(self.harvest.bytes);
        if self.harvest.files.len() >= self.limits.artifact_files as usize {
            self.skip(&path, "too many files");
            return Ok(());
        }
        if size > self.limits.artifact_file_bytes || size > left {
            self.skip(&path, &format!("too large ({size} bytes)"));
            return Ok(());
        }
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(to)?;
        let mut copy = File::options().write(true).create_new(true).mode(0o600).open(to.join(name))?;
        // Not more than was looked at: a file that still grows must not pass the limit.
        let copied = io::copy(&mut File::from(from).take(size), &mut copy)?;
        self.harvest.bytes += copied;
        self.harvest.files.push(path);
        Ok(())
    }

    fn skip(&mut self, path: &str, why: &str) {
        if self.harvest.skipped.len() < 100 {
            self.harvest.skipped.push(format!("{path}: {why}"));
        }
    }
}

/// Letters, digits, spaces and `._-+,=@()` stay, anything else becomes `_`; no name begins with a dot.
fn clean(name: &str) -> String {
    let mut clean = String::new();
    for c in name.chars() {
        let keep = c.is_alphanumeric() || " ._-+,=@()".contains(c);
        let c = if keep { c } else { '_' };
        if clean.len() + c.len_utf8() > LONGEST_NAME {
            break;
        }
        clean.push(c);
    }
    if clean.starts_with('.') {
        clean.replace_range(..1, "_");
    }
    if clean.is_empty() { "_".to_owned() } else { clean }
}

/// Two names that clean to the same one are told apart by a number. Each name remembers its next number, so that
/// thousands of names that clean alike cost no more than their count.
fn distinct(name: String, taken: &mut BTreeMap<String, u32>) -> String {
    let Some(mut number) = taken.get(&name).copied() else {
        taken.insert(name.clone(), 2);
        return name;
    };
    loop {
        let tried = format!("{number}-{name}");
        number = number.saturating_add(1);
        if !taken.contains_key(&tried) {
            taken.insert(tried.clone(), 2);
            taken.insert(name, number);
            return tried;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn names_that_clean_alike_are_numbered_in_order() {
        let mut taken = BTreeMap::new();
        let mut named = |name: &str| distinct(name.to_owned(), &mut taken);
        assert_eq!(
            [named("a"), named("a"), named("2-a"), named("a"), named("2-a")],
            ["a", "2-a", "2-2-a", "3-a", "3-2-a"]
        );
        let many: Vec<String> = (0..20_000).map(|_| named("b")).collect();
        assert_eq!(many.last().map(String::as_str), Some("20000-b"), "each with a number of its own");
    }

    #[test]
    fn only_regular_files_are_taken_and_no_link_is_followed() {
        let dir = tempfile::tempdir().expect("a folder");
        let (workspace, target) = (dir.path().join("w"), dir.path().join("t"));
        let out = workspace.join("out");
        std::fs::create_dir_all(out.join("sub")).expect("folders");
        std::fs::write(dir.path().join("secret"), "not for anybody").expect("a file");
        std::fs::write(out.join("report.md"), "done").expect("a file");
        std::fs::write(out.join("sub/a\nb"), "x").expect("a file");
        std::fs::write(out.join("sub/a\tb"), "y").expect("a file");
        std::fs::write(out.join(".hidden"), "z").expect("a file");
        symlink(dir.path().join("secret"), out.join("link")).expect("a link");
        symlink(dir.path(), out.join("dirlink")).expect("a link");
        rustix::fs::mknodat(rustix::fs::CWD, out.join("pipe"), FileType::Fifo, Mode::RWXU, 0).expect("a pipe");
        let harvest = harvest(&workspace, &target, &AgentLimits::default()).expect("walks");
        assert_eq!(harvest.files, ["_hidden", "report.md", "sub/a_b", "sub/2-a_b"]);
        assert_eq!(harvest.skipped, ["dirlink: a link", "link: a link", "pipe: not a regular file"]);
        assert_eq!(std::fs::read_to_string(target.join("report.md")).expect("copied"), "done");
        assert!(!target.join("link").exists() && !target.join("dirlink").exists());
    }

    #[test]
    fn the_checkouts_own_empty_file_is_no_deliverable() {
        let dir = tempfile::tempdir().expect("a folder");
        let out = dir.path().join("w/out");
        std::fs::create_dir_all(out.join("sub")).expect("folders");
        for name in [".gitkeep", "sub/.gitkeep", "_gitkeep", "empty"] {
            std::fs::write(out.join(name), "").expect("a file");
        }
        let taken = |target: &str| {
            harvest(&dir.path().join("w"), &dir.path().join(target), &AgentLimits::default()).expect("walks")
        };
        let first = taken("t");
        assert_eq!(first.files, ["_gitkeep", "empty", "sub/_gitkeep"], "the agent's own empty files stay");
        assert!(first.skipped.is_empty(), "nothing of the agent's was left behind: {:?}", first.skipped);
        std::fs::write(out.join(".gitkeep"), "written").expect("a file");
        assert_eq!(taken("u").files, ["_gitkeep", "2-_gitkeep", "empty", "sub/_gitkeep"]);
    }

    #[test]
    fn an_out_folder_that_is_a_link_gives_nothing() {
        let dir = tempfile::tempdir().expect("a folder");
        let workspace = dir.path().join("w");
        std::fs::create_dir_all(dir.path().join("elsewhere")).expect("a folder");
        std::fs::write(dir.path().join("elsewhere/secret"), "s").expect("a file");
        std::fs::create_dir_all(&workspace).expect("a folder");
        let limits = AgentLimits::default();
        let none = harvest(&workspace, &dir.path().join("t"), &limits).expect("nothing there");
        assert_eq!(none, Harvest::default());
        symlink(dir.path().join("elsewhere"), workspace.join("out")).expect("a link");
        let linked = harvest(&workspace, &dir.path().join("t"), &limits).expect("walks");
        assert_eq!((linked.files.len(), linked.skipped), (0, vec!["out: not a folder".to_owned()]));
    }

    #[test]
    fn the_limits_hold_for_each_file_for_all_and_for_their_number() {
        let dir = tempfile::tempdir().expect("a folder");
        let out = dir.path().join("out");
        std::fs::create_dir_all(&out).expect("a folder");
        for (name, size) in [("a", 11), ("b", 10), ("c", 10), ("d", 1), ("e", 1)] {
            std::fs::write(out.join(name), vec![b'x'; size]).expect("a file");
        }
        let limits = AgentLimits {
            artifact_file_bytes: 10,
            artifact_total_bytes: 12,
            artifact_files: 2,
            ..AgentLimits::default()
        };
        let harvest = harvest(dir.path(), &dir.path().join("t"), &limits).expect("walks");
        assert_eq!(harvest.files, ["b", "d"]);
        assert_eq!(harvest.skipped, ["a: too large (11 bytes)", "c: too large (10 bytes)", "e: too many files"]);
        assert_eq!(harvest.bytes, 11);
    }
}
