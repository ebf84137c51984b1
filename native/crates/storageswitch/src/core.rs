//! The scheduler of a drive, with the requests that wait in it and the tenants that are connected.

use std::sync::Arc;

use nbd::proto::errno;
use schedulers::{Decision, Outcome, Priority, Refusal, Request, Scheduler, Tenant, TenantId};

use crate::job::{Done, Pending, Work};
use crate::share::{Share, Told, Watch};
use crate::statistics::Statistics;

/// Connections of a tenant at a time.
const MOST_CONNECTIONS: usize = 128;

/// A tenant that may connect.
#[derive(Default)]
pub struct Member {
    /// Its number in the scheduler while it is connected.
    pub id: Option<TenantId>,
    pub connections: usize,
    pub statistics: Statistics,
    /// The credit of its last completion.
    credit: Option<u32>,
    watches: Vec<Arc<Watch>>,
    /// The share that its watches were told last.
    told: Share,
}

/// The state that every request passes.
pub struct Core {
    pub scheduler: Box<dyn Scheduler>,
    pub members: Vec<Member>,
    /// Requests in the scheduler, by their tickets.
    waiting: Vec<Option<Pending>>,
    free: Vec<usize>,
    watches: usize,
}

impl Core {
    pub fn new(scheduler: Box<dyn Scheduler>, tenants: usize) -> Self {
        Self {
            scheduler,
            members: (0..tenants).map(|_| Member::default()).collect(),
            waiting: Vec::new(),
            free: Vec::new(),
            watches: 0,
        }
    }

    /// Count a connection of a tenant, which joins by its first.
    pub fn connect(&mut self, index: usize, tenant: &Tenant, now_ns: u64) -> Result<(), Refusal> {
        let member = &mut self.members[index];
        if member.connections == MOST_CONNECTIONS {
            return Err(Refusal::Invalid(format!(
                "tenant {:?} has {MOST_CONNECTIONS} connections already",
                tenant.name
            )));
        }
        if member.id.is_none() {
            member.id = Some(self.scheduler.join(tenant, now_ns)?);
        }
        member.connections += 1;
        Ok(())
    }

    /// Forget a connection of a tenant. After its last the tenant is gone; what it had waiting is returned.
    #[must_use]
    pub fn disconnect(&mut self, index: usize, now_ns: u64) -> Vec<Pending> {
        let member = &mut self.members[index];
        member.connections -= 1;
        if member.connections > 0 {
            return Vec::new();
        }
        let id = member.id.take().expect("a tenant with connections joined");
        member.credit = None;
        let tickets = self.scheduler.disconnect(id, now_ns);
        let tickets = tickets.expect("it joined and has not left");
        tickets
            .into_iter()
            .map(|ticket| self.take(ticket))
            .collect()
    }

    /// Let a request arrive at the scheduler; a refused one comes back with its error number.
    pub fn arrive(
        &mut self,
        pending: Pending,
        priority: Priority,
        now_ns: u64,
    ) -> Result<(), (Pending, u32)> {
        let job = pending.job;
        let (Some(operation), Some(tenant)) = (job.operation(), self.members[job.tenant].id) else {
            return Err((pending, errno::ESHUTDOWN));
        };
        let ticket = self.free.pop().unwrap_or_else(|| {
            self.waiting.push(None);
            self.waiting.len() - 1
        });
        let request = Request {
            ticket: ticket as u64,
            operation,
            bytes: job.length,
        };
        if self
            .scheduler
            .arrive(tenant, priority, request, now_ns)
            .is_err()
        {
            self.free.push(ticket);
            return Err((pending, errno::EPERM));
        }
        self.waiting[ticket] = Some(pending);
        Ok(())
    }

    /// Tell the scheduler that the drive is done with a request.
    pub fn complete(&mut self, done: &Done) {
        let Some(id) = done.work.id else {
            return;
        };
        let outcome = match done.result {
            Ok(()) => Outcome::Succeeded,
            Err(_) => Outcome::Failed,
        };
        let latency_ns = done.at_ns.saturating_sub(done.since_ns);
        let completion = self
            .scheduler
            .complete_measured(id, outcome, latency_ns, done.at_ns);
        let completion = completion.expect("it was dispatched and completes once");
        let member = &mut self.members[done.work.pending.job.tenant];
        // That of an earlier stay says nothing of this one.
        if member.id == Some(completion.tenant) {
            member.credit = completion.credit;
        }
        if outcome == Outcome::Succeeded {
            member.statistics.note(&completion);
        }
    }

