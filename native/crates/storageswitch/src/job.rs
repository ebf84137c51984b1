//! Requests of tenants in the switch's terms.

use schedulers::{Operation, RequestId};

/// A request for the drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Job {
    /// The tenant, by its number among those of the drive.
    pub tenant: usize,
    pub kind: Kind,
    /// The offset on the drive.
    pub offset: u64,
    pub length: u32,
    /// On stable media before it completes.
    pub fua: bool,
}

/// The command of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Read,
    Write,
    Flush,
    Trim,
    /// Write zeroes, into a hole where that is allowed.
    Zero {
        may_punch: bool,
    },
}

impl Job {
    /// The operation that a scheduler sees; `None` of what passes it by.
    pub fn operation(&self) -> Option<Operation> {
        match self.kind {
            Kind::Read => Some(Operation::Read),
            Kind::Write => Some(Operation::Write),
            Kind::Flush | Kind::Trim | Kind::Zero { .. } => None,
        }
    }
}

/// A request that waits in the switch.
pub type Pending = nbdserver::Pending<Job>;

/// A request on its way to the drive: with its number where a scheduler sent it.
pub struct Work {
    pub id: Option<RequestId>,
    pub pending: Pending,
}

/// A request that the drive is done with.
pub struct Done {
    pub work: Work,
    pub result: Result<(), u32>,
    /// The time of its submission to the drive.
    pub since_ns: u64,
    /// The time of its completion at the drive.
    pub at_ns: u64,
}

impl Work {
    /// The completion of what was submitted to the drive at `since_ns`.
    pub fn done(self, result: Result<(), u32>, since_ns: u64, at_ns: u64) -> Done {
        Done {
            work: self,
            result,
            since_ns,
            at_ns,
        }
    }

    /// The failure of what never reached the drive.
    pub fn failed(self, code: u32, now_ns: u64) -> Done {
        self.done(Err(code), now_ns, now_ns)
    }
}
