//! Swapped cables, slow training and lost signals: what they do, and that what is left to undo can be seen.

use racksim::{Command, Port, PowerTarget, Rack, Stack};

use crate::bench::{layout, map, names, run, Dice, MS, PORTS};

fn miswire(a: Port, b: Port) -> Command {
    Command::Miswire { ports: [a, b] }
}

fn training(ports: &[Port], factor: f64) -> Command {
    let ports = ports.to_vec();
    Command::Training { ports, factor }
}

fn drop_ports(ports: &[Port], down_ms: f64, up_ms: f64, count: u32) -> Command {
    Command::Drop {
        ports: ports.to_vec(),
        down_ms,
        up_ms,
        count,
    }
}

/// Everything mapped to a server, once it is online: which drive each export has.
fn settled(rack: &mut Rack, now_ns: u64) -> Vec<Option<usize>> {
    let pairs = [(1, 11), (2, 12), (3, 9), (5, 13), (6, 14)];
    rack.execute(&map(&pairs, true), now_ns).unwrap();
    run(rack, u64::MAX);
    let exports = 0..rack.exports().len();
    exports.map(|export| rack.drive_at(export)).collect()
}

#[test]
fn doing_the_listed_swaps_in_order_puts_every_plug_back() {
    let undisturbed = settled(&mut Rack::new(layout(1), 0).0, 0);
    for seed in 0..300 {
        let mut dice = Dice::of_seed(seed);
        let (mut rack, _) = Rack::new(layout(1), 0);
        for _ in 0..=dice.below(8) {
            let (a, b) = (dice.port(), dice.port());
            rack.execute(&miswire(a, b), 0).unwrap();
        }
        for [a, b] in rack.miswired() {
            assert!(a < b, "seed {seed}");
            rack.execute(&miswire(a, b), 0).unwrap();
        }
        assert!(rack.miswired().is_empty(), "seed {seed}");
        assert_eq!(settled(&mut rack, 0), undisturbed, "seed {seed}");
    }
}

#[test]
fn swaps_that_share_no_port_are_listed_as_they_were_done_until_they_are_done_again() {
    let (mut rack, _) = Rack::new(layout(1), 0);
    for (a, b) in [(13, 2), (1, 11), (20, 5)] {
        rack.execute(&miswire(a, b), 0).unwrap();
    }
    assert_eq!(rack.miswired(), [[1, 11], [2, 13], [5, 20]]);
    rack.execute(&miswire(1, 11), 0).unwrap();
    assert_eq!(rack.miswired(), [[2, 13], [5, 20]]);
    rack.execute(&miswire(21, 22), 0).unwrap();
    let after = rack.miswired();
    assert_eq!(after, [[2, 13], [5, 20]], "two empty ports are alike");
}

#[test]
fn links_of_slow_ports_take_exactly_so_many_times_longer_and_no_other_link_does() {
    for seed in 0..100 {
        let mut dice = Dice::of_seed(seed);
        let (mut plain, _) = Rack::new(layout(seed), 0);
        let (mut slowed, _) = Rack::new(layout(seed), 0);
        let (ports, factor) = (dice.ports(), 1.0 + dice.below(5) as f64);
        slowed.execute(&training(&ports, factor), 0).unwrap();
        let change = map(&[(1, 11), (2, 12), (3, 9), (5, 13), (6, 14)], true);
        plain.execute(&change, 0).unwrap();
        slowed.execute(&change, 0).unwrap();
        let (expected, found) = (run(&mut plain, u64::MAX), run(&mut slowed, u64::MAX));
        for port in 1..=PORTS {
            let is_slow = |port| ports.contains(&port);
            let peer = slowed.map().peer(port);
            let times = if is_slow(port) || peer.is_some_and(is_slow) {
                factor as u64
            } else {
                1
            };
            let stamps = |records: &[racksim::Record]| -> Vec<u64> {
                let of_port =
                    |one: &&racksim::Record| !names(std::slice::from_ref(*one), port).is_empty();
                records.iter().filter(of_port).map(|one| one.t_ns).collect()
            };
            let expected: Vec<u64> = stamps(&expected).iter().map(|ns| ns * times).collect();
            assert_eq!(stamps(&found), expected, "seed {seed}, port {port}");
        }
    }
}

#[test]
fn slow_training_begins_with_the_next_training_and_ends_with_factor_one() {
    let (mut rack, _) = Rack::new(layout(1), 0);
    let online_ns = Stack::built_in()[3].1.draw(1, 2, 1, false).online_ns;
    rack.execute(&map(&[(1, 11)], false), 0).unwrap();
    rack.execute(&training(&[1, 11], 3.0), 0).unwrap();
    let last_ns = |records: Vec<racksim::Record>| records.last().map(|record| record.t_ns);
    assert_eq!(last_ns(run(&mut rack, u64::MAX)), Some(online_ns));
    assert_eq!(rack.training().keys().collect::<Vec<_>>(), [&1, &11]);
    let again = drop_ports(&[1], 1.0, 0.0, 1);
    rack.execute(&again, 100 * MS).unwrap();
    let late = last_ns(run(&mut rack, u64::MAX));
    assert_eq!(late, Some(101 * MS + 3 * online_ns));
    rack.execute(&training(&[1, 11], 1.0), 200 * MS).unwrap();
    assert!(rack.training().is_empty());
    rack.execute(&again, 200 * MS).unwrap();
    let on_time = last_ns(run(&mut rack, u64::MAX));
    assert_eq!(on_time, Some(201 * MS + online_ns));
}

#[test]
fn a_drive_that_gets_power_behind_a_slow_link_is_online_late() {
    let drivers_share_ns = |factor| {
        let (mut rack, _) = Rack::new(layout(1), 0);
        rack.execute(&training(&[9], factor), 0).unwrap();
        rack.execute(&map(&[(1, 9)], false), 0).unwrap();
        run(&mut rack, u64::MAX);
        for on in [false, true] {
            let target = PowerTarget::Drive("d6".into());
            rack.execute(&Command::Power { target, on }, 900 * MS)
                .unwrap();
        }
        run(&mut rack, u64::MAX).last().unwrap().t_ns - 900 * MS
    };
    assert_eq!(drivers_share_ns(3.0), 3 * drivers_share_ns(1.0));
}

#[test]
fn a_port_is_listed_as_dropped_until_its_signal_is_back_for_good() {
    let (mut rack, _) = Rack::new(layout(1), 0);
    rack.execute(&map(&[(1, 11)], false), 0).unwrap();
    rack.execute(&drop_ports(&[11, 20], 5.0, 5.0, 2), 0)
        .unwrap();
    rack.execute(&drop_ports(&[3], 5.0, 0.0, 1), 0).unwrap();
    let mut listed = Vec::new();
    for at_ns in [0, 7 * MS, 14 * MS, 15 * MS] {
        run(&mut rack, at_ns);
        listed.push(rack.dropped().collect::<Vec<_>>());
    }
    assert_eq!(
        listed,
        [vec![3, 11, 20], vec![11, 20], vec![11, 20], vec![]]
    );
}

#[test]
fn stuck_ports_are_listed_until_they_follow_the_map_again() {
    let (mut rack, _) = Rack::new(layout(1), 0);
    for (port, stuck) in [(11, true), (3, true), (3, true), (11, false)] {
        rack.execute(&Command::Stick { port, stuck }, 0).unwrap();
    }
    assert_eq!(rack.stuck().collect::<Vec<_>>(), [3]);
}
