//! A solid-state drive: dies behind channels, a page-mapped translation layer with greedy garbage collection, a write
//! buffer, and the host interface in front.
//!
//! Reads and writes become operations of dies, which do one thing at a time, and transfers on channels and the
//! interface, which serve in order. Interference between tenants, the cost of fragmentation and the write cliff are
//! not parameters: they come from dies that are busy with something else. Structure and simplifications follow
//! simulators published in the literature: Li et al., "The CASE of FEMU" (FAST 2018), and Tavakkol et al., "MQSim"
//! (FAST 2018).

mod collection;
mod command;
mod die;
mod flash;
mod ftl;
mod geometry;
mod host_interface;
mod lane;
mod parameters;
mod read_ahead;
mod timeline;

use std::collections::{BTreeSet, VecDeque};

use rand_chacha::rand_core::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use slab::Slab;

use crate::{Completion, Request, Service, Ticket};
use command::Command;
use die::Die;
use ftl::Ftl;
use geometry::{Geometry, UNIT_BYTES};
use lane::{Interface, Lane, Path};
pub use parameters::SsdParameters;
use read_ahead::ReadAhead;
use timeline::{Event, Timeline};

/// Wear of an SSD's flash since it was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FlashWork {
    /// Bytes programmed for the host.
    pub host_bytes: u64,
    /// Bytes programmed altogether: with copies and padding. Divided by `host_bytes`: the write amplification.
    pub programmed_bytes: u64,
    /// Blocks erased.
    pub erases: u64,
    /// Number of blocks.
    pub blocks: u64,
}

/// A solid-state drive.
///
/// What was never written, or trimmed since, is answered without touching flash. Writes are complete in the buffer
/// when there is room. `WriteZeroes` is served as a trim of the 4 KiB units that it covers. When power is cut without
/// power-loss protection, what was in the buffer reads as though never written. Requests in progress end when the
/// drive is sanitized.
#[derive(Debug, Clone)]
pub struct Ssd {
    parameters: SsdParameters,
    costs: Costs,
    rng: ChaCha8Rng,
    timeline: Timeline,
    completions: Vec<Completion>,
    controller: Lane,
    interface: Interface,
    channels: Vec<Path>,
    dies: Vec<Die>,
    ftl: Ftl,
    ahead: ReadAhead,
    commands: Slab<Command>,
    /// Dies with page reads of the command under way; kept for its allocation.
    reading: Vec<u32>,
    /// Requests beyond the queue depth.
    outside: VecDeque<Request>,
    /// Writes for which the buffer has no room yet, by their place in the table of commands.
    stalled: VecDeque<usize>,
    /// Units in the buffer.
    buffered: u32,
    /// Rows of host data that are not programmed.
    unprogrammed_rows: usize,
    /// The die that takes host data, and how many units of its row are left.
    stripe: (u32, u32),
    /// Completion time of the last command.
    idle_since_ns: u64,
    is_quiet_expected: bool,
    flash_work: FlashWork,
}

/// Parameters in the units of the simulation.
#[derive(Debug, Clone, Copy)]
struct Costs {
    read: Varying,
    program: Varying,
    erase_ns: u64,
    command_ns: u64,
    read_overhead_ns: u64,
    write_overhead_ns: u64,
    buffer_units: u32,
}

impl Costs {
    fn new(parameters: &SsdParameters, geometry: &Geometry) -> Self {
        let ns = |us: f64| (us * 1e3).round() as u64;
        let variation = parameters.variation_percent / 100.0;
        let block_part = f64::from(geometry.rows) / f64::from(parameters.pages_per_block);
        Self {
            read: Varying::new(ns(parameters.read_us), variation),
            program: Varying::new(ns(parameters.program_us), variation),
            erase_ns: ns(parameters.erase_us * block_part),
            command_ns: ns(parameters.command_us),
            read_overhead_ns: ns(parameters.read_overhead_us),
            write_overhead_ns: ns(parameters.write_overhead_us),
            buffer_units: parameters.write_buffer_kib / (UNIT_BYTES / 1024) as u32,
        }
    }
}

/// A time that varies, uniformly.
#[derive(Debug, Clone, Copy)]
struct Varying {
    least_ns: u64,
    /// Number of the times that it may be, a nanosecond apart.
    times: u64,
}

impl Varying {
    fn new(mean_ns: u64, variation: f64) -> Self {
        let span_ns = (mean_ns as f64 * variation) as u64;
        Self {
            least_ns: mean_ns - span_ns,
            times: 2 * span_ns + 1,
        }
    }

    fn sample(self, rng: &mut ChaCha8Rng) -> u64 {
        self.least_ns + ((u64::from(rng.next_u32()) * self.times) >> 32)
    }
}

impl Ssd {
    /// A drive as it left the factory. `parameters` have been checked; `bytes` is a multiple of `sector_bytes`, which
    /// the model does not depend on, for it maps 4 KiB.
    ///
    /// # Panics
    ///
    /// If parameters or size fail [`SsdParameters::check`].
    #[must_use]
    pub fn new(parameters: SsdParameters, bytes: u64, _sector_bytes: u32, seed: u64) -> Self {
        let geometry = parameters.geometry(bytes).expect("the size was checked");
        let channel = Path::new(parameters.channel_mb_s);
        Self {
            costs: Costs::new(&parameters, &geometry),
            rng: ChaCha8Rng::seed_from_u64(seed),
            timeline: Timeline::new(),
            completions: Vec::new(),
            controller: Lane::default(),
            interface: Interface::new(parameters.interface_mb_s, parameters.full_duplex),
            channels: vec![channel; parameters.channels as usize],
            dies: (0..geometry.dies).map(|_| Die::default()).collect(),
            ftl: Ftl::new(geometry),
            ahead: ReadAhead::new(parameters.read_ahead_kib / (UNIT_BYTES / 1024) as u32),
            commands: Slab::new(),
            reading: Vec::new(),
            outside: VecDeque::new(),
            stalled: VecDeque::new(),
            buffered: 0,
            unprogrammed_rows: 0,
            stripe: (geometry.dies - 1, 0),
            idle_since_ns: 0,
            is_quiet_expected: false,
            flash_work: FlashWork {
                blocks: u64::from(geometry.dies * geometry.blocks),
                ..FlashWork::default()
            },
            parameters,
        }
    }

