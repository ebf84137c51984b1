//! The end of a program together with the process that started it.

use std::thread;

use rustix::event::{poll, PollFd, PollFlags};
use rustix::process::{getpid, getppid, kill_process, pidfd_open, PidfdFlags, Signal};

/// End this process, as SIGTERM does, when its parent ends. PR_SET_PDEATHSIG would not do: it also fires when only
/// the parent's thread that started this process ends.
///
/// # Errors
/// As the kernel has them: it is too old to watch a process.
pub fn end_with_parent() -> rustix::io::Result<()> {
    let end = || kill_process(getpid(), Signal::TERM);
    let Some(parent) = getppid() else {
        return end();
    };
    let descriptor = pidfd_open(parent, PidfdFlags::empty())?;
    if getppid() != Some(parent) {
        return end();
    }
    thread::spawn(move || {
        let mut ended = [PollFd::new(&descriptor, PollFlags::IN)];
        while poll(&mut ended, None) == Err(rustix::io::Errno::INTR) {}
        // Signalling oneself cannot fail.
        let _ = end();
    });
    Ok(())
}
