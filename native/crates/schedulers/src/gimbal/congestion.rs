//! Gimbal's congestion control: the target rate follows the latency of completions.

use serde::Serialize;

use super::parameters::GimbalParameters;
use crate::request::Operation;

const MIB: f64 = 1_048_576.0;

/// The congestion that the latency of completions shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Congestion {
    /// The average latency is at most the smallest threshold.
    UnderUtilised,
    /// Between the smallest and the present threshold.
    Avoidance,
    /// Above the present threshold.
    Congested,
    /// Above the largest threshold.
    Overloaded,
}

/// Latency of reads or of writes.
#[derive(Debug, Clone, Copy)]
struct Latency {
    ewma_ns: f64,
    thresh_ns: f64,
    congestion: Congestion,
}

/// The target rate.
///
/// Invariants, of Gimbal's section 3.3 and the published code:
/// - the rate stays within its bounds;
/// - a threshold never exceeds the largest one, rises half of the way there while congested, and falls by a share of its
///   distance to the average otherwise;
/// - an overloaded drive gets no more than it has completed: rate = min(rate, completion rate) - size;
/// - the completion rate is of the time in which something was at the drive;
/// - a congested drive loses the size of the completion, one in avoidance gains it, an under-utilised one gains beta of
///   it.
#[derive(Debug)]
pub struct RateControl {
    min_ns: f64,
    max_ns: f64,
    alpha_d: f64,
    alpha_t: f64,
    beta: f64,
    bounds: [f64; 2],
    rate: f64,
    latencies: [Latency; 2],
    window_bytes: u64,
    completed_bytes: u64,
    /// The time in which these bytes completed, up to `busy_since_ns`.
    busy_ns: u64,
    /// Since when something is at the drive, within the window.
    busy_since_ns: Option<u64>,
    completion_rate: Option<f64>,
}

impl RateControl {
    pub fn new(parameters: &GimbalParameters) -> Self {
        let max_ns = parameters.thresh_max_us * 1e3;
        let latency = Latency {
            ewma_ns: 0.0,
            thresh_ns: max_ns,
            congestion: Congestion::UnderUtilised,
        };
        Self {
            min_ns: parameters.thresh_min_us * 1e3,
            max_ns,
            alpha_d: parameters.alpha_d,
            alpha_t: parameters.alpha_t,
            beta: parameters.beta,
            bounds: [parameters.rate_min_mib_s, parameters.rate_max_mib_s].map(|rate| rate * MIB),
            rate: parameters.rate_mib_s * MIB,
            latencies: [latency; 2],
            window_bytes: u64::from(parameters.completion_window_mib) << 20,
            completed_bytes: 0,
            busy_ns: 0,
            busy_since_ns: None,
            completion_rate: None,
        }
    }

    /// The target rate, in bytes a second.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// The completion rate, in bytes a second, once it has been measured.
    pub fn completion_rate(&self) -> Option<f64> {
        self.completion_rate
    }

    /// The congestion of reads or of writes.
    pub fn congestion(&self, operation: Operation) -> Congestion {
        self.latencies[operation as usize].congestion
    }

    /// The average latency of reads or of writes.
    pub fn ewma_ns(&self, operation: Operation) -> f64 {
        self.latencies[operation as usize].ewma_ns
    }

    /// The present threshold of the latency of reads or of writes.
    pub fn threshold_ns(&self, operation: Operation) -> f64 {
        self.latencies[operation as usize].thresh_ns
    }

    /// Let the completion rate's time run, from a dispatch on.
    pub fn begin(&mut self, now_ns: u64) {
        self.busy_since_ns.get_or_insert(now_ns);
    }

    /// Let the completion rate's time stand still: nothing is at the drive until the next dispatch.
    pub fn rest(&mut self, now_ns: u64) {
        if let Some(since_ns) = self.busy_since_ns.take() {
            self.busy_ns += now_ns - since_ns;
        }
    }

