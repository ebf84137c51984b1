//! A request in a box, and the costs of its steps.

use racksim::Io;
use schedulers::{Priority, RequestId};

use crate::hardware::{Hardware, Serve};
use crate::phases::Phases;

/// Something that happens to a request in the box, or on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// The command capsule has come.
    Received,
    /// A core takes it up.
    Noticed,
    /// The core is done with its submission.
    Submitted,
    /// The client begins to send the data of a write.
    Asked,
    /// The data of a write has come.
    Fetched,
    /// The data of a write has passed the path to its drive.
    Loaded,
    /// The drive has done it, and the data of a read is in memory.
    Landed,
    /// A core takes up the completion.
    Caught,
    /// The core is done with the completion.
    Finished,
    /// The response has come to the client.
    Answered,
}

/// A request in the box, or on its way.
#[derive(Debug, Clone, Copy)]
pub struct Flight {
    /// The number of its tenant.
    pub tenant: usize,
    /// The read or write.
    pub io: Io,
    /// The tag that the scheduler is told.
    pub priority: Priority,
    /// The scheduler's name of it, once it is dispatched.
    pub id: Option<RequestId>,
    /// Whether the drive reported an error.
    pub has_failed: bool,
    /// Time from dispatch to the drive's completion.
    pub device_ns: u64,
    /// The credit that its response carries.
    pub credit: Option<u32>,
    /// The ends of its phases.
    pub phases: Phases,
}

/// Hardware in the units of the simulation.
#[derive(Debug, Clone, Copy)]
pub struct Costs {
    /// The assignment of requests to cores.
    pub serve: Serve,
    /// Microseconds of a core for a submission: the base, and those for each KiB.
    pub submission: [f64; 2],
    /// The same for a completion.
    pub completion: [f64; 2],
    /// Time until a core takes notice.
    pub notice_ns: u64,
    /// Time from one end of the link to the other.
    pub propagation_ns: u64,
    /// Size of a command capsule.
    pub command_bytes: u64,
    /// Size of a response capsule.
    pub completion_bytes: u64,
    /// The largest write that comes in its capsule.
    pub inline_bytes: u64,
}

impl Costs {
    /// The costs of checked hardware.
    pub fn new(hardware: &Hardware) -> Self {
        let ns = |us: f64| (us * 1e3).round() as u64;
        let Hardware { cores, link, .. } = hardware;
        Self {
            serve: cores.serve,
            submission: [cores.submission_us, cores.submission_us_per_kib],
            completion: [cores.completion_us, cores.completion_us_per_kib],
            notice_ns: ns(cores.notice_us),
            propagation_ns: ns(link.propagation_us),
            command_bytes: link.command_bytes,
            completion_bytes: link.completion_bytes,
            inline_bytes: link.inline_kib * 1024,
        }
    }
}

/// The time of a core for a request of `bytes`: a base and a share for each KiB.
pub fn work_ns([base_us, us_per_kib]: [f64; 2], bytes: u64) -> u64 {
    ((base_us + us_per_kib * bytes as f64 / 1024.0) * 1e3).round() as u64
}