    /// The wear so far, including sanitize operations.
    #[must_use]
    pub fn flash_work(&self) -> FlashWork {
        self.flash_work
    }

    /// Process all events due by `now_ns`.
    #[inline]
    fn run_to(&mut self, now_ns: u64) {
        let due_ns = self.timeline.next_ns();
        if due_ns.is_some_and(|due_ns| due_ns <= now_ns) {
            self.run(now_ns, now_ns, false);
        }
    }

    /// Process all events due by `limit_ns`, or only those due by the first completion; returns the time of the last one,
    /// or `now_ns` if that is later.
    fn run(&mut self, now_ns: u64, limit_ns: u64, to_completion: bool) -> u64 {
        let mut at_ns = now_ns;
        loop {
            let is_done = to_completion && !self.completions.is_empty();
            let until_ns = if is_done { at_ns } else { limit_ns };
            let Some((event_ns, event)) = self.timeline.next(until_ns) else {
                return at_ns;
            };
            at_ns = at_ns.max(event_ns);
            self.happen(event, event_ns);
        }
    }

    fn happen(&mut self, event: Event, at_ns: u64) {
        match event {
            Event::Understood(command) => self.understood(command as usize, at_ns),
            Event::Sensed(die) => self.sensed(die, at_ns),
            Event::Finished(die) => self.finished(die, at_ns),
            Event::Filled(die) => {
                self.dies[die as usize].filled += 1;
                self.start(die, at_ns);
            }
            Event::Quiet => self.quiet(at_ns),
            Event::Complete(command) => self.complete(command as usize, at_ns),
        }
    }

    /// Append the completions so far; where there were none, without a copy.
    fn hand_over(&mut self, completions: &mut Vec<Completion>) {
        if completions.is_empty() {
            std::mem::swap(completions, &mut self.completions);
        } else {
            completions.append(&mut self.completions);
        }
    }

    /// Abort all operations and count buffered data as programmed.
    fn halt(&mut self) {
        self.timeline = Timeline::new();
        self.commands.clear();
        self.outside.clear();
        self.stalled.clear();
        for die in &mut self.dies {
            for row in &die.rows {
                if !self.parameters.power_loss_protection {
                    self.ftl.forget_memory(row.block);
                }
            }
            *die = Die::default();
        }
        self.ftl.settle();
        self.ahead.clear();
        self.buffered = 0;
        self.unprogrammed_rows = 0;
        self.stripe.1 = 0;
        self.is_quiet_expected = false;
        self.controller = Lane::default();
        self.interface.clear();
        self.channels.iter_mut().for_each(Path::clear);
    }
}

impl Service for Ssd {
    fn submit(&mut self, request: &Request, now_ns: u64) {
        self.run_to(now_ns);
        if self.commands.len() < self.parameters.queue_depth as usize {
            self.begin(request, now_ns);
        } else {
            self.outside.push_back(*request);
        }
    }

    fn next_due_ns(&self) -> Option<u64> {
        self.completions
            .first()
            .map(|completion| completion.at_ns)
            .or_else(|| self.timeline.next_ns())
    }

    fn advance(&mut self, now_ns: u64, completions: &mut Vec<Completion>) {
        self.run_to(now_ns);
        self.hand_over(completions);
    }

    fn proceed(&mut self, now_ns: u64, limit_ns: u64, completions: &mut Vec<Completion>) -> u64 {
        let mut at_ns = self.run(now_ns, limit_ns, true);
        if self.completions.is_empty() && limit_ns < u64::MAX {
            at_ns = at_ns.max(limit_ns);
        }
        self.hand_over(completions);
        at_ns
    }

    /// Requests within the queue depth are completed.
    fn abort(&mut self, tickets: &[Ticket], now_ns: u64) {
        self.run_to(now_ns);
        let gone: BTreeSet<Ticket> = tickets.iter().copied().collect();
        self.outside
            .retain(|request| !gone.contains(&request.ticket));
    }

    fn cut_power(&mut self, now_ns: u64) {
        self.run_to(now_ns);
        self.completions.clear();
        self.halt();
    }

    fn copy(&self) -> Box<dyn Service> {
        Box::new(self.clone())
    }

    fn sanitize(&mut self, now_ns: u64) {
        self.run_to(now_ns);
        let open = self
            .commands
            .iter()
            .map(|(_, command)| command.ticket)
            .chain(self.outside.iter().map(|request| request.ticket));
        self.completions.extend(open.map(|ticket| Completion {
            ticket,
            at_ns: now_ns,
            failed_at: None,
        }));
        self.halt();
        self.ftl = Ftl::new(*self.ftl.geometry());
        self.flash_work.erases += self.flash_work.blocks;
    }

    fn health(&self) -> Vec<(&'static str, u64)> {
        let FlashWork {
            programmed_bytes,
            erases,
            blocks,
            ..
        } = self.flash_work;
        vec![
            ("nand_bytes_written", programmed_bytes),
            ("erase_count_mean", erases / blocks),
        ]
    }
}
