//! Commands to the rack, and the reasons to refuse one.

use std::fmt;

use crate::{MapError, Port};

/// A command to the rack.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// Connect these pairs; with `full`, disconnect all others.
    Map {
        /// Port pairs.
        pairs: Vec<(Port, Port)>,
        /// Replace the whole map.
        full: bool,
        /// Only if the live map has this generation.
        generation: Option<u64>,
    },
    /// Unmap ports, or all where `None`.
    Open {
        /// The ports.
        ports: Option<Vec<Port>>,
        /// Only if the live map has this generation.
        generation: Option<u64>,
    },
    /// Remove the signal of ports, `count` times. This replaces an earlier drop of the same port.
    Drop {
        /// The ports.
        ports: Vec<Port>,
        /// Duration without signal, per repetition.
        down_ms: f64,
        /// Duration with signal between repetitions.
        up_ms: f64,
        /// Repetitions.
        count: u32,
    },
    /// Switch power.
    Power {
        /// The component.
        target: PowerTarget,
        /// On or off.
        on: bool,
    },
    /// Make a port ignore map changes, or follow them again.
    Stick {
        /// The port.
        port: Port,
        /// Whether it ignores them.
        stuck: bool,
    },
    /// Swap the cables of two ports.
    Miswire {
        /// The ports.
        ports: [Port; 2],
    },
    /// Have links of ports train and come online `factor` times slower from their next training on.
    Training {
        /// The ports.
        ports: Vec<Port>,
        /// 1 or more; 1 ends it.
        factor: f64,
    },
    /// Save the live map as the power-on map.
    Save,
    /// Announce to the servers that ports are about to be remapped.
    Announce {
        /// The ports.
        ports: Vec<Port>,
    },
}

impl Command {
    /// Whether the links it takes down are lost to a map change or a PHY drop, not to a cable or a power cut.
    #[must_use]
    pub fn loses_links(&self) -> bool {
        matches!(
            self,
            Self::Map { .. } | Self::Open { .. } | Self::Drop { .. }
        )
    }
}

/// A component with its own power supply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PowerTarget {
    /// The switch.
    Switch,
    /// The server of this name.
    Server(String),
    /// The drive of this identity.
    Drive(String),
}

impl fmt::Display for PowerTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Switch => f.write_str("switch"),
            Self::Server(name) => write!(f, "server:{name}"),
            Self::Drive(id) => write!(f, "drive:{id}"),
        }
    }
}

/// The reason why a command was not executed. Nothing changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The switch has no such port.
    #[error("the switch has no port {0}")]
    UnknownPort(Port),
    /// The rack has no such server.
    #[error("the rack has no server {0}")]
    UnknownServer(String),
    /// The rack has no such drive.
    #[error("the rack has no drive {0}")]
    UnknownDrive(String),
    /// The pairs do not form a port map.
    #[error("{0}")]
    BadMap(MapError),
    /// The live map changed under the caller.
    #[error("the live map is generation {live}, not {expected}: read it again")]
    StaleGeneration {
        /// The generation the caller expected.
        expected: u64,
        /// The generation of the live map.
        live: u64,
    },
    /// The switch has no power.
    #[error("the switch has no power")]
    SwitchOff,
}
