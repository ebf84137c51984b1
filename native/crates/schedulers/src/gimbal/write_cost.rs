//! Gimbal's estimate of the cost of a written byte.

use super::parameters::GimbalParameters;

/// Fractional bits of the cost.
const FRACTION: u32 = 16;

/// The write cost.
///
/// Invariants:
/// - it is from 1 to the worst case;
/// - writes that the drive's buffer absorbs (average latency below the smallest threshold) make it fall by delta a
///   period, others make it rise half of the way to the worst case;
/// - a period without writes says nothing about them, and leaves it.
#[derive(Debug)]
pub struct WriteCost {
    worst: f64,
    delta: f64,
    absorbed_below_ns: f64,
    period_ns: u64,
    due_ns: u64,
    has_written: bool,
    cost: f64,
    scaled: u64,
}

impl WriteCost {
    pub fn new(parameters: &GimbalParameters) -> Self {
        let period_ns = (parameters.write_cost_period_ms * 1e6).round() as u64;
        let mut write_cost = Self {
            worst: parameters.write_cost_worst,
            delta: parameters.delta,
            absorbed_below_ns: parameters.thresh_min_us * 1e3,
            period_ns,
            due_ns: period_ns,
            has_written: false,
            cost: 0.0,
            scaled: 0,
        };
        write_cost.set(parameters.write_cost_worst);
        write_cost
    }

    fn set(&mut self, cost: f64) {
        self.cost = cost;
        self.scaled = (cost * f64::from(1 << FRACTION)).round() as u64;
    }

    pub fn cost(&self) -> f64 {
        self.cost
    }

    /// A number of written bytes, weighted.
    pub fn weighted(&self, bytes: u32) -> u64 {
        (u64::from(bytes) * self.scaled) >> FRACTION
    }

    /// Take note of a completed write.
    pub fn written(&mut self) {
        self.has_written = true;
    }

    /// Move the cost if it is time, by the average latency of writes.
    pub fn pass(&mut self, ewma_ns: f64, now_ns: u64) {
        if now_ns < self.due_ns {
            return;
        }
        self.due_ns = now_ns + self.period_ns;
        if !std::mem::take(&mut self.has_written) {
            return;
        }
        self.set(if ewma_ns < self.absorbed_below_ns {
            (self.cost - self.delta).max(1.0)
        } else {
            (self.cost + self.worst) / 2.0
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::cases;
    use proptest::prelude::*;

    fn after(write_cost: &mut WriteCost, ewma_us: &[f64]) -> Vec<f64> {
        let pass = |ewma_us: &f64| {
            write_cost.written();
            write_cost.pass(ewma_us * 1e3, write_cost.due_ns);
            write_cost.cost()
        };
        ewma_us.iter().map(pass).collect()
    }

    #[test]
    fn it_falls_by_steps_and_goes_up_again_by_half() {
        let mut write_cost = WriteCost::new(&GimbalParameters::default());
        assert_eq!(write_cost.cost(), 9.0);
        assert_eq!(
            after(&mut write_cost, &[30.0, 249.9, 30.0]),
            [8.5, 8.0, 7.5]
        );
        assert_eq!(after(&mut write_cost, &[250.0, 400.0]), [8.25, 8.625]);
        assert_eq!(
            after(&mut write_cost, &[30.0; 20])[14..],
            [1.125, 1.0, 1.0, 1.0, 1.0, 1.0]
        );
        assert_eq!(
            after(&mut write_cost, &[800.0, 800.0, 800.0]),
            [5.0, 7.0, 8.0]
        );
    }

    #[test]
    fn it_moves_once_a_period_and_only_by_writes() {
        let mut write_cost = WriteCost::new(&GimbalParameters::default());
        write_cost.written();
        write_cost.pass(0.0, 99_999_999);
        assert_eq!(write_cost.cost(), 9.0);
        write_cost.pass(0.0, 350_000_000);
        assert_eq!(write_cost.cost(), 8.5);
        write_cost.pass(0.0, 900_000_000);
        assert_eq!(write_cost.cost(), 8.5);
    }

    #[test]
    fn bytes_are_weighted() {
        let mut write_cost = WriteCost::new(&GimbalParameters::default());
        assert_eq!(write_cost.weighted(4096), 9 * 4096);
        after(&mut write_cost, &[1.0]);
        assert_eq!(write_cost.weighted(4096), 17 * 2048);
    }

    proptest! {
        #![proptest_config(cases(256))]

        #[test]
        fn it_stays_between_one_and_the_worst_case(ewma_us in prop::collection::vec(0.0_f64..1000.0, 1..100)) {
            let mut write_cost = WriteCost::new(&GimbalParameters::default());
            let mut before = 9.0;
            for (ewma_us, cost) in ewma_us.iter().zip(after(&mut write_cost, &ewma_us)) {
                prop_assert!((1.0..=9.0).contains(&cost));
                let is_right = if *ewma_us < 250.0 { cost <= before } else { cost >= before };
                prop_assert!(is_right);
                before = cost;
            }
        }
    }
}
