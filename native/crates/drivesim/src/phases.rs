//! The phases of a request to a box.

use serde::Serialize;

const COUNT: usize = 8;

/// A phase of a request, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The command capsule goes to the box.
    Command,
    /// A core takes notice of it and works on it.
    Submission,
    /// The data of a write is fetched.
    Fetch,
    /// The scheduler holds it.
    Scheduler,
    /// The drive has it, with the path between drive and memory.
    Drive,
    /// A core takes notice of the completion and works on it.
    Completion,
    /// The data of a read goes to the client.
    DataReturn,
    /// The response capsule goes to the client.
    Response,
}

/// The ends of a request's phases.
#[derive(Debug, Clone, Copy)]
pub struct Phases {
    begin_ns: u64,
    ends_ns: [u64; COUNT],
}

impl Phases {
    /// A request that its client sends now.
    pub fn begin(now_ns: u64) -> Self {
        Self {
            begin_ns: now_ns,
            ends_ns: [now_ns; COUNT],
        }
    }

    /// Take note of the end of a phase.
    pub fn end(&mut self, phase: Phase, at_ns: u64) {
        self.ends_ns[phase as usize] = at_ns;
    }

    fn times_ns(&self) -> [u64; COUNT] {
        let mut before_ns = self.begin_ns;
        self.ends_ns.map(|end_ns| {
            let time_ns = end_ns - before_ns;
            before_ns = end_ns;
            time_ns
        })
    }
}

/// The sums of the phases of requests.
#[derive(Debug, Clone, Copy, Default)]
pub struct PhaseTally {
    requests: u64,
    sums_ns: [u64; COUNT],
}

/// The mean times of the phases, in nanoseconds.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct PhaseTimes {
    command: f64,
    submission: f64,
    fetch: f64,
    scheduler: f64,
    drive: f64,
    completion: f64,
    data_return: f64,
    response: f64,
}

impl PhaseTally {
    /// Count a request that has ended.
    pub fn count(&mut self, phases: &Phases) {
        self.requests += 1;
        for (sum_ns, time_ns) in self.sums_ns.iter_mut().zip(phases.times_ns()) {
            *sum_ns += time_ns;
        }
    }

    /// The mean of each phase, unless nothing was counted.
    pub fn times(&self) -> Option<PhaseTimes> {
        let mean = |phase: Phase| self.sums_ns[phase as usize] as f64 / self.requests as f64;
        (self.requests > 0).then(|| PhaseTimes {
            command: mean(Phase::Command),
            submission: mean(Phase::Submission),
            fetch: mean(Phase::Fetch),
            scheduler: mean(Phase::Scheduler),
            drive: mean(Phase::Drive),
            completion: mean(Phase::Completion),
            data_return: mean(Phase::DataReturn),
            response: mean(Phase::Response),
        })
    }
}
