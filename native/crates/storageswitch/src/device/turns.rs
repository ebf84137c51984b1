//! Requests that a scheduler sends, and those that pass it by.

use std::collections::VecDeque;

use crate::job::Work;

/// Requests that wait for a thread.
///
/// Invariants:
/// - those of a scheduler go in its order;
/// - one of those that pass the scheduler by is at the drive at a time, and the tenants have turns at it: neither one
///   tenant's trims nor its flushes hold up another's;
/// - where both kinds wait, they alternate.
#[derive(Default)]
pub struct Turns {
    scheduled: VecDeque<Work>,
    /// Those that pass the scheduler by, of each tenant that has some.
    aside: VecDeque<(usize, VecDeque<Work>)>,
    is_aside_at_drive: bool,
    was_scheduled: bool,
}

impl Turns {
    pub fn push(&mut self, work: Work) {
        if work.id.is_some() {
            return self.scheduled.push_back(work);
        }
        let tenant = work.pending.job.tenant;
        match self.aside.iter_mut().find(|(of, _)| *of == tenant) {
            Some((_, waiting)) => waiting.push_back(work),
            None => self.aside.push_back((tenant, VecDeque::from([work]))),
        }
    }

    /// The request that may go to the drive now.
    pub fn pop(&mut self) -> Option<Work> {
        let aside_first = self.was_scheduled || self.scheduled.is_empty();
        let work = match (self.is_aside_at_drive, aside_first) {
            (false, true) => self.pop_aside().or_else(|| self.scheduled.pop_front()),
            _ => self.scheduled.pop_front(),
        }?;
        self.was_scheduled = work.id.is_some();
        self.is_aside_at_drive |= !self.was_scheduled;
        Some(work)
    }

    fn pop_aside(&mut self) -> Option<Work> {
        let (tenant, mut waiting) = self.aside.pop_front()?;
        let work = waiting.pop_front();
        if !waiting.is_empty() {
            self.aside.push_back((tenant, waiting));
        }
        work
    }

    /// Note that the drive is done with a request.
    pub fn done(&mut self, work: &Work) {
        self.is_aside_at_drive &= work.id.is_some();
    }

    /// Whether a request may go to the drive now.
    pub fn is_ready(&self) -> bool {
        !self.scheduled.is_empty() || (!self.is_aside_at_drive && !self.aside.is_empty())
    }

    pub fn len(&self) -> usize {
        let aside = self.aside.iter().map(|(_, waiting)| waiting.len());
        self.scheduled.len() + aside.sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::sync::Arc;

    use nbd::proto::{cmd, Request};
    use nbdserver::{Connection, Style};
    use schedulers::{Decision, Parameters, Priority, Tenant};

    use super::*;
    use crate::job::{Job, Kind};

    struct Bench {
        connection: Arc<Connection>,
        turns: Turns,
    }

    impl Bench {
        fn new() -> Self {
            let (ours, _) = UnixStream::pair().unwrap();
            let connection = Connection::new(ours.into(), Style::Simple, Arc::default());
            Self {
                connection: Arc::new(connection),
                turns: Turns::default(),
            }
        }

        fn push(&mut self, tenant: usize, kind: Kind) {
            let id = match kind {
                Kind::Read => Some(scheduled()),
                _ => None,
            };
            let job = Job {
                tenant,
                kind,
                offset: 0,
                length: 4096,
                fua: false,
            };
            let request = Request {
                flags: 0,
                command: cmd::FLUSH,
                cookie: 0,
                offset: 0,
                length: 0,
            };
            let pending = self.connection.enter(&request).defer(job, vec![], 0);
            self.turns.push(Work { id, pending });
        }

        /// The tenant of each request that goes to the drive, one after the other.
        fn order(&mut self) -> Vec<usize> {
            let mut order = Vec::new();
            while let Some(work) = self.turns.pop() {
                order.push(work.pending.job.tenant);
                self.turns.done(&work);
            }
            order
        }
    }

    fn scheduled() -> schedulers::RequestId {
        let mut fifo = Parameters::None.start();
        let tenant = fifo.join(&Tenant::named("a"), 0).unwrap();
        let request = schedulers::Request {
            ticket: 0,
            operation: schedulers::Operation::Read,
            bytes: 4096,
        };
        fifo.arrive(tenant, Priority::default(), request, 0)
            .unwrap();
        match fifo.next(0) {
            Decision::Dispatch(dispatch) => dispatch.id,
            _ => unreachable!("it goes at once"),
        }
    }

    #[test]
    fn the_flush_of_one_tenant_does_not_wait_for_all_trims_of_another() {
        let mut bench = Bench::new();
        for _ in 0..4 {
            bench.push(0, Kind::Trim);
        }
        bench.push(1, Kind::Flush);
        bench.push(2, Kind::Flush);
        assert_eq!(bench.turns.len(), 6);
        assert_eq!(bench.order(), [0, 1, 2, 0, 0, 0]);
        assert_eq!(bench.turns.len(), 0);
    }

    #[test]
    fn one_at_a_time_passes_the_scheduler_by() {
        let mut bench = Bench::new();
        bench.push(0, Kind::Trim);
        bench.push(1, Kind::Flush);
        let trim = bench.turns.pop().unwrap();
        assert!(!bench.turns.is_ready());
        assert!(bench.turns.pop().is_none());
        bench.push(2, Kind::Read);
        assert!(bench.turns.is_ready());
        let read = bench.turns.pop().unwrap();
        assert_eq!(read.pending.job.tenant, 2);
        bench.turns.done(&read);
        assert!(
            bench.turns.pop().is_none(),
            "the trim is still at the drive"
        );
        bench.turns.done(&trim);
        assert_eq!(bench.order(), [1]);
    }

    #[test]
    fn requests_of_a_scheduler_and_others_alternate() {
        let mut bench = Bench::new();
        for _ in 0..3 {
            bench.push(0, Kind::Trim);
            bench.push(1, Kind::Read);
        }
        assert_eq!(bench.order(), [1, 0, 1, 0, 1, 0]);
    }
}
