//! The rack: switch, cabling, power and links, driven by commands and by time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crate::link::{schedule, Link, Phy};
use crate::record::Log;
use crate::topology::Plugged;
use crate::{Command, Export, Layout, Place, Port, PortMap, Record, Refusal, Stack, What};

#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) name: Arc<str>,
    pub(crate) stack: Stack,
    pub(crate) on: bool,
}

#[derive(Debug)]
pub(crate) struct Hba {
    pub(crate) server: usize,
    pub(crate) name: Arc<str>,
}

#[derive(Debug)]
pub(crate) struct Drive {
    pub(crate) id: Arc<str>,
    pub(crate) place: Place,
    pub(crate) on_since_ns: Option<u64>,
    pub(crate) on_before_ns: u64,
    pub(crate) power_cycles: u64,
    pub(crate) phy_resets: u64,
}

/// One switch port: what is plugged in, and whether the signal is dropped.
#[derive(Debug)]
pub(crate) struct SwitchPort {
    pub(crate) plugged: Plugged,
    pub(crate) dropped: bool,
    /// Times at which the signal is lost (true) and restored (false).
    pub(crate) schedule: VecDeque<(u64, bool)>,
    pub(crate) drops: u64,
}

/// The rack as a state machine. Every method that takes time takes it as monotonic nanoseconds that never go back.
#[derive(Debug)]
pub struct Rack {
    pub(crate) seed: u64,
    pub(crate) servers: Vec<Server>,
    pub(crate) hbas: Vec<Hba>,
    pub(crate) drives: Vec<Drive>,
    /// For each expander, its drives by slot.
    pub(crate) expanders: Vec<BTreeMap<u16, usize>>,
    pub(crate) exports: Vec<Export>,
    /// By port number; port 0 does not exist.
    pub(crate) switch_ports: Vec<SwitchPort>,
    /// The cabling of the layout, whatever is plugged in now.
    pub(crate) home: Vec<Plugged>,
    pub(crate) switch_on: bool,
    pub(crate) map: PortMap,
    pub(crate) saved: PortMap,
    pub(crate) generation: u64,
    pub(crate) stuck: BTreeSet<Port>,
    /// Ports whose servers expect the next change of their circuit.
    pub(crate) announced: BTreeSet<Port>,
    /// Factor by which links of a port train slower.
    pub(crate) training: BTreeMap<Port, f64>,
    /// Keyed by the lower port.
    pub(crate) links: BTreeMap<Port, Link>,
}

impl Rack {
    /// A rack powered on at `now_ns`, and the records of that. The switch comes up with the saved map, generation 1.
    #[must_use]
    pub fn new(layout: Layout, now_ns: u64) -> (Self, Vec<Record>) {
        let switch_port = || SwitchPort {
            plugged: Plugged::Empty,
            dropped: false,
            schedule: VecDeque::new(),
            drops: 0,
        };
        let mut rack = Self {
            seed: layout.seed,
            servers: Vec::new(),
            hbas: Vec::new(),
            drives: Vec::new(),
            expanders: vec![BTreeMap::new(); layout.expanders.len()],
            exports: Vec::new(),
            switch_ports: (0..=layout.ports).map(|_| switch_port()).collect(),
            home: Vec::new(),
            switch_on: false,
            map: PortMap::default(),
            saved: layout.saved,
            generation: 0,
            stuck: BTreeSet::new(),
            announced: BTreeSet::new(),
            training: BTreeMap::new(),
            links: BTreeMap::new(),
        };
        for (index, server) in layout.servers.into_iter().enumerate() {
            for (name, port) in server.ports {
                rack.switch_ports[usize::from(port)].plugged = Plugged::Hba(rack.hbas.len());
                rack.hbas.push(Hba {
                    server: index,
                    name,
                });
            }
            rack.servers.push(Server {
                name: server.name,
                stack: server.stack,
                on: true,
            });
        }
        for (index, expander) in layout.expanders.iter().enumerate() {
            rack.switch_ports[usize::from(expander.port)].plugged = Plugged::Expander(index);
        }
        for (index, drive) in layout.drives.into_iter().enumerate() {
            match drive.place {
                Place::Port(port) => {
                    rack.switch_ports[usize::from(port)].plugged = Plugged::Drive(index)
                }
                Place::Slot { expander, slot } => {
                    rack.expanders[expander].insert(slot, index);
                }
                Place::Shelf => {}
            }
            rack.drives.push(Drive {
                id: drive.id,
                place: drive.place,
                on_since_ns: Some(now_ns),
                on_before_ns: 0,
                power_cycles: 1,
                phy_resets: 0,
            });
        }
        rack.home = rack
            .switch_ports
            .iter()
            .map(|switch_port| switch_port.plugged)
            .collect();
        let slots: BTreeSet<u16> = rack
            .expanders
            .iter()
            .flat_map(|slots| slots.keys().copied())
            .collect();
        for hba in 0..rack.hbas.len() {
            rack.exports.push(Export::Hba { hba, slot: None });
            rack.exports.extend(slots.iter().map(|&slot| Export::Hba {
                hba,
                slot: Some(slot),
            }));
        }
        rack.exports
            .extend((0..rack.drives.len()).map(Export::Drive));
        let mut log = Log::at(now_ns);
        rack.power_switch(true, &mut log);
        (rack, log.records)
    }

