//! The rack in virtual time.

use device::{
    Command, DriveLayout, ExpanderLayout, Layout, Place, Port, PortMap, PowerTarget, Rack, Record,
    Refusal, Seat, ServerLayout, Stack, What,
};
use rand_chacha::rand_core::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Uniform};

const PORTS: Port = 24;
const MS: u64 = 1_000_000;

/// Two servers of four ports (1 to 8), an expander with two drives on port 9, six drives on ports 11 to 16.
fn layout(seed: u64) -> Layout {
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

fn map(pairs: &[(Port, Port)], full: bool) -> Command {
    Command::Map {
        pairs: pairs.to_vec(),
        full,
        generation: None,
    }
}

/// Let everything due by `until_ns` happen on time.
fn run(rack: &mut Rack, until_ns: u64) -> Vec<Record> {
    let mut records = Vec::new();
    while let Some(at_ns) = rack.next_due_ns().filter(|&at_ns| at_ns <= until_ns) {
        records.extend(rack.advance(at_ns, at_ns));
    }
    records
}

fn names(records: &[Record], switch_port: Port) -> Vec<&'static str> {
    let of_port =
        |attach: &device::Attach, name| (attach.switch_port == switch_port).then_some(name);
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

/// What a client could see: states and drops of the ports, drives at the seats.
fn view(rack: &Rack) -> (Vec<(&'static str, u64)>, Vec<Option<usize>>) {
    let port = |port| (rack.state(port).unwrap(), rack.drops(port).unwrap());
    let seats = (0..rack.seats().len()).map(|seat| rack.drive_at(seat));
    ((1..=PORTS).map(port).collect(), seats.collect())
}

struct Dice(ChaCha8Rng);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        Uniform::new(0, end).unwrap().sample(&mut self.0)
    }

    fn port(&mut self) -> Port {
        self.below(u64::from(PORTS)) as Port + 1
    }

    /// Pairs that use no port twice.
    fn pairs(&mut self) -> Vec<(Port, Port)> {
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

    fn ports(&mut self) -> Vec<Port> {
        (0..=self.below(3)).map(|_| self.port()).collect()
    }

    fn map_command(&mut self) -> Command {
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

    fn other_command(&mut self) -> Command {
        let on = self.below(2) == 0;
        match self.below(6) {
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
            4 => Command::Power {
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

#[test]
fn a_remap_drops_the_phy_of_the_ports_whose_circuit_changed_and_of_no_other() {
    for seed in 0..200 {
        let mut dice = Dice(ChaCha8Rng::seed_from_u64(seed));
        let (mut rack, _) = Rack::new(layout(seed), 0);
        let mut now_ns = 0;
        for _ in 0..60 {
            now_ns += dice.below(20 * MS);
            run(&mut rack, now_ns);
            if dice.below(3) == 0 {
                let command = dice.other_command();
                rack.execute(&command, now_ns).unwrap();
                continue;
            }
            let command = dice.map_command();
            let (before, before_map) = (view(&rack), rack.map().clone());
            let records = rack.execute(&command, now_ns).unwrap();
            let (after, disturbed) = (view(&rack), before_map.disturbed(rack.map()));
            for port in 1..=PORTS {
                let index = usize::from(port) - 1;
                let ((was, drops), (is, drops_now)) = (before.0[index], after.0[index]);
                if !disturbed.contains(&port) {
                    assert_eq!(
                        (was, drops),
                        (is, drops_now),
                        "seed {seed}: {command:?} disturbed port {port}"
                    );
                    assert!(names(&records, port).is_empty(), "seed {seed}: port {port}");
                } else {
                    let lost = u64::from(was != "DOWN");
                    assert_eq!(
                        drops_now - drops,
                        lost,
                        "seed {seed}: {command:?} on port {port}"
                    );
                    assert_ne!(is, "UP", "seed {seed}: port {port} did not train again");
                }
            }
            let executed = What::Executed {
                generation: rack.generation(),
                changed: disturbed.into_iter().collect(),
                full: matches!(command, Command::Map { full: true, .. }),
            };
            assert_eq!(
                records[0],
                Record {
                    t_ns: now_ns,
                    what: executed
                }
            );
        }
    }
}

#[test]
fn only_seats_that_were_announced_change_their_drive() {
    for seed in 0..200 {
        let mut dice = Dice(ChaCha8Rng::seed_from_u64(1000 + seed));
        let (mut rack, _) = Rack::new(layout(seed), 0);
        let mut now_ns = 0;
        for _ in 0..60 {
            let command = if dice.below(2) == 0 {
                dice.map_command()
            } else {
                dice.other_command()
            };
            let (touched, before) = (rack.touched(&command).unwrap(), view(&rack).1);
            rack.execute(&command, now_ns).unwrap();
            assert_only_changed(&before, &view(&rack).1, &touched);
            now_ns += dice.below(20 * MS);
            let (touched, before) = (rack.touched_until(now_ns), view(&rack).1);
            rack.advance(now_ns, now_ns);
            assert_only_changed(&before, &view(&rack).1, &touched);
            assert_each_drive_is_online_once(&rack);
        }
    }
}

fn assert_only_changed(before: &[Option<usize>], after: &[Option<usize>], touched: &[usize]) {
    for (seat, (was, is)) in before.iter().zip(after).enumerate() {
        assert!(
            was == is || touched.contains(&seat),
            "seat {seat} changed from {was:?} to {is:?}"
        );
    }
}

fn assert_each_drive_is_online_once(rack: &Rack) {
    let of_port = |seat: &usize| matches!(rack.seats()[*seat], Seat::Hba { slot: None, .. });
    let mut seen: Vec<usize> = (0..rack.seats().len())
        .filter(of_port)
        .filter_map(|seat| rack.drive_at(seat))
        .collect();
    let count = seen.len();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), count);
}

#[test]
fn in_the_end_every_mapped_drive_with_power_is_online() {
    let (mut rack, _) = Rack::new(layout(1), 0);
    rack.execute(&map(&[(1, 11), (5, 12), (2, 9), (13, 14), (3, 4)], true), 0)
        .unwrap();
    run(&mut rack, u64::MAX);
    let online: Vec<usize> = (0..8).filter(|&drive| rack.is_online(drive)).collect();
    assert_eq!(online, [0, 1, 6, 7]);
    assert_eq!(rack.next_due_ns(), None);
    assert_eq!(
        [1, 13, 3, 9].map(|port| rack.state(port).unwrap()),
        ["UP"; 4]
    );
    assert_eq!(rack.state(20), Ok("DOWN"));
}

#[test]
fn an_attach_passes_through_its_stages_on_time() {
    let (mut rack, _) = Rack::new(layout(1), 0);
    let executed = rack.execute(&map(&[(1, 11)], false), 5 * MS).unwrap();
    assert_eq!(names(&executed, 1), ["phy_train"]);
    let records = run(&mut rack, u64::MAX);
    assert_eq!(names(&records, 1), ["phy_up", "online"]);
    let times = Stack::built_in()[3].1.draw(1, 2, 1);
    let due: Vec<u64> = [times.train_ns, times.online_ns]
        .map(|ns| 5 * MS + ns)
        .into();
    let stamps: Vec<u64> = records
        .iter()
        .filter(|record| !names(std::slice::from_ref(record), 1).is_empty())
        .map(|record| record.t_ns)
        .collect();
    assert_eq!(stamps, due);
}

#[test]
fn a_late_step_does_not_make_the_next_one_late() {
    let (mut rack, _) = Rack::new(layout(1), 0);
    rack.execute(&map(&[(1, 11)], false), 0).unwrap();
    let times = Stack::built_in()[3].1.draw(1, 2, 1);
    rack.advance(times.train_ns, times.train_ns + 100_000);
    assert_eq!(rack.next_due_ns(), Some(times.online_ns));
}

#[test]
fn a_dropped_port_trains_when_the_signal_is_back_and_pays_the_whole_attach_again() {
    let (mut rack, _) = Rack::new(layout(1), 0);
    rack.execute(&map(&[(1, 11)], false), 0).unwrap();
    run(&mut rack, 100 * MS);
    let drop = Command::Drop {
        ports: vec![11],
        down_ms: 5.0,
        up_ms: 0.0,
        count: 1,
    };
    let records = rack.execute(&drop, 100 * MS).unwrap();
    assert_eq!(names(&records, 1), ["phy_down", "offline"]);
    assert_eq!(rack.next_due_ns(), Some(105 * MS));
    let records = run(&mut rack, u64::MAX);
    assert_eq!(names(&records, 1), ["phy_train", "phy_up", "online"]);
    let online_ns = Stack::built_in()[3].1.draw(1, 2, 1).online_ns;
    assert_eq!(
        records.last().map(|record| record.t_ns),
        Some(105 * MS + online_ns)
    );
}

#[test]
fn a_circuit_made_while_the_signal_is_away_waits_for_it() {
    let (mut rack, _) = Rack::new(layout(1), 0);
    let drop = Command::Drop {
        ports: vec![11],
        down_ms: 5.0,
        up_ms: 0.0,
        count: 1,
    };
    rack.execute(&drop, 0).unwrap();
    let records = rack.execute(&map(&[(1, 11)], false), MS).unwrap();
    assert!(names(&records, 1).is_empty());
    assert_eq!(
        names(&run(&mut rack, u64::MAX), 1),
        ["phy_train", "phy_up", "online"]
    );
    assert_eq!(rack.drops(11), Ok(0));
}

#[test]
fn power_keeps_its_account() {
    let (mut rack, _) = Rack::new(layout(1), 0);
    let power = |on| Command::Power {
        target: PowerTarget::Drive("d0".into()),
        on,
    };
    for (on, at_ns) in [(false, 10), (false, 20), (true, 50), (true, 60)] {
        rack.execute(&power(on), at_ns).unwrap();
    }
    assert_eq!(rack.drive_life(0, 100), (2, 60, 0));
}

#[test]
fn the_switch_powers_on_with_its_saved_map_and_a_new_generation() {
    let (mut rack, _) = Rack::new(layout(1), 0);
    rack.execute(&map(&[(1, 11)], false), 0).unwrap();
    rack.execute(&Command::Save, 0).unwrap();
    rack.execute(&map(&[(1, 12)], false), 0).unwrap();
    let power = |on| Command::Power {
        target: PowerTarget::Switch,
        on,
    };
    rack.execute(&power(false), MS).unwrap();
    assert_eq!(rack.execute(&map(&[], true), MS), Err(Refusal::SwitchOff));
    assert_eq!(rack.execute(&Command::Save, MS), Err(Refusal::SwitchOff));
    let records = rack.execute(&power(true), MS).unwrap();
    assert_eq!(names(&records, 1), ["phy_train"]);
    assert_eq!(
        rack.drops(11),
        Ok(1),
        "only the first change of the map dropped it"
    );
    assert_eq!((rack.generation(), rack.map().pairs()), (4, vec![(1, 11)]));
}
