//! Records of the truth log.

use std::sync::Arc;

use serde::Serialize;

use crate::{Fault, Kind, Port, SanitizeMethod};

/// One line of the truth log.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Record {
    /// The time of the event, in monotonic nanoseconds.
    pub t_ns: u64,
    /// The event.
    #[serde(flatten)]
    pub what: What,
}

/// The kinds of record.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum What {
    /// A map change.
    Executed {
        /// The new generation.
        generation: u64,
        /// The ports whose circuit changed.
        changed: Vec<Port>,
        /// Whether the whole map was replaced.
        full: bool,
        /// The time at which the switch's controller received the order, if known.
        due_ns: Option<u64>,
    },
    /// A port lost its PHY.
    PhyDown(Attach),
    /// A port's PHY began to train.
    PhyTrain(Attach),
    /// A port's PHY is up.
    PhyUp(Attach),
    /// A server has a drive online.
    Online(Attach),
    /// A server lost a drive that was online.
    Offline(Attach),
    /// The first request answered through an export since a drive came online there. It was due when it would have been
    /// answered had it been waiting when the drive came online; any further delay is the host machine's. It is not
    /// recorded if a fault of the drive delayed or failed the request.
    Answered {
        /// The circuit, and when the answer was due.
        #[serde(flatten)]
        attach: Attach,
        /// The kind of request.
        kind: Kind,
        /// First byte.
        offset: u64,
        /// Byte count.
        length: u64,
    },
    /// The signal was removed on request.
    Dropped {
        /// From these ports.
        ports: Vec<Port>,
        /// Duration without signal, per repetition.
        down_ms: f64,
        /// Duration with signal between repetitions.
        up_ms: f64,
        /// Repetitions.
        count: u32,
    },
    /// Power was switched.
    Power {
        /// `switch`, `server:NAME` or `drive:ID`.
        target: String,
        /// On or off.
        on: bool,
    },
    /// A port was made to ignore map changes, or to follow them again.
    Stuck {
        /// The port.
        port: Port,
        /// Whether it ignores them.
        stuck: bool,
    },
    /// The cables of two ports were swapped.
    Miswired {
        /// The two ports.
        ports: [Port; 2],
    },
    /// Links were made to train slower, or no longer.
    Training {
        /// The ports.
        ports: Vec<Port>,
        /// Their factor; 1 ends it.
        factor: f64,
    },
    /// The live map was saved as the power-on map.
    Saved {
        /// Its pairs.
        pairs: Vec<(Port, Port)>,
    },
    /// The controller announced a remap to the servers.
    Announce {
        /// The ports it named.
        ports: Vec<Port>,
    },
    /// A fault was put on a drive.
    Fault {
        /// The drive.
        drive: Arc<str>,
        /// Identity of the fault.
        fault_id: u64,
        /// The caller's key.
        key: Option<String>,
        /// The fault.
        fault: Fault,
    },
    /// A fault was taken away.
    FaultCleared {
        /// The drive.
        drive: Arc<str>,
        /// Identity of the fault.
        fault_id: u64,
        /// The caller's key.
        key: Option<String>,
    },
    /// A drive's firmware crashed: it hangs.
    Crashed {
        /// The drive.
        drive: Arc<str>,
        /// Identity of the fault that caused it.
        fault_id: u64,
        /// The time it was due, if known in advance.
        due_ns: Option<u64>,
    },
    /// A drive has erased itself.
    Sanitized {
        /// The drive.
        drive: Arc<str>,
        /// The method.
        method: SanitizeMethod,
    },
    /// A request failed on a drive.
    IoError {
        /// The drive.
        drive: Arc<str>,
        /// The failed sector.
        lba: u64,
        /// The error number sent to the client.
        errno: u32,
        /// The time at which the drive had finished, if its model takes time.
        due_ns: Option<u64>,
    },
    /// A held request was failed.
    HeldTimeout {
        /// The export it came through.
        export: Arc<str>,
        /// The kind of request.
        kind: Kind,
        /// First byte.
        offset: u64,
        /// Byte count.
        length: u64,
        /// The time it was due: the link time-out after its arrival.
        due_ns: u64,
    },
}

/// The circuit of a PHY or attach record, seen from one of its ports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Attach {
    /// The server on the circuit.
    pub server: Option<Arc<str>>,
    /// The name of the server's port.
    pub port: Option<Arc<str>>,
    /// The switch port the record is about: the server's, for `online` and `offline`.
    pub switch_port: Port,
    /// The drive on the circuit; null for the PHY of an expander.
    pub drive: Option<Arc<str>>,
    /// The drive's slot in the expander.
    pub slot: Option<u16>,
    /// The generation that made the circuit; for `phy_down` and `offline` of a map change, the change's.
    pub generation: u64,
    /// The time it was due, if known in advance.
    pub due_ns: Option<u64>,
}

/// The records of one call to the rack, all stamped with the call's time.
pub(crate) struct Log {
    pub now_ns: u64,
    pub records: Vec<Record>,
}

impl Log {
    pub fn at(now_ns: u64) -> Self {
        Self {
            now_ns,
            records: Vec::new(),
        }
    }

    pub fn say(&mut self, what: What) {
        self.records.push(Record {
            t_ns: self.now_ns,
            what,
        });
    }
}
