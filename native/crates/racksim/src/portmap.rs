//! The port map: which switch ports are connected.

use std::collections::{BTreeMap, BTreeSet};

/// A port of the switch, counted from 1.
pub type Port = u16;

/// A set of disjoint circuits. Every port is connected to at most one other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PortMap {
    peers: BTreeMap<Port, Port>,
}

/// The error of pairs that do not form a port map.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MapError {
    /// A pair connects a port to itself.
    #[error("port {0} joined to itself")]
    SelfLoop(Port),
    /// A port is in two pairs.
    #[error("port {0} used twice")]
    UsedTwice(Port),
}

impl PortMap {
    /// The map with these pairs, in any order and orientation.
    pub fn of(pairs: &[(Port, Port)]) -> Result<Self, MapError> {
        let mut map = Self::default();
        for &(a, b) in pairs {
            if a == b {
                return Err(MapError::SelfLoop(a));
            }
            for port in [a, b] {
                if map.peer(port).is_some() {
                    return Err(MapError::UsedTwice(port));
                }
            }
            map.join(a, b);
        }
        Ok(map)
    }

    /// The port connected to `port`.
    #[must_use]
    pub fn peer(&self, port: Port) -> Option<Port> {
        self.peers.get(&port).copied()
    }

    /// Every pair, the lower port first, ascending.
    #[must_use]
    pub fn pairs(&self) -> Vec<(Port, Port)> {
        self.peers
            .iter()
            .filter(|(a, b)| a < b)
            .map(|(&a, &b)| (a, b))
            .collect()
    }

    /// Every port that is connected to another.
    pub fn ports(&self) -> impl Iterator<Item = Port> + '_ {
        self.peers.keys().copied()
    }

    /// Connect two ports; their former peers are left open.
    pub fn join(&mut self, a: Port, b: Port) {
        self.open(a);
        self.open(b);
        self.peers.insert(a, b);
        self.peers.insert(b, a);
    }

    /// Remove the circuit of `port`, if it has one.
    pub fn open(&mut self, port: Port) {
        if let Some(peer) = self.peers.remove(&port) {
            self.peers.remove(&peer);
        }
    }

    /// The ports whose circuit differs between two maps: only their PHYs are dropped by the change.
    #[must_use]
    pub fn disturbed(&self, after: &Self) -> BTreeSet<Port> {
        self.ports()
            .chain(after.ports())
            .filter(|&port| self.peer(port) != after.peer(port))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joining_opens_both_former_partners() {
        let mut map = PortMap::of(&[(1, 101), (102, 2)]).unwrap();
        map.join(1, 102);
        assert_eq!(map.pairs(), [(1, 102)]);
        assert_eq!((map.peer(101), map.peer(2)), (None, None));
    }

    #[test]
    fn a_port_used_twice_is_no_map() {
        assert_eq!(PortMap::of(&[(1, 2), (3, 1)]), Err(MapError::UsedTwice(1)));
        assert_eq!(PortMap::of(&[(4, 4)]), Err(MapError::SelfLoop(4)));
    }

    #[test]
    fn a_pair_in_both_maps_is_not_disturbed() {
        let before = PortMap::of(&[(1, 101), (2, 102)]).unwrap();
        let after = PortMap::of(&[(101, 1), (2, 103)]).unwrap();
        assert_eq!(before.disturbed(&after), BTreeSet::from([2, 102, 103]));
    }
}
