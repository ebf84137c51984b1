//! A rack, and dice that drive it.

use racksim::{
    Command, DriveLayout, ExpanderLayout, Layout, Place, Port, PortMap, PowerTarget, Rack, Record,
    ServerLayout, Stack, What,
};
use rand_chacha::rand_core::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Uniform};

pub const PORTS: Port = 24;
pub const MS: u64 = 1_000_000;

/// Two servers of four ports (1 to 8), an expander with two drives on port 9, six drives on ports 11 to 16.
pub fn layout(seed: u64) -> Layout {
    let server = |name: &str, stack: usize, first: Port| ServerLayout {
        name: name.into(),
        stack: Stack::built_in()[stack].1.clone(),
        ports: (0..4)
            .map(|n| (format!("p{n}").into(), first + n))
            .collect(),
    };
    let direct = (0..6).map(|n| Place::Port(11 + n));
    let shelved = (0..2).map(|slot| Place::Slot { expander: 0, slot });
    let drives = direct.chain(shelved).enumerate();
    Layout {
        seed,
        ports: PORTS,
        servers: vec![server("srv1", 3, 1), server("srv2", 2, 5)],
        expanders: vec![ExpanderLayout {
            name: "exp1".into(),
            port: 9,
        }],
        drives: drives
            .map(|(n, place)| DriveLayout {
                id: format!("d{n}").into(),
                place,
            })
            .collect(),
        saved: PortMap::default(),
    }
}

pub fn map(pairs: &[(Port, Port)], full: bool) -> Command {
    Command::Map {
        pairs: pairs.to_vec(),
        full,
        generation: None,
    }
}

/// Let everything due by `until_ns` happen on time.
pub fn run(rack: &mut Rack, until_ns: u64) -> Vec<Record> {
    let mut records = Vec::new();
    while let Some(at_ns) = rack.next_due_ns().filter(|&at_ns| at_ns <= until_ns) {
        records.extend(rack.advance(at_ns, at_ns));
    }
    records
}

pub fn names(records: &[Record], switch_port: Port) -> Vec<&'static str> {
    let of_port =
        |attach: &racksim::Attach, name| (attach.switch_port == switch_port).then_some(name);
    let name = |record: &Record| match &record.what {
        What::PhyDown(attach) => of_port(attach, "phy_down"),
        What::PhyTrain(attach) => of_port(attach, "phy_train"),
        What::PhyUp(attach) => of_port(attach, "phy_up"),
        What::Online(attach) => of_port(attach, "online"),
        What::Offline(attach) => of_port(attach, "offline"),
        _ => None,
    };
    records.iter().filter_map(name).collect()
}

/// The state that a client could see: states and drops of the ports, drives at the exports.
pub fn view(rack: &Rack) -> (Vec<(&'static str, u64)>, Vec<Option<usize>>) {
    let port = |port| (rack.state(port).unwrap(), rack.drops(port).unwrap());
    let exports = (0..rack.exports().len()).map(|export| rack.drive_at(export));
    ((1..=PORTS).map(port).collect(), exports.collect())
}

pub struct Dice(ChaCha8Rng);

impl Dice {
    pub fn of_seed(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    pub fn below(&mut self, end: u64) -> u64 {
        Uniform::new(0, end).unwrap().sample(&mut self.0)
    }

    pub fn port(&mut self) -> Port {
        self.below(u64::from(PORTS)) as Port + 1
    }

    /// Pairs that use no port twice.
    pub fn pairs(&mut self) -> Vec<(Port, Port)> {
        let mut pairs: Vec<(Port, Port)> = Vec::new();
        for _ in 0..=self.below(6) {
            let (a, b) = (self.port(), self.port());
            let is_free = |port| pairs.iter().all(|&(c, d)| port != c && port != d);
            if a != b && is_free(a) && is_free(b) {
                pairs.push((a, b));
            }
        }
        pairs
    }

    pub fn ports(&mut self) -> Vec<Port> {
        (0..=self.below(3)).map(|_| self.port()).collect()
    }

    pub fn map_command(&mut self) -> Command {
        let generation = None;
        match self.below(4) {
            0 => Command::Open {
                ports: Some(self.ports()),
                generation,
            },
            1 => map(&self.pairs(), true),
            _ => map(&self.pairs(), false),
        }
    }

    pub fn other_command(&mut self) -> Command {
        let on = self.below(2) == 0;
        match self.below(7) {
            0 => Command::Drop {
                ports: self.ports(),
                down_ms: 1.0 + self.below(5) as f64,
                up_ms: 1.0 + self.below(5) as f64,
                count: 1 + self.below(3) as u32,
            },
            1 => Command::Stick {
                port: self.port(),
                stuck: on,
            },
            2 => Command::Miswire {
                ports: [1 + self.below(12) as Port, 13 + self.below(12) as Port],
            },
            3 => Command::Power {
                target: PowerTarget::Server(format!("srv{}", 1 + self.below(2))),
                on,
            },
            4 => Command::Training {
                ports: self.ports(),
                factor: 1.0 + self.below(4) as f64,
            },
            5 => Command::Power {
                target: PowerTarget::Drive(format!("d{}", self.below(8))),
                on,
            },
            _ => Command::Power {
                target: PowerTarget::Switch,
                on: true,
            },
        }
    }
}
