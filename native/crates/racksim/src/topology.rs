//! The topology: servers, expanders and drives, and their switch ports.

use std::sync::Arc;

use crate::{Port, PortMap, Stack};

/// A server and its ports.
#[derive(Debug, Clone)]
pub struct ServerLayout {
    /// Its name.
    pub name: Arc<str>,
    /// Its driver stack.
    pub stack: Stack,
    /// Its ports by name, and the switch port each is plugged into.
    pub ports: Vec<(Arc<str>, Port)>,
}

/// A SAS expander: one uplink, drives in slots.
#[derive(Debug, Clone)]
pub struct ExpanderLayout {
    /// Its name.
    pub name: Arc<str>,
    /// The switch port of its uplink.
    pub port: Port,
}

/// The place of a drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// On a switch port.
    Port(Port),
    /// In a slot of the expander with this index.
    Slot {
        /// Index into [`Layout::expanders`].
        expander: usize,
        /// Slot number.
        slot: u16,
    },
    /// On the shelf.
    Shelf,
}

/// A drive and its place.
#[derive(Debug, Clone)]
pub struct DriveLayout {
    /// Its identity in the lab.
    pub id: Arc<str>,
    /// Its place.
    pub place: Place,
}

/// The layout of a rack. Names are unique and no port is used twice.
#[derive(Debug, Clone)]
pub struct Layout {
    /// Seed of all randomness.
    pub seed: u64,
    /// Ports of the switch, counted from 1.
    pub ports: Port,
    /// Servers.
    pub servers: Vec<ServerLayout>,
    /// Expanders.
    pub expanders: Vec<ExpanderLayout>,
    /// Drives.
    pub drives: Vec<DriveLayout>,
    /// The map the switch powers on with.
    pub saved: PortMap,
}

/// An export: an endpoint at which initiators send I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Export {
    /// A server port; with a slot, that slot of the expander mapped there.
    Hba {
        /// Index of the server port, in the order of the layout.
        hba: usize,
        /// Slot of the expander.
        slot: Option<u16>,
    },
    /// A drive, reached without the fabric.
    Drive(usize),
}

/// The device plugged into a switch port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plugged {
    Empty,
    Hba(usize),
    Expander(usize),
    Drive(usize),
}
