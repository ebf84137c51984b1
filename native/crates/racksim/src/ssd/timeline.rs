//! The event queue.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A future event inside the drive. Dies by number, commands by their place in the table of commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    /// The controller has decoded a command.
    Understood(u32),
    /// A die has a page in its register.
    Sensed(u32),
    /// A die has finished its work.
    Finished(u32),
    /// The last bytes of a row have arrived from the host.
    Filled(u32),
    /// The host may have been idle for a while.
    Quiet,
    /// A command is complete.
    Complete(u32),
}

/// Binary logarithm of a day's length in nanoseconds: a busy drive has an event on every other day.
const DAY_BITS: u32 = 8;

/// Days of a week: those of a word of bits.
const WEEK: usize = u64::BITS as usize;

/// Days of the calendar, with as many weeks as a week has days: a millisecond, in which most of what a busy drive has
/// begun ends.
const DAYS: usize = WEEK * WEEK;

/// No entry.
const NONE: u32 = u32::MAX;

const NEVER: u64 = u64::MAX;

/// An event of a day.
#[derive(Debug, Clone, Copy)]
struct Entry {
    at_ns: u64,
    event: Event,
    /// The next one of the day, or of those that are free.
    next: u32,
}

/// Events in order of time, then of insertion.
///
/// A calendar queue (R. Brown, CACM 1988): what is near is in the list of its day, in order, and most of these are empty
/// or have one event; what is farther away is in a heap. An event that came into the heap for a time is before those
/// that the calendar has for it: time had not come that near when it was added.
#[derive(Debug, Clone)]
pub(super) struct Timeline {
    /// The time of the last event that was taken.
    now_ns: u64,
    /// The time of the next event, and its entry if it is of a day.
    next: (u64, u32),
    /// The first entry of each day; the days repeat.
    days: Box<[u32; DAYS]>,
    /// Of each week, a bit for each day that has entries.
    days_used: [u64; WEEK],
    /// A bit for each week that has entries.
    weeks_used: u64,
    entries: Vec<Entry>,
    free: u32,
    /// With the number of events that were there before.
    far: BinaryHeap<Reverse<(u64, u64, Event)>>,
    added: u64,
}

impl Timeline {
    /// No events.
    pub fn new() -> Self {
        Self {
            now_ns: 0,
            next: (NEVER, NONE),
            days: Box::new([NONE; DAYS]),
            days_used: [0; WEEK],
            weeks_used: 0,
            entries: Vec::new(),
            free: NONE,
            far: BinaryHeap::new(),
            added: 0,
        }
    }

    /// Add an event. Its time is not before that of the last event taken.
    pub fn add(&mut self, at_ns: u64, event: Event) {
        debug_assert!(at_ns >= self.now_ns, "time goes back");
        let is_far = (at_ns >> DAY_BITS) - (self.now_ns >> DAY_BITS) >= DAYS as u64;
        let place = if is_far {
            self.far.push(Reverse((at_ns, self.added, event)));
            self.added += 1;
            NONE
        } else {
            self.enter(at_ns, event)
        };
        if at_ns < self.next.0 {
            self.next = (at_ns, place);
        }
    }

    /// The time of the next event.
    pub fn next_ns(&self) -> Option<u64> {
        let (at_ns, _) = self.next;
        (at_ns != NEVER).then_some(at_ns)
    }

    /// Take the next event, if it happens by `now_ns`.
    #[inline]
    pub fn next(&mut self, now_ns: u64) -> Option<(u64, Event)> {
        let (at_ns, place) = self.next;
        if at_ns > now_ns || at_ns == NEVER {
            return None;
        }
        self.now_ns = at_ns;
        let event = if place == NONE {
            self.far.pop().map(|Reverse((_, _, event))| event)?
        } else {
            self.leave(place)
        };
        self.next = self.first();
        Some((at_ns, event))
    }

    /// Enter an event on its day, behind those until its time; returns its place.
    fn enter(&mut self, at_ns: u64, event: Event) -> u32 {
        let day = day(at_ns);
        let (mut before, mut next) = (NONE, self.days[day]);
        while next != NONE && self.entries[next as usize].at_ns <= at_ns {
            (before, next) = (next, self.entries[next as usize].next);
        }
        let place = self.store(Entry { at_ns, event, next });
        if before == NONE {
            self.days[day] = place;
            self.days_used[day / WEEK] |= 1 << (day % WEEK);
            self.weeks_used |= 1 << (day / WEEK);
        } else {
            self.entries[before as usize].next = place;
        }
        place
    }

