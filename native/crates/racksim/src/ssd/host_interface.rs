//! The host interface: commands from arrival to completion, and the write buffer.

use super::command::{units_of, Command};
use super::die::{PageRead, Row};
use super::ftl::{Place, Stream};
use super::geometry::UNIT_BYTES;
use super::read_ahead::Served;
use super::timeline::Event;
use super::Ssd;
use crate::{Completion, Kind, Request};

impl Ssd {
    /// Accept a request: the controller begins to decode it.
    pub(super) fn begin(&mut self, request: &Request, now_ns: u64) {
        let stream = match request.io.kind {
            Kind::Read => self.ahead.note(units_of(&request.io)),
            _ => None,
        };
        let understood_ns = self.controller.take(now_ns, self.costs.command_ns);
        let overhead_ns = match request.io.kind {
            Kind::Read => self.costs.read_overhead_ns,
            Kind::Write => self.costs.write_overhead_ns,
            Kind::Flush | Kind::Trim | Kind::WriteZeroes => 0,
        };
        self.ftl.foresee((request.io.offset / UNIT_BYTES) as u32);
        let command = self.commands.insert(Command {
            ticket: request.ticket,
            io: request.io,
            is_durable: request.fua && !self.parameters.power_loss_protection,
            next_unit: (request.io.offset / UNIT_BYTES) as u32,
            awaits: 0,
            moved_ns: now_ns,
            stream,
        });
        let at_ns = understood_ns + overhead_ns;
        self.timeline.add(at_ns, Event::Understood(command as u32));
    }

    pub(super) fn understood(&mut self, number: usize, now_ns: u64) {
        match self.commands[number].io.kind {
            Kind::Read => self.read(number, now_ns),
            Kind::Write => self.read_edges(number, now_ns),
            Kind::Flush => self.flush(number, now_ns),
            Kind::Trim | Kind::WriteZeroes => self.trim(number, now_ns),
        }
    }

    pub(super) fn complete(&mut self, number: usize, now_ns: u64) {
        let command = self.commands.remove(number);
        self.completions.push(Completion {
            ticket: command.ticket,
            at_ns: now_ns,
            failed_at: None,
        });
        if let Some(request) = self.outside.pop_front() {
            self.begin(&request, now_ns);
        }
        if self.commands.is_empty() {
            self.idle_since_ns = now_ns;
            self.expect_quiet();
        }
    }

    /// A page read or row that a command waits for has ended; its data had moved by `moved_ns`.
    pub(super) fn arrived(&mut self, number: usize, moved_ns: u64, now_ns: u64) {
        let command = &mut self.commands[number];
        command.moved_ns = command.moved_ns.max(moved_ns);
        command.awaits -= 1;
        if command.awaits == 0 {
            self.all_arrived(number, now_ns);
        }
    }

    /// All that a command waited for has ended.
    fn all_arrived(&mut self, number: usize, now_ns: u64) {
        let command = &self.commands[number];
        if command.io.kind == Kind::Write && command.next_unit < command.units().end {
            self.stall(number, now_ns);
        } else {
            let done_ns = command.moved_ns.max(now_ns);
            self.timeline.add(done_ns, Event::Complete(number as u32));
        }
    }

    fn read(&mut self, number: usize, now_ns: u64) {
        let command = &mut self.commands[number];
        let (stream, units) = (command.stream, command.units());
        let (mut memory_bytes, mut awaited) = (0, 0);
        let mut reading = std::mem::take(&mut self.reading);
        for unit in units.clone() {
            let host_bytes = command.bytes_in(unit);
            let Place::Flash { die, page } = self.ftl.place(unit) else {
                memory_bytes += u64::from(host_bytes);
                continue;
            };
            if stream.is_some() {
                match self.ahead.serves(page, number as u32, host_bytes) {
                    Served::No => {}
                    Served::FromMemory => {
                        memory_bytes += u64::from(host_bytes);
                        continue;
                    }
                    Served::Later => {
                        awaited += 1;
                        continue;
                    }
                }
            }
            let is_last = reading.last() == Some(&die);
            let reads = &mut self.dies[die as usize].reads;
            match reads.back_mut().filter(|read| is_last && read.page == page) {
                Some(read) => {
                    read.units += 1;
                    read.host_bytes += host_bytes;
                }
                None => {
                    reading.push(die);
                    reads.push_back(PageRead {
                        command: number as u32,
                        page,
                        units: 1,
                        host_bytes,
                    });
                }
            }
        }
        let moved_ns = self.interface.send(now_ns, memory_bytes);
        command.moved_ns = command.moved_ns.max(moved_ns);
        command.awaits = reading.len() as u32 + awaited;
        if command.awaits == 0 {
            self.all_arrived(number, now_ns);
        }
        for die in reading.drain(..) {
            self.start(die, now_ns);
        }
        self.reading = reading;
        if let Some(stream) = stream {
            self.read_ahead(stream, &units, now_ns);
        }
    }

    /// Read the units that a write covers only in part, if flash has them.
    fn read_edges(&mut self, number: usize, now_ns: u64) {
        let command = &self.commands[number];
        let units = command.units();
        let mut edges = vec![units.start];
        if units.len() > 1 {
            edges.push(units.end - 1);
        }
        let reads: Vec<_> = edges
            .into_iter()
            .filter(|&unit| !units.is_empty() && u64::from(command.bytes_in(unit)) < UNIT_BYTES)
            .filter_map(|unit| match self.ftl.place(unit) {
                Place::Flash { die, page } => Some((
                    die,
                    PageRead {
                        command: number as u32,
                        page,
                        units: 1,
                        host_bytes: 0,
                    },
                )),
                Place::Nowhere | Place::Memory => None,
            })
            .collect();
        self.commands[number].awaits = reads.len() as u32 + 1;
        self.arrived(number, now_ns, now_ns);
        for (die, read) in reads {
            self.queue_read(die, read, now_ns);
        }
    }

