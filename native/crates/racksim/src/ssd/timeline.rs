//! The event queue.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// A future event inside the drive. Dies by number, commands by their place in the table of commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    /// The controller has decoded a command.
    Understood(usize),
    /// A die has a page in its register.
    Sensed(u32),
    /// A die has finished its work.
    Finished(u32),
    /// The last bytes of a row have arrived from the host.
    Filled(u32),
    /// The host may have been idle for a while.
    Quiet,
    /// A command is complete.
    Complete(usize),
}

/// A series of events that mostly come in the order of their times, since one server after the other makes them.
#[derive(Debug, Clone, Copy)]
pub(super) enum Series {
    /// Commands of reads, and their ends.
    Read,
    ReadEnd,
    /// Commands of writes and of all else, and their ends.
    Write,
    WriteEnd,
    /// Rows that are full.
    Filled,
    /// All other events.
    Other,
}

const SERIES: usize = 6;

/// The place of what came out of the order of its series.
const UNORDERED: usize = SERIES;

/// The place of the first event of a die.
const DIES: usize = SERIES + 1;

/// Bits of a key for its place.
const PLACE_BITS: u32 = 16;

const NEVER: u128 = u128::MAX;

/// Events in order of time, then of insertion.
///
/// A die has one event at most, and most others come in order: so there is a queue for each series, a heap for what is
/// out of order, and a tournament between the dies. Finding the next event takes no comparison whose outcome a processor
/// could only guess.
#[derive(Debug, Clone)]
pub(super) struct Timeline {
    /// The key of the first event of each series, out of order, and of the dies.
    first: [u128; DIES + 1],
    series: [VecDeque<(u128, Event)>; SERIES],
    unordered: BinaryHeap<Reverse<(u128, Event)>>,
    dies: Vec<Event>,
    /// A complete binary tree from place 1 on, its leaves the dies: each node has the least key below it.
    tree: Vec<u128>,
    added: u64,
}

impl Timeline {
    /// No events, of so many dies.
    pub fn new(dies: u32) -> Self {
        Self {
            first: [NEVER; DIES + 1],
            series: Default::default(),
            unordered: BinaryHeap::new(),
            dies: vec![Event::Quiet; dies as usize],
            tree: vec![NEVER; 2 * (dies as usize).next_power_of_two()],
            added: 0,
        }
    }

    /// Add an event to a series.
    pub fn add(&mut self, series: Series, at_ns: u64, event: Event) {
        let key = self.key(at_ns, series as usize);
        let queue = &mut self.series[series as usize];
        match queue.back() {
            Some((last, _)) if *last > key => {
                let key = (key >> PLACE_BITS << PLACE_BITS) | UNORDERED as u128;
                self.unordered.push(Reverse((key, event)));
                self.first[UNORDERED] = self.first[UNORDERED].min(key);
            }
            last => {
                if last.is_none() {
                    self.first[series as usize] = key;
                }
                queue.push_back((key, event));
            }
        }
    }

    /// Give a die its event. It has none, or the one that [`Timeline::next`] returned last.
    pub fn set_die(&mut self, die: u32, at_ns: u64, event: Event) {
        let key = self.key(at_ns, DIES + die as usize);
        self.dies[die as usize] = event;
        self.set_key(die, key);
    }

    /// Take the event of a die away.
    pub fn clear_die(&mut self, die: u32) {
        self.set_key(die, NEVER);
    }

    /// The time of the next event.
    pub fn next_ns(&self) -> Option<u64> {
        let next = self.least();
        (next != NEVER).then_some(time(next))
    }

    /// The next event, if it happens by `now_ns`. One of a die stays until [`Timeline::set_die`] or
    /// [`Timeline::clear_die`].
    pub fn next(&mut self, now_ns: u64) -> Option<(u64, Event)> {
        let next = self.least();
        if next == NEVER || time(next) > now_ns {
            return None;
        }
        let place = next as usize & ((1 << PLACE_BITS) - 1);
        let event = if place >= DIES {
            self.dies[place - DIES]
        } else if place == UNORDERED {
            let Reverse((_, event)) = self.unordered.pop()?;
            let first = self.unordered.peek();
            self.first[UNORDERED] = first.map_or(NEVER, |&Reverse((key, _))| key);
            event
        } else {
            let queue = &mut self.series[place];
            let (_, event) = queue.pop_front()?;
            self.first[place] = queue.front().map_or(NEVER, |&(key, _)| key);
            event
        };
        Some((time(next), event))
    }

    fn least(&self) -> u128 {
        let [a, b, c, d, e, f, g, h] = self.first;
        let (left, right) = (
            lesser(lesser(a, b), lesser(c, d)),
            lesser(lesser(e, f), lesser(g, h)),
        );
        lesser(left, right)
    }

    /// The key of a new event: its time, its number, and its place, in this order.
    fn key(&mut self, at_ns: u64, place: usize) -> u128 {
        self.added += 1;
        (u128::from(at_ns) << 64) | u128::from(self.added << PLACE_BITS) | place as u128
    }

    /// Change the key of a die, and the least ones above it.
    fn set_key(&mut self, die: u32, key: u128) {
        let mut node = self.tree.len() / 2 + die as usize;
        let mut least = key;
        self.tree[node] = key;
        while node > 1 {
            least = lesser(least, self.tree[node ^ 1]);
            node /= 2;
            self.tree[node] = least;
        }
        self.first[DIES] = least;
    }
}

/// The lesser of two keys. `min` would be compiled to a branch.
fn lesser(one: u128, other: u128) -> u128 {
    let mask = u128::from(other < one).wrapping_neg();
    one ^ ((one ^ other) & mask)
}

fn time(key: u128) -> u64 {
    (key >> 64) as u64
}
