//! [`filter`]: the system calls that a command is refused, for seccomp.
//!
//! What is not named is allowed: programs of all kinds are to work. Refused is what reaches the
//! network, another program's memory, the kernel's own state, or what Landlock does not see.

use std::collections::BTreeMap;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch,
};

/// The filter, or an error where seccomp is not known for this processor.
///
/// `traceable`: whether debuggers may run, which is safe only where something else keeps them to
/// the command's own processes.
pub(super) fn filter(network: bool, traceable: bool) -> Result<BpfProgram, BackendError> {
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    let always = Vec::new;
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    rules.extend(REFUSED.iter().map(|&call| (call, always())));
    rules.extend(MOUNTING.iter().map(|&call| (call, always())));
    if !traceable {
        rules.extend(TRACING.iter().map(|&call| (call, always())));
    }
    // A socket of the file system leads to daemons that act for whoever asks (Docker, D-Bus), and
    // its path is out of seccomp's sight; so there are none, with network or without.
    let sockets = match network {
        true => {
            vec![rule([not(0, libc::AF_INET), not(0, libc::AF_INET6), not(0, libc::AF_NETLINK)])?]
        }
        false => always(),
    };
    rules.insert(libc::SYS_socket, sockets);
    // A pair is as good as a pipe; but one of datagrams can be turned to any address.
    let datagrams = [libc::SOCK_DGRAM, libc::SOCK_RAW];
    let pairs = datagrams.map(|kind| rule([masked(1, SOCKET_KIND, kind)]));
    rules.insert(libc::SYS_socketpair, pairs.into_iter().collect::<Result<_, _>>()?);
    // Typing into a terminal for its user.
    let typing = [libc::TIOCSTI, libc::TIOCLINUX].map(|request| rule([is(1, request as u32)]));
    rules.insert(libc::SYS_ioctl, typing.into_iter().collect::<Result<_, _>>()?);
    // The same calls by their other number.
    #[cfg(target_arch = "x86_64")]
    {
        let x32: Vec<_> = rules.iter().map(|(call, chain)| (call | X32, chain.clone())).collect();
        rules.extend(x32);
        rules.extend(X32_ONLY.map(|call| (call | X32, always())));
    }
    let refuse = SeccompAction::Errno(libc::EPERM as u32);
    SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch)?.try_into()
}

/// Matches when all conditions do.
fn rule<const N: usize>(
    conditions: [Result<SeccompCondition, BackendError>; N],
) -> Result<SeccompRule, BackendError> {
    SeccompRule::new(conditions.into_iter().collect::<Result<_, _>>()?)
}

fn is(argument: u8, value: u32) -> Result<SeccompCondition, BackendError> {
    condition(argument, SeccompCmpOp::Eq, value)
}

fn not(argument: u8, value: i32) -> Result<SeccompCondition, BackendError> {
    condition(argument, SeccompCmpOp::Ne, value as u32)
}

fn masked(argument: u8, mask: u64, value: i32) -> Result<SeccompCondition, BackendError> {
    condition(argument, SeccompCmpOp::MaskedEq(mask), value as u32)
}

fn condition(
    argument: u8,
    operator: SeccompCmpOp,
    value: u32,
) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value.into())
}

/// What leads around the other rules.
const REFUSED: [i64; 11] = [
    // Does what other calls do, unseen by filters.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // Files by number instead of path.
    libc::SYS_open_by_handle_at,
    libc::SYS_pidfd_getfd,
    // Keys that the kernel keeps for the user.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
];

/// Changing what paths mean, which a user may do in a namespace of their own. What only root may
/// do needs no rule: its capabilities are gone.
const MOUNTING: [i64; 11] = [
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_mount_setattr,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_pivot_root,
    libc::SYS_setns,
];

/// Looking into another process.
const TRACING: [i64; 3] =
    [libc::SYS_ptrace, libc::SYS_process_vm_readv, libc::SYS_process_vm_writev];

/// The bits of a socket's type that are no flags.
const SOCKET_KIND: u64 = 0xf;

/// The bit that marks calls of the x32 convention, which has numbers of its own for some.
#[cfg(target_arch = "x86_64")]
const X32: i64 = 0x4000_0000;
/// `ioctl`, `ptrace`, `kexec_load`, `process_vm_readv`, `process_vm_writev` and `io_setup`'s kin
/// as x32 numbers them; nothing common runs that way.
#[cfg(target_arch = "x86_64")]
const X32_ONLY: [i64; 5] = [514, 521, 528, 539, 540];

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, UdpSocket};
    use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};

    use super::*;

    /// What a thread with this filter says.
    fn filtered<T: Send + 'static>(network: bool, ask: fn() -> T) -> T {
        let filter = filter(network, true).unwrap();
        let thread = std::thread::spawn(move || {
            seccompiler::apply_filter(&filter).unwrap();
            ask()
        });
        thread.join().unwrap()
    }

    fn sockets() -> [bool; 5] {
        [
            TcpListener::bind("127.0.0.1:0").is_ok(),
            UdpSocket::bind("127.0.0.1:0").is_ok(),
            UnixListener::bind("/no/such/folder/s").unwrap_err().kind()
                != std::io::ErrorKind::PermissionDenied,
            UnixStream::pair().is_ok(),
            UnixDatagram::pair().is_ok(),
        ]
    }

    #[test]
    fn without_network_only_pairs_are_left() {
        assert_eq!(filtered(false, sockets), [false, false, false, true, false]);
        // Threads beside it are free.
        assert_eq!(sockets(), [true; 5]);
    }

    #[test]
    fn with_network_there_is_no_way_to_daemons() {
        assert_eq!(filtered(true, sockets), [true, true, false, true, false]);
    }
}
