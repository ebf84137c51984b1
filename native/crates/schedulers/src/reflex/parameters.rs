//! Parameters of ReFlex, and the arithmetic of tokens.

use serde::{Deserialize, Serialize};

use crate::document::{above_zero, within};
use crate::request::{Operation, Request};
use crate::tenant::Slo;

const TOKEN_BYTES: u32 = 4096;

/// Parameters of ReFlex. A token is a random read of 4 KiB. The curve is the sample of the published code, whose tokens
/// are a hundredth of a read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReflexParameters {
    /// Tokens of a write of 4 KiB, 10 to 20 in the paper.
    pub write_cost: f64,
    /// Tokens a second at each bound of latency, by ascending latency; linear in between.
    pub curve: Vec<CurvePoint>,
    /// Tokens that a latency-critical tenant may owe, for bursts: the deficit limit.
    pub deficit_limit: f64,
    /// Increments of tokens that a latency-critical tenant keeps when it does not need them.
    pub kept_increments: f64,
    /// Share of what exceeds them that it donates to best effort.
    pub donated_share: f64,
    /// Time between two scheduling rounds of a thread.
    pub round_us: f64,
    /// Threads that the tenants are shared out to.
    pub threads: u32,
}

/// A point of the drive's curve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CurvePoint {
    /// The 95th percentile of read latency.
    pub p95_us: f64,
    /// Tokens a second with which it is kept.
    pub tokens_per_s: f64,
    /// The same while nothing is written.
    pub read_only_tokens_per_s: f64,
}

impl Default for ReflexParameters {
    fn default() -> Self {
        let point = |(p95_us, tokens_per_s, read_only_tokens_per_s)| CurvePoint {
            p95_us,
            tokens_per_s,
            read_only_tokens_per_s,
        };
        Self {
            write_cost: 10.0,
            curve: [
                (500.0, 360e3, 850e3),
                (1000.0, 500e3, 950e3),
                (1500.0, 520e3, 980e3),
                (2000.0, 570e3, 1000e3),
                (2500.0, 750e3, 1000e3),
                (3000.0, 800e3, 1000e3),
            ]
            .map(point)
            .to_vec(),
            deficit_limit: 50.0,
            kept_increments: 3.0,
            donated_share: 0.9,
            round_us: 10.0,
            threads: 1,
        }
    }
}

impl ReflexParameters {
    /// Check the parameters; the error names the wrong one and its range.
    pub fn check(&self) -> Result<(), String> {
        within("write_cost", self.write_cost, 1.0, 1000.0)?;
        within("deficit_limit", self.deficit_limit, 0.0, 1e6)?;
        within("kept_increments", self.kept_increments, 1.0, 1000.0)?;
        within("donated_share", self.donated_share, 0.0, 1.0)?;
        within("round_us", self.round_us, 0.1, 1e5)?;
        within("threads", self.threads, 1, 1024)?;
        if self.curve.is_empty() {
            return Err("curve has no points; give at least one".to_owned());
        }
        for (point, number) in self.curve.iter().zip(0..) {
            let name = |key: &str| format!("curve[{number}].{key}");
            above_zero(&name("p95_us"), point.p95_us, 1e9)?;
            above_zero(&name("tokens_per_s"), point.tokens_per_s, 1e12)?;
            above_zero(
                &name("read_only_tokens_per_s"),
                point.read_only_tokens_per_s,
                1e12,
            )?;
        }
        if !self
            .curve
            .is_sorted_by(|one, next| one.p95_us < next.p95_us)
        {
            return Err("curve is not by ascending p95_us".to_owned());
        }
        Ok(())
    }

    pub(super) fn round_ns(&self) -> u64 {
        (self.round_us * 1e3).round() as u64
    }

    /// Tokens a second that keep the 95th percentile within `p95_us`; `None` where the curve begins later.
    pub(super) fn tokens_per_s(&self, p95_us: f64, is_read_only: bool) -> Option<f64> {
        let rate = |point: &CurvePoint| {
            if is_read_only {
                point.read_only_tokens_per_s
            } else {
                point.tokens_per_s
            }
        };
        let above = self.curve.partition_point(|point| point.p95_us <= p95_us);
        let low = self.curve[..above].last()?;
        let Some(high) = self.curve.get(above) else {
            return Some(rate(low));
        };
        let share = (p95_us - low.p95_us) / (high.p95_us - low.p95_us);
        Some(rate(low) + share * (rate(high) - rate(low)))
    }

    /// Tokens a second that an objective reserves.
    pub(super) fn reservation(&self, slo: &Slo) -> f64 {
        let reads = slo.read_percent / 100.0;
        slo.iops * (reads + (1.0 - reads) * self.write_cost)
    }

    pub(super) fn cost(&self, request: &Request) -> f64 {
        let units = f64::from(request.bytes.div_ceil(TOKEN_BYTES));
        match request.operation {
            Operation::Read => units,
            Operation::Write => units * self.write_cost,
        }
    }
}
