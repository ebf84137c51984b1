//! The rack in virtual time.

mod bench;
mod disturbance;

use bench::{layout, map, names, run, view, Dice, MS, PORTS};
use racksim::{Command, Export, Port, PowerTarget, Rack, Record, Refusal, Stack, What};

#[test]
fn a_remap_drops_the_phy_of_the_ports_whose_circuit_changed_and_of_no_other() {
    for seed in 0..200 {
        let mut dice = Dice::of_seed(seed);
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
                due_ns: None,
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
        let mut dice = Dice::of_seed(1000 + seed);
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
    for (export, (was, is)) in before.iter().zip(after).enumerate() {
        assert!(
            was == is || touched.contains(&export),
            "export {export} changed from {was:?} to {is:?}"
        );
    }
}

fn assert_each_drive_is_online_once(rack: &Rack) {
    let of_port =
        |export: &usize| matches!(rack.exports()[*export], Export::Hba { slot: None, .. });
    let mut seen: Vec<usize> = (0..rack.exports().len())
        .filter(of_port)
        .filter_map(|export| rack.drive_at(export))
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
    let times = Stack::built_in()[3].1.draw(1, 2, 1, false);
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

/// The time from the only change of a map until the drive is online.
fn online_ns(rack: &mut Rack, pairs: &[(Port, Port)], now_ns: u64) -> u64 {
    rack.execute(&map(pairs, false), now_ns).unwrap();
    run(rack, u64::MAX).last().unwrap().t_ns - now_ns
}

fn announce(rack: &mut Rack, port: Port) {
    let ports = vec![port];
    rack.execute(&Command::Announce { ports }, 0).unwrap();
}

#[test]
fn a_comreset_server_that_was_told_has_the_drive_ten_times_sooner_once() {
    let (mut rack, _) = Rack::new(layout(1), 0);
    let stack = Stack::built_in()[3].1.clone();
    announce(&mut rack, 1);
    announce(&mut rack, 5);
    for (generation, drive, is_told) in [(2, 11, true), (3, 12, false)] {
        let expected = stack.draw(1, generation, 1, is_told).online_ns;
        let now_ns = generation * 50 * MS;
        assert_eq!(online_ns(&mut rack, &[(1, drive)], now_ns), expected);
    }
    assert!(stack.draw(1, 3, 1, false).online_ns > 5 * stack.draw(1, 2, 1, true).online_ns);
}

#[test]
fn telling_one_that_is_not_switched_helps_no_other_and_a_power_cut_makes_it_forget() {
    let (mut rack, _) = Rack::new(layout(1), 0);
    let stack = Stack::built_in()[3].1.clone();
    announce(&mut rack, 2);
    announce(&mut rack, 11);
    let untold = stack.draw(1, 2, 1, false).online_ns;
    assert_eq!(online_ns(&mut rack, &[(1, 11)], 0), untold);
    for on in [false, true] {
        let target = PowerTarget::Server("srv1".into());
        rack.execute(&Command::Power { target, on }, MS).unwrap();
    }
    run(&mut rack, u64::MAX);
    let untold = stack.draw(1, 3, 2, false).online_ns;
    assert_eq!(online_ns(&mut rack, &[(2, 12)], 900 * MS), untold);
}

#[test]
fn a_late_step_does_not_make_the_next_one_late() {
    let (mut rack, _) = Rack::new(layout(1), 0);
    rack.execute(&map(&[(1, 11)], false), 0).unwrap();
    let times = Stack::built_in()[3].1.draw(1, 2, 1, false);
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
    let online_ns = Stack::built_in()[3].1.draw(1, 2, 1, false).online_ns;
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
