//! A timing model without delay.

use crate::{Completion, Request, Service};

/// Completes every request at the moment it is submitted.
#[derive(Debug, Clone, Default)]
pub struct Ideal {
    done: Vec<Completion>,
}

impl Service for Ideal {
    fn submit(&mut self, request: &Request, now_ns: u64) {
        self.done.push(Completion {
            ticket: request.ticket,
            at_ns: now_ns,
            failed_at: None,
        });
    }

    fn next_due_ns(&self) -> Option<u64> {
        self.done.first().map(|completion| completion.at_ns)
    }

    fn advance(&mut self, _now_ns: u64, completions: &mut Vec<Completion>) {
        completions.append(&mut self.done);
    }

    fn cut_power(&mut self, _now_ns: u64) {
        self.done.clear();
    }

    fn copy(&self) -> Box<dyn Service> {
        Box::new(self.clone())
    }

    fn sanitize(&mut self, _now_ns: u64) {}

    fn is_instant(&self) -> bool {
        true
    }
}
