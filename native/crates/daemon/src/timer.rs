//! A timer thread for entries due at absolute times, with a lateness of about a microsecond.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hdrhistogram::Histogram;
use parking_lot::{Condvar, Mutex, MutexGuard};
use realtime::now_ns;
use serde_json::{json, Value};

/// Bounds of the spin time: a sleep ends this much before the entry is due.
const MAX_SPIN_NS: u64 = 150_000;
const MIN_SPIN_NS: u64 = 5_000;
/// Steps by which the spin time tracks the lateness of recent sleeps, at its 95th percentile.
const MORE_SPIN_NS: u64 = 9_500;
const LESS_SPIN_NS: u64 = 500;

struct Entry<T> {
    at_ns: u64,
    /// Entries with the same time are taken in order of insertion.
    order: u64,
    due: T,
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        (self.at_ns, self.order) == (other.at_ns, other.order)
    }
}

impl<T> Eq for Entry<T> {}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at_ns, self.order).cmp(&(other.at_ns, other.order))
    }
}

struct Queue<T> {
    heap: BinaryHeap<Reverse<Entry<T>>>,
    added: u64,
}

/// Entries that are due at times, in order.
pub struct Timer<T> {
    queue: Mutex<Queue<T>>,
    /// Signalled when an entry earlier than all others was added.
    earlier: Condvar,
    /// Due time of the first entry; read while spinning.
    first_ns: AtomicU64,
    /// The current spin time. An idle machine wakes threads late and can spin; a busy one wakes them at once.
    spin_ns: AtomicU64,
    lateness: Mutex<Histogram<u64>>,
}

impl<T> Default for Timer<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Timer<T> {
    /// A timer without entries.
    #[must_use]
    pub fn new() -> Self {
        Self {
            queue: Mutex::new(Queue {
                heap: BinaryHeap::new(),
                added: 0,
            }),
            earlier: Condvar::new(),
            first_ns: AtomicU64::new(u64::MAX),
            spin_ns: AtomicU64::new(MAX_SPIN_NS),
            lateness: Mutex::new(Histogram::new(3).expect("3 significant figures are allowed")),
        }
    }

    /// Have `due` done at `at_ns`.
    pub fn add(&self, at_ns: u64, due: T) {
        let mut queue = self.queue.lock();
        let order = queue.added;
        queue.added += 1;
        queue.heap.push(Reverse(Entry { at_ns, order, due }));
        if at_ns < self.first_ns.load(Ordering::Relaxed) {
            self.first_ns.store(at_ns, Ordering::Relaxed);
            self.earlier.notify_one();
        }
    }

    /// Record the lateness of entries that were due at these times and have just been executed.
    pub fn record_lateness(&self, due_ns: impl IntoIterator<Item = u64>) {
        let mut lateness = self.lateness.lock();
        let now_ns = now_ns();
        for at_ns in due_ns {
            // An auto-resizing histogram takes every value.
            let _ = lateness.record(now_ns.saturating_sub(at_ns));
        }
    }

    /// Execute every entry at its time; never returns.
    pub fn run(&self, act: impl Fn(T)) -> ! {
        loop {
            let due = self.next();
            act(due);
        }
    }

    /// Wait for the next entry to be due and take it.
    pub fn next(&self) -> T {
        let mut queue = self.queue.lock();
        loop {
            let first_ns = queue
                .heap
                .peek()
                .map_or(u64::MAX, |Reverse(entry)| entry.at_ns);
            self.first_ns.store(first_ns, Ordering::Relaxed);
            let left_ns = first_ns.saturating_sub(now_ns());
            if left_ns == 0 {
                if let Some(Reverse(entry)) = queue.heap.pop() {
                    return entry.due;
                }
            }
            let spin_ns = self.spin_ns.load(Ordering::Relaxed);
            if first_ns == u64::MAX {
                self.earlier.wait(&mut queue);
            } else if left_ns > spin_ns {
                let wake_ns = first_ns - spin_ns;
                let sleep = Duration::from_nanos(left_ns - spin_ns);
                if self.earlier.wait_for(&mut queue, sleep).timed_out() {
                    self.learn(spin_ns, now_ns().saturating_sub(wake_ns));
                }
            } else {
                MutexGuard::unlocked(&mut queue, || {
                    while now_ns() < self.first_ns.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                });
            }
        }
    }

    /// Adapt to a sleep that was to end `spin_ns` before the time and was late by `overslept_ns`.
    fn learn(&self, spin_ns: u64, overslept_ns: u64) {
        let spin_ns = if overslept_ns > spin_ns {
            (spin_ns + MORE_SPIN_NS).min(MAX_SPIN_NS)
        } else {
            (spin_ns - LESS_SPIN_NS).max(MIN_SPIN_NS)
        };
        self.spin_ns.store(spin_ns, Ordering::Relaxed);
    }

    /// The lateness histogram, in nanoseconds.
    #[must_use]
    pub fn lateness(&self) -> Value {
        let lateness = self.lateness.lock();
        json!({
            "n": lateness.len(),
            "p50": lateness.value_at_quantile(0.5),
            "p99": lateness.value_at_quantile(0.99),
            "max": lateness.max(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use super::*;

    #[test]
    fn entries_leave_by_time_and_then_in_order() {
        let timer = Timer::new();
        let start_ns = now_ns();
        for (at_ns, name) in [(2, "c"), (1, "a"), (2, "d"), (1, "b")] {
            timer.add(start_ns + at_ns, name);
        }
        let left: Vec<&str> = (0..4).map(|_| timer.next()).collect();
        assert_eq!(left, ["a", "b", "c", "d"]);
    }

    #[test]
    fn an_entry_never_leaves_early() {
        let timer = Timer::new();
        for delay_ns in [0, 50_000, 400_000] {
            let at_ns = now_ns() + delay_ns;
            timer.add(at_ns, ());
            timer.next();
            assert!(now_ns() >= at_ns);
        }
    }

    #[test]
    fn an_earlier_entry_overtakes_the_one_waited_for() {
        let timer = Arc::new(Timer::new());
        let hour_ns = 3_600_000_000_000;
        timer.add(now_ns() + hour_ns, "late");
        let waiting = timer.clone();
        let first = thread::spawn(move || waiting.next());
        timer.add(now_ns(), "early");
        assert_eq!(first.join().unwrap(), "early");
    }

    #[test]
    fn the_spin_follows_what_sleeping_is_late_by() {
        let timer = Timer::<()>::new();
        let spin_ns = || timer.spin_ns.load(Ordering::Relaxed);
        let sleep = |overslept_ns| (0..2000).for_each(|_| timer.learn(spin_ns(), overslept_ns));
        sleep(20_000);
        assert!((20_000 - LESS_SPIN_NS..20_000 + MORE_SPIN_NS).contains(&spin_ns()));
        sleep(0);
        assert_eq!(spin_ns(), MIN_SPIN_NS);
        sleep(1_000_000);
        assert_eq!(spin_ns(), MAX_SPIN_NS);
    }

    #[test]
    fn lateness_is_counted_in_nanoseconds() {
        let timer = Timer::<()>::new();
        timer.record_lateness([now_ns(), now_ns() - 1_000_000]);
        let lateness = timer.lateness();
        assert_eq!(lateness["n"], 2);
        assert!(lateness["max"].as_u64() >= Some(999_000));
    }
}
