//! Gimbal's dual token bucket: the target rate, divided between reads and writes by the write cost.

use crate::request::Operation;

/// Tokens for reads and for writes, in bytes.
///
/// Invariants:
/// - a bucket never holds more than its size;
/// - what is refilled is at most the target rate times the time; reads get wc / (wc + 1) of it, writes 1 / (wc + 1);
/// - what one bucket has no room for spills into the other, and is lost only when both are full;
/// - a request takes as many tokens as it has bytes. One that is larger than the bucket goes when the bucket is full,
///   and the bucket owes the rest; the papers have no such requests.
#[derive(Debug)]
pub struct Buckets {
    size: f64,
    tokens: [f64; 2],
    filled_ns: u64,
}

impl Buckets {
    pub fn new(kib: u32) -> Self {
        let size = f64::from(kib) * 1024.0;
        Self {
            size,
            tokens: [size; 2],
            filled_ns: 0,
        }
    }

    pub fn tokens(&self, operation: Operation) -> f64 {
        self.tokens[operation as usize]
    }

    /// Refill both at `rate` bytes a second, and divide it by the write cost.
    pub fn refill(&mut self, rate: f64, write_cost: f64, now_ns: u64) {
        if now_ns == self.filled_ns {
            return;
        }
        let refill = rate * (now_ns - self.filled_ns) as f64 / 1e9;
        self.filled_ns = now_ns;
        let writes = refill / (write_cost + 1.0);
        let [read, write] = [self.tokens[0] + (refill - writes), self.tokens[1] + writes];
        let spill = [(read - self.size).max(0.0), (write - self.size).max(0.0)];
        self.tokens = [
            (read + spill[1]).min(self.size),
            (write + spill[0]).min(self.size),
        ];
    }

    /// Take the tokens of a request, if there are enough.
    pub fn take(&mut self, operation: Operation, bytes: u32) -> bool {
        let bytes = f64::from(bytes);
        let tokens = &mut self.tokens[operation as usize];
        // A refill for the time until there are enough may miss by a rounding.
        let is_enough = *tokens + 1e-3 >= bytes.min(self.size);
        if is_enough {
            *tokens -= bytes;
        }
        is_enough
    }

    /// The time from the last refill until there are enough tokens for a request.
    pub fn wait_ns(&self, operation: Operation, bytes: u32, rate: f64, write_cost: f64) -> u64 {
        let own = self.tokens[operation as usize];
        let other = self.tokens[1 - operation as usize];
        let missing = f64::from(bytes).min(self.size) - own;
        let share = match operation {
            Operation::Read => write_cost / (write_cost + 1.0),
            Operation::Write => 1.0 / (write_cost + 1.0),
        };
        // By its own share, or by all of the rate once the other bucket is full.
        let seconds = (missing / (rate * share)).min((missing + self.size - other) / rate);
        (seconds * 1e9 - 1e-4).ceil().max(0.0) as u64
    }

    /// Discard all tokens, as when the drive is overloaded.
    pub fn discard(&mut self) {
        self.tokens = self.tokens.map(|tokens| tokens.min(0.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::cases;
    use proptest::prelude::*;

    const SIZE: f64 = 262_144.0;

    #[test]
    fn a_refill_is_divided_by_the_write_cost() {
        let mut buckets = Buckets::new(256);
        buckets.discard();
        // 100 us at 1 GB/s are 100,000 bytes: nine parts for reads, one for writes.
        buckets.refill(1e9, 9.0, 100_000);
        assert_eq!(buckets.tokens, [90_000.0, 10_000.0]);
        buckets.refill(1e9, 1.0, 200_000);
        assert_eq!(buckets.tokens, [140_000.0, 60_000.0]);
    }

    #[test]
    fn what_overflows_spills_into_the_other_bucket() {
        let mut buckets = Buckets::new(256);
        assert!(buckets.take(Operation::Write, 262_144));
        assert_eq!(buckets.tokens, [SIZE, 0.0]);
        buckets.refill(1e9, 9.0, 100_000);
        assert_eq!(buckets.tokens, [SIZE, 100_000.0]);
        buckets.refill(1e9, 9.0, 10_000_000);
        assert_eq!(buckets.tokens, [SIZE; 2]);
    }

    #[test]
    fn a_request_larger_than_the_bucket_goes_when_it_is_full() {
        let mut buckets = Buckets::new(256);
        assert!(buckets.take(Operation::Read, 1 << 20));
        assert_eq!(buckets.tokens(Operation::Read), SIZE - 1_048_576.0);
        assert!(!buckets.take(Operation::Read, 1));
        buckets.discard();
        assert_eq!(buckets.tokens(Operation::Read), SIZE - 1_048_576.0);
    }

    proptest! {
        #![proptest_config(cases(256))]

        #[test]
        fn tokens_are_those_that_were_refilled_and_taken(
            steps in prop::collection::vec((0_u64..200_000, any::<bool>(), 1_u32..1 << 19), 1..200),
            rate in 52_428_800.0_f64..4_294_967_296.0,
            write_cost in 1.0_f64..9.0,
        ) {
            let mut buckets = Buckets::new(256);
            let (mut now_ns, mut taken) = (0, 0.0);
            for (passed_ns, is_write, bytes) in steps {
                let operation = if is_write { Operation::Write } else { Operation::Read };
                now_ns += passed_ns;
                buckets.refill(rate, write_cost, now_ns);
                prop_assert!(buckets.tokens.iter().all(|tokens| *tokens <= SIZE));
                if buckets.take(operation, bytes) {
                    taken += f64::from(bytes);
                } else {
                    // After the wait there are enough, and not much before.
                    let wait_ns = buckets.wait_ns(operation, bytes, rate, write_cost);
                    prop_assert!(wait_ns > 0);
                    if wait_ns > 2 {
                        buckets.refill(rate, write_cost, now_ns + wait_ns - 2);
                        prop_assert!(buckets.tokens(operation) + 1e-3 < f64::from(bytes).min(SIZE));
                    }
                    now_ns += wait_ns;
                    buckets.refill(rate, write_cost, now_ns);
                    prop_assert!(buckets.take(operation, bytes));
                    taken += f64::from(bytes);
                }
                // Two full buckets, the rate, and the debt of one large request in each.
                let most = 2.0 * SIZE + rate * now_ns as f64 / 1e9 + 2.0 * f64::from(1 << 19);
                prop_assert!(taken <= most + 1.0);
            }
        }
    }
}