    /// The generation of the live map.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The live map.
    #[must_use]
    pub fn map(&self) -> &PortMap {
        &self.map
    }

    /// The power-on map.
    #[must_use]
    pub fn saved(&self) -> &PortMap {
        &self.saved
    }

    /// The switch's number of ports.
    #[must_use]
    pub fn ports(&self) -> Port {
        (self.switch_ports.len() - 1) as Port
    }

    /// Every export. The order never changes; other methods name exports by their index.
    #[must_use]
    pub fn exports(&self) -> &[Export] {
        &self.exports
    }

    /// The name of an export: `SERVER.PORT`, `SERVER.PORT.sN` or `drive.ID`.
    #[must_use]
    pub fn export_name(&self, export: usize) -> String {
        match self.exports[export] {
            Export::Hba { hba, slot } => {
                let Hba { server, name } = &self.hbas[hba];
                let slot = slot.map(|slot| format!(".s{slot}")).unwrap_or_default();
                format!("{}.{name}{slot}", self.servers[*server].name)
            }
            Export::Drive(drive) => format!("drive.{}", self.drives[drive].id),
        }
    }

    /// The index of the drive that an export currently leads to.
    #[must_use]
    pub fn drive_at(&self, export: usize) -> Option<usize> {
        let (hba, slot) = match self.exports[export] {
            Export::Drive(drive) => return self.drives[drive].on_since_ns.map(|_| drive),
            Export::Hba { hba, slot } => (hba, slot),
        };
        let link = self.link(self.port_of(Plugged::Hba(hba))?)?;
        let wanted = |drive: usize| match (self.drives[drive].place, slot) {
            (Place::Slot { slot: 0, .. }, None) | (Place::Port(_), None) => true,
            (Place::Slot { slot: of_drive, .. }, Some(slot)) => of_drive == slot,
            _ => false,
        };
        link.online.iter().copied().find(|&drive| wanted(drive))
    }

    /// Whether any server has the drive online.
    #[must_use]
    pub fn is_online(&self, drive: usize) -> bool {
        self.links.values().any(|link| link.online.contains(&drive))
    }