    /// The present share of a tenant.
    pub fn share(&self, index: usize) -> Share {
        let member = &self.members[index];
        let Some(id) = member.id else {
            return Share::default();
        };
        let view = self.scheduler.view(id).ok().flatten();
        Share {
            connected: true,
            credit: view.map(|view| view.credit).or(member.credit),
            view,
        }
    }

    /// Tell this watch of every change from now on; returns the present share.
    pub fn watch(&mut self, index: usize, watch: &Arc<Watch>) -> Share {
        let share = self.share(index);
        let member = &mut self.members[index];
        member.told = share;
        member.watches.push(watch.clone());
        self.watches += 1;
        share
    }

    /// Tell a watch no more.
    pub fn unwatch(&mut self, index: usize, watch: &Arc<Watch>) {
        let watches = &mut self.members[index].watches;
        watches.retain(|one| !Arc::ptr_eq(one, watch));
        self.watches -= 1;
    }

    /// Tell the watches of all tenants whose shares have changed.
    pub fn tell(&mut self, t_ns: u64) {
        if self.watches == 0 {
            return;
        }
        for index in 0..self.members.len() {
            if self.members[index].watches.is_empty() {
                continue;
            }
            let share = self.share(index);
            let member = &mut self.members[index];
            if member.told != share {
                member.told = share;
                for watch in &member.watches {
                    watch.put(Told { t_ns, share });
                }
            }
        }
    }

    /// Take every request that may go to the drive now; returns the time to ask again, if there is one.
    pub fn dispatch(&mut self, now_ns: u64, work: &mut Vec<Work>) -> Option<u64> {
        loop {
            match self.scheduler.next(now_ns) {
                Decision::Dispatch(dispatch) => {
                    let pending = self.take(dispatch.request.ticket);
                    let id = Some(dispatch.id);
                    work.push(Work { id, pending });
                }
                Decision::WaitUntil(at_ns) => return Some(at_ns),
                Decision::Idle => return None,
            }
        }
    }

    fn take(&mut self, ticket: u64) -> Pending {
        let ticket = ticket as usize;
        self.free.push(ticket);
        let pending = self.waiting[ticket].take();
        pending.expect("a ticket belongs to a request that waits")
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use nbd::proto::{cmd, Request};
    use nbdserver::{Connection, Style};
    use schedulers::{Parameters, PardaParameters};

    use super::*;
    use crate::job::{Job, Kind};

    fn pending() -> Pending {
        let (ours, _) = UnixStream::pair().unwrap();
        let connection = Connection::new(ours.into(), Style::Simple, Arc::default());
        let job = Job {
            tenant: 0,
            kind: Kind::Read,
            offset: 0,
            length: 4096,
            fua: false,
        };
        let request = Request {
            flags: 0,
            command: cmd::READ,
            cookie: 0,
            offset: 0,
            length: 4096,
        };
        Arc::new(connection).enter(&request).defer(job, vec![], 0)
    }

    #[test]
    fn a_tenant_that_comes_again_is_told_no_credit_of_its_earlier_stay() {
        let parda = Parameters::Parda(PardaParameters::default());
        let (mut core, tenant) = (Core::new(parda.start(), 1), Tenant::named("a"));
        let mut work = Vec::new();
        core.connect(0, &tenant, 0).unwrap();
        for _ in 0..2 {
            let entered = core.arrive(pending(), Priority::default(), 0);
            assert!(entered.is_ok());
        }
        assert_eq!(core.dispatch(0, &mut work), None);
        let mut done = work.drain(..).map(|work| work.done(Ok(()), 0, 1));
        core.complete(&done.next().unwrap());
        assert_eq!(core.share(0).credit, Some(128));
        assert!(core.disconnect(0, 2).is_empty());
        core.connect(0, &tenant, 3).unwrap();
        core.complete(&done.next().unwrap());
        assert_eq!(core.share(0).credit, None);
    }
}