    /// Take away the entry that is the first of its day.
    fn leave(&mut self, place: u32) -> Event {
        let entry = &mut self.entries[place as usize];
        let Entry { at_ns, event, next } = *entry;
        entry.next = std::mem::replace(&mut self.free, place);
        let day = day(at_ns);
        self.days[day] = next;
        let week = &mut self.days_used[day / WEEK];
        *week ^= u64::from(next == NONE) << (day % WEEK);
        if *week == 0 {
            self.weeks_used &= !(1 << (day / WEEK));
        }
        event
    }

    /// The next event there is: its time, and its entry if it is of a day.
    fn first(&self) -> (u64, u32) {
        let far_ns = self.far.peek().map_or(NEVER, |Reverse((at_ns, ..))| *at_ns);
        let today = day(self.now_ns);
        let mut week = today / WEEK;
        let mut used = self.days_used[week] & (u64::MAX << (today % WEEK));
        if used == 0 {
            if self.weeks_used == 0 {
                return (far_ns, NONE);
            }
            // From next week on; this one comes last: its days before today are the last of the calendar.
            let next = (week + 1) % WEEK;
            let ahead = self.weeks_used.rotate_right(next as u32);
            week = (next + ahead.trailing_zeros() as usize) % WEEK;
            used = self.days_used[week];
        }
        let place = self.days[week * WEEK + used.trailing_zeros() as usize];
        let at_ns = self.entries[place as usize].at_ns;
        if far_ns <= at_ns {
            (far_ns, NONE)
        } else {
            (at_ns, place)
        }
    }

    /// Store an entry in a place that is free.
    fn store(&mut self, entry: Entry) -> u32 {
        let place = self.free;
        if let Some(free) = self.entries.get_mut(place as usize) {
            self.free = free.next;
            *free = entry;
            return place;
        }
        self.entries.push(entry);
        (self.entries.len() - 1) as u32
    }
}

/// The day of a time.
fn day(at_ns: u64) -> usize {
    (at_ns >> DAY_BITS) as usize % DAYS
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    use rand_chacha::rand_core::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    /// Times from now to the event: many at one time, on one day, on any day, around the end of the calendar, beyond.
    const SPANS_NS: [u64; 5] = [2, 1 << DAY_BITS, 100_000, 1 << 20, 1 << 23];

    #[test]
    fn events_come_in_order_of_time_and_then_of_insertion() {
        for seed in 0..20 {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let mut timeline = Timeline::new();
            let mut expected = BTreeSet::new();
            let mut now_ns = 1 << 40;
            for number in 0..20_000 {
                if rng.next_u32() % 20 < 11 {
                    let span_ns = SPANS_NS[rng.next_u32() as usize % SPANS_NS.len()];
                    // In steps, so that events meet which were added far from and near their time.
                    let step_ns = (span_ns / 16).max(1);
                    let at_ns = (now_ns / step_ns + 1 + rng.next_u64() % 16) * step_ns;
                    timeline.add(at_ns, Event::Sensed(number));
                    expected.insert((at_ns, number));
                    continue;
                }
                assert_eq!(timeline.next_ns(), expected.first().map(|first| first.0));
                let limit_ns = now_ns + (1 << 18);
                let is_due = expected.first().is_some_and(|first| first.0 <= limit_ns);
                let found = timeline.next(limit_ns);
                if is_due {
                    let (at_ns, number) = expected.pop_first().unwrap();
                    assert_eq!(found, Some((at_ns, Event::Sensed(number))));
                    now_ns = at_ns;
                } else {
                    assert_eq!(found, None);
                    now_ns = limit_ns;
                }
            }
        }
    }

    #[test]
    fn the_last_day_of_the_calendar_is_found_from_any_day() {
        for today in 0..2 * WEEK as u64 {
            let [first_ns, last_ns] = [today, today + DAYS as u64 - 1].map(|day| day << DAY_BITS);
            let mut timeline = Timeline::new();
            timeline.add(first_ns, Event::Filled(0));
            timeline.next(u64::MAX);
            timeline.add(last_ns, Event::Filled(1));
            timeline.add(first_ns, Event::Quiet);
            assert_eq!(timeline.next(u64::MAX), Some((first_ns, Event::Quiet)));
            assert_eq!(timeline.next(u64::MAX), Some((last_ns, Event::Filled(1))));
            assert_eq!(timeline.next(u64::MAX), None);
        }
    }
}
