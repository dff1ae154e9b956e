//! What bubblewrap is told. Measured against 0.8.0, the oldest that has `--disable-userns`.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{MemfdFlags, SealFlags, SeekFrom, fcntl_add_seals, memfd_create, seek};

use crate::error::SandboxError;
use crate::places::Places;
use crate::seccomp;
use crate::spec::{Mount, Spec, Tmpfs};

/// Folders that are links into `/usr` on a merged system, and folders of their own on others.
const SYSTEM_FOLDERS: &[&str] = &["bin", "sbin", "lib", "lib32", "lib64", "libx32"];

/// Arguments that hold for every sandbox: nothing shared with the host, and no way to build namespaces inside.
const WALLS: &[&str] = &[
    "--unshare-all",
    "--unshare-user",
    "--disable-userns",
    "--die-with-parent",
    "--new-session",
    "--clearenv",
    "--cap-drop",
    "ALL",
];

/// Arguments for bubblewrap, and the descriptors that they name by number.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    arguments: Vec<OsString>,
    inherited: Vec<OwnedFd>,
}

impl Plan {
    /// Lays out the sandbox of a spec. Every mount comes before the root is made read-only.
    pub(crate) fn of(spec: &Spec, uid: u32, gid: u32, places: &Places) -> Result<Self, SandboxError> {
        let mut plan = Self::default();
        plan.say(WALLS);
        plan.say(&["--hostname", &spec.hostname]);
        plan.system_files();
        plan.own_files(spec, uid, gid)?;
        plan.kernel_files(spec.limits.shared_memory);
        plan.say(&["--dir", "/run", "--dir", "/var", "--symlink", "../tmp", "/var/tmp"]);
        plan.mounts(spec)?;
        for file in &spec.files {
            let content = places.fill_bytes(&file.content)?;
            plan.file("--ro-bind-data", &file.target, file.mode, &content)?;
        }
        plan.say(&["--remount-ro", "/"]);
        // Through bubblewrap and not through the init, so that process 1 is under the filter as well: it has the same
        // user as the command, which could otherwise borrow its system calls by writing to its memory.
        for program in seccomp::programs().map_err(|error| SandboxError::invalid(format!("seccomp: {error}")))? {
            let number = plan.inherit("seccomp", &seccomp::bytes(&program))?;
            plan.say(&["--add-seccomp-fd", &number]);
        }
        Ok(plan)
    }

    /// Lays out the smallest sandbox that says whether the machine can build one.
    pub(crate) fn bare() -> Self {
        let mut plan = Self::default();
        plan.say(WALLS);
        plan.system_files();
        plan.kernel_files(4096);
        plan.say(&["--remount-ro", "/"]);
        plan
    }

    /// Returns the arguments of a plan without files of its own.
    pub(crate) fn into_arguments(self) -> Vec<OsString> {
        self.arguments
    }

    /// Returns the file that `--args` reads, and everything that the child must inherit (that file included).
    ///
    /// Arguments go by this way because those of process 1 can be read inside, and hold paths of the host.
    pub(crate) fn into_descriptors(mut self) -> Result<(String, Vec<OwnedFd>), SandboxError> {
        let mut bytes = Vec::new();
        for argument in &self.arguments {
            bytes.extend_from_slice(argument.as_bytes());
            bytes.push(0);
        }
        let number = self.inherit("arguments", &bytes)?;
        Ok((number, self.inherited))
    }

    fn say(&mut self, words: &[&str]) {
        self.arguments.extend(words.iter().map(OsString::from));
    }

    fn say_paths(&mut self, option: &str, source: &Path, target: &Path) {
        self.arguments.extend([OsStr::new(option), source.as_os_str(), target.as_os_str()].map(OsStr::to_owned));
    }

    /// Keeps bytes in a sealed file for the child; returns its number.
    fn inherit(&mut self, name: &str, bytes: &[u8]) -> Result<String, SandboxError> {
        let file = sealed(name, bytes)?;
        let number = file.as_raw_fd().to_string();
        self.inherited.push(file);
        Ok(number)
    }

    fn file(&mut self, option: &str, target: &Path, mode: u32, content: &[u8]) -> Result<(), SandboxError> {
        let number = self.inherit("file", content)?;
        self.say(&["--perms", &format!("{mode:04o}"), option, &number]);
        self.arguments.push(target.as_os_str().to_owned());
        Ok(())
    }

    fn system_files(&mut self) {
        self.say(&["--ro-bind", "/usr", "/usr"]);
        for name in SYSTEM_FOLDERS {
            let path = PathBuf::from(format!("/{name}"));
            match fs::symlink_metadata(&path) {
                Ok(metadata) if metadata.is_symlink() => {
                    if let Ok(target) = fs::read_link(&path) {
                        self.say_paths("--symlink", &target, &path);
                    }
                }
                Ok(_) => self.say_paths("--ro-bind", &path, &path),
                Err(_) => {}
            }
        }
    }