    pub(super) fn queue_read(&mut self, die: u32, read: PageRead, now_ns: u64) {
        self.dies[die as usize].reads.push_back(read);
        self.start(die, now_ns);
    }

    fn trim(&mut self, number: usize, now_ns: u64) {
        let command = &self.commands[number];
        let first = command.io.offset.div_ceil(UNIT_BYTES) as u32;
        let end = (command.end() / UNIT_BYTES) as u32;
        for unit in first..end {
            self.ftl.unmap(unit);
        }
        self.timeline.add(now_ns, Event::Complete(number as u32));
    }

    fn flush(&mut self, number: usize, now_ns: u64) {
        self.commands[number].awaits = 1;
        if !self.parameters.power_loss_protection {
            for die in 0..self.dies.len() as u32 {
                self.await_last_row(die, number, now_ns);
            }
        }
        self.arrived(number, now_ns, now_ns);
    }

    /// Make a command wait for the last row of a die, if any, and close that row.
    fn await_last_row(&mut self, die: u32, number: usize, now_ns: u64) {
        let Some(row) = self.dies[die as usize].rows.back_mut() else {
            return;
        };
        self.commands[number].awaits += 1;
        row.awaited_by.push(number);
        self.close_last_row(die, now_ns);
    }

    /// Close the last row of a die and pad it.
    fn close_last_row(&mut self, die: u32, now_ns: u64) {
        match self.dies[die as usize].rows.back_mut() {
            Some(row) if !row.is_full => row.is_full = true,
            _ => return,
        }
        self.ftl.pad(die, Stream::Host);
        if self.stripe.0 == die {
            self.stripe.1 = 0;
        }
        self.timeline.add(now_ns, Event::Filled(die));
    }

    fn stall(&mut self, number: usize, now_ns: u64) {
        self.commands[number].awaits = 1;
        self.stalled.push_back(number);
        self.admit(now_ns);
    }

    /// Admit the data of stalled writes to the buffer, in order, as far as there is room.
    pub(super) fn admit(&mut self, now_ns: u64) {
        while let Some(&number) = self.stalled.front() {
            while self.commands[number].next_unit < self.commands[number].units().end {
                if self.buffered >= self.costs.buffer_units {
                    return;
                }
                if !self.choose_die() {
                    // A die that had no block worth collecting may have one by now.
                    self.start_all(now_ns);
                    return;
                }
                self.take_in(number, now_ns);
            }
            self.stalled.pop_front();
            self.admitted(number, now_ns);
        }
    }

    /// All data of a write is in the buffer, or on its way there.
    fn admitted(&mut self, number: usize, now_ns: u64) {
        if self.commands[number].is_durable {
            for die in 0..self.dies.len() as u32 {
                let row = self.dies[die as usize].rows.back();
                if row.is_some_and(|row| row.awaited_by.contains(&number)) {
                    self.close_last_row(die, now_ns);
                }
            }
        }
        self.arrived(number, now_ns, now_ns);
    }

    /// Move the next unit of a write into the buffer. There must be room on the current die.
    fn take_in(&mut self, number: usize, now_ns: u64) {
        let command = &mut self.commands[number];
        let unit = command.next_unit;
        command.next_unit += 1;
        let moved_ns = self
            .interface
            .receive(now_ns, u64::from(command.bytes_in(unit)));
        command.moved_ns = command.moved_ns.max(moved_ns);
        self.buffered += 1;
        let die = self.stripe.0;
        self.stripe.1 -= 1;
        let (block, is_full) = self.ftl.append(die, Stream::Host, unit);
        let rows = &mut self.dies[die as usize].rows;
        if rows.back().is_none_or(|row| row.is_full) {
            self.unprogrammed_rows += 1;
            rows.push_back(Row::new(block));
        }
        let last = rows.len() - 1;
        let row = &mut rows[last];
        row.units += 1;
        row.is_full = is_full;
        if command.is_durable && !row.awaited_by.contains(&number) {
            row.awaited_by.push(number);
            command.awaits += 1;
        }
        if is_full {
            self.timeline.add(moved_ns, Event::Filled(die));
        }
    }

    /// Choose the die for the next row of host data, in order, skipping those with more than their share of rows to
    /// program; `false` where no die has room.
    fn choose_die(&mut self) -> bool {
        let dies = self.dies.len() as u32;
        let (current, left) = self.stripe;
        if left > 0 {
            return true;
        }
        let share = self.unprogrammed_rows / self.dies.len();
        let backlog = |die: u32| self.dies[die as usize].rows.len();
        let mut shortest: Option<u32> = None;
        for die in (current + 1..dies).chain(0..=current) {
            if !self.ftl.has_room(die, Stream::Host) {
                continue;
            }
            if backlog(die) <= share {
                shortest = Some(die);
                break;
            }
            if shortest.is_none_or(|other| backlog(die) < backlog(other)) {
                shortest = Some(die);
            }
        }
        let Some(die) = shortest else {
            return false;
        };
        self.stripe = (die, self.ftl.geometry().row_units);
        true
    }
}
