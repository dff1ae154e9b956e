//! Orphans: what is left when a sandbox's outer process dies before the inner one.

use std::collections::BTreeSet;
use std::io;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use crate::error::SandboxError;
use crate::processes;

static SUBREAPER: AtomicBool = AtomicBool::new(false);

/// Children of this process whose exit status somebody is going to ask for.
static AWAITED: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// Makes this process the one that adopts orphans of its descendants, in place of the machine's init.
///
/// A server should call it once at its start: when a sandbox's outer process is killed, the inner one ends as a zombie
/// whose status somebody must take, and in a container process 1 often takes none. Only zombies of sandboxes are
/// taken here; a program that starts other things which leave orphans has to care for those itself.
pub fn become_subreaper() -> Result<(), SandboxError> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .map_err(SandboxError::io("become the adopter of orphaned processes"))?;
    SUBREAPER.store(true, Ordering::Relaxed);
    Ok(())
}

/// Starts a child that [`sweep`] leaves alone until [`forget`] is called.
pub(crate) fn spawn(command: &mut Command) -> io::Result<Child> {
    // Held across the spawn: a child that ends at once must be known before a sweep can see it.
    let mut awaited = awaited();
    let child = command.spawn()?;
    awaited.insert(child.id());
    Ok(child)
}

/// Says that the status of that child has been taken.
pub(crate) fn forget(pid: u32) {
    awaited().remove(&pid);
}

/// Takes the status of every ended bubblewrap that was adopted.
pub(crate) fn sweep() {
    if !SUBREAPER.load(Ordering::Relaxed) {
        return;
    }
    let own = std::process::id().cast_signed();
    let awaited = awaited();
    for entry in processes::table() {
        let known = u32::try_from(entry.key.pid).is_ok_and(|pid| awaited.contains(&pid));
        let adopted = entry.parent == own && entry.is_zombie() && entry.name == "bwrap" && !known;
        if let Some(pid) = Pid::from_raw(entry.key.pid).filter(|_| adopted) {
            let _ = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
        }
    }
}

fn awaited() -> MutexGuard<'static, BTreeSet<u32>> {
    // A set of numbers is whole whatever its holder was doing when it panicked.
    AWAITED.lock().unwrap_or_else(PoisonError::into_inner)
}
