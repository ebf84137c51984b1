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
        /// The kind of request.
        kind: Kind,
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

impl What {
    /// The names of all events, as records have them.
    pub const NAMES: [&str; 20] = [
        "executed",
        "phy_down",
        "phy_train",
        "phy_up",
        "online",
        "offline",
        "answered",
        "dropped",
        "power",
        "stuck",
        "miswired",
        "training",
        "saved",
        "announce",
        "fault",
        "fault_cleared",
        "crashed",
        "sanitized",
        "io_error",
        "held_timeout",
    ];

    /// The name of the event, as the record has it.
    pub const fn name(&self) -> &'static str {
        Self::NAMES[match self {
            Self::Executed { .. } => 0,
            Self::PhyDown(_) => 1,
            Self::PhyTrain(_) => 2,
            Self::PhyUp(_) => 3,
            Self::Online(_) => 4,
            Self::Offline(_) => 5,
            Self::Answered { .. } => 6,
            Self::Dropped { .. } => 7,
            Self::Power { .. } => 8,
            Self::Stuck { .. } => 9,
            Self::Miswired { .. } => 10,
            Self::Training { .. } => 11,
            Self::Saved { .. } => 12,
            Self::Announce { .. } => 13,
            Self::Fault { .. } => 14,
            Self::FaultCleared { .. } => 15,
            Self::Crashed { .. } => 16,
            Self::Sanitized { .. } => 17,
            Self::IoError { .. } => 18,
            Self::HeldTimeout { .. } => 19,
        }]
    }
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

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn every_event_is_called_what_its_record_says() {
        let (drive, port): (Arc<str>, Port) = ("d01".into(), 1);
        let attach = Attach {
            server: None,
            port: None,
            switch_port: port,
            drive: None,
            slot: None,
            generation: 1,
            due_ns: None,
        };
        let ports = vec![port];
        let (kind, offset, length) = (Kind::Read, 0, 1);
        let events = [
            What::Executed {
                generation: 2,
                changed: ports.clone(),
                full: false,
                due_ns: None,
            },
            What::PhyDown(attach.clone()),
            What::PhyTrain(attach.clone()),
            What::PhyUp(attach.clone()),
            What::Online(attach.clone()),
            What::Offline(attach.clone()),
            What::Answered {
                attach,
                kind,
                offset,
                length,
            },
            What::Dropped {
                ports: ports.clone(),
                down_ms: 1.0,
                up_ms: 1.0,
                count: 1,
            },
            What::Power {
                target: "switch".into(),
                on: true,
            },
            What::Stuck { port, stuck: true },
            What::Miswired {
                ports: [port, port],
            },
            What::Training {
                ports: ports.clone(),
                factor: 1.0,
            },
            What::Saved { pairs: Vec::new() },
            What::Announce { ports },
            What::Fault {
                drive: drive.clone(),
                fault_id: 1,
                key: None,
                fault: Fault::Dead {},
            },
            What::FaultCleared {
                drive: drive.clone(),
                fault_id: 1,
                key: None,
            },
            What::Crashed {
                drive: drive.clone(),
                fault_id: 1,
                due_ns: None,
            },
            What::Sanitized {
                drive: drive.clone(),
                method: SanitizeMethod::BlockErase,
            },
            What::IoError {
                drive: drive.clone(),
                kind,
                lba: 0,
                errno: 5,
                due_ns: None,
            },
            What::HeldTimeout {
                export: drive,
                kind,
                offset,
                length,
                due_ns: 0,
            },
        ];
        let said = events
            .each_ref()
            .map(|what| serde_json::to_value(what).unwrap()["event"].clone());
        assert_eq!(said, What::NAMES.map(Value::from));
        assert_eq!(events.each_ref().map(What::name), What::NAMES);
    }
}
