//! ReFlex: tokens for objectives, and what they leave for best effort.
//!
//! Klimovic, Litz and Kozyrakis, *ReFlex: Remote Flash ≈ Local Flash*, ASPLOS 2017.

mod parameters;
mod threads;

use crate::ledger::{Ledger, Queue};
use crate::policy::{Choice, Policy};
use crate::refusal::Refusal;
use crate::request::{Operation, Outcome};
use crate::snapshot::{SchedulerState, TenantState};
use crate::tenant::Tenant;

pub use parameters::{CurvePoint, ReflexParameters};
use threads::Threads;

/// The state of a tenant.
#[derive(Debug)]
pub struct Account {
    queue: Queue,
    tokens: f64,
    tokens_per_ns: f64,
    is_latency_critical: bool,
    /// The thread whose rounds serve it.
    thread: u32,
}

impl Account {
    /// Tokens that it keeps when it has no use for them.
    fn kept(&self, round_ns: u64, parameters: &ReflexParameters) -> f64 {
        self.tokens_per_ns * round_ns as f64 * parameters.kept_increments
    }
}

/// Tokens and rounds.
///
/// Invariants:
/// - a request costs ceil(size / 4 KiB) tokens, a write that many times the write cost (section 3.2.1);
/// - the reservations of all objectives together never exceed the curve at the strictest of them: a tenant that would
///   break this is refused with `CANTMEETSLO` (section 4.3);
/// - best-effort tenants share equally what is not reserved (section 3.2.2), and those of a thread are first at the
///   donations in turns;
/// - a latency-critical tenant sends while it owes no more than the deficit limit, so over any time it spends at most its
///   reservation, the tokens it kept, the deficit limit and one request;
/// - it keeps its last increments of tokens and a tenth of what exceeds them, and donates the rest (algorithm 1);
/// - a best-effort tenant sends only what its tokens cover, is never in debt, and donates what it has without requests,
///   those of a whole round where it has none; what no tenant took of the donations is gone once every thread has run a
///   round since they began to be collected (algorithm 1);
/// - a tenant belongs to one thread as long as it stays, that with the fewest tenants when it joined; what tenants of all
///   threads send together is bounded as with one thread, since donations are tokens that were not spent.
#[derive(Debug)]
pub struct Reflex {
    parameters: ReflexParameters,
    round_ns: u64,
    threads: Threads,
    ready: Queue,
    tokens_per_s: f64,
    reserved_per_s: f64,
    is_read_only: bool,
}

/// The load of all tenants: the rate at the strictest objective, what is reserved of it.
struct Load {
    strictest: Option<(f64, String)>,
    reserved_per_s: f64,
    is_read_only: bool,
}

impl Load {
    fn of<'a>(parameters: &ReflexParameters, tenants: impl Iterator<Item = &'a Tenant>) -> Self {
        let mut load = Self {
            strictest: None,
            reserved_per_s: 0.0,
            is_read_only: true,
        };
        for tenant in tenants {
            load.is_read_only &= tenant.only_reads();
            let Some(slo) = &tenant.slo else { continue };
            load.reserved_per_s += parameters.reservation(slo);
            let is_stricter = |(p95_us, _): &(f64, String)| slo.p95_us < *p95_us;
            if load.strictest.as_ref().is_none_or(is_stricter) {
                load.strictest = Some((slo.p95_us, tenant.name.clone()));
            }
        }
        load
    }
}

impl Reflex {
    pub fn new(parameters: &ReflexParameters) -> Self {
        Self {
            parameters: parameters.clone(),
            round_ns: parameters.round_ns(),
            threads: Threads::new(parameters.threads, parameters.round_ns()),
            ready: Queue::default(),
            tokens_per_s: 0.0,
            reserved_per_s: 0.0,
            is_read_only: true,
        }
    }

    /// Send requests of a tenant: while it owes less than a limit, or what its tokens cover.
    fn send(
        &mut self,
        ledger: &mut Ledger<Account>,
        tenant: u32,
        tokens: &mut f64,
        limit: Option<f64>,
    ) {
        let (member, entries) = ledger.member_and_entries(tenant);
        let queue = &mut member.state.queue;
        while let Some(head) = queue.head() {
            let cost = self.parameters.cost(&entries[head as usize].request);
            if !limit.map_or(*tokens >= cost, |limit| *tokens > -limit) {
                break;
            }
            *tokens -= cost;
            queue.pop(entries);
            self.ready.push(entries, head);
        }
    }

