//! Low-latency wake-ups under load, by the parameters of Linux's fair scheduler (EEVDF).
//!
//! It lets a running thread finish its slice, some milliseconds, before a woken one runs. A thread that requests
//! shorter slices has an earlier deadline and preempts at once (custom slices, Linux 6.12; `sched_setattr(2)`).
//!
//! Beside it, the clock of all time stamps.

#![deny(unsafe_op_in_unsafe_fn)]

use std::io;

mod clock;

pub use clock::now_ns;

/// The shortest slice the kernel grants.
const SHORTEST_SLICE_NS: u64 = 100_000;

/// The slice of a thread with precedence: all that it does when it is woken should fit into one, spinning included.
const PRECEDING_SLICE_NS: u64 = 1_000_000;
const PRECEDING_NICE: i32 = -10;

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

/// Ask for the shortest slices for the calling thread and all that it starts from now on. It gets no more of the
/// processor than before, and needs no privilege.
///
/// A kernel before 6.12 takes the call and changes nothing. Errors are the kernel's: the caller may go on without.
pub fn ask_for_short_slices() -> io::Result<()> {
    ask_for(SHORTEST_SLICE_NS, None)
}

/// Ask for precedence over other threads (nice -10) for the calling thread and its children, in programs whose
/// lateness is taken for a drive's latency. Without the privilege (`CAP_SYS_NICE`) it is short slices alone.
///
/// A thread that spins up to its time has soon had its share of a busy core, and waits there for as long as another's
/// slice; one of nine times the weight has not.
pub fn ask_for_precedence() -> io::Result<()> {
    ask_for(PRECEDING_SLICE_NS, Some(PRECEDING_NICE)).or_else(|_| ask_for_short_slices())
}

fn ask_for(slice_ns: u64, nice: Option<i32>) -> io::Result<()> {
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
    attributes.runtime_ns = slice_ns;
    if let Some(nice) = nice {
        attributes.nice = attributes.nice.min(nice);
    }
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
    fn precedence_is_given_or_short_slices_are() {
        // In a thread of its own: the others of this process keep what they have.
        let nice = std::thread::spawn(|| {
            ask_for_precedence().expect("the kernel takes the call");
            // SAFETY: it reads the calling thread's nice value; PRIO_PROCESS with 0 names it.
            unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) }
        });
        let nice = nice.join().expect("no panic");
        // SAFETY: it takes nothing and always succeeds.
        let is_root = unsafe { libc::geteuid() } == 0;
        assert!(!is_root || nice <= PRECEDING_NICE, "{nice}");
    }

    #[test]
    fn it_may_be_asked_for_without_privilege_and_again() {
        ask_for_short_slices().expect("the kernel takes the call");
        ask_for_short_slices().expect("and takes it again");
    }
}
