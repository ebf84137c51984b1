//! Parda: each client keeps a window of outstanding requests, and moves it by the latency it sees.
//!
//! Gulati, Ahmad and Waldspurger, *PARDA: Proportional Allocation of Resources for Distributed Storage Access*, FAST 2009.
//! Clients know nothing of each other; here they are in one machine, each with its own window.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::document::{above_zero, within};
use crate::ledger::{Ledger, Queue};
use crate::policy::{Choice, Policy};
use crate::refusal::Refusal;
use crate::request::Outcome;
use crate::snapshot::{SchedulerState, TenantState};
use crate::tenant::Tenant;

/// Parameters of Parda. The paper's are for disk arrays; the defaults here are assumptions for an NVMe drive.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PardaParameters {
    /// The latency threshold, the paper's script L.
    pub latency_threshold_us: f64,
    /// Weight of the new window against the old one.
    pub gamma: f64,
    /// Requests by which the window of a tenant of weight 1 grows.
    pub beta: f64,
    /// Weight of the old latency against the new one.
    pub alpha: f64,
    /// The smallest window.
    pub window_min: f64,
    /// The largest window, and the one at the beginning.
    pub window_max: f64,
    /// Time between two changes of a window.
    pub period_ms: f64,
}

impl Default for PardaParameters {
    fn default() -> Self {
        Self {
            latency_threshold_us: 500.0,
            gamma: 0.8,
            beta: 4.0,
            alpha: 0.8,
            window_min: 1.0,
            window_max: 128.0,
            period_ms: 10.0,
        }
    }
}

impl PardaParameters {
    /// Check the parameters; the error names the wrong one and its range.
    pub fn check(&self) -> Result<(), String> {
        above_zero("latency_threshold_us", self.latency_threshold_us, 1e7)?;
        above_zero("gamma", self.gamma, 1.0)?;
        above_zero("beta", self.beta, 1e4)?;
        within("alpha", self.alpha, 0.0, 0.999)?;
        within("window_min", self.window_min, 1.0, 65_536.0)?;
        within("window_max", self.window_max, self.window_min, 65_536.0)?;
        above_zero("period_ms", self.period_ms, 1e5)
    }
}

/// The state of a tenant.
#[derive(Debug)]
pub struct Client {
    queue: Queue,
    is_listed: bool,
    window: f64,
    beta: f64,
    latency_ns: Option<f64>,
    sum_ns: u64,
    samples: u32,
    due_ns: Option<u64>,
}

/// Windows of clients.
///
/// Invariants, from the control equation and its analysis in the paper:
/// - the latency is that a client sees: of all that lies between its sending a request and the answer, waiting at the
///   drive among it;
/// - a client has as many requests at the drive as its window allows, rounded down, and never more;
/// - a window stays within its bounds;
/// - at a constant latency L above the threshold it converges to beta / (1 - threshold / L), and is proportional to
///   beta, which is to the tenant's weight; at or below the threshold it grows to its upper bound.
#[derive(Debug)]
pub struct Parda {
    parameters: PardaParameters,
    threshold_ns: f64,
    period_ns: u64,
    /// Clients with a request and room in their window, in turns.
    ready: VecDeque<u32>,
}

impl Parda {
    pub fn new(parameters: &PardaParameters) -> Self {
        Self {
            parameters: parameters.clone(),
            threshold_ns: parameters.latency_threshold_us * 1e3,
            period_ns: (parameters.period_ms * 1e6).round() as u64,
            ready: VecDeque::new(),
        }
    }

    fn list(&mut self, ledger: &mut Ledger<Client>, tenant: u32) {
        let member = ledger.member_mut(tenant);
        let client = &mut member.state;
        let has_room = f64::from(member.at_drive + 1) <= client.window;
        if !client.is_listed && has_room && !client.queue.is_empty() {
            client.is_listed = true;
            self.ready.push_back(tenant);
        }
    }

    fn sample(&self, client: &mut Client, latency_ns: u64, now_ns: u64) {
        client.sum_ns += latency_ns;
        client.samples += 1;
        let due_ns = *client.due_ns.get_or_insert(now_ns + self.period_ns);
        if now_ns < due_ns {
            return;
        }
        let PardaParameters {
            gamma,
            alpha,
            window_min,
            window_max,
            ..
        } = self.parameters;
        let mean_ns = client.sum_ns as f64 / f64::from(client.samples);
        let latency_ns = client
            .latency_ns
            .map_or(mean_ns, |before| alpha * before + (1.0 - alpha) * mean_ns);
        let goal = self.threshold_ns / latency_ns.max(1.0) * client.window + client.beta;
        client.window =
            ((1.0 - gamma) * client.window + gamma * goal).clamp(window_min, window_max);
        client.latency_ns = Some(latency_ns);
        (client.sum_ns, client.samples) = (0, 0);
        client.due_ns = Some(now_ns + self.period_ns);
    }
}

impl Policy for Parda {
    type Tenant = Client;

    const KIND: &'static str = "parda";

    fn admit(&self, _ledger: &Ledger<Client>, tenant: &Tenant) -> Result<Client, Refusal> {
        Ok(Client {
            queue: Queue::default(),
            is_listed: false,
            window: self.parameters.window_max,
            beta: self.parameters.beta * tenant.weight,
            latency_ns: None,
            sum_ns: 0,
            samples: 0,
            due_ns: None,
        })
    }

    fn arrive(&mut self, ledger: &mut Ledger<Client>, index: u32, _now_ns: u64) {
        let tenant = ledger.entry(index).tenant;
        let (member, entries) = ledger.member_and_entries(tenant);
        member.state.queue.push(entries, index);
        self.list(ledger, tenant);
    }

    fn next(&mut self, ledger: &mut Ledger<Client>, _now_ns: u64) -> Choice {
        while let Some(tenant) = self.ready.pop_front() {
            let (member, entries) = ledger.member_and_entries(tenant);
            let client = &mut member.state;
            // A window may have shrunk since.
            let room = client.window - f64::from(member.at_drive);
            let index = (room >= 1.0).then(|| client.queue.pop(entries)).flatten();
            client.is_listed = index.is_some() && room >= 2.0 && !client.queue.is_empty();
            if client.is_listed {
                self.ready.push_back(tenant);
            }
            if let Some(index) = index {
                return Choice::Request(index);
            }
        }
        Choice::Idle
    }

    fn complete(
        &mut self,
        ledger: &mut Ledger<Client>,
        index: u32,
        outcome: Outcome,
        now_ns: u64,
    ) -> Option<u32> {
        let entry = ledger.entry(index);
        let (tenant, latency_ns) = (entry.tenant, now_ns - entry.sent_ns);
        if outcome == Outcome::Succeeded {
            self.sample(&mut ledger.member_mut(tenant).state, latency_ns, now_ns);
        }
        self.list(ledger, tenant);
        Some(ledger.member(tenant).state.window as u32)
    }

    fn forget(&mut self, ledger: &mut Ledger<Client>, tenant: u32) {
        let client = &mut ledger.member_mut(tenant).state;
        client.queue = Queue::default();
        client.is_listed = false;
        self.ready.retain(|&listed| listed != tenant);
    }

    fn state(&self) -> SchedulerState {
        SchedulerState::Parda {}
    }

    fn tenant_state(&self, ledger: &Ledger<Client>, tenant: u32) -> TenantState {
        let client = &ledger.member(tenant).state;
        TenantState::Parda {
            window: client.window,
            latency_ns: client.latency_ns,
        }
    }
}
