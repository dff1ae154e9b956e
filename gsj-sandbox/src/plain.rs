//! The `none` backend: the same init and limits, no walls. Every path inside has a stand-in on the host.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::error::SandboxError;
use crate::ledger::Intent;
use crate::places::Places;
use crate::spec::Spec;

/// Ports that were free, and folders that stand in for those in memory.
#[derive(Debug)]
pub(crate) struct Ground {
    pub(crate) listeners: Vec<TcpListener>,
    pub(crate) places: Places,
}

/// Binds the ports and makes the folders and files of a spec below the intent's scratch folder.
pub(crate) fn prepare(spec: &Spec, intent: &Intent, owner: Option<(u32, u32)>) -> Result<Ground, SandboxError> {
    let mut listeners = Vec::new();
    let mut ports = Vec::new();
    for _ in &spec.ports {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(SandboxError::io("listen on 127.0.0.1"))?;
        ports.push(listener.local_addr().map_err(SandboxError::io("read the address of a listener"))?.port());
        listeners.push(listener);
    }
    let scratch = intent.scratch();
    let stand_in = |target: &Path| scratch.join(target.strip_prefix("/").unwrap_or(target));
    let mut paths: Vec<(PathBuf, PathBuf)> = Vec::new();
    paths.extend(spec.mounts.iter().map(|mount| (mount.target.clone(), mount.source.clone())));
    paths.extend(spec.tmpfs.iter().map(|tmpfs| (tmpfs.target.clone(), stand_in(&tmpfs.target))));
    paths.extend(spec.files.iter().map(|file| (file.target.clone(), stand_in(&file.target))));
    let places = Places::new(ports, paths);

    make_folder(&scratch, 0o755, owner)?;
    for tmpfs in &spec.tmpfs {
        make_below(&scratch, &stand_in(&tmpfs.target), owner)?;
        make_folder(&stand_in(&tmpfs.target), tmpfs.mode, owner)?;
    }
    for file in &spec.files {
        let path = stand_in(&file.target);
        make_below(&scratch, &path, owner)?;
        let doing = || format!("write `{}`", path.display());
        fs::write(&path, places.fill_bytes(&file.content)?).map_err(SandboxError::io(doing()))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(file.mode)).map_err(SandboxError::io(doing()))?;
        own(&path, owner)?;
    }
    Ok(Ground { listeners, places })
}

/// Makes the folders between the scratch folder and a path below it.
fn make_below(scratch: &Path, path: &Path, owner: Option<(u32, u32)>) -> Result<(), SandboxError> {
    let between: Vec<&Path> =
        path.ancestors().skip(1).take_while(|folder| *folder != scratch && folder.starts_with(scratch)).collect();
    for folder in between.into_iter().rev().filter(|folder| !folder.exists()) {
        make_folder(folder, 0o755, owner)?;
    }
    Ok(())
}

fn make_folder(path: &Path, mode: u32, owner: Option<(u32, u32)>) -> Result<(), SandboxError> {
    let doing = || format!("make the folder `{}`", path.display());
    if !path.is_dir() {
        fs::create_dir(path).map_err(SandboxError::io(doing()))?;
    }
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(SandboxError::io(doing()))?;
    own(path, owner)
}

fn own(path: &Path, owner: Option<(u32, u32)>) -> Result<(), SandboxError> {
    match owner {
        None => Ok(()),
        Some((uid, gid)) => std::os::unix::fs::chown(path, Some(uid), Some(gid))
            .map_err(SandboxError::io(format!("give `{}` to uid {uid}", path.display()))),
    }
}
