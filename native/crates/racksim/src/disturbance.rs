//! Deliberate disturbances of the fabric, listed so that the caller can undo what is left.

use std::collections::BTreeMap;

use crate::rack::SwitchPort;
use crate::topology::Plugged;
use crate::{Port, Rack};

impl Rack {
    /// The ports that ignore map changes, ascending.
    pub fn stuck(&self) -> impl Iterator<Item = Port> + '_ {
        self.stuck.iter().copied()
    }

    /// The factor by which links of these ports train and attach slower, from their next training on.
    #[must_use]
    pub fn training(&self) -> &BTreeMap<Port, f64> {
        &self.training
    }

    /// The ports that were dropped and have no signal, or that flap and will lose it again, ascending.
    pub fn dropped(&self) -> impl Iterator<Item = Port> + '_ {
        let is_dropped =
            |switch_port: &SwitchPort| switch_port.dropped || !switch_port.schedule.is_empty();
        (1..=self.ports()).filter(move |&port| is_dropped(&self.switch_ports[usize::from(port)]))
    }

    /// The swaps that restore the cabling, in this order, lower port first. Swaps that shared no port are returned
    /// unchanged.
    #[must_use]
    pub fn miswired(&self) -> Vec<[Port; 2]> {
        let mut plugs: Vec<Plugged> = self
            .switch_ports
            .iter()
            .map(|switch_port| switch_port.plugged)
            .collect();
        // Empty ports are interchangeable: once all else is in its place, they are too.
        let home_of = |plug| match plug {
            Plugged::Empty => None,
            plug => self.home.iter().position(|&other| other == plug),
        };
        let mut swaps = Vec::new();
        for port in 1..plugs.len() {
            while let Some(home) = home_of(plugs[port]).filter(|&home| home != port) {
                plugs.swap(port, home);
                swaps.push([port.min(home) as Port, port.max(home) as Port]);
            }
        }
        swaps
    }

    /// `factor` 1 ends it.
    pub(crate) fn slow_training(&mut self, ports: &[Port], factor: f64) {
        for &port in ports {
            if factor == 1.0 {
                self.training.remove(&port);
            } else {
                self.training.insert(port, factor);
            }
        }
    }

    /// The factor by which the link between two ports trains slower: that of its slower end.
    pub(crate) fn slowness(&self, ends: [Port; 2]) -> f64 {
        let of_end = |port| self.training.get(&port).copied().unwrap_or(1.0);
        of_end(ends[0]).max(of_end(ends[1]))
    }
}
