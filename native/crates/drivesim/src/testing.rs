//! Small drives with known times, for tests.

use std::collections::VecDeque;

use racksim::{Completion, Kind, Request, Service};

/// Serves one request after the other, each for the time that `cost_ns` says of it at its beginning.
#[derive(Clone)]
pub struct InOrder<F> {
    cost_ns: F,
    free_ns: u64,
    queue: VecDeque<Completion>,
}

impl<F: Fn(&Request, u64) -> u64> InOrder<F> {
    pub fn new(cost_ns: F) -> Self {
        Self {
            cost_ns,
            free_ns: 0,
            queue: VecDeque::new(),
        }
    }
}

impl<F: Fn(&Request, u64) -> u64 + Clone + Send + 'static> Service for InOrder<F> {
    fn submit(&mut self, request: &Request, now_ns: u64) {
        let begins_ns = self.free_ns.max(now_ns);
        self.free_ns = begins_ns + (self.cost_ns)(request, begins_ns);
        self.queue.push_back(Completion {
            ticket: request.ticket,
            at_ns: self.free_ns,
            failed_at: (request.io.kind == Kind::Read && request.io.offset == BAD).then_some(BAD),
        });
    }

    fn next_due_ns(&self) -> Option<u64> {
        self.queue.front().map(|first| first.at_ns)
    }

    fn advance(&mut self, now_ns: u64, completions: &mut Vec<Completion>) {
        while self
            .queue
            .front()
            .is_some_and(|first| first.at_ns <= now_ns)
        {
            completions.extend(self.queue.pop_front());
        }
    }

    fn cut_power(&mut self, now_ns: u64) {
        self.free_ns = now_ns;
        self.queue.clear();
    }

    fn copy(&self) -> Box<dyn Service> {
        Box::new(self.clone())
    }

    fn sanitize(&mut self, _now_ns: u64) {}
}

/// The one block that such a drive cannot read.
pub const BAD: u64 = 1 << 20;

/// A drive that never does anything.
pub struct Dead;

impl Service for Dead {
    fn submit(&mut self, _request: &Request, _now_ns: u64) {}

    fn next_due_ns(&self) -> Option<u64> {
        None
    }

    fn advance(&mut self, _now_ns: u64, _completions: &mut Vec<Completion>) {}

    fn cut_power(&mut self, _now_ns: u64) {}

    fn copy(&self) -> Box<dyn Service> {
        Box::new(Self)
    }

    fn sanitize(&mut self, _now_ns: u64) {}
}
