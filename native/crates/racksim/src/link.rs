//! One circuit: the PHYs at its two ends, and the drives a server has online through it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::{ms_to_ns, AttachTimes, Port};

/// Both ends of a circuit see the same: the fabric only replicates signals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phy {
    Down,
    Train { up_at_ns: u64 },
    Up,
}

#[derive(Debug, Clone)]
pub(crate) struct Link {
    pub ends: [Port; 2],
    /// The generation that made the circuit.
    pub generation: u64,
    pub times: AttachTimes,
    /// Factor on `times` for the current or the last training.
    pub slowness: f64,
    pub phy: Phy,
    /// The times at which drives (by index) will be online, once the PHY is up.
    pub arriving: BTreeMap<usize, u64>,
    pub online: BTreeSet<usize>,
}

/// An event that becomes due on a circuit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    PhyUp,
    Online { drive: usize },
}

impl Link {
    pub fn new(ends: [Port; 2], generation: u64, times: AttachTimes) -> Self {
        Self {
            ends,
            generation,
            times,
            slowness: 1.0,
            phy: Phy::Down,
            arriving: BTreeMap::new(),
            online: BTreeSet::new(),
        }
    }

    /// The signal is present since `lit_at_ns`: train, `slowness` times slower, and attach these drives.
    pub fn light(&mut self, lit_at_ns: u64, slowness: f64, drives: impl Iterator<Item = usize>) {
        self.slowness = slowness;
        self.phy = Phy::Train {
            up_at_ns: lit_at_ns + self.slowed(self.times.train_ns),
        };
        let online_at_ns = lit_at_ns + self.slowed(self.times.online_ns);
        self.arriving = drives.map(|drive| (drive, online_at_ns)).collect();
    }

    fn slowed(&self, ns: u64) -> u64 {
        (ns as f64 * self.slowness) as u64
    }

    /// A drive behind the expander got power: it attaches after the PHY is up, in the driver's share of the time.
    pub fn expect(&mut self, drive: usize, now_ns: u64) {
        let ready_ns = match self.phy {
            Phy::Down => return,
            Phy::Train { up_at_ns } => up_at_ns.max(now_ns),
            Phy::Up => now_ns,
        };
        let drivers_share_ns = self.times.online_ns - self.times.train_ns;
        self.arriving
            .insert(drive, ready_ns + self.slowed(drivers_share_ns));
    }

    /// The signal is lost. Returns the drives that were online.
    pub fn darken(&mut self) -> BTreeSet<usize> {
        self.phy = Phy::Down;
        self.arriving.clear();
        std::mem::take(&mut self.online)
    }

    /// The next step and when it is due. The PHY is up before any drive is online.
    pub fn next(&self) -> Option<(u64, Step)> {
        match self.phy {
            Phy::Down => None,
            Phy::Train { up_at_ns } => Some((up_at_ns, Step::PhyUp)),
            Phy::Up => self
                .arriving
                .iter()
                .map(|(&drive, &at_ns)| (at_ns, Step::Online { drive }))
                .min(),
        }
    }
}

/// Signal changes of a repeated drop: when, and whether the signal is gone from then on.
pub(crate) fn schedule(now_ns: u64, down_ms: f64, up_ms: f64, count: u32) -> VecDeque<(u64, bool)> {
    let (down_ns, period_ns) = (ms_to_ns(down_ms), ms_to_ns(down_ms + up_ms));
    (0..u64::from(count))
        .map(|turn| now_ns.saturating_add(turn.saturating_mul(period_ns)))
        .flat_map(|start_ns| [(start_ns, true), (start_ns.saturating_add(down_ns), false)])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flap_for_ever_ends_at_the_end_of_time_and_not_before_its_beginning() {
        let now_ns = 1_000_000;
        let changes = schedule(now_ns, 1e9, 1e9, 10_000);
        assert_eq!(changes.len(), 20_000);
        assert!(changes.iter().is_sorted_by_key(|&(at_ns, _)| at_ns));
        assert_eq!(changes.front(), Some(&(now_ns, true)));
    }
}
