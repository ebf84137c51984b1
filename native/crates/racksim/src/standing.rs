//! The active faults of one drive.

use std::ops::Range;

use serde::Serialize;

use crate::fault::{disjoint, Active};
use crate::{Fault, Kind};

/// An active fault.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StandingFault {
    /// Its identity.
    pub fault_id: u64,
    /// The caller's key.
    pub key: Option<String>,
    /// The fault as requested, including sectors rewritten since.
    pub fault: Fault,
    /// Whether it has crashed the drive.
    pub crashed: bool,
}

/// A selection of a drive's faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultName<'a> {
    /// All of them.
    All,
    /// The fault with this identity.
    Id(u64),
    /// The fault with this key.
    Key(&'a str),
}

struct Standing {
    id: u64,
    key: Option<String>,
    fault: Fault,
    active: Active,
}

impl Standing {
    fn is(&self, name: FaultName<'_>) -> bool {
        match name {
            FaultName::All => true,
            FaultName::Id(id) => self.id == id,
            FaultName::Key(key) => self.key.as_deref() == Some(key),
        }
    }
}

/// In the order they were added, without faults whose count is used up.
#[derive(Default)]
pub(crate) struct StandingFaults(Vec<Standing>);

impl StandingFaults {
    /// `id`, or the identity of the active fault with this key.
    pub fn add(&mut self, id: u64, key: Option<&str>, fault: &Fault) -> u64 {
        let same = key.and_then(|key| self.0.iter().find(|one| one.is(FaultName::Key(key))));
        if let Some(same) = same {
            return same.id;
        }
        self.0.push(Standing {
            id,
            key: key.map(str::to_owned),
            fault: fault.clone(),
            active: Active::from(fault),
        });
        id
    }

    /// Remove the faults of this name; returns them.
    pub fn clear(&mut self, name: FaultName<'_>) -> Vec<StandingFault> {
        let gone = self.iter().filter(|one| one.is(name)).map(view).collect();
        self.0.retain(|one| !one.is(name));
        gone
    }

    pub fn list(&self) -> Vec<StandingFault> {
        self.iter().map(view).collect()
    }

    pub fn hangs(&self) -> bool {
        self.any(|active| {
            matches!(
                active,
                Active::Hang | Active::CrashOnRemap { crashed: true }
            )
        })
    }

    pub fn is_dead(&self) -> bool {
        self.any(|active| matches!(active, Active::Dead))
    }

    /// Nanoseconds to add to each request, and the factor that stretches it.
    pub fn slow(&self) -> impl Iterator<Item = (u64, f64)> + '_ {
        self.iter().filter_map(|one| match one.active {
            Active::Slow { extra_ns, factor } => Some((extra_ns, factor)),
            _ => None,
        })
    }

    /// Sectors whose reads answer flipped bits.
    pub fn corrupt(&self) -> impl Iterator<Item = &Range<u64>> {
        self.iter().filter_map(|one| match &one.active {
            Active::Corrupt(sectors) => Some(sectors),
            _ => None,
        })
    }

    /// The first bad sector a request fails on. Decrements the counts of faults that have one.
    pub fn hit(&mut self, kind: Kind, sectors: &Range<u64>) -> Option<u64> {
        let hit = |one: &mut Standing| one.active.hit(kind, sectors);
        let bad = self.0.iter_mut().find_map(hit);
        self.forget_spent();
        bad
    }

    /// Record a write; returns how many of the sectors were bad until then.
    pub fn rewrite(&mut self, sectors: &Range<u64>) -> u64 {
        let healed = self
            .0
            .iter_mut()
            .flat_map(|one| one.active.rewrite(sectors));
        // A sector is reallocated once, however many faults it lies in.
        let healed = disjoint(healed).iter().map(|one| one.end - one.start).sum();
        self.forget_spent();
        healed
    }

    /// Record the loss of the link; returns the identities of the faults that crash the drive.
    pub fn lose_link(&mut self) -> Vec<u64> {
        let crashes = |one: &mut Standing| match &mut one.active {
            Active::CrashOnRemap { crashed } if !*crashed => {
                *crashed = true;
                Some(one.id)
            }
            _ => None,
        };
        self.0.iter_mut().filter_map(crashes).collect()
    }

    /// Record the loss of power: a crashed drive restarts with it.
    pub fn recover(&mut self) {
        for one in &mut self.0 {
            if let Active::CrashOnRemap { crashed } = &mut one.active {
                *crashed = false;
            }
        }
    }

    fn iter(&self) -> impl Iterator<Item = &Standing> {
        self.0.iter()
    }

    fn any(&self, is_meant: impl Fn(&Active) -> bool) -> bool {
        self.iter().any(|one| is_meant(&one.active))
    }

    fn forget_spent(&mut self) {
        self.0.retain(|one| !one.active.is_spent());
    }
}

fn view(one: &Standing) -> StandingFault {
    StandingFault {
        fault_id: one.id,
        key: one.key.clone(),
        fault: one.fault.clone(),
        crashed: matches!(one.active, Active::CrashOnRemap { crashed: true }),
    }
}
