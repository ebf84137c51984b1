//! A drive model in real time: every request completes at the time that the model gives, in memory.

use std::sync::Arc;

use backing::Backing;
use daemon::Timer;
use nbd::proto::errno;
use parking_lot::Mutex;
use racksim::{Completion, Io, Kind as IoKind, OnReadError, Request, Service};
use realtime::now_ns;
use serde_json::Value;

use crate::device::Device;
use crate::front::{spawn, Front, Hands};
use crate::job::{Done, Job, Kind, Work};
use crate::store::{carry_out, Store};

/// A model, its memory and its timer.
pub struct Model {
    memory: Backing,
    state: Mutex<State>,
    timer: Timer<u64>,
}

struct State {
    service: Box<dyn Service>,
    clock: Clock,
    /// Requests in the model, by their tickets, with the times they were submitted.
    in_flight: Vec<Option<(Work, u64)>>,
    free: Vec<usize>,
    alarm_ns: Option<u64>,
}

/// One moment by the clock of the model and by that of this machine, which go equally fast.
struct Clock {
    model_ns: u64,
    machine_ns: u64,
}

impl Clock {
    fn model_ns(&self, machine_ns: u64) -> u64 {
        self.model_ns + machine_ns.saturating_sub(self.machine_ns)
    }

    fn machine_ns(&self, model_ns: u64) -> u64 {
        self.machine_ns + model_ns.saturating_sub(self.model_ns)
    }
}

impl Model {
    /// A model that goes on from its time `at_ns`.
    pub fn new(service: Box<dyn Service>, at_ns: u64, memory: Backing) -> Self {
        Self {
            memory,
            state: Mutex::new(State {
                service,
                clock: Clock {
                    model_ns: at_ns,
                    machine_ns: now_ns(),
                },
                in_flight: Vec::new(),
                free: Vec::new(),
                alarm_ns: None,
            }),
            timer: Timer::new(),
        }
    }

    /// The caller holds the lock of the state.
    fn set_alarm(&self, state: &mut State) {
        let Some(due_ns) = state.service.next_due_ns() else {
            return;
        };
        let at_ns = state.clock.machine_ns(due_ns);
        if state.alarm_ns.is_none_or(|alarm_ns| at_ns < alarm_ns) {
            state.alarm_ns = Some(at_ns);
            self.timer.add(at_ns, at_ns);
        }
    }

    /// Handle an alarm: carry out the requests that are due, unless a newer alarm replaced this one.
    fn see_to_due(&self, shard: &dyn Front, alarm_ns: u64, hands: &mut Hands) {
        let mut completions: Vec<Completion> = Vec::new();
        let mut due = Vec::new();
        {
            let mut state = self.state.lock();
            if state.alarm_ns != Some(alarm_ns) {
                return;
            }
            state.alarm_ns = None;
            let model_ns = state.clock.model_ns(now_ns());
            state.service.advance(model_ns, &mut completions);
            for completion in completions {
                let ticket = completion.ticket as usize;
                let (work, since_ns) = state.in_flight[ticket]
                    .take()
                    .expect("a completion is of a request in flight");
                state.free.push(ticket);
                let at_ns = state.clock.machine_ns(completion.at_ns);
                due.push((work, since_ns, at_ns, completion.failed_at));
            }
            self.set_alarm(&mut state);
        }
        let times: Vec<u64> = due.iter().map(|(_, _, at_ns, _)| *at_ns).collect();
        for (mut work, since_ns, at_ns, failed_at) in due {
            let result = match failed_at {
                Some(_) => Err(errno::EIO),
                None => carry_out(&mut work, |job, bytes| self.memory.perform(job, bytes)),
            };
            hands.done.push(work.done(result, since_ns, at_ns));
        }
        if !times.is_empty() {
            shard.finish(hands);
            self.timer.record_lateness(times);
        }
    }
}

impl Device for Model {
    fn access(&self) -> &'static str {
        "model"
    }

    fn submit(&self, work: &mut Vec<Work>, done: &mut Vec<Done>) {
        let mut state = self.state.lock();
        for work in work.drain(..) {
            if work.pending.is_orphaned() {
                done.push(work.failed(errno::ESHUTDOWN, now_ns()));
                continue;
            }
            let job = work.pending.job;
            let ticket = state.free.pop().unwrap_or_else(|| {
                state.in_flight.push(None);
                state.in_flight.len() - 1
            });
            let request = Request {
                ticket: ticket as u64,
                io: io_of(&job),
                fua: job.fua,
                on_read_error: OnReadError::Retry,
            };
            let since_ns = now_ns();
            let model_ns = state.clock.model_ns(since_ns);
            state.in_flight[ticket] = Some((work, since_ns));
            state.service.submit(&request, model_ns);
        }
        self.set_alarm(&mut state);
    }

    fn lateness(&self) -> Option<Value> {
        Some(self.timer.lateness())
    }

    fn start(self: Arc<Self>, shard: &Arc<dyn Front>) {
        spawn(shard, move |shard| {
            let mut hands = Hands::default();
            loop {
                let alarm_ns = self.timer.next();
                self.see_to_due(&*shard, alarm_ns, &mut hands);
            }
        });
    }
}

fn io_of(job: &Job) -> Io {
    Io {
        kind: match job.kind {
            Kind::Read => IoKind::Read,
            Kind::Write => IoKind::Write,
            Kind::Flush => IoKind::Flush,
            Kind::Trim => IoKind::Trim,
            Kind::Zero { .. } => IoKind::WriteZeroes,
        },
        offset: job.offset,
        length: u64::from(job.length),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use nbd::proto::{cmd, Request as Asked};
    use nbdserver::{Connection, Style};
    use racksim::Timing;

    use super::*;

    const BYTES: u64 = 1 << 20;

    #[test]
    fn what_a_client_that_is_gone_had_waiting_takes_no_time_of_the_drive() {
        let memory = backing::Memory::new(BYTES, false).unwrap();
        let service = Timing::Ideal {}.start(BYTES, 512, 1);
        let model = Model::new(service, 0, Backing::Memory(memory));
        let (ours, _) = UnixStream::pair().unwrap();
        let connection = Arc::new(Connection::new(ours.into(), Style::Simple, Arc::default()));
        let work = || {
            let asked = Asked {
                flags: 0,
                command: cmd::READ,
                cookie: 0,
                offset: 0,
                length: 512,
            };
            let job = Job {
                tenant: 0,
                kind: Kind::Read,
                offset: 0,
                length: 512,
                fua: false,
            };
            let pending = connection.enter(&asked).defer(job, vec![], 0);
            Work { id: None, pending }
        };
        let mut done = Vec::new();
        model.submit(&mut vec![work()], &mut done);
        connection.close();
        model.submit(&mut vec![work(), work()], &mut done);
        assert_eq!(model.state.lock().in_flight.len(), 1);
        let results: Vec<_> = done.iter().map(|done| done.result).collect();
        assert_eq!(results, [Err(errno::ESHUTDOWN); 2]);
    }
}
