//! A drive behind a scheduler.

use racksim::{Completion, Io, OnReadError, Request};
use schedulers::{
    Decision, Outcome, Parameters, Refusal, RequestId, Scheduler, Snapshot, Tenant, TenantId,
};

use crate::drive::Drive;
use crate::failure::Failure;
use crate::target::{request_of, Arrival, Done, Ending, Target};

/// A request in the scheduler or in the drive.
#[derive(Clone, Copy)]
struct InFlight {
    io: Io,
    id: Option<RequestId>,
}

/// A drive that tenants share through a scheduler, with nothing between them and it.
pub struct SharedDrive<'d> {
    scheduler: Box<dyn Scheduler>,
    drive: &'d mut Drive,
    /// By the tenants' numbers.
    ids: Vec<Option<TenantId>>,
    /// By ticket.
    in_flight: Vec<InFlight>,
    completions: Vec<Completion>,
    /// The first of the completions that has not been taken.
    next: usize,
    /// The time at which the scheduler wants to be asked again.
    wait_ns: Option<u64>,
}

impl<'d> SharedDrive<'d> {
    /// A drive on which nothing is in flight.
    pub fn new(scheduler: &Parameters, drive: &'d mut Drive) -> Self {
        Self {
            scheduler: scheduler.start(),
            drive,
            ids: Vec::new(),
            in_flight: Vec::new(),
            completions: Vec::new(),
            next: 0,
            wait_ns: None,
        }
    }

    /// The state of the scheduler and its tenants.
    pub fn snapshot(&self) -> Snapshot {
        self.scheduler.snapshot()
    }
}

impl Target for SharedDrive<'_> {
    fn now_ns(&self) -> u64 {
        self.drive.now_ns()
    }

    fn bytes(&self, _drive: usize) -> u64 {
        self.drive.bytes()
    }

    fn join(&mut self, tenant: &Tenant, number: usize, _drive: usize) -> Result<(), Refusal> {
        let id = self.scheduler.join(tenant, self.drive.now_ns())?;
        if self.ids.len() <= number {
            self.ids.resize(number + 1, None);
        }
        self.ids[number] = Some(id);
        Ok(())
    }

    fn disconnect(&mut self, number: usize) -> Vec<u64> {
        let id = self.ids[number].take().expect("it has joined");
        let dropped = self.scheduler.disconnect(id, self.drive.now_ns());
        dropped.expect("it is there")
    }

    fn credit(&self, number: usize) -> Option<u32> {
        let id = self.ids[number].expect("it has joined");
        let view = self.scheduler.view(id).expect("it is there");
        view.map(|view| view.credit)
    }

    #[inline]
    fn arrive(&mut self, number: usize, arrival: Arrival) {
        let Arrival {
            ticket,
            io,
            priority,
        } = arrival;
        let place = ticket as usize;
        let one = InFlight { io, id: None };
        if place < self.in_flight.len() {
            self.in_flight[place] = one;
        } else {
            self.in_flight.resize(place + 1, one);
        }
        let id = self.ids[number].expect("it has joined");
        let entered =
            self.scheduler
                .arrive(id, priority, request_of(ticket, io), self.drive.now_ns());
        entered.expect("the document's check: a size and an operation that the tenant may have");
    }

    fn dispatch(&mut self) {
        let now_ns = self.drive.now_ns();
        self.wait_ns = loop {
            match self.scheduler.next(now_ns) {
                Decision::Dispatch(dispatch) => {
                    let ticket = dispatch.request.ticket;
                    let one = &mut self.in_flight[ticket as usize];
                    one.id = Some(dispatch.id);
                    self.drive.submit(&Request {
                        ticket,
                        io: one.io,
                        fua: false,
                        on_read_error: OnReadError::Retry,
                    });
                }
                Decision::WaitUntil(at_ns) => break Some(at_ns),
                Decision::Idle => break None,
            }
        };
    }

    fn due_ns(&self) -> Option<u64> {
        self.wait_ns.into_iter().chain(self.drive.due_ns()).min()
    }

    fn advance(&mut self, limit_ns: Option<u64>) -> Result<(), Failure> {
        let limit_ns = self.wait_ns.into_iter().chain(limit_ns).min();
        self.drive.pass(limit_ns, &mut self.completions)
    }

    #[inline]
    fn next_done(&mut self) -> Option<Done> {
        let Some(done) = self.completions.get(self.next) else {
            self.completions.clear();
            self.next = 0;
            return None;
        };
        self.next += 1;
        let (outcome, ending) = match done.failed_at {
            None => (Outcome::Succeeded, Ending::Succeeded),
            Some(_) => (Outcome::Failed, Ending::Failed),
        };
        let id = self.in_flight[done.ticket as usize].id;
        let id = id.expect("it was dispatched");
        let told = self.scheduler.complete(id, outcome, done.at_ns);
        let told = told.expect("it was at the drive");
        Some(Done {
            ticket: done.ticket,
            at_ns: done.at_ns,
            ending,
            device_ns: told.latency_ns,
            credit: told.credit,
        })
    }
}
