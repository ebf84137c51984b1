//! ReFlex's threads: their rounds, and the tokens that all of them donate to and take from.

/// A thread.
#[derive(Debug, Clone)]
struct Thread {
    rounded_ns: u64,
    /// The seat with which its next round of best effort begins.
    turn: u32,
    /// Whether it has run a round since the donations were last discarded.
    has_run: bool,
}

/// The threads and their global bucket.
///
/// Invariants, of algorithm 1:
/// - a thread runs once a round time; the threads' rounds are spread evenly over it;
/// - the bucket never holds less than nothing, and is emptied by the last thread to run since it was last emptied.
#[derive(Debug)]
pub struct Threads {
    threads: Vec<Thread>,
    round_ns: u64,
    bucket: f64,
}

/// The thread with the fewest tenants, the first of several.
pub fn least_used(threads: u32, tenants: impl Iterator<Item = u32>) -> u32 {
    let mut counts = vec![0_u32; threads as usize];
    tenants.for_each(|thread| counts[thread as usize] += 1);
    let least = (0..threads).min_by_key(|&thread| counts[thread as usize]);
    least.unwrap_or_default()
}

impl Threads {
    pub fn new(threads: u32, round_ns: u64) -> Self {
        let thread = |number: u32| Thread {
            rounded_ns: u64::from(number) * round_ns / u64::from(threads),
            turn: 0,
            has_run: false,
        };
        Self {
            threads: (0..threads).map(thread).collect(),
            round_ns,
            bucket: 0.0,
        }
    }

    /// The thread to run next, and the time of that.
    pub fn next(&self) -> (u64, u32) {
        let due = self.threads.iter().zip(0..);
        let due = due.map(|(thread, number)| (thread.rounded_ns + self.round_ns, number));
        due.min().expect("the parameters' check: a thread")
    }

    /// Begin a round; returns the time since the last one.
    pub fn begin(&mut self, thread: u32, now_ns: u64) -> u64 {
        let thread = &mut self.threads[thread as usize];
        let elapsed_ns = now_ns - thread.rounded_ns;
        thread.rounded_ns = now_ns;
        elapsed_ns
    }

    /// The seat with which a thread's round of best effort begins: the one behind the tenant that was first in the last.
    pub fn turn(&self, thread: u32) -> u32 {
        self.threads[thread as usize].turn
    }

    /// Add tokens to the bucket.
    pub fn donate(&mut self, tokens: f64) {
        self.bucket += tokens;
    }

    /// Take as many tokens out of the bucket as are wanted and there.
    pub fn take(&mut self, wanted: f64) -> f64 {
        let taken = wanted.min(self.bucket);
        self.bucket -= taken;
        taken
    }

    /// The tokens in the bucket.
    pub fn donated(&self) -> f64 {
        self.bucket
    }

    /// End a round of a thread, in which best effort began with the tenant `first`; the last one of all empties the bucket.
    pub fn end(&mut self, thread: u32, first: Option<u32>) {
        let ended = &mut self.threads[thread as usize];
        ended.turn = first.map_or(ended.turn, |first| first + 1);
        ended.has_run = true;
        if self.threads.iter().all(|thread| thread.has_run) {
            self.bucket = 0.0;
            for thread in &mut self.threads {
                thread.has_run = false;
            }
        }
    }

    /// Pass over the rounds of a thread that end before its present one; returns their time. What was donated is gone.
    pub fn rest(&mut self, thread: u32, now_ns: u64) -> u64 {
        let share_ns = u64::from(thread) * self.round_ns / self.threads.len() as u64;
        let Some(until_ns) = (now_ns + share_ns).checked_sub(self.round_ns) else {
            return 0;
        };
        let resting = &mut self.threads[thread as usize];
        let idle_ns = until_ns.saturating_sub(resting.rounded_ns);
        if idle_ns > 0 {
            resting.rounded_ns = until_ns;
            self.bucket = 0.0;
        }
        idle_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_spread_over_the_round_time() {
        let mut threads = Threads::new(4, 1000);
        let mut order = Vec::new();
        for _ in 0..6 {
            let (due_ns, thread) = threads.next();
            assert_eq!(
                threads.begin(thread, due_ns),
                1000,
                "each of its own round time"
            );
            threads.end(thread, None);
            order.push((due_ns, thread));
        }
        let expected = [
            (1000, 0),
            (1250, 1),
            (1500, 2),
            (1750, 3),
            (2000, 0),
            (2250, 1),
        ];
        assert_eq!(order, expected);
    }

    #[test]
    fn the_last_thread_to_run_empties_the_bucket() {
        let mut threads = Threads::new(3, 1000);
        threads.donate(10.0);
        for (thread, left) in [(0, 10.0), (0, 10.0), (2, 10.0), (1, 0.0)] {
            threads.end(thread, None);
            assert_eq!(threads.donated(), left);
        }
        threads.donate(4.0);
        assert_eq!((threads.take(3.0), threads.take(3.0)), (3.0, 1.0));
        threads.donate(4.0);
        for thread in [2, 2, 1] {
            threads.end(thread, None);
            assert_eq!(threads.donated(), 4.0);
        }
        threads.end(0, None);
        assert_eq!(threads.donated(), 0.0);
    }

    #[test]
    fn rest_keeps_the_threads_apart() {
        let mut threads = Threads::new(2, 1000);
        threads.donate(5.0);
        assert_eq!([threads.rest(0, 900), threads.rest(1, 900)], [0, 0]);
        assert_eq!(threads.donated(), 5.0);
        let idle_ns = [threads.rest(0, 10_000), threads.rest(1, 10_000)];
        assert_eq!(idle_ns, [9000, 9000]);
        assert_eq!((threads.next(), threads.donated()), ((10_000, 0), 0.0));
        threads.begin(0, 10_000);
        assert_eq!(threads.next(), (10_500, 1));
    }

    #[test]
    fn a_tenant_joins_the_thread_with_the_fewest() {
        assert_eq!(least_used(3, [0, 0, 2].into_iter()), 1);
        assert_eq!(least_used(3, [0, 1, 2].into_iter()), 0);
        assert_eq!(least_used(1, std::iter::empty()), 0);
    }
}
