//! The system call filter: what a coding agent never needs, and what exploits of the kernel most often start from.
//!
//! A deny list, because an allow list would have to follow every release of node, git and python. What it forbids is
//! refused with EPERM, so that programs that merely try (io_uring in libuv, clone3 in glibc) fall back.

use std::collections::BTreeMap;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

/// Refused whatever the arguments.
const DENIED: &[i64] = &[
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    OPEN_TREE_ATTR,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_quotactl,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_bpf,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_userfaultfd,
    libc::SYS_perf_event_open,
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_acct,
    libc::SYS_reboot,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_vhangup,
    libc::SYS_lookup_dcookie,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_kexec_file_load,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
];

/// `open_tree_attr`, Linux 6.15; the same number on every architecture.
const OPEN_TREE_ATTR: i64 = 467;

/// Flags of `clone` that make a namespace. CLONE_NEWTIME cannot be given to `clone`: its bit is part of the signal.
const NAMESPACE_FLAGS: &[i32] = &[
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

/// The low bits of the type argument of `socket`; the rest are flags.
const SOCKET_TYPE: u64 = 0xf;

/// Requests of `ioctl` that type into a terminal; libc gives them another type with each C library.
const TIOCSTI: u64 = 0x5412;
const TIOCLINUX: u64 = 0x541c;

/// The obsolete type that gives link layer packets.
const SOCK_PACKET: u64 = 10;

/// The bit that makes an x86-64 system call number an x32 one. Kernels with that ABI take such numbers under the same
/// audit architecture, so that each rule has to exist twice.
#[cfg(target_arch = "x86_64")]
const X32: i64 = 0x4000_0000;

/// Calls that have a number of their own in the x32 ABI: ptrace, kexec_load, process_vm_readv, process_vm_writev.
#[cfg(target_arch = "x86_64")]
const X32_OWN: &[i64] = &[521, 528, 539, 540];

/// Returns the filters: forbidden calls (EPERM), then `clone3` (ENOSYS, because its flags lie in memory where a filter
/// cannot see them, and glibc takes `clone` when told that it does not exist).
pub(crate) fn programs() -> Result<[BpfProgram; 2], BackendError> {
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    let mut denied = BTreeMap::new();
    for number in DENIED {
        add(&mut denied, *number, Vec::new());
    }
    let mut clone = Vec::new();
    for flag in NAMESPACE_FLAGS {
        let flag = u64::from(flag.cast_unsigned());
        clone.push(rule(&[(0, SeccompCmpOp::MaskedEq(flag), flag)])?);
    }
    add(&mut denied, libc::SYS_clone, clone);
    add(&mut denied, libc::SYS_socket, sockets()?);
    // Typing into a terminal that was left open: the fault behind many an escape from a shared session.
    let type_ahead = vec![rule(&[(1, SeccompCmpOp::Eq, TIOCSTI)])?, rule(&[(1, SeccompCmpOp::Eq, TIOCLINUX)])?];
    add(&mut denied, libc::SYS_ioctl, type_ahead);
    #[cfg(target_arch = "x86_64")]
    for number in X32_OWN {
        denied.insert(number | X32, Vec::new());
    }

    let mut absent = BTreeMap::new();
    add(&mut absent, libc::SYS_clone3, Vec::new());
    Ok([compile(denied, libc::EPERM, arch)?, compile(absent, libc::ENOSYS, arch)?])
}

/// Returns a program as the kernel and bubblewrap read it: one `sock_filter` after another.
pub(crate) fn bytes(program: &BpfProgram) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(program.len() * 8);
    for instruction in program {
        bytes.extend_from_slice(&instruction.code.to_ne_bytes());
        bytes.push(instruction.jt);
        bytes.push(instruction.jf);
        bytes.extend_from_slice(&instruction.k.to_ne_bytes());
    }
    bytes
}

/// Which sockets are refused: every family but unix, IPv4, IPv6 and netlink; raw and packet sockets of the internet
/// families; every netlink protocol but routing, which `getifaddrs` reads.
fn sockets() -> Result<Vec<SeccompRule>, BackendError> {
    let [unix, inet, inet6, netlink] = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK]
        .map(|family| u64::from(family.cast_unsigned()));
    let mut rules = vec![
        rule(&[unix, inet, inet6, netlink].map(|family| (0, SeccompCmpOp::Ne, family)))?,
        rule(&[(0, SeccompCmpOp::Eq, netlink), (2, SeccompCmpOp::Ne, 0)])?,
    ];
    for family in [inet, inet6] {
        for kind in [u64::from(libc::SOCK_RAW.cast_unsigned()), SOCK_PACKET] {
            rules.push(rule(&[(0, SeccompCmpOp::Eq, family), (1, SeccompCmpOp::MaskedEq(SOCKET_TYPE), kind)])?);
        }
    }
    Ok(rules)
}

/// A rule holds when all of its conditions do; the kernel's argument types are 32 bits wide in all that is used here.
fn rule(conditions: &[(u8, SeccompCmpOp, u64)]) -> Result<SeccompRule, BackendError> {
    let conditions = conditions
        .iter()
        .map(|(argument, operator, value)| {
            SeccompCondition::new(*argument, SeccompCmpArgLen::Dword, operator.clone(), *value)
        })
        .collect::<Result<Vec<_>, _>>()?;
    SeccompRule::new(conditions)
}

fn add(rules: &mut BTreeMap<i64, Vec<SeccompRule>>, number: i64, conditions: Vec<SeccompRule>) {
    #[cfg(target_arch = "x86_64")]
    rules.insert(number | X32, conditions.clone());
    rules.insert(number, conditions);
}

fn compile(rules: BTreeMap<i64, Vec<SeccompRule>>, errno: i32, arch: TargetArch) -> Result<BpfProgram, BackendError> {
    let refused = SeccompAction::Errno(errno.cast_unsigned());
    SeccompFilter::new(rules, SeccompAction::Allow, refused, arch)?.try_into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_filters_compile_and_fit_the_kernel() {
        for program in programs().expect("this architecture has a filter") {
            assert!(!program.is_empty() && program.len() <= 4096, "the kernel takes 1 to 4096 instructions");
            assert_eq!(bytes(&program).len(), program.len() * 8, "an instruction is eight bytes");
        }
    }
}
