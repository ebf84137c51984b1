//! The queue of a drive: requests from submission until they are due.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use crate::{Completion, Io, OnReadError, Request, Service, Ticket};

/// A request that is due.
#[derive(Debug, PartialEq, Eq)]
pub struct Due<P> {
    /// The caller's payload.
    pub payload: P,
    /// The time at which it was due.
    pub at_ns: u64,
    /// The byte offset of the first unreadable sector, if a read failed.
    pub failed_at: Option<u64>,
}

struct Working<P> {
    since_ns: u64,
    payload: P,
}

pub(crate) struct Queue<P> {
    service: Box<dyn Service>,
    working: BTreeMap<Ticket, Working<P>>,
    /// Completions of the service by the time they are due: a fault may delay them.
    done: BinaryHeap<Reverse<(u64, Ticket, Option<u64>)>>,
    /// Completions from the service; kept for its allocation.
    completions: Vec<Completion>,
    last_ticket: Ticket,
    /// The latest time passed in: a service's time does not go back.
    now_ns: u64,
}

impl<P> Queue<P> {
    pub fn new(service: Box<dyn Service>) -> Self {
        Self {
            service,
            working: BTreeMap::new(),
            done: BinaryHeap::new(),
            completions: Vec::new(),
            last_ticket: 0,
            now_ns: 0,
        }
    }

    pub fn service(&self) -> &dyn Service {
        &*self.service
    }

    pub fn submit(
        &mut self,
        io: &Io,
        fua: bool,
        on_read_error: OnReadError,
        payload: P,
        now_ns: u64,
    ) {
        self.last_ticket += 1;
        let since_ns = self.at(now_ns);
        let request = Request {
            ticket: self.last_ticket,
            io: *io,
            fua,
            on_read_error,
        };
        self.working
            .insert(request.ticket, Working { since_ns, payload });
        self.service.submit(&request, since_ns);
    }

    pub fn next_due_ns(&self) -> Option<u64> {
        let done_ns = self.done.peek().map(|Reverse((at_ns, ..))| *at_ns);
        done_ns.into_iter().chain(self.service.next_due_ns()).min()
    }

    /// Append what is due by `now_ns`, in order of time. `slowed` maps a request's submission and completion times to
    /// the time it is due.
    pub fn advance(
        &mut self,
        now_ns: u64,
        slowed: impl Fn(u64, u64) -> u64,
        due: &mut Vec<Due<P>>,
    ) {
        let now_ns = self.at(now_ns);
        self.service.advance(now_ns, &mut self.completions);
        for completion in self.completions.drain(..) {
            // A withdrawn request still costs the drive its time.
            if let Some(request) = self.working.get(&completion.ticket) {
                let at_ns = slowed(request.since_ns, completion.at_ns);
                self.done
                    .push(Reverse((at_ns, completion.ticket, completion.failed_at)));
            }
        }
        while let Some(&Reverse((at_ns, ticket, failed_at))) = self.done.peek() {
            if at_ns > now_ns {
                break;
            }
            self.done.pop();
            if let Some(request) = self.working.remove(&ticket) {
                due.push(Due {
                    payload: request.payload,
                    at_ns,
                    failed_at,
                });
            }
        }
    }

    /// Withdraw the requests whose payload `is_meant`; returns the payloads in order of arrival. The drive still
    /// works on them.
    pub fn withdraw(&mut self, is_meant: impl Fn(&P) -> bool) -> Vec<P> {
        let (gone, stays) = std::mem::take(&mut self.working)
            .into_iter()
            .partition::<BTreeMap<_, _>, _>(|(_, request)| is_meant(&request.payload));
        self.working = stays;
        gone.into_values().map(|request| request.payload).collect()
    }

    /// Abort the requests whose payload `is_meant`; the drive need not work on them any more.
    pub fn abort(&mut self, is_meant: impl Fn(&P) -> bool, now_ns: u64) {
        let now_ns = self.at(now_ns);
        let gone: Vec<Ticket> = self
            .working
            .iter()
            .filter(|(_, request)| is_meant(&request.payload))
            .map(|(&ticket, _)| ticket)
            .collect();
        if gone.is_empty() {
            return;
        }
        self.service.abort(&gone, now_ns);
        for ticket in gone {
            self.working.remove(&ticket);
        }
    }

    /// Lose the queue and the cache; returns the payloads.
    pub fn cut_power(&mut self, now_ns: u64) -> Vec<P> {
        let now_ns = self.at(now_ns);
        self.service.cut_power(now_ns);
        self.done.clear();
        self.withdraw(|_| true)
    }

    pub fn sanitize(&mut self, now_ns: u64) {
        let now_ns = self.at(now_ns);
        self.service.sanitize(now_ns);
    }

    /// Callers on several threads read the clock before they lock the drive: times may come out of order.
    fn at(&mut self, now_ns: u64) -> u64 {
        self.now_ns = self.now_ns.max(now_ns);
        self.now_ns
    }
}
