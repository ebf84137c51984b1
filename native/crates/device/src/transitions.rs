//! How the rack changes: maps, power and signals, and the links that follow them.

use std::collections::{BTreeSet, VecDeque};

use crate::link::{Link, Phy, Step};
use crate::record::Log;
use crate::stack::bare_times;
use crate::topology::Plug;
use crate::{
    ms_to_ns, Attach, Command, Place, Port, PortMap, PowerTarget, Rack, Record, Refusal, Seat, What,
};

/// Something that becomes due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Signal { port: Port },
    Link { low: Port, step: Step },
}

impl Rack {
    /// When something is due next.
    #[must_use]
    pub fn next_due_ns(&self) -> Option<u64> {
        self.next_due().map(|(at_ns, _)| at_ns)
    }

    /// The seats whose drive [`Rack::advance`] to `until_ns` may change.
    #[must_use]
    pub fn touched_until(&self, until_ns: u64) -> Vec<usize> {
        let ports =
            self.all_due()
                .filter(|&(at_ns, _)| at_ns <= until_ns)
                .map(|(_, due)| match due {
                    Due::Signal { port } => port,
                    Due::Link { low, .. } => low,
                });
        self.seats_at(&self.with_peers(ports))
    }

    /// Do everything that was due by `until_ns`. Records are stamped `now_ns`, which is not before `until_ns`, and
    /// say when they were due; what follows from a late step is not late again.
    pub fn advance(&mut self, until_ns: u64, now_ns: u64) -> Vec<Record> {
        let mut log = Log::at(now_ns);
        while let Some((at_ns, due)) = self.next_due().filter(|&(at_ns, _)| at_ns <= until_ns) {
            match due {
                Due::Signal { port } => self.follow_schedule(port, at_ns, &mut log),
                Due::Link { low, step } => self.step_link(low, step, at_ns, &mut log),
            }
        }
        log.records
    }

    fn next_due(&self) -> Option<(u64, Due)> {
        self.all_due().min()
    }

