//! Removing a folder that a command could write to.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, chmodat, openat, renameat, statat, unlinkat};
use rustix::io::Errno;

/// Opens a folder, and nothing that a link in its place may lead to.
const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::RDONLY).union(OFlags::CLOEXEC);

/// Removes a folder with everything in it, however deep it is, once nothing runs in it any more.
///
/// [`std::fs::remove_dir_all`] goes down by recursion with an open folder for each level. A command can nest folders
/// deeper than its caller has stack, which ends the process, or descriptors. Here what lies two levels down is moved up
/// instead, so that two open folders are enough. Links are removed and never followed. Folders that their owner has
/// closed to itself are opened again first.
///
/// # Errors
/// The first thing that cannot be removed; `NotFound` when the folder is not there.
pub fn remove_tree(folder: &Path) -> io::Result<()> {
    open_up(CWD, folder)?;
    let root = openat(CWD, folder, FOLDER, Mode::empty())?;
    let mut moved = 0_u64;
    loop {
        let names = names(&root)?;
        if names.is_empty() {
            break;
        }
        for name in names {
            if unlink(&root, &name)? {
                continue;
            }
            open_up(&root, &*name)?;
            let inner = openat(&root, &*name, FOLDER, Mode::empty())?;
            for below in self::names(&inner)? {
                if unlink(&inner, &below)? {
                    continue;
                }
                open_up(&inner, &*below)?;
                move_up(&inner, &below, &root, &mut moved)?;
            }
            unlinkat(&root, &*name, AtFlags::REMOVEDIR)?;
        }
    }
    unlinkat(CWD, folder, AtFlags::REMOVEDIR)?;
    Ok(())
}

fn names(folder: &OwnedFd) -> io::Result<Vec<CString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if name != c"." && name != c".." {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

/// Removes what is no folder, or an empty one; says whether it is gone.
fn unlink(folder: &OwnedFd, name: &CString) -> io::Result<bool> {
    match unlinkat(folder, name, AtFlags::empty()) {
        Ok(()) => return Ok(true),
        // Which of the two it is for a folder depends on the file system.
        Err(Errno::ISDIR | Errno::PERM) => {}
        Err(error) => return Err(error.into()),
    }
    match unlinkat(folder, name, AtFlags::REMOVEDIR) {
        Ok(()) => Ok(true),
        Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Gives the owner of a folder its rights back.
fn open_up<P: rustix::path::Arg + Copy>(at: impl AsFd + Copy, name: P) -> io::Result<()> {
    let found = statat(at, name, AtFlags::SYMLINK_NOFOLLOW)?;
    let folder = FileType::from_raw_mode(found.st_mode) == FileType::Directory;
    if folder && found.st_mode & 0o700 != 0o700 {
        chmodat(at, name, Mode::RWXU, AtFlags::empty())?;
    }
    Ok(())
}

/// Moves a folder under a name that is free.
fn move_up(from: &OwnedFd, name: &CString, to: &OwnedFd, moved: &mut u64) -> io::Result<()> {
    loop {
        *moved += 1;
        match renameat(from, name, to, format!(".up-{moved}")) {
            Ok(()) => return Ok(()),
            // The command has taken this name.
            Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    /// Nests folders by their descriptors: no path could be as long.
    fn nest(folder: &Path, levels: usize) {
        let mut at = openat(CWD, folder, FOLDER, Mode::empty()).expect("the folder is there");
        for _ in 0..levels {
            rustix::fs::mkdirat(&at, "d", Mode::RWXU).expect("a folder is made");
            at = openat(&at, "d", FOLDER, Mode::empty()).expect("it is entered");
        }
    }

    #[test]
    fn a_tree_deeper_than_any_stack_is_removed() {
        let ground = tempfile::tempdir().expect("a folder");
        let tree = ground.path().join("tree");
        fs::create_dir(&tree).expect("a folder");
        nest(&tree, 1000);
        // A small stack says the same as a tree of tens of thousands of levels, and sooner.
        let removing = std::thread::Builder::new().stack_size(64 << 10).spawn(move || remove_tree(&tree));
        removing.expect("a thread").join().expect("no panic").expect("it is removed");
        assert_eq!(fs::read_dir(ground.path()).expect("lists").count(), 0, "nothing is left");
    }

    #[test]
    fn links_are_not_followed_and_closed_folders_and_taken_names_do_not_stop_it() {
        let ground = tempfile::tempdir().expect("a folder");
        let (tree, kept) = (ground.path().join("tree"), ground.path().join("kept"));
        fs::create_dir_all(tree.join("a/closed/inner")).expect("folders");
        fs::create_dir_all(tree.join("b/c/d/e")).expect("folders");
        fs::create_dir_all(tree.join(".up-1/x/y")).expect("folders");
        fs::write(tree.join(".up-2"), "taken").expect("a file");
        fs::create_dir(&kept).expect("a folder");
        fs::write(kept.join("file"), "stays").expect("a file");
        for link in [tree.join("link"), tree.join("a/link"), tree.join("b/c/link")] {
            symlink(&kept, link).expect("a link");
        }
        for closed in [tree.join("a/closed/inner"), tree.join("a/closed"), tree.join("a"), tree.clone()] {
            fs::set_permissions(closed, Permissions::from_mode(0o000)).expect("it is closed");
        }
        remove_tree(&tree).expect("it is removed");
        assert!(!tree.exists(), "nothing of it is left");
        assert_eq!(fs::read_to_string(kept.join("file")).expect("is there"), "stays");
        assert_eq!(fs::metadata(&kept).expect("is there").permissions().mode() & 0o777, 0o755, "nor changed");
    }

    #[test]
    fn what_is_no_folder_is_left_alone() {
        let ground = tempfile::tempdir().expect("a folder");
        let (target, link) = (ground.path().join("target"), ground.path().join("link"));
        fs::create_dir(&target).expect("a folder");
        fs::write(target.join("file"), "stays").expect("a file");
        symlink(&target, &link).expect("a link");
        remove_tree(&link).expect_err("a link is no folder");
        assert!(target.join("file").exists(), "and is not followed");
        let missing = remove_tree(&ground.path().join("missing")).expect_err("it is not there");
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }
}