    /// `/etc`: what programs look up about users and names, made here, so that it says nothing about the host. The
    /// loader's cache and Debian's alternatives (without them `awk` and others dangle) speak of `/usr` only.
    fn own_files(&mut self, spec: &Spec, uid: u32, gid: u32) -> Result<(), SandboxError> {
        self.say(&["--perms", "0755", "--dir", "/etc"]);
        let files = [
            (
                "/etc/passwd",
                format!("agent:x:{uid}:{gid}:agent:/home/agent:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"),
            ),
            ("/etc/group", format!("agent:x:{gid}:\nnogroup:x:65534:\n")),
            ("/etc/hosts", format!("127.0.0.1\tlocalhost {}\n", spec.hostname)),
            ("/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n".to_owned()),
        ];
        for (target, content) in files {
            if !spec.files.iter().any(|file| file.target == Path::new(target)) {
                self.file("--file", Path::new(target), 0o444, content.as_bytes())?;
            }
        }
        for path in ["/etc/ld.so.cache", "/etc/alternatives"] {
            self.say(&["--ro-bind-try", path, path]);
        }
        Ok(())
    }

    /// `/proc` and `/dev`. bubblewrap's `/dev` is a writable tmpfs without a size: closed, but for a sized `/dev/shm`.
    fn kernel_files(&mut self, shared_memory: u64) {
        self.say(&["--proc", "/proc", "--dev", "/dev"]);
        self.say(&["--perms", "1777", "--size", &shared_memory.max(4096).to_string(), "--tmpfs", "/dev/shm"]);
        self.say(&["--remount-ro", "/dev"]);
    }

    /// Folders in memory and mounts, outer ones first.
    fn mounts(&mut self, spec: &Spec) -> Result<(), SandboxError> {
        enum Place<'a> {
            Memory(&'a Tmpfs),
            Host(&'a Mount),
        }
        let mut places: Vec<(&Path, Place<'_>)> = Vec::new();
        places.extend(spec.tmpfs.iter().map(|tmpfs| (tmpfs.target.as_path(), Place::Memory(tmpfs))));
        places.extend(spec.mounts.iter().map(|mount| (mount.target.as_path(), Place::Host(mount))));
        places.sort_by_key(|(target, _)| target.components().count());
        for (target, place) in places {
            match place {
                Place::Memory(tmpfs) => {
                    self.say(&[
                        "--perms",
                        &format!("{:04o}", tmpfs.mode),
                        "--size",
                        &tmpfs.size.to_string(),
                        "--tmpfs",
                    ]);
                    self.arguments.push(target.as_os_str().to_owned());
                }
                Place::Host(mount) => {
                    let source = fs::canonicalize(&mount.source)
                        .map_err(SandboxError::io(format!("mount `{}`", mount.source.display())))?;
                    self.say_paths(if mount.writable { "--bind" } else { "--ro-bind" }, &source, target);
                }
            }
        }
        Ok(())
    }
}

/// Returns a file in memory with these bytes, to be read from its start, that nobody can change any more.
pub(crate) fn sealed(name: &str, bytes: &[u8]) -> Result<OwnedFd, SandboxError> {
    let doing = || format!("keep {} bytes ({name}) in memory", bytes.len());
    let file =
        memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).map_err(SandboxError::io(doing()))?;
    let mut rest = bytes;
    while !rest.is_empty() {
        let written = rustix::io::write(&file, rest).map_err(SandboxError::io(doing()))?;
        rest = &rest[written..];
    }
    fcntl_add_seals(&file, SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL)
        .map_err(SandboxError::io(doing()))?;
    seek(&file, SeekFrom::Start(0)).map_err(SandboxError::io(doing()))?;
    Ok(file)
}

/// Checks that a user can get to a path, which bubblewrap resolves as that user; its own message names no culprit.
pub(crate) fn check_reachable(path: &Path, uid: u32, gid: u32) -> Result<(), SandboxError> {
    let real = fs::canonicalize(path).map_err(SandboxError::io(format!("mount `{}`", path.display())))?;
    for folder in real.ancestors().skip(1) {
        let metadata = fs::metadata(folder).map_err(SandboxError::io(format!("look at `{}`", folder.display())))?;
        let bit = if metadata.uid() == uid {
            0o100
        } else if metadata.gid() == gid {
            0o010
        } else {
            0o001
        };
        if metadata.mode() & bit == 0 {
            return Err(SandboxError::Unreachable {
                path: path.to_path_buf(),
                uid,
                blocked_at: folder.to_path_buf(),
                mode: metadata.mode() & 0o7777,
            });
        }
    }
    Ok(())
}

/// Returns where bubblewrap is, if it is.
pub(crate) fn find() -> Option<PathBuf> {
    ["/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap"].into_iter().map(PathBuf::from).find(|path| path.is_file())
}

/// Reads `bubblewrap 0.8.0`.
pub(crate) fn version_of(output: &[u8]) -> Option<(String, [u32; 2])> {
    let text = OsString::from_vec(output.to_vec()).into_string().ok()?;
    let version = text.trim().strip_prefix("bubblewrap ")?.to_owned();
    let mut parts = version.split('.');
    let numbers = [parts.next()?.parse().ok()?, parts.next()?.parse().ok()?];
    Some((version, numbers))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_read_from_what_bubblewrap_prints() {
        assert_eq!(version_of(b"bubblewrap 0.11.1\n"), Some(("0.11.1".to_owned(), [0, 11])));
        assert_eq!(version_of(b"something else"), None);
    }

    #[test]
    fn a_sealed_file_cannot_be_changed() {
        let file = sealed("test", b"abc").expect("memory is there");
        assert_eq!(rustix::io::write(&file, b"x"), Err(rustix::io::Errno::PERM), "the seal holds");
        let mut bytes = [0; 8];
        assert_eq!(rustix::io::read(&file, &mut bytes), Ok(3), "it is read from its start");
    }
}
