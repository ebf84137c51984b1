use std::collections::HashMap;

use rand_chacha::rand_core::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Uniform};

use super::*;

const GEOMETRY: Geometry = Geometry {
    units: 1000,
    channels: 2,
    dies: 4,
    blocks: 14,
    rows: 4,
    row_units: 6,
    page_units: 3,
};

/// A translation layer beside what it should be: a plain map of units to versions, and flash that holds what was put
/// at each address since its block was erased.
struct Twin {
    ftl: Ftl,
    versions: HashMap<u32, u64>,
    flash: HashMap<u32, (u32, u64)>,
    written: u64,
}

impl Twin {
    fn new() -> Self {
        Self {
            ftl: Ftl::new(GEOMETRY),
            versions: HashMap::new(),
            flash: HashMap::new(),
            written: 0,
        }
    }

    fn address(&self, unit: u32) -> u32 {
        self.ftl.map[unit as usize] - 1
    }

    fn write(&mut self, die: u32, unit: u32) {
        while !self.ftl.has_room(die, Stream::Host) {
            assert!(self.collect(die), "no room and nothing to collect");
        }
        self.written += 1;
        self.versions.insert(unit, self.written);
        let (block, is_full) = self.ftl.append(die, Stream::Host, unit);
        let overwritten = self.flash.insert(self.address(unit), (unit, self.written));
        assert_eq!(overwritten, None, "programmed twice without an erase");
        if is_full {
            self.ftl.programmed(block);
        }
    }

    fn pad(&mut self, die: u32) {
        let block = self.ftl.dies[die as usize].open[Stream::Host as usize];
        let begun = |ftl: &Ftl| ftl.blocks[block as usize].filled % GEOMETRY.row_units != 0;
        if block != NONE && begun(&self.ftl) {
            self.ftl.pad(die, Stream::Host);
            self.ftl.programmed(block);
        }
    }

    fn trim(&mut self, unit: u32) {
        self.versions.remove(&unit);
        self.ftl.unmap(unit);
    }

    /// Free a block of a die, if that gains anything.
    fn collect(&mut self, die: u32) -> bool {
        let Some((block, live)) = self.ftl.cheapest(die) else {
            return false;
        };
        let mut moved = 0;
        for row in 0..GEOMETRY.rows {
            let units: Vec<_> = self
                .ftl
                .row(block, row)
                .filter(|&address| self.ftl.is_live(address))
                .map(|address| self.flash[&address])
                .collect();
            assert_eq!(units.len() as u32, self.ftl.live_in_row(block, row));
            let mut full = Vec::new();
            self.ftl.copy_row(block, row, |to| full.push(to));
            full.into_iter().for_each(|to| self.ftl.programmed(to));
            for (unit, version) in units {
                moved += 1;
                let overwritten = self.flash.insert(self.address(unit), (unit, version));
                assert_eq!(overwritten, None, "programmed twice without an erase");
            }
        }
        assert_eq!(moved, live);
        let first = block * GEOMETRY.block_units();
        for address in first..first + GEOMETRY.block_units() {
            self.flash.remove(&address);
        }
        self.ftl.erased(block);
        true
    }

    fn check(&self) {
        for unit in 0..GEOMETRY.units {
            let found = self.ftl.map[unit as usize]
                .checked_sub(1)
                .map(|address| self.flash[&address]);
            let expected = self.versions.get(&unit).map(|&version| (unit, version));
            assert_eq!(found, expected, "the newest version of unit {unit}");
            assert_eq!(self.ftl.place(unit) == Place::Nowhere, expected.is_none());
        }
        let mut mapped = 0;
        for (number, block) in (0..).zip(&self.ftl.blocks) {
            let live: u32 = (0..GEOMETRY.rows)
                .map(|row| self.ftl.live_in_row(number, row))
                .sum();
            assert_eq!(live, block.live, "live units of block {number}");
            assert!(block.live <= block.filled && block.filled <= GEOMETRY.block_units());
            mapped += live as usize;
        }
        assert_eq!(mapped, self.versions.len(), "each unit lives in one place");
        for blocks in &self.ftl.dies {
            for &free in &blocks.free {
                assert_eq!(self.ftl.blocks[free as usize].filled, 0);
                assert!(!blocks.open.contains(&free));
            }
        }
    }
}

fn draws(seed: u64) -> impl FnMut(u32) -> u32 {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    move |below| Uniform::new(0, below).unwrap().sample(&mut rng)
}

#[test]
fn every_unit_reads_its_newest_version_through_all_collections() {
    for seed in 0..8 {
        let mut draw = draws(seed);
        let mut twin = Twin::new();
        for step in 0..20_000 {
            let die = step % GEOMETRY.dies;
            match draw(40) {
                0 => twin.trim(draw(GEOMETRY.units)),
                1 => twin.pad(die),
                2 => {
                    twin.collect(die);
                }
                _ => twin.write(die, draw(GEOMETRY.units)),
            }
            if step % 500 == 0 {
                twin.check();
            }
        }
        twin.check();
    }
}

#[test]
fn a_row_is_in_memory_until_it_is_programmed() {
    let mut ftl = Ftl::new(GEOMETRY);
    let last = GEOMETRY.row_units - 1;
    for unit in 0..last {
        assert!(!ftl.append(1, Stream::Host, unit).1);
    }
    let (block, is_full) = ftl.append(1, Stream::Host, last);
    assert!(is_full);
    assert_eq!(ftl.place(last), Place::Memory);
    ftl.programmed(block);
    let page = block * GEOMETRY.block_units() / GEOMETRY.page_units;
    assert_eq!(ftl.place(0), Place::Flash { die: 1, page });
    assert_eq!(
        ftl.place(last),
        Place::Flash {
            die: 1,
            page: page + 1
        }
    );
}

#[test]
fn what_was_in_memory_alone_can_be_forgotten() {
    let mut ftl = Ftl::new(GEOMETRY);
    let mut block = 0;
    for unit in 0..GEOMETRY.row_units + 2 {
        let (number, is_full) = ftl.append(0, Stream::Host, unit);
        if is_full {
            ftl.programmed(number);
        }
        block = number;
    }
    ftl.forget_memory(block);
    ftl.settle();
    for unit in 0..GEOMETRY.row_units {
        assert!(matches!(ftl.place(unit), Place::Flash { die: 0, .. }));
    }
    assert_eq!(ftl.place(GEOMETRY.row_units), Place::Nowhere);
    assert_eq!(ftl.place(GEOMETRY.row_units + 1), Place::Nowhere);
}

#[test]
fn copies_may_take_the_block_that_host_data_may_not() {
    let mut ftl = Ftl::new(GEOMETRY);
    let mut unit = 0;
    while ftl.has_room(0, Stream::Host) {
        ftl.append(0, Stream::Host, unit % GEOMETRY.units);
        unit += 1;
    }
    assert_eq!(ftl.free_blocks(0), KEPT_FOR_COPIES);
    assert!(ftl.has_room(0, Stream::Copy));
}
