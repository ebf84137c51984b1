//! CLOCK_MONOTONIC in nanoseconds, as in rackd and the harness, and sleeping on it with microsecond precision.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use rustix::thread::{clock_nanosleep_absolute, sched_yield, ClockId};
use rustix::time::{clock_gettime, Timespec};

const NS_PER_S: u64 = 1_000_000_000;
/// Maximum lateness of a sleep; the rest of a wait is spun.
const SPIN_NS: u64 = 150_000;

/// Now.
pub fn now_ns() -> u64 {
    read(ClockId::Monotonic)
}

/// CPU time of this thread.
pub fn thread_cpu_ns() -> u64 {
    read(ClockId::ThreadCPUTime)
}

fn read(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    // These clocks count up from the boot or the thread's start: neither part is ever negative.
    now.tv_sec as u64 * NS_PER_S + now.tv_nsec as u64
}

/// The account of a thread's waits for a core, ready to run, since it started; `None` without kernel support.
pub struct Waits(Option<File>);

impl Waits {
    /// The account of the calling thread.
    pub fn of_this_thread() -> Self {
        Self(File::open("/proc/thread-self/schedstat").ok())
    }

    /// Nanoseconds until now.
    pub fn so_far_ns(&self) -> Option<u64> {
        let mut text = [0; 80];
        let length = self.0.as_ref()?.read_at(&mut text, 0).ok()?;
        // Time on a core, time waiting for one, slices.
        let mut fields = std::str::from_utf8(&text[..length]).ok()?.split(' ');
        fields.nth(1)?.parse().ok()
    }
}

/// The moment `when_ns` for interfaces that take an [`Instant`], which is the same clock.
pub fn instant(when_ns: u64) -> Instant {
    let left = Duration::from_nanos(when_ns.saturating_sub(now_ns()));
    let now = Instant::now();
    // A deadline beyond the clock's range never comes; a day is equivalent here.
    now.checked_add(left)
        .unwrap_or(now + Duration::from_secs(86_400))
}

/// Return at `when_ns`: to the microsecond where `precise`, else when the kernel wakes the thread.
pub fn sleep_until(when_ns: u64, precise: bool) {
    let wake_ns = if precise {
        when_ns.saturating_sub(SPIN_NS)
    } else {
        when_ns
    };
    while now_ns() < wake_ns {
        let wake = Timespec {
            tv_sec: (wake_ns / NS_PER_S) as i64,
            tv_nsec: (wake_ns % NS_PER_S) as i64,
        };
        // Interrupted by a signal: the loop asks the clock again.
        let _ = clock_nanosleep_absolute(ClockId::Monotonic, &wake);
    }
    while now_ns() < when_ns {
        sched_yield();
    }
}