    /// `UP`, `DOWN` or `TRAIN`: what the switch sees on a port.
    pub fn state(&self, port: Port) -> Result<&'static str, Refusal> {
        self.check_ports([port])?;
        Ok(match self.link(port).map(|link| link.phy) {
            None | Some(Phy::Down) => "DOWN",
            Some(Phy::Train { .. }) => "TRAIN",
            Some(Phy::Up) => "UP",
        })
    }

    /// Number of times a port's PHY went down since the start.
    pub fn drops(&self, port: Port) -> Result<u64, Refusal> {
        self.check_ports([port])?;
        Ok(self.switch_ports[usize::from(port)].drops)
    }

    /// Power cycles, nanoseconds with power, and PHY resets of a drive, by its index.
    #[must_use]
    pub fn drive_life(&self, drive: usize, now_ns: u64) -> (u64, u64, u64) {
        let drive = &self.drives[drive];
        let on_ns = drive.on_before_ns + drive.on_since_ns.map_or(0, |since| now_ns - since);
        (drive.power_cycles, on_ns, drive.phy_resets)
    }

    /// The exports whose drive a command may change, so that I/O there can be stopped before it is executed.
    /// Ports whose circuit does not change are not included.
    pub fn touched(&self, command: &Command) -> Result<Vec<usize>, Refusal> {
        let ports = match command {
            Command::Map { .. } | Command::Open { .. } => {
                self.map.disturbed(&self.target(command)?)
            }
            Command::Drop { ports, .. } => {
                self.check_ports(ports.iter().copied())?;
                self.with_peers(ports.iter().copied())
            }
            Command::Miswire { ports } => {
                self.check_ports(*ports)?;
                self.with_peers(*ports)
            }
            Command::Power { target, .. } => return self.touched_by_power(target),
            Command::Stick { port, .. } => {
                self.check_ports([*port])?;
                BTreeSet::new()
            }
            Command::Announce { ports } | Command::Training { ports, .. } => {
                self.check_ports(ports.iter().copied())?;
                BTreeSet::new()
            }
            Command::Save if !self.switch_on => return Err(Refusal::SwitchOff),
            Command::Save => BTreeSet::new(),
        };
        Ok(self.exports_at(&ports))
    }

    /// Execute a command at `now_ns`; returns the records of what happened.
    pub fn execute(&mut self, command: &Command, now_ns: u64) -> Result<Vec<Record>, Refusal> {
        self.touched(command)?;
        let mut log = Log::at(now_ns);
        match command {
            Command::Map { full, .. } => self.change_map(self.target(command)?, *full, &mut log),
            Command::Open { ports, .. } => {
                self.change_map(self.target(command)?, ports.is_none(), &mut log)
            }
            Command::Drop {
                ports,
                down_ms,
                up_ms,
                count,
            } => {
                let (ports, down_ms, up_ms, count) = (ports.clone(), *down_ms, *up_ms, *count);
                for &port in &ports {
                    self.switch_ports[usize::from(port)].schedule =
                        schedule(now_ns, down_ms, up_ms, count);
                }
                log.say(What::Dropped {
                    ports: ports.clone(),
                    down_ms,
                    up_ms,
                    count,
                });
                for port in ports {
                    self.follow_schedule(port, now_ns, &mut log);
                }
            }
            Command::Miswire { ports: [a, b] } => {
                log.say(What::Miswired { ports: [*a, *b] });
                self.miswire(*a, *b, &mut log);
            }
            Command::Power { target, on } => self.power(target, *on, &mut log)?,
            Command::Stick { port, stuck } => {
                if *stuck {
                    self.stuck.insert(*port);
                } else {
                    self.stuck.remove(port);
                }
                log.say(What::Stuck {
                    port: *port,
                    stuck: *stuck,
                });
            }
            Command::Save => {
                self.saved = self.map.clone();
                log.say(What::Saved {
                    pairs: self.saved.pairs(),
                });
            }
            Command::Training { ports, factor } => {
                self.slow_training(ports, *factor);
                log.say(What::Training {
                    ports: ports.clone(),
                    factor: *factor,
                });
            }
            Command::Announce { ports } => {
                self.announced.extend(ports);
                log.say(What::Announce {
                    ports: ports.clone(),
                });
            }
        }
        Ok(log.records)
    }
}
