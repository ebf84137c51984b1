//! Link state: PHYs follow the map and the signals, drives attach and detach.

use crate::link::{Link, Phy, Step};
use crate::record::Log;
use crate::stack::bare_times;
use crate::topology::Plugged;
use crate::{Attach, Place, Port, Rack, What};

impl Rack {
    pub(crate) fn power_behind_expander(
        &mut self,
        port: Port,
        drive: usize,
        on: bool,
        log: &mut Log,
    ) {
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

    /// `blame` is the generation that ends the circuit, or the circuit's own if no map change does.
    pub(crate) fn unmake_link(&mut self, port: Port, blame: Option<u64>, log: &mut Log) {
        let Some(peer) = self.map.peer(port) else {
            return;
        };
        let low = port.min(peer);
        let Some(link) = self.links.get(&low) else {
            return;
        };
        self.darken(low, blame.unwrap_or(link.generation), None, log);
        self.links.remove(&low);
    }

    pub(crate) fn make_link(&mut self, port: Port, log: &mut Log) {
        let Some(peer) = self.map.peer(port) else {
            return;
        };
        let (low, high) = (port.min(peer), port.max(peer));
        if self.links.contains_key(&low) {
            return;
        }
        let stack = [low, high]
            .into_iter()
            .find_map(|port| match self.plugged(port) {
                Plugged::Hba(hba) => Some((&self.servers[self.hbas[hba].server].stack, port)),
                _ => None,
            });
        let times = match stack {
            Some((stack, port)) => {
                let is_told = self.announced.contains(&port);
                stack.draw(self.seed, self.generation, low, is_told)
            }
            None => bare_times(self.seed, self.generation, low),
        };
        self.links
            .insert(low, Link::new([low, high], self.generation, times));
        self.refresh(low, log.now_ns, log);
    }

    /// Bring the link of a port in line with the signal, which came or went at `at_ns`.
    pub(crate) fn refresh(&mut self, port: Port, at_ns: u64, log: &mut Log) {
        let Some(link) = self.link(port) else { return };
        let (ends, generation) = (link.ends, link.generation);
        match (self.has_signal(ends), link.phy) {
            (true, Phy::Down) => {
                let (drives, slowness) = (self.drives_between(ends), self.slowness(ends));
                if let Some(link) = self.links.get_mut(&ends[0]) {
                    link.light(at_ns, slowness, drives.into_iter());
                }
                self.log_phy(What::PhyTrain, ends, generation, Some(at_ns), log);
            }
            (false, Phy::Train { .. } | Phy::Up) => {
                self.darken(ends[0], generation, Some(at_ns), log);
            }
            _ => {}
        }
    }

    /// `generation` is the one recorded as the cause.
    fn darken(&mut self, low: Port, generation: u64, due_ns: Option<u64>, log: &mut Log) {
        let Some(link) = self
            .links
            .get_mut(&low)
            .filter(|link| link.phy != Phy::Down)
        else {
            return;
        };
        let (ends, lost) = (link.ends, link.darken());
        for port in ends {
            self.switch_ports[usize::from(port)].drops += 1;
        }
        self.log_phy(What::PhyDown, ends, generation, due_ns, log);
        for drive in lost {
            self.log_drive(What::Offline, ends, drive, generation, due_ns, log);
        }
    }

    pub(crate) fn step_link(&mut self, low: Port, step: Step, at_ns: u64, log: &mut Log) {
        let Some(link) = self.links.get_mut(&low) else {
            return;
        };
        let (ends, generation) = (link.ends, link.generation);
        match step {
            Step::PhyUp => {
                link.phy = Phy::Up;
                for port in ends {
                    if let Plugged::Drive(drive) = self.plugged(port) {
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

    fn attach(
        &self,
        ends: [Port; 2],
        switch_port: Port,
        drive: Option<usize>,
        generation: u64,
        due_ns: Option<u64>,
    ) -> Attach {
        let hba = ends.iter().find_map(|&port| match self.plugged(port) {
            Plugged::Hba(hba) => Some(&self.hbas[hba]),
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
        let drive = ends.iter().find_map(|&port| match self.plugged(port) {
            Plugged::Drive(drive) => Some(drive),
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
        let is_hba = |&port: &Port| matches!(self.plugged(port), Plugged::Hba(_));
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