    fn all_due(&self) -> impl Iterator<Item = (u64, Due)> + '_ {
        let signals = (1..=self.ports()).filter_map(|port| {
            let (at_ns, _) = self.jacks[usize::from(port)].schedule.front()?;
            Some((*at_ns, Due::Signal { port }))
        });
        let links = self.links.iter().filter_map(|(&low, link)| {
            let (at_ns, step) = link.next()?;
            Some((at_ns, Due::Link { low, step }))
        });
        signals.chain(links)
    }

    /// The map that stands once a map command was executed, or why it may not be.
    pub(crate) fn target(&self, command: &Command) -> Result<PortMap, Refusal> {
        let (mut after, guard) = match command {
            Command::Map {
                pairs,
                full,
                generation,
            } => {
                self.check_ports(pairs.iter().flat_map(|&(a, b)| [a, b]))?;
                let staged = PortMap::of(pairs).map_err(Refusal::BadMap)?;
                let mut after = if *full {
                    PortMap::default()
                } else {
                    self.map.clone()
                };
                staged
                    .pairs()
                    .into_iter()
                    .for_each(|(a, b)| after.join(a, b));
                (after, generation)
            }
            Command::Open {
                ports: None,
                generation,
            } => (PortMap::default(), generation),
            Command::Open {
                ports: Some(ports),
                generation,
            } => {
                self.check_ports(ports.iter().copied())?;
                let mut after = self.map.clone();
                ports.iter().for_each(|&port| after.open(port));
                (after, generation)
            }
            _ => return Ok(self.map.clone()),
        };
        if !self.switch_on {
            return Err(Refusal::SwitchOff);
        }
        if let Some(expected) = guard.filter(|&expected| expected != self.generation) {
            return Err(Refusal::StaleGeneration {
                expected,
                live: self.generation,
            });
        }
        self.keep_stuck(&mut after);
        Ok(after)
    }

    /// A stuck port keeps the circuit it has, or stays open.
    fn keep_stuck(&self, after: &mut PortMap) {
        for &port in &self.stuck {
            match self.map.peer(port) {
                Some(peer) => after.join(port, peer),
                None => after.open(port),
            }
        }
    }

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
    fn fed_ports(&self, target: &PowerTarget) -> Result<Vec<Port>, Refusal> {
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

    fn server(&self, name: &str) -> Result<usize, Refusal> {
        let found = self.servers.iter().position(|server| &*server.name == name);
        found.ok_or_else(|| Refusal::UnknownServer(name.to_owned()))
    }

    fn drive(&self, id: &str) -> Result<usize, Refusal> {
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

    pub(crate) fn change_map(&mut self, after: PortMap, full: bool, log: &mut Log) {
        let changed = self.map.disturbed(&after);
        self.generation += 1;
        log.say(What::Executed {
            generation: self.generation,
            changed: changed.iter().copied().collect(),
            full,
        });
        for &port in &changed {
            self.unmake_link(port, Some(self.generation), log);
        }
        self.map = after;
        for &port in &changed {
            self.make_link(port, log);
        }
    }

    pub(crate) fn miswire(&mut self, a: Port, b: Port, log: &mut Log) {
        for port in [a, b] {
            self.unmake_link(port, None, log);
        }
        let plug = self.jacks[usize::from(a)].plug;
        self.jacks[usize::from(a)].plug = self.jacks[usize::from(b)].plug;
        self.jacks[usize::from(b)].plug = plug;
        for port in [a, b] {
            self.make_link(port, log);
        }
    }

    /// Whether the switch, a server or a drive has power.
    pub fn is_on(&self, target: &PowerTarget) -> Result<bool, Refusal> {
        Ok(match target {
            PowerTarget::Switch => self.switch_on,
            PowerTarget::Server(name) => self.servers[self.server(name)?].on,
            PowerTarget::Drive(id) => self.drives[self.drive(id)?].on_since_ns.is_some(),
        })
    }

    pub(crate) fn power(
        &mut self,
        target: &PowerTarget,
        on: bool,
        log: &mut Log,
    ) -> Result<(), Refusal> {
        let ports = self.fed_ports(target)?;
        let was = match target {
            PowerTarget::Switch => self.switch_on,
            PowerTarget::Server(name) => {
                let server = self.server(name)?;
                std::mem::replace(&mut self.servers[server].on, on)
            }
            PowerTarget::Drive(id) => {
                let drive = self.drive(id)?;
                self.drives[drive].switch_power(on, log.now_ns)
            }
        };
        if was == on {
            return Ok(());
        }
        let target_name = target.to_string();
        log.say(What::Power {
            target: target_name,
            on,
        });
        if *target == PowerTarget::Switch {
            self.power_switch(on, log);
            return Ok(());
        }
        for port in ports {
            self.refresh(port, log.now_ns, log);
            if let PowerTarget::Drive(id) = target {
                self.power_behind_expander(port, self.drive(id)?, on, log);
            }
        }
        Ok(())
    }

    /// Off: every link goes down, the map is kept to look at. On: the saved map is loaded, every link trains.
    pub(crate) fn power_switch(&mut self, on: bool, log: &mut Log) {
        self.switch_on = on;
        let ports: Vec<Port> = self.map.ports().collect();
        for port in ports {
            self.refresh(port, log.now_ns, log);
        }
        if on {
            let mut after = self.saved.clone();
            self.keep_stuck(&mut after);
            self.change_map(after, true, log);
        }
    }

    fn power_behind_expander(&mut self, port: Port, drive: usize, on: bool, log: &mut Log) {
        let Some(peer) = self.map.peer(port) else {
            return;
        };
        if !matches!(self.drives[drive].place, Place::Slot { .. }) || !self.has_server([port, peer])
        {
            return;
        }
        let Some(link) = self.links.get_mut(&port.min(peer)) else {
            return;
        };
        if on {
            link.expect(drive, log.now_ns);
            return;
        }
        link.arriving.remove(&drive);
        if link.online.remove(&drive) {
            let (ends, generation) = (link.ends, link.generation);
            self.log_drive(What::Offline, ends, drive, generation, None, log);
        }
    }

    /// `blame` is the generation that ends the circuit; its own where no map change does.
    fn unmake_link(&mut self, port: Port, blame: Option<u64>, log: &mut Log) {
        let Some(peer) = self.map.peer(port) else {
            return;
        };
        let low = port.min(peer);
        let Some(link) = self.links.get(&low) else {
            return;
        };
        self.darken(low, blame.unwrap_or(link.generation), log);
        self.links.remove(&low);
    }

    fn make_link(&mut self, port: Port, log: &mut Log) {
        let Some(peer) = self.map.peer(port) else {
            return;
        };
        let (low, high) = (port.min(peer), port.max(peer));
        if self.links.contains_key(&low) {
            return;
        }
        let stack =
            [low, high]
                .into_iter()
                .find_map(|port| match self.jacks[usize::from(port)].plug {
                    Plug::Hba(hba) => Some(&self.servers[self.hbas[hba].server].stack),
                    _ => None,
                });
        let times = match stack {
            Some(stack) => stack.draw(self.seed, self.generation, low),
            None => bare_times(self.seed, self.generation, low),
        };
        self.links
            .insert(low, Link::new([low, high], self.generation, times));
        self.refresh(low, log.now_ns, log);
    }

    /// Bring the link of a port in line with the signal, which came or went at `at_ns`.
    fn refresh(&mut self, port: Port, at_ns: u64, log: &mut Log) {
        let Some(link) = self.link(port) else { return };
        let (ends, generation) = (link.ends, link.generation);
        match (self.has_signal(ends), link.phy) {
            (true, Phy::Down) => {
                let drives = self.drives_between(ends);
                if let Some(link) = self.links.get_mut(&ends[0]) {
                    link.light(at_ns, drives.into_iter());
                }
                self.log_phy(What::PhyTrain, ends, generation, Some(at_ns), log);
            }
            (false, Phy::Train { .. } | Phy::Up) => self.darken(ends[0], generation, log),
            _ => {}
        }
    }

    /// `generation` is the one to blame.
    fn darken(&mut self, low: Port, generation: u64, log: &mut Log) {
        let Some(link) = self
            .links
            .get_mut(&low)
            .filter(|link| link.phy != Phy::Down)
        else {
            return;
        };
        let (ends, lost) = (link.ends, link.darken());
        for port in ends {
            self.jacks[usize::from(port)].drops += 1;
        }
        self.log_phy(What::PhyDown, ends, generation, None, log);
        for drive in lost {
            self.log_drive(What::Offline, ends, drive, generation, None, log);
        }
    }

    fn step_link(&mut self, low: Port, step: Step, at_ns: u64, log: &mut Log) {
        let Some(link) = self.links.get_mut(&low) else {
            return;
        };
        let (ends, generation) = (link.ends, link.generation);
        match step {
            Step::PhyUp => {
                link.phy = Phy::Up;
                for port in ends {
                    if let Plug::Drive(drive) = self.jacks[usize::from(port)].plug {
                        self.drives[drive].phy_resets += 1;
                    }
                }
                self.log_phy(What::PhyUp, ends, generation, Some(at_ns), log);
            }
            Step::Online { drive } => {
                link.arriving.remove(&drive);
                link.online.insert(drive);
                self.log_drive(What::Online, ends, drive, generation, Some(at_ns), log);
            }
        }
    }

    /// Do what a port's schedule says for `at_ns`.
    pub(crate) fn follow_schedule(&mut self, port: Port, at_ns: u64, log: &mut Log) {
        let jack = &mut self.jacks[usize::from(port)];
        while let Some(&(_, dropped)) = jack.schedule.front().filter(|(due_ns, _)| *due_ns <= at_ns)
        {
            jack.dropped = dropped;
            jack.schedule.pop_front();
        }
        self.refresh(port, at_ns, log);
    }

    fn has_server(&self, ends: [Port; 2]) -> bool {
        ends.iter()
            .any(|&port| matches!(self.jacks[usize::from(port)].plug, Plug::Hba(_)))
    }

    fn has_signal(&self, ends: [Port; 2]) -> bool {
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
    fn drives_between(&self, ends: [Port; 2]) -> Vec<usize> {
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

    fn attach(
        &self,
        ends: [Port; 2],
        switch_port: Port,
        drive: Option<usize>,
        generation: u64,
        due_ns: Option<u64>,
    ) -> Attach {
        let hba = ends
            .iter()
            .find_map(|&port| match self.jacks[usize::from(port)].plug {
                Plug::Hba(hba) => Some(&self.hbas[hba]),
                _ => None,
            });
        Attach {
            server: hba.map(|hba| self.servers[hba.server].name.clone()),
            port: hba.map(|hba| hba.name.clone()),
            switch_port,
            drive: drive.map(|drive| self.drives[drive].id.clone()),
            slot: drive.and_then(|drive| match self.drives[drive].place {
                Place::Slot { slot, .. } => Some(slot),
                _ => None,
            }),
            generation,
            due_ns,
        }
    }

    /// One record for each end of a circuit.
    fn log_phy(
        &self,
        what: fn(Attach) -> What,
        ends: [Port; 2],
        generation: u64,
        due_ns: Option<u64>,
        log: &mut Log,
    ) {
        let drive = ends
            .iter()
            .find_map(|&port| match self.jacks[usize::from(port)].plug {
                Plug::Drive(drive) => Some(drive),
                _ => None,
            });
        for port in ends {
            log.say(what(self.attach(ends, port, drive, generation, due_ns)));
        }
    }

    fn log_drive(
        &self,
        what: fn(Attach) -> What,
        ends: [Port; 2],
        drive: usize,
        generation: u64,
        due_ns: Option<u64>,
        log: &mut Log,
    ) {
        let is_hba = |&port: &Port| matches!(self.jacks[usize::from(port)].plug, Plug::Hba(_));
        let switch_port = ends.into_iter().find(is_hba).unwrap_or(ends[0]);
        log.say(what(self.attach(
            ends,
            switch_port,
            Some(drive),
            generation,
            due_ns,
        )));
    }
}

impl crate::rack::Drive {
    /// Returns whether it had power before.
    fn switch_power(&mut self, on: bool, now_ns: u64) -> bool {
        match (self.on_since_ns, on) {
            (None, true) => {
                self.on_since_ns = Some(now_ns);
                self.power_cycles += 1;
                false
            }
            (Some(since_ns), false) => {
                self.on_since_ns = None;
                self.on_before_ns += now_ns - since_ns;
                true
            }
            (was, _) => was.is_some(),
        }
    }
}

/// Signal changes of a repeated drop: when, and whether the signal is gone from then on.
pub(crate) fn schedule(now_ns: u64, down_ms: f64, up_ms: f64, count: u32) -> VecDeque<(u64, bool)> {
    let (down_ns, period_ns) = (ms_to_ns(down_ms), ms_to_ns(down_ms + up_ms));
    (0..u64::from(count))
        .map(|turn| now_ns + turn * period_ns)
        .flat_map(|start_ns| [(start_ns, true), (start_ns + down_ns, false)])
        .collect()
}
