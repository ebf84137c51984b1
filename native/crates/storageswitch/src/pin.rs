//! The processors of drives.

use rustix::thread::{sched_getaffinity, sched_setaffinity, CpuSet};

/// A processor that threads are kept on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cpu(usize);

impl Cpu {
    /// The processors of so many drives, in turn from those that this process may use; `None` for each where there is one
    /// drive or one processor.
    pub fn each(drives: usize) -> Vec<Option<Self>> {
        let allowed = sched_getaffinity(None).map_or_else(
            // Without an answer nothing is pinned.
            |_| Vec::new(),
            |set| {
                (0..CpuSet::MAX_CPU)
                    .filter(|&cpu| set.is_set(cpu))
                    .collect()
            },
        );
        among(&allowed, drives)
    }

    /// Keep the calling thread there.
    pub fn pin(self) {
        let mut set = CpuSet::new();
        set.set(self.0);
        // A processor that was taken away since then: the thread goes on where it is.
        let _ = sched_setaffinity(None, &set);
    }

    pub fn number(&self) -> usize {
        self.0
    }
}

fn among(allowed: &[usize], drives: usize) -> Vec<Option<Cpu>> {
    if drives < 2 || allowed.len() < 2 {
        return vec![None; drives];
    }
    let turns = allowed.iter().cycle().take(drives);
    turns.map(|&cpu| Some(Cpu(cpu))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drives_have_processors_in_turn() {
        assert_eq!(among(&[2, 5], 3), [2, 5, 2].map(|cpu| Some(Cpu(cpu))));
    }

    #[test]
    fn one_drive_uses_every_processor() {
        assert_eq!(among(&[0, 1], 1), [None]);
        assert_eq!(among(&[3], 2), [None, None]);
    }
}
