//! Parameters of Gimbal.

use serde::{Deserialize, Serialize};

use crate::document::{above_zero, within};

/// Parameters of Gimbal, by the names and with the values of the paper and its published code.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GimbalParameters {
    /// The smallest threshold of latency: below it the drive is under-utilised.
    pub thresh_min_us: f64,
    /// The largest threshold of latency: above it the drive is overloaded.
    pub thresh_max_us: f64,
    /// Weight of a new latency in the moving average.
    pub alpha_d: f64,
    /// Share of its distance to the average by which a threshold falls.
    pub alpha_t: f64,
    /// Factor of the target rate's increase while the drive is under-utilised.
    pub beta: f64,
    /// The target rate at the beginning.
    pub rate_mib_s: f64,
    /// The smallest target rate.
    pub rate_min_mib_s: f64,
    /// The largest target rate.
    pub rate_max_mib_s: f64,
    /// Completed bytes over which the completion rate is measured.
    pub completion_window_mib: u32,
    /// Size of each of the two token buckets.
    pub bucket_kib: u32,
    /// Cost of a written byte in the worst case, and at the beginning.
    pub write_cost_worst: f64,
    /// Decrease of the write cost.
    pub delta: f64,
    /// Time between two changes of the write cost.
    pub write_cost_period_ms: f64,
    /// Virtual slots for all tenants.
    pub virtual_slots: u32,
    /// Weighted bytes of a virtual slot.
    pub slot_kib: u32,
    /// Weighted bytes that a tenant may dispatch in a round.
    pub quantum_kib: u32,
    /// Requests in a slot of a tenant none of whose slots has completed.
    pub initial_slot_requests: u32,
    /// Requests of each priority in a cycle, from urgent to low. Without it, priorities are ignored, as in the published
    /// code unless it is compiled in, with 16, 4, 2 and 1.
    pub priority_quotas: Option<[u32; 4]>,
    /// Time after which a cycle begins anew, once each priority with requests was served in it.
    pub priority_epoch_ms: f64,
}

impl Default for GimbalParameters {
    fn default() -> Self {
        Self {
            thresh_min_us: 250.0,
            thresh_max_us: 1500.0,
            alpha_d: 0.5,
            alpha_t: 0.0625,
            beta: 8.0,
            rate_mib_s: 1000.0,
            rate_min_mib_s: 50.0,
            rate_max_mib_s: 4096.0,
            completion_window_mib: 16,
            bucket_kib: 256,
            write_cost_worst: 9.0,
            delta: 0.5,
            write_cost_period_ms: 100.0,
            virtual_slots: 8,
            slot_kib: 128,
            quantum_kib: 128,
            initial_slot_requests: 32,
            priority_quotas: None,
            priority_epoch_ms: 500.0,
        }
    }
}

impl GimbalParameters {
    /// Check the parameters; the error names the wrong one and its range.
    pub fn check(&self) -> Result<(), String> {
        above_zero("thresh_max_us", self.thresh_max_us, 1e7)?;
        above_zero("thresh_min_us", self.thresh_min_us, self.thresh_max_us)?;
        above_zero("alpha_d", self.alpha_d, 1.0)?;
        above_zero("alpha_t", self.alpha_t, 1.0)?;
        within("beta", self.beta, 1.0, 1000.0)?;
        // At a smaller one the wait for tokens is longer than nanoseconds can count.
        within("rate_min_mib_s", self.rate_min_mib_s, 0.001, 1e6)?;
        within(
            "rate_max_mib_s",
            self.rate_max_mib_s,
            self.rate_min_mib_s,
            1e6,
        )?;
        within(
            "rate_mib_s",
            self.rate_mib_s,
            self.rate_min_mib_s,
            self.rate_max_mib_s,
        )?;
        within(
            "completion_window_mib",
            self.completion_window_mib,
            1,
            65_536,
        )?;
        within("bucket_kib", self.bucket_kib, 4, 1 << 20)?;
        within("write_cost_worst", self.write_cost_worst, 1.0, 1000.0)?;
        above_zero("delta", self.delta, 1000.0)?;
        above_zero("write_cost_period_ms", self.write_cost_period_ms, 1e5)?;
        within("virtual_slots", self.virtual_slots, 1, 1024)?;
        within("slot_kib", self.slot_kib, 1, 1 << 20)?;
        within("quantum_kib", self.quantum_kib, 1, 1 << 20)?;
        within(
            "initial_slot_requests",
            self.initial_slot_requests,
            1,
            65_536,
        )?;
        for quota in self.priority_quotas.iter().flatten() {
            within("priority_quotas", *quota, 1, 65_536)?;
        }
        above_zero("priority_epoch_ms", self.priority_epoch_ms, 1e6)
    }
}
