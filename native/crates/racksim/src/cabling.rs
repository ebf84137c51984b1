//! Cabling: what is plugged into which port, and which links depend on which power.

use std::collections::BTreeSet;

use crate::link::Link;
use crate::topology::Plugged;
use crate::{Export, Place, Port, PowerTarget, Rack, Refusal};

impl Rack {
    pub(crate) fn check_ports(&self, ports: impl IntoIterator<Item = Port>) -> Result<(), Refusal> {
        match ports
            .into_iter()
            .find(|port| !(1..=self.ports()).contains(port))
        {
            Some(port) => Err(Refusal::UnknownPort(port)),
            None => Ok(()),
        }
    }

    pub(crate) fn plugged(&self, port: Port) -> Plugged {
        self.switch_ports[usize::from(port)].plugged
    }

    pub(crate) fn with_peers(&self, ports: impl IntoIterator<Item = Port>) -> BTreeSet<Port> {
        let ports: Vec<Port> = ports.into_iter().collect();
        ports
            .iter()
            .copied()
            .chain(ports.iter().filter_map(|&port| self.map.peer(port)))
            .collect()
    }

    /// The exports of the servers plugged into these ports.
    pub(crate) fn exports_at(&self, ports: &BTreeSet<Port>) -> Vec<usize> {
        let hbas: BTreeSet<usize> = ports
            .iter()
            .filter_map(|&port| match self.plugged(port) {
                Plugged::Hba(hba) => Some(hba),
                _ => None,
            })
            .collect();
        let sits =
            |export: &Export| matches!(export, Export::Hba { hba, .. } if hbas.contains(hba));
        (0..self.exports.len())
            .filter(|&export| sits(&self.exports[export]))
            .collect()
    }

    pub(crate) fn touched_by_power(&self, target: &PowerTarget) -> Result<Vec<usize>, Refusal> {
        let drive = match target {
            PowerTarget::Switch => return Ok((0..self.exports.len()).collect()),
            PowerTarget::Server(_) => None,
            PowerTarget::Drive(id) => Some(self.drive(id)?),
        };
        let mut exports = self.exports_at(&self.with_peers(self.fed_ports(target)?));
        exports.extend((0..self.exports.len()).filter(|&export| matches!((self.exports[export], drive), (Export::Drive(of), Some(drive)) if of == drive)));
        Ok(exports)
    }

    /// The switch ports whose link depends on this power.
    pub(crate) fn fed_ports(&self, target: &PowerTarget) -> Result<Vec<Port>, Refusal> {
        Ok(match target {
            PowerTarget::Switch => (1..=self.ports()).collect(),
            PowerTarget::Server(name) => {
                let server = self.server(name)?;
                let is_fed =
                    |plug| matches!(plug, Plugged::Hba(hba) if self.hbas[hba].server == server);
                (1..=self.ports())
                    .filter(|&port| is_fed(self.plugged(port)))
                    .collect()
            }
            PowerTarget::Drive(id) => {
                let drive = self.drive(id)?;
                let plug = match self.drives[drive].place {
                    Place::Slot { expander, .. } => Plugged::Expander(expander),
                    _ => Plugged::Drive(drive),
                };
                self.port_of(plug).into_iter().collect()
            }
        })
    }

    pub(crate) fn server(&self, name: &str) -> Result<usize, Refusal> {
        let found = self.servers.iter().position(|server| &*server.name == name);
        found.ok_or_else(|| Refusal::UnknownServer(name.to_owned()))
    }

    pub(crate) fn drive(&self, id: &str) -> Result<usize, Refusal> {
        let found = self.drives.iter().position(|drive| &*drive.id == id);
        found.ok_or_else(|| Refusal::UnknownDrive(id.to_owned()))
    }

    pub(crate) fn port_of(&self, plugged: Plugged) -> Option<Port> {
        (1..=self.ports()).find(|&port| self.plugged(port) == plugged)
    }

    pub(crate) fn link(&self, port: Port) -> Option<&Link> {
        let peer = self.map.peer(port)?;
        self.links.get(&port.min(peer))
    }

    pub(crate) fn has_server(&self, ends: [Port; 2]) -> bool {
        ends.iter()
            .any(|&port| matches!(self.plugged(port), Plugged::Hba(_)))
    }

    pub(crate) fn has_signal(&self, ends: [Port; 2]) -> bool {
        let is_live = |port: Port| {
            let switch_port = &self.switch_ports[usize::from(port)];
            let has_power = match switch_port.plugged {
                Plugged::Empty => false,
                Plugged::Hba(hba) => self.servers[self.hbas[hba].server].on,
                Plugged::Expander(_) => true,
                Plugged::Drive(drive) => self.drives[drive].on_since_ns.is_some(),
            };
            has_power && !switch_port.dropped
        };
        self.switch_on && ends.into_iter().all(is_live)
    }

    /// The drives with power that a server at one end sees at the other.
    pub(crate) fn drives_between(&self, ends: [Port; 2]) -> Vec<usize> {
        if !self.has_server(ends) {
            return Vec::new();
        }
        let plugs = ends.map(|port| self.plugged(port));
        let mut drives: Vec<usize> = plugs
            .into_iter()
            .flat_map(|plug| match plug {
                Plugged::Drive(drive) => vec![drive],
                Plugged::Expander(expander) => self.expanders[expander].values().copied().collect(),
                Plugged::Empty | Plugged::Hba(_) => Vec::new(),
            })
            .collect();
        drives.retain(|&drive| self.drives[drive].on_since_ns.is_some());
        drives
    }
}
