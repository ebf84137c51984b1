//! Attach times of a server's driver stack.

use rand_chacha::rand_core::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, LogNormal, Uniform};
use serde::Deserialize;

use crate::{ms_to_ns, Port};

/// The attach behaviour of a server's driver stack.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stack {
    /// Mean time from the circuit to the drive online, in milliseconds.
    pub online_ms: f64,
    /// Standard deviation of that time, in milliseconds.
    pub spread_ms: f64,
    /// Bounds of the PHY's training time, in microseconds.
    pub phy_us: [u32; 2],
    /// Mean time in milliseconds if the remap was not announced to the server; `None` for a stack that ignores
    /// announcements.
    #[serde(default)]
    pub untold_ms: Option<f64>,
}

/// The attach times drawn for one circuit, from the moment its signal is present.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttachTimes {
    /// Until the PHY is up.
    pub train_ns: u64,
    /// Until the driver has the drive online, never less than `train_ns`.
    pub online_ns: u64,
}

/// The error of a stack with invalid numbers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StackError(&'static str);

/// SATA 3.0 and SAS 2.0 re-establish a PHY in a few hundred microseconds.
const PHY_US: [u32; 2] = [300, 700];

/// Fallback of the stack with COMRESET on announcement if there was none.
const WARM_PORT_MS: f64 = 10.0;

impl Stack {
    /// The four stacks the Flexible Fabric paper measured: 200, 90, 10 and 1 ms, with a spread of 5%.
    #[must_use]
    pub fn built_in() -> [(&'static str, Self); 4] {
        [
            ("vanilla", 200.0),
            ("no_timeouts", 90.0),
            ("warm_port", WARM_PORT_MS),
            ("comreset", 1.0),
        ]
        .map(|(name, online_ms)| {
            let stack = Self {
                online_ms,
                spread_ms: online_ms * 0.05,
                phy_us: PHY_US,
                untold_ms: (name == "comreset").then_some(WARM_PORT_MS),
            };
            (name, stack)
        })
    }

    /// Refuse numbers that [`Stack::draw`] could not use.
    pub fn check(&self) -> Result<(), StackError> {
        if !(self.online_ms.is_finite() && self.online_ms > 0.0 && self.online_ms <= 1e9) {
            return Err(StackError("online_ms must be above 0 and at most 1e9"));
        }
        if self
            .untold_ms
            .is_some_and(|ms| !(ms >= self.online_ms && ms <= 1e9))
        {
            return Err(StackError("untold_ms must be between online_ms and 1e9"));
        }
        if !(self.spread_ms.is_finite() && (0.0..=1e9).contains(&self.spread_ms)) {
            return Err(StackError("spread_ms must be between 0 and 1e9"));
        }
        if self.phy_us[0] > self.phy_us[1] {
            return Err(StackError("phy_us must be [low, high] with low <= high"));
        }
        Ok(())
    }

    /// Draw the times of the circuit that `generation` gave to `port`, announced to the server or not. The
    /// same arguments draw the same times, whatever other circuits drew.
    #[must_use]
    pub fn draw(&self, seed: u64, generation: u64, port: Port, is_told: bool) -> AttachTimes {
        let mut rng = stream(seed, generation, port);
        let train_ns = train_ns(self.phy_us, &mut rng);
        let online_ms = LogNormal::from_mean_cv(self.online_ms, self.spread_ms / self.online_ms)
            .expect("a checked stack has a positive mean and a finite spread")
            .sample(&mut rng);
        let online_ms = match self.untold_ms {
            Some(untold_ms) if !is_told => online_ms * untold_ms / self.online_ms,
            _ => online_ms,
        };
        AttachTimes {
            train_ns,
            online_ns: ms_to_ns(online_ms).max(train_ns),
        }
    }
}

/// The times of a circuit without a server: its PHY trains and no drive attaches.
pub(crate) fn bare_times(seed: u64, generation: u64, port: Port) -> AttachTimes {
    let train_ns = train_ns(PHY_US, &mut stream(seed, generation, port));
    AttachTimes {
        train_ns,
        online_ns: train_ns,
    }
}

fn stream(seed: u64, generation: u64, port: Port) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(generation << 16 | u64::from(port));
    rng
}

fn train_ns(phy_us: [u32; 2], rng: &mut ChaCha8Rng) -> u64 {
    let [low, high] = phy_us.map(|us| u64::from(us) * 1000);
    Uniform::new_inclusive(low, high)
        .expect("a checked stack has ordered bounds")
        .sample(rng)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_stacks_draw_around_their_mean_and_never_under_the_phy() {
        for (name, stack) in Stack::built_in() {
            stack.check().unwrap();
            let times: Vec<_> = (1..=2000)
                .map(|generation| stack.draw(7, generation, 1, true))
                .collect();
            let mean_ms = times.iter().map(|t| t.online_ns as f64 / 1e6).sum::<f64>() / 2000.0;
            assert!(
                (mean_ms / stack.online_ms - 1.0).abs() < 0.01,
                "{name}: {mean_ms}"
            );
            assert!(times
                .iter()
                .all(|t| (300_000..=700_000).contains(&t.train_ns)));
        }
    }

    #[test]
    fn a_stack_quicker_than_its_phy_is_online_when_the_phy_is() {
        let stack = Stack {
            online_ms: 0.1,
            spread_ms: 0.0,
            phy_us: [400, 400],
            untold_ms: None,
        };
        let times = stack.draw(1, 1, 1, true);
        assert_eq!((times.train_ns, times.online_ns), (400_000, 400_000));
    }

    #[test]
    fn a_draw_depends_on_seed_generation_and_port_alone() {
        let (_, stack) = Stack::built_in()[0].clone();
        let drawn = stack.draw(1, 2, 3, true);
        assert_eq!(stack.draw(1, 2, 3, true), drawn);
        let others = [
            stack.draw(2, 2, 3, true),
            stack.draw(1, 3, 3, true),
            stack.draw(1, 2, 4, true),
        ];
        assert!(others.iter().all(|&other| other != drawn));
    }

    #[test]
    fn only_comreset_depends_on_being_told_and_is_a_warm_port_else() {
        for (name, stack) in Stack::built_in() {
            let ratio = |generation| {
                let [told, untold] = [true, false].map(|told| stack.draw(1, generation, 1, told));
                assert_eq!(told.train_ns, untold.train_ns);
                untold.online_ns as f64 / told.online_ns as f64
            };
            let expected = if name == "comreset" { 10.0 } else { 1.0 };
            assert!(
                (1..100).all(|n| (ratio(n) - expected).abs() < 1e-4),
                "{name}"
            );
        }
    }

    #[test]
    fn senseless_numbers_are_refused() {
        let good = Stack::built_in()[0].1.clone();
        let bad = [
            Stack {
                online_ms: 0.0,
                ..good.clone()
            },
            Stack {
                online_ms: f64::NAN,
                ..good.clone()
            },
            Stack {
                untold_ms: Some(good.online_ms - 1.0),
                ..good.clone()
            },
            Stack {
                spread_ms: -1.0,
                ..good.clone()
            },
            Stack {
                phy_us: [2, 1],
                ..good.clone()
            },
        ];
        assert!(bad.iter().all(|stack| stack.check().is_err()));
    }
}
