//! The flash back end: die operations, channel transfers and background work.

use std::ops::Range;

use super::collection::{Collection, Step, FREE_BLOCKS_WANTED, IDLE_NS};
use super::die::{PageRead, Work};
use super::ftl::Place;
use super::geometry::UNIT_BYTES;
use super::read_ahead::AHEAD;
use super::timeline::Event;
use super::Ssd;

impl Ssd {
    /// Start the next work of an idle die.
    pub(super) fn start(&mut self, number: u32, now_ns: u64) {
        let die = &mut self.dies[number as usize];
        if die.work.is_some() {
            return;
        }
        let in_background = self.commands.is_empty() && now_ns >= self.idle_since_ns + IDLE_NS;
        if die.collection.is_none() && self.ftl.free_blocks(number) < FREE_BLOCKS_WANTED {
            die.collection = Collection::begin(number, &self.ftl);
        }
        die.work = die.next(&self.ftl, self.parameters.reads_ahead, in_background);
        let Some(work) = die.work else {
            return;
        };
        let page = match work {
            Work::Read(read) => Some(read.page),
            Work::Program | Work::Collect(_) => None,
        };
        let is_held = page.is_some() && die.held == page;
        die.held = page;
        let (at_ns, event) = match work {
            Work::Read(_) if is_held => (now_ns, Event::Sensed(number)),
            Work::Read(_) | Work::Collect(Step::Gather { .. }) => (
                now_ns + self.costs.read.sample(&mut self.rng),
                Event::Sensed(number),
            ),
            Work::Program | Work::Collect(Step::Program { .. }) => {
                let bytes = self.row_bytes();
                let loaded_ns = self.carry(number, now_ns, bytes);
                (
                    loaded_ns + self.costs.program.sample(&mut self.rng),
                    Event::Finished(number),
                )
            }
            Work::Collect(Step::Erase) => (now_ns + self.costs.erase_ns, Event::Finished(number)),
        };
        self.timeline.add(at_ns, event);
    }

    /// Start the next work of all idle dies.
    pub(super) fn start_all(&mut self, now_ns: u64) {
        for die in 0..self.dies.len() as u32 {
            self.start(die, now_ns);
        }
    }

    /// Start background work if the host has been idle for long enough.
    pub(super) fn quiet(&mut self, now_ns: u64) {
        self.is_quiet_expected = false;
        if !self.commands.is_empty() {
            return;
        }
        if now_ns < self.idle_since_ns + IDLE_NS {
            self.expect_quiet();
            return;
        }
        self.start_all(now_ns);
    }

    /// Schedule a check for idleness of the host.
    pub(super) fn expect_quiet(&mut self) {
        if !std::mem::replace(&mut self.is_quiet_expected, true) {
            self.timeline
                .add(self.idle_since_ns + IDLE_NS, Event::Quiet);
        }
    }

    /// A die has a page in its register, which stays there until its transfer over the channel ends.
    pub(super) fn sensed(&mut self, number: u32, now_ns: u64) {
        let units = match self.dies[number as usize].work {
            Some(Work::Read(read)) => read.units,
            Some(Work::Collect(Step::Gather { units, .. })) => units,
            _ => 0,
        };
        let at_ns = self.carry(number, now_ns, u64::from(units) * UNIT_BYTES);
        self.timeline.add(at_ns, Event::Finished(number));
    }

    /// A die has finished its work.
    pub(super) fn finished(&mut self, number: u32, now_ns: u64) {
        match self.dies[number as usize].work.take() {
            Some(Work::Read(read)) => self.page_read(read, now_ns),
            Some(Work::Program) => self.row_programmed(number, now_ns),
            Some(Work::Collect(step)) => self.collected(number, step, now_ns),
            None => {}
        }
        self.start(number, now_ns);
    }

    fn page_read(&mut self, read: PageRead, now_ns: u64) {
        if read.command == AHEAD {
            return self.ahead_come(read.page, now_ns);
        }
        let moved_ns = match read.host_bytes {
            0 => now_ns,
            bytes => self.interface.send(now_ns, u64::from(bytes)),
        };
        self.arrived(read.command as usize, moved_ns, now_ns);
    }

    fn row_programmed(&mut self, number: u32, now_ns: u64) {
        let die = &mut self.dies[number as usize];
        let Some(row) = die.rows.pop_front() else {
            return;
        };
        die.filled -= 1;
        if let Some(collection) = &mut die.collection {
            collection.host_programmed(row.units);
        }
        self.ftl.programmed(row.block);
        self.unprogrammed_rows -= 1;
        self.buffered -= row.units;
        self.flash_work.host_bytes += u64::from(row.units) * UNIT_BYTES;
        self.flash_work.programmed_bytes += self.row_bytes();
        for command in row.awaited_by {
            self.arrived(command, now_ns, now_ns);
        }
        self.admit(now_ns);
    }

    fn collected(&mut self, number: u32, step: Step, now_ns: u64) {
        let Some(collection) = &mut self.dies[number as usize].collection else {
            return;
        };
        match step {
            Step::Gather { row, units } => collection.gathered(row, units, &mut self.ftl),
            Step::Program { block } => {
                collection.copies_programmed();
                self.ftl.programmed(block);
                self.flash_work.programmed_bytes += self.row_bytes();
            }
            Step::Erase => {
                self.ftl.erased(collection.block);
                self.dies[number as usize].collection = None;
                self.flash_work.erases += 1;
                self.admit(now_ns);
            }
        }
    }

    /// The end of a transfer between a die and the controller that starts at `now_ns` at the earliest.
    fn carry(&mut self, die: u32, now_ns: u64, bytes: u64) -> u64 {
        let channel = self.ftl.geometry().channel(die);
        self.channels[channel].carry(now_ns, bytes)
    }

    fn row_bytes(&self) -> u64 {
        u64::from(self.ftl.geometry().row_units) * UNIT_BYTES
    }
}

impl Ssd {
    /// Read ahead of a read of `units` that continues a stream.
    pub(super) fn read_ahead(&mut self, number: u64, units: &Range<u32>, now_ns: u64) {
        let drive_units = self.ftl.geometry().units;
        let mut reads: Vec<(u32, PageRead)> = Vec::new();
        for unit in self.ahead.wanted(number, units, drive_units) {
            let Place::Flash { die, page } = self.ftl.place(unit) else {
                continue;
            };
            if self.ahead.expect(number, unit, page) {
                let read = PageRead {
                    command: AHEAD,
                    page,
                    units: 1,
                    host_bytes: 0,
                };
                reads.push((die, read));
            } else if let Some((_, read)) = reads.last_mut() {
                if read.page == page {
                    read.units += 1;
                }
            }
        }
        for (die, read) in reads {
            self.queue_read(die, read, now_ns);
        }
    }

    /// A page that was read ahead has come: commands that waited for it have their bytes.
    pub(super) fn ahead_come(&mut self, page: u32, now_ns: u64) {
        for (command, bytes) in self.ahead.come(page) {
            let moved_ns = self.interface.send(now_ns, u64::from(bytes));
            self.arrived(command as usize, moved_ns, now_ns);
        }
    }
}
