//! Who is plugged in where, and who depends on whom.

use std::collections::BTreeSet;

use crate::link::Link;
use crate::topology::Plug;
use crate::{Place, Port, PowerTarget, Rack, Refusal, Seat};

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

    pub(crate) fn with_peers(&self, ports: impl IntoIterator<Item = Port>) -> BTreeSet<Port> {
        let ports: Vec<Port> = ports.into_iter().collect();
        ports
            .iter()
            .copied()
            .chain(ports.iter().filter_map(|&port| self.map.peer(port)))
            .collect()
    }

    /// The seats of the servers plugged into these ports.
    pub(crate) fn seats_at(&self, ports: &BTreeSet<Port>) -> Vec<usize> {
        let hbas: BTreeSet<usize> = ports
            .iter()
            .filter_map(|&port| match self.jacks[usize::from(port)].plug {
                Plug::Hba(hba) => Some(hba),
                _ => None,
            })
            .collect();
        let sits = |seat: &Seat| matches!(seat, Seat::Hba { hba, .. } if hbas.contains(hba));
        (0..self.seats.len())
            .filter(|&seat| sits(&self.seats[seat]))
            .collect()
    }

    pub(crate) fn touched_by_power(&self, target: &PowerTarget) -> Result<Vec<usize>, Refusal> {
        let drive = match target {
            PowerTarget::Switch => return Ok((0..self.seats.len()).collect()),
            PowerTarget::Server(_) => None,
            PowerTarget::Drive(id) => Some(self.drive(id)?),
        };
        let mut seats = self.seats_at(&self.with_peers(self.fed_ports(target)?));
        seats.extend((0..self.seats.len()).filter(|&seat| matches!((self.seats[seat], drive), (Seat::Drive(of), Some(drive)) if of == drive)));
        Ok(seats)
    }

    /// The switch ports whose link depends on this power.
    pub(crate) fn fed_ports(&self, target: &PowerTarget) -> Result<Vec<Port>, Refusal> {
        Ok(match target {
            PowerTarget::Switch => (1..=self.ports()).collect(),
            PowerTarget::Server(name) => {
                let server = self.server(name)?;
                let is_fed =
                    |plug| matches!(plug, Plug::Hba(hba) if self.hbas[hba].server == server);
                (1..=self.ports())
                    .filter(|&port| is_fed(self.jacks[usize::from(port)].plug))
                    .collect()
            }
            PowerTarget::Drive(id) => {
                let drive = self.drive(id)?;
                let plug = match self.drives[drive].place {
                    Place::Slot { expander, .. } => Plug::Expander(expander),
                    _ => Plug::Drive(drive),
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

    pub(crate) fn port_of(&self, plug: Plug) -> Option<Port> {
        (1..=self.ports()).find(|&port| self.jacks[usize::from(port)].plug == plug)
    }

    pub(crate) fn link(&self, port: Port) -> Option<&Link> {
        let peer = self.map.peer(port)?;
        self.links.get(&port.min(peer))
    }

    pub(crate) fn has_server(&self, ends: [Port; 2]) -> bool {
        ends.iter()
            .any(|&port| matches!(self.jacks[usize::from(port)].plug, Plug::Hba(_)))
    }

    pub(crate) fn has_signal(&self, ends: [Port; 2]) -> bool {
        let is_live = |port: Port| {
            let jack = &self.jacks[usize::from(port)];
            let has_power = match jack.plug {
                Plug::Empty => false,
                Plug::Hba(hba) => self.servers[self.hbas[hba].server].on,
                Plug::Expander(_) => true,
                Plug::Drive(drive) => self.drives[drive].on_since_ns.is_some(),
            };
            has_power && !jack.dropped
        };
        self.switch_on && ends.into_iter().all(is_live)
    }

    /// The drives with power that a server at one end sees at the other.
    pub(crate) fn drives_between(&self, ends: [Port; 2]) -> Vec<usize> {
        if !self.has_server(ends) {
            return Vec::new();
        }
        let plugs = ends.map(|port| self.jacks[usize::from(port)].plug);
        let mut drives: Vec<usize> = plugs
            .into_iter()
            .flat_map(|plug| match plug {
                Plug::Drive(drive) => vec![drive],
                Plug::Expander(expander) => self.expanders[expander].values().copied().collect(),
                Plug::Empty | Plug::Hba(_) => Vec::new(),
            })
            .collect();
        drives.retain(|&drive| self.drives[drive].on_since_ns.is_some());
        drives
    }
}
