//! Low-latency wake-ups under load (EEVDF short slices).
//!
//! Linux's fair scheduler lets a running thread finish its slice, some milliseconds, before a woken one runs.
//! A thread that requests shorter slices has an earlier deadline and preempts at once
//! (EEVDF with custom slices, Linux 6.12; `sched_setattr(2)`). It gets no more of the processor than before, and
//! needs no privilege.
//!
//! Beside it, the clock of all time stamps.

#![deny(unsafe_op_in_unsafe_fn)]

use std::io;

mod clock;

pub use clock::now_ns;

/// The shortest slice the kernel grants.
const SHORTEST_SLICE_NS: u64 = 100_000;

/// `struct sched_attr` as far as its first version goes.
#[repr(C)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime_ns: u64,
    deadline_ns: u64,
    period_ns: u64,
}

/// Ask for the shortest slices for the calling thread and all that it starts from now on.
///
/// A kernel before 6.12 takes the call and changes nothing. Errors are the kernel's: the caller may go on without.
pub fn ask_for_short_slices() -> io::Result<()> {
    let mut attributes = Attributes {
        size: size_of::<Attributes>() as u32,
        policy: 0,
        flags: 0,
        nice: 0,
        priority: 0,
        runtime_ns: 0,
        deadline_ns: 0,
        period_ns: 0,
    };
    // SAFETY: the structure is valid for writes of the size that is passed, and 0 names the calling thread.
    let got = unsafe {
        libc::syscall(
            libc::SYS_sched_getattr,
            0,
            &raw mut attributes,
            attributes.size,
            0,
        )
    };
    if got != 0 {
        return Err(io::Error::last_os_error());
    }
    // A real-time policy already wakes up with less latency.
    if attributes.policy != libc::SCHED_OTHER as u32 {
        return Ok(());
    }
    attributes.runtime_ns = SHORTEST_SLICE_NS;
    // SAFETY: the structure is valid for reads of the size it names, and 0 names the calling thread.
    match unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_may_be_asked_for_without_privilege_and_again() {
        ask_for_short_slices().expect("the kernel takes the call");
        ask_for_short_slices().expect("and takes it again");
    }
}