    /// Run a scheduling round of a thread, for the time since its last one.
    fn round(&mut self, ledger: &mut Ledger<Account>, thread: u32, now_ns: u64) {
        let elapsed_ns = self.threads.begin(thread, now_ns) as f64;
        let mut donated = 0.0;
        for tenant in 0..ledger.seats() {
            let Some(member) = ledger.try_member_mut(tenant) else {
                continue;
            };
            let account = &member.state;
            // What one reserved that is gone is the others' already, though its last requests are at the drive.
            if !account.is_latency_critical || account.thread != thread || !member.is_served() {
                continue;
            }
            let kept = account.kept(self.round_ns, &self.parameters);
            let mut tokens = account.tokens + account.tokens_per_ns * elapsed_ns;
            let limit = self.parameters.deficit_limit;
            self.send(ledger, tenant, &mut tokens, Some(limit));
            if tokens > kept {
                let surplus = (tokens - kept) * self.parameters.donated_share;
                tokens -= surplus;
                donated += surplus;
            }
            ledger.member_mut(tenant).state.tokens = tokens;
        }
        self.threads
            .donate(donated + idle_shares(ledger, thread, elapsed_ns));
        let seats = ledger.seats();
        let begin = self.threads.turn(thread);
        let mut first = None;
        for turn in 0..seats {
            let tenant = (begin + turn) % seats;
            let Some(member) = ledger.try_member_mut(tenant) else {
                continue;
            };
            let account = &member.state;
            if account.is_latency_critical || account.thread != thread || account.queue.is_empty() {
                continue;
            }
            first.get_or_insert(tenant);
            let mut tokens = account.tokens + account.tokens_per_ns * elapsed_ns;
            self.send(ledger, tenant, &mut tokens, None);
            // What is missing for its next requests comes out of the donations.
            while let Some(head) = ledger.member(tenant).state.queue.head() {
                let missing = self.parameters.cost(&ledger.entry(head).request) - tokens;
                let taken = self.threads.take(missing);
                tokens += taken;
                if taken < missing {
                    break;
                }
                self.send(ledger, tenant, &mut tokens, None);
            }
            let account = &mut ledger.member_mut(tenant).state;
            if account.queue.is_empty() {
                self.threads.donate(std::mem::take(&mut tokens));
            }
            account.tokens = tokens;
        }
        self.threads.end(thread, first);
    }

    /// Pass over the rounds without requests: objectives fill up what they keep, and there is no best effort.
    fn rest(&mut self, ledger: &mut Ledger<Account>, now_ns: u64) {
        for thread in 0..self.parameters.threads {
            let idle_ns = self.threads.rest(thread, now_ns) as f64;
            if idle_ns == 0.0 {
                continue;
            }
            for tenant in 0..ledger.seats() {
                let Some(member) = ledger.try_member_mut(tenant) else {
                    continue;
                };
                let account = &mut member.state;
                if account.is_latency_critical && account.thread == thread {
                    let kept = account.kept(self.round_ns, &self.parameters);
                    let tokens = account.tokens + account.tokens_per_ns * idle_ns;
                    account.tokens = tokens.min(kept.max(account.tokens));
                }
            }
        }
    }
}

/// The tokens of best-effort tenants of a thread that have no use for them.
fn idle_shares(ledger: &Ledger<Account>, thread: u32, elapsed_ns: f64) -> f64 {
    let members = ledger.members().map(|(_, member)| member);
    let idle = members.filter(|member| {
        let account = &member.state;
        let is_here = account.thread == thread && !account.is_latency_critical;
        is_here && member.is_served() && account.queue.is_empty()
    });
    idle.map(|member| member.state.tokens_per_ns * elapsed_ns)
        .sum()
}

impl Policy for Reflex {
    type Tenant = Account;

    const KIND: &'static str = "reflex";

    fn admit(&self, ledger: &Ledger<Account>, tenant: &Tenant) -> Result<Account, Refusal> {
        let others = ledger.members().map(|(_, member)| member);
        let others = others.filter(|member| member.is_served());
        let others = others.map(|member| &member.tenant);
        let load = Load::of(&self.parameters, others.chain([tenant]));
        let kind = if load.is_read_only {
            "read-only"
        } else {
            "mixed"
        };
        if let Some((p95_us, strictest)) = &load.strictest {
            let Some(rate) = self.parameters.tokens_per_s(*p95_us, load.is_read_only) else {
                return Err(Refusal::CannotMeetSlo(format!(
                    "tenant {strictest:?} asks for p95 {p95_us} us, and the drive's curve begins at {} us",
                    self.parameters.curve[0].p95_us
                )));
            };
            if load.reserved_per_s > rate {
                let asked = match &tenant.slo {
                    Some(slo) => format!(
                        "asks for {} IOPS x ({} x 1 + {} x {}) = {:.0} tokens/s",
                        slo.iops,
                        slo.read_percent / 100.0,
                        1.0 - slo.read_percent / 100.0,
                        self.parameters.write_cost,
                        self.parameters.reservation(slo)
                    ),
                    None => "may write, so that the curve of mixed loads holds".to_owned(),
                };
                let own = tenant
                    .slo
                    .map_or(0.0, |slo| self.parameters.reservation(&slo));
                return Err(Refusal::CannotMeetSlo(format!(
                    "tenant {:?} {asked}; with {:.0} reserved by others that is {:.0}, and a {kind} load has {rate:.0} \
                     tokens/s at p95 {p95_us} us, the objective of tenant {strictest:?}",
                    tenant.name,
                    load.reserved_per_s - own,
                    load.reserved_per_s
                )));
            }
        }
        Ok(Account {
            queue: Queue::default(),
            tokens: 0.0,
            tokens_per_ns: 0.0,
            is_latency_critical: tenant.slo.is_some(),
            thread: threads::least_used(
                self.parameters.threads,
                ledger.members().map(|(_, member)| member.state.thread),
            ),
        })
    }

