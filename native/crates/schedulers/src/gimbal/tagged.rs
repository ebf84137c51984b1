//! The queued requests of a tenant, by the priorities that its client tags them with.

use super::parameters::GimbalParameters;
use crate::ledger::{Entry, Queue};

/// Quotas of priorities.
#[derive(Debug, Clone, Copy)]
pub struct Quotas {
    quotas: Option<[u32; 4]>,
    epoch_ns: u64,
}

impl Quotas {
    pub fn new(parameters: &GimbalParameters) -> Self {
        Self {
            quotas: parameters.priority_quotas,
            epoch_ns: (parameters.priority_epoch_ms * 1e6).round() as u64,
        }
    }
}

/// Requests by priority.
///
/// Invariants:
/// - without quotas, requests leave in order of arrival;
/// - with them, the first priority with requests and some of its quota left is served; when none has both, a cycle
///   begins anew, as it does after an epoch in which each priority with requests was served. So of priorities with
///   requests queued all along, each gets its quota in a cycle that is no longer than an epoch, and some of it in a
///   longer one: none starves.
#[derive(Debug, Default)]
pub struct Tagged {
    queues: [Queue; 4],
    left: [u32; 4],
    epoch_end_ns: u64,
}

impl Tagged {
    pub fn is_empty(&self) -> bool {
        self.queues.iter().all(Queue::is_empty)
    }

    #[inline]
    pub fn push(&mut self, entries: &mut [Entry], index: u32, quotas: &Quotas) {
        let class = match quotas.quotas {
            Some(_) => entries[index as usize].priority as usize,
            None => 0,
        };
        self.queues[class].push(entries, index);
    }

    /// The priority to serve; there is a request.
    fn class(&mut self, quotas: &Quotas, now_ns: u64) -> usize {
        let Some(all) = quotas.quotas else {
            return 0;
        };
        if now_ns >= self.epoch_end_ns && !self.passes_over(&all) {
            self.left = all;
            self.epoch_end_ns = now_ns + quotas.epoch_ns;
        }
        let has_both = |class: &usize| !self.queues[*class].is_empty() && self.left[*class] > 0;
        if let Some(class) = (0..4).find(has_both) {
            return class;
        }
        self.left = all;
        let first = (0..4).find(|&class| !self.queues[class].is_empty());
        first.expect("a request is queued")
    }

    /// Whether a priority has requests and none of its quota was used in the present cycle.
    fn passes_over(&self, all: &[u32]) -> bool {
        let is_unserved = |class: usize| self.left[class] == all[class];
        (0..4).any(|class| is_unserved(class) && !self.queues[class].is_empty())
    }

    /// The request to serve next.
    #[inline]
    pub fn head(&mut self, quotas: &Quotas, now_ns: u64) -> Option<u32> {
        if self.is_empty() {
            return None;
        }
        let class = self.class(quotas, now_ns);
        self.queues[class].head()
    }

    /// Take out the request that `head` returned at this time.
    #[inline]
    pub fn pop(&mut self, entries: &[Entry], quotas: &Quotas, now_ns: u64) {
        let class = self.class(quotas, now_ns);
        self.left[class] = self.left[class].saturating_sub(1);
        self.queues[class].pop(entries);
    }
}
