//! [`drop_for_thread`]: what root may not do in a sandbox.

use std::io;

use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

/// Leaves this thread, and what it starts, no more of root's powers than a container has. Some of
/// the others lead around Landlock: with `CAP_PERFMON`, the environment of any process is open.
///
/// No program gets them back, because the thread may gain no privileges. Who is not root loses
/// nothing.
pub(super) fn drop_for_thread() -> io::Result<()> {
    let mut held = capabilities(None)?;
    if KEPT.contains(held.permitted) {
        return Ok(());
    }
    held.permitted &= KEPT;
    held.effective &= KEPT;
    held.inheritable &= KEPT;
    Ok(set_capabilities(None, held)?)
}

const KEPT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::SETPCAP)
    .union(CapabilitySet::NET_BIND_SERVICE)
    .union(CapabilitySet::SYS_CHROOT)
    .union(CapabilitySet::AUDIT_WRITE)
    .union(CapabilitySet::SETFCAP);
