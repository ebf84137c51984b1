//! The simulated rack as pure state machines: a circuit switch, servers, drives and their answers to requests,
//! and the record of all events.
//!
//! Time is an argument (monotonic nanoseconds); nothing here reads a clock, starts a thread or performs I/O, so
//! the same code runs behind NBD in real time and in virtual time. Randomness comes from a seed.

mod attach;
mod cabling;
mod command;
mod disturbance;
mod drive;
mod fault;
mod hdd;
mod ideal;
mod io;
mod link;
mod portmap;
mod queue;
mod rack;
mod record;
mod sanitize;
mod service;
mod ssd;
mod stack;
mod standing;
mod timing;
mod topology;
mod transitions;

pub use command::{Command, PowerTarget, Refusal};
pub use drive::{Counters, DriveState, Verdict};
pub use fault::{Access, Fault, FaultError, Persistence};
pub use hdd::{Hdd, HddParameters, SeekCurve, SmrParameters};
pub use io::{Io, Kind};
pub use portmap::{MapError, Port, PortMap};
pub use queue::Due;
pub use rack::Rack;
pub use record::{Attach, Record, What};
pub use sanitize::SanitizeMethod;
pub use service::{Completion, OnReadError, Request, Service, Ticket};
pub use ssd::{FlashWork, Ssd, SsdParameters};
pub use stack::{AttachTimes, Stack, StackError};
pub use standing::{FaultName, StandingFault};
pub use timing::Timing;
pub use topology::{DriveLayout, ExpanderLayout, Export, Layout, Place, ServerLayout};

/// Convert milliseconds, the unit of configuration and commands, to nanoseconds.
#[must_use]
pub fn ms_to_ns(ms: f64) -> u64 {
    (ms * 1e6).round() as u64
}