    /// Move the rate by a completion; returns the congestion.
    #[inline]
    pub fn completed(
        &mut self,
        operation: Operation,
        bytes: u32,
        latency_ns: u64,
        now_ns: u64,
    ) -> Congestion {
        self.completed_bytes += u64::from(bytes);
        let since_ns = *self.busy_since_ns.get_or_insert(now_ns);
        let busy_ns = self.busy_ns + (now_ns - since_ns);
        if self.completed_bytes >= self.window_bytes && busy_ns > 0 {
            let seconds = busy_ns as f64 / 1e9;
            self.completion_rate = Some(self.completed_bytes as f64 / seconds);
            self.completed_bytes = 0;
            self.busy_ns = 0;
            self.busy_since_ns = Some(now_ns);
        }
        let latency = &mut self.latencies[operation as usize];
        let size = f64::from(bytes);
        latency.ewma_ns += self.alpha_d * (latency_ns as f64 - latency.ewma_ns);
        latency.congestion = if latency.ewma_ns > self.max_ns {
            let completion_rate = self.completion_rate.unwrap_or(self.rate);
            self.rate = self.rate.min(completion_rate) - size;
            Congestion::Overloaded
        } else if latency.ewma_ns > latency.thresh_ns {
            self.rate -= size;
            Congestion::Congested
        } else if latency.ewma_ns > self.min_ns {
            self.rate += size;
            Congestion::Avoidance
        } else {
            self.rate += self.beta * size;
            Congestion::UnderUtilised
        };
        match latency.congestion {
            Congestion::Overloaded | Congestion::Congested => {
                latency.thresh_ns = (latency.thresh_ns + self.max_ns) / 2.0;
            }
            Congestion::Avoidance | Congestion::UnderUtilised => {
                latency.thresh_ns -= self.alpha_t * (latency.thresh_ns - latency.ewma_ns);
            }
        }
        self.rate = self.rate.clamp(self.bounds[0], self.bounds[1]);
        latency.congestion
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::cases;
    use proptest::prelude::*;

    const READ: Operation = Operation::Read;

    fn control() -> RateControl {
        RateControl::new(&GimbalParameters::default())
    }

    #[test]
    fn the_rate_follows_the_latency_through_all_four_states() {
        let mut control = control();
        let start = 1000.0 * MIB;
        // The average is half of the first latency.
        assert_eq!(
            control.completed(READ, 4096, 200_000, 0),
            Congestion::UnderUtilised
        );
        assert_eq!(control.rate(), start + 8.0 * 4096.0);
        assert_eq!(control.latencies[0].ewma_ns, 100e3);
        assert_eq!(control.latencies[0].thresh_ns, 1500e3 - 1400e3 / 16.0);
        assert_eq!(
            control.completed(READ, 4096, 900_000, 0),
            Congestion::Avoidance
        );
        assert_eq!(control.latencies[0].ewma_ns, 500e3);
        assert_eq!(control.rate(), start + 9.0 * 4096.0);
        let thresh_ns = 1412.5e3 - (1412.5e3 - 500e3) / 16.0;
        assert_eq!(control.latencies[0].thresh_ns, thresh_ns);
        // 1400 us on average: above the threshold, below the largest.
        assert_eq!(
            control.completed(READ, 4096, 2_300_000, 0),
            Congestion::Congested
        );
        assert_eq!(control.rate(), start + 8.0 * 4096.0);
        assert_eq!(control.latencies[0].thresh_ns, (thresh_ns + 1500e3) / 2.0);
        assert_eq!(
            control.completed(READ, 4096, 2_000_000, 0),
            Congestion::Overloaded
        );
        assert_eq!(control.rate(), start + 7.0 * 4096.0);
    }

    #[test]
    fn an_overloaded_drive_gets_what_it_completes() {
        let mut control = control();
        // Others that are dispatched before the first completion do not move the beginning.
        control.begin(0);
        control.begin(50_000_000);
        complete(&mut control, 128, 0);
        assert_eq!(control.completion_rate(), Some(160.0 * MIB));
        assert_eq!(control.rate(), 160.0 * MIB - 131_072.0);
    }

    /// So many reads of 128 KiB, one after the other, at 160 MiB a second; returns the end.
    fn complete(control: &mut RateControl, requests: u64, begin_ns: u64) -> u64 {
        for request in 1..=requests {
            let now_ns = begin_ns + request * 100_000_000 / 128;
            control.completed(READ, 131_072, 10_000_000, now_ns);
        }
        begin_ns + requests * 100_000_000 / 128
    }

    #[test]
    fn time_in_which_nothing_is_at_the_drive_is_not_its_slowness() {
        let mut control = control();
        let mut now_ns = 0;
        // After 16 MiB, after another 16, and within the third.
        for requests in [128, 128, 64, 64] {
            now_ns += 10_000_000_000;
            control.begin(now_ns);
            now_ns = complete(&mut control, requests, now_ns);
            control.rest(now_ns);
            assert_eq!(control.completion_rate(), Some(160.0 * MIB));
        }
        assert_eq!(control.completed_bytes, 0);
        assert_eq!(control.rate(), 160.0 * MIB - 257.0 * 131_072.0);
    }

    #[test]
    fn reads_and_writes_are_averaged_apart() {
        let mut control = control();
        control.completed(Operation::Write, 4096, 10_000_000, 0);
        assert_eq!(control.congestion(Operation::Write), Congestion::Overloaded);
        assert_eq!(control.congestion(READ), Congestion::UnderUtilised);
        assert_eq!(control.ewma_ns(READ), 0.0);
    }

    proptest! {
        #![proptest_config(cases(256))]

        #[test]
        fn rate_and_thresholds_stay_within_their_bounds(
            completions in prop::collection::vec((any::<bool>(), 1_u32..1 << 20, 0_u64..20_000_000), 1..500),
        ) {
            let mut control = control();
            let mut now_ns = 0;
            for (is_write, bytes, latency_ns) in completions {
                let operation = if is_write { Operation::Write } else { READ };
                now_ns += latency_ns / 32;
                let before = control.rate();
                let thresh_ns = control.latencies[operation as usize].thresh_ns;
                let congestion = control.completed(operation, bytes, latency_ns, now_ns);
                let latency = control.latencies[operation as usize];
                prop_assert!((50.0 * MIB..=4096.0 * MIB).contains(&control.rate()));
                prop_assert!(latency.thresh_ns <= 1500e3);
                let is_up = matches!(congestion, Congestion::UnderUtilised | Congestion::Avoidance);
                prop_assert_eq!(is_up, latency.ewma_ns <= thresh_ns.min(1500e3));
                let [rates, threshs] = [[before, control.rate()], [latency.thresh_ns, thresh_ns]];
                let up = |[from, to]: [f64; 2]| if is_up { from <= to } else { from >= to };
                prop_assert!(up(rates) && up(threshs));
            }
        }
    }
}