    fn reckon(&mut self, ledger: &mut Ledger<Account>) {
        // One that was disconnected reserves nothing any more.
        let members = ledger.members().map(|(_, member)| member);
        let served = members.filter(|member| member.is_served());
        let load = Load::of(&self.parameters, served.map(|member| &member.tenant));
        let slowest_us = self
            .parameters
            .curve
            .last()
            .map_or(0.0, |point| point.p95_us);
        let p95_us = load.strictest.map_or(slowest_us, |(p95_us, _)| p95_us);
        let rate = self.parameters.tokens_per_s(p95_us, load.is_read_only);
        self.tokens_per_s = rate.unwrap_or_default();
        self.reserved_per_s = load.reserved_per_s;
        self.is_read_only = load.is_read_only;
        let members = ledger.members().map(|(_, member)| member);
        let best_effort =
            members.filter(|member| member.is_served() && member.tenant.slo.is_none());
        let shares = best_effort.count().max(1) as f64;
        let share = (self.tokens_per_s - self.reserved_per_s).max(0.0) / shares;
        for index in 0..ledger.seats() {
            let Some(member) = ledger.try_member_mut(index) else {
                continue;
            };
            let slo = member.tenant.slo;
            let rate = slo.map_or(share, |slo| self.parameters.reservation(&slo));
            member.state.tokens_per_ns = rate / 1e9;
        }
    }

    fn vet(&self, tenant: &Tenant, operation: Operation) -> Result<(), Refusal> {
        if operation == Operation::Write && tenant.only_reads() {
            return Err(Refusal::Invalid(format!(
                "tenant {:?} writes, and has joined as one that only reads",
                tenant.name
            )));
        }
        Ok(())
    }

    fn arrive(&mut self, ledger: &mut Ledger<Account>, index: u32, now_ns: u64) {
        if ledger.queued == 1 {
            self.rest(ledger, now_ns);
        }
        let tenant = ledger.entry(index).tenant;
        let (member, entries) = ledger.member_and_entries(tenant);
        member.state.queue.push(entries, index);
    }

    fn next(&mut self, ledger: &mut Ledger<Account>, now_ns: u64) -> Choice {
        if ledger.queued == 0 {
            return Choice::Idle;
        }
        while self.ready.is_empty() {
            let (due_ns, thread) = self.threads.next();
            if now_ns < due_ns {
                return Choice::WaitUntil(due_ns);
            }
            self.round(ledger, thread, now_ns);
        }
        match self.ready.pop(ledger.entries()) {
            Some(index) => Choice::Request(index),
            None => Choice::Idle,
        }
    }

    fn complete(
        &mut self,
        _ledger: &mut Ledger<Account>,
        _index: u32,
        _outcome: Outcome,
        _now_ns: u64,
    ) -> Option<u32> {
        None
    }

    fn forget(&mut self, ledger: &mut Ledger<Account>, tenant: u32) {
        ledger.member_mut(tenant).state.queue = Queue::default();
        self.ready.forget(ledger.entries(), tenant);
    }

    fn state(&self) -> SchedulerState {
        SchedulerState::Reflex {
            tokens_per_s: self.tokens_per_s,
            reserved_per_s: self.reserved_per_s,
            is_read_only: self.is_read_only,
            donated_tokens: self.threads.donated(),
        }
    }

    fn tenant_state(&self, ledger: &Ledger<Account>, tenant: u32) -> TenantState {
        let account = &ledger.member(tenant).state;
        TenantState::Reflex {
            tokens: account.tokens,
            tokens_per_s: account.tokens_per_ns * 1e9,
            is_latency_critical: account.is_latency_critical,
            thread: account.thread,
        }
    }
}
