//! State transitions of the rack: maps, power, signals, and time.

use crate::link::Step;
use crate::record::Log;
use crate::{Command, Port, PortMap, PowerTarget, Rack, Record, Refusal, What};

/// An event that becomes due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Signal { port: Port },
    Link { low: Port, step: Step },
}

impl Rack {
    /// The time of the next event.
    #[must_use]
    pub fn next_due_ns(&self) -> Option<u64> {
        self.next_due().map(|(at_ns, _)| at_ns)
    }

    /// The exports whose drive [`Rack::advance`] to `until_ns` may change.
    #[must_use]
    pub fn touched_until(&self, until_ns: u64) -> Vec<usize> {
        let ports =
            self.all_due()
                .filter(|&(at_ns, _)| at_ns <= until_ns)
                .map(|(_, due)| match due {
                    Due::Signal { port } => port,
                    Due::Link { low, .. } => low,
                });
        self.exports_at(&self.with_peers(ports))
    }

    /// Execute all events due by `until_ns`. Records are stamped `now_ns`, which is not before `until_ns`, and
    /// hold the time they were due; consequences of a late step are not counted as late again.
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
            let (at_ns, _) = self.switch_ports[usize::from(port)].schedule.front()?;
            Some((*at_ns, Due::Signal { port }))
        });
        let links = self.links.iter().filter_map(|(&low, link)| {
            let (at_ns, step) = link.next()?;
            Some((at_ns, Due::Link { low, step }))
        });
        signals.chain(links)
    }

    /// The map after a map command, or the reason to refuse the command.
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

    pub(crate) fn change_map(&mut self, after: PortMap, full: bool, log: &mut Log) {
        let changed = self.map.disturbed(&after);
        self.generation += 1;
        log.say(What::Executed {
            generation: self.generation,
            changed: changed.iter().copied().collect(),
            full,
            due_ns: None,
        });
        for &port in &changed {
            self.unmake_link(port, Some(self.generation), log);
        }
        self.map = after;
        for &port in &changed {
            self.make_link(port, log);
        }
        self.announced.retain(|port| !changed.contains(port));
    }

    pub(crate) fn miswire(&mut self, a: Port, b: Port, log: &mut Log) {
        for port in [a, b] {
            self.unmake_link(port, None, log);
        }
        let plug = self.plugged(a);
        self.switch_ports[usize::from(a)].plugged = self.plugged(b);
        self.switch_ports[usize::from(b)].plugged = plug;
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
            // A server without power loses the announcement.
            self.announced.remove(&port);
            self.refresh(port, log.now_ns, log);
            if let PowerTarget::Drive(id) = target {
                self.power_behind_expander(port, self.drive(id)?, on, log);
            }
        }
        Ok(())
    }

    /// Off: every link goes down, the map stays readable. On: every circuit of the saved map is set up again.
    pub(crate) fn power_switch(&mut self, on: bool, log: &mut Log) {
        self.switch_on = on;
        if on {
            let mut after = self.saved.clone();
            self.keep_stuck(&mut after);
            self.map = PortMap::default();
            self.links.clear();
            self.change_map(after, true, log);
            return;
        }
        let ports: Vec<Port> = self.map.ports().collect();
        for port in ports {
            self.refresh(port, log.now_ns, log);
        }
    }

    /// Apply a port's schedule at `at_ns`.
    pub(crate) fn follow_schedule(&mut self, port: Port, at_ns: u64, log: &mut Log) {
        let switch_port = &mut self.switch_ports[usize::from(port)];
        while let Some(&(_, dropped)) = switch_port
            .schedule
            .front()
            .filter(|(due_ns, _)| *due_ns <= at_ns)
        {
            switch_port.dropped = dropped;
            switch_port.schedule.pop_front();
        }
        self.refresh(port, at_ns, log);
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
