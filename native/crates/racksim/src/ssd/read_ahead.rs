//! Reading ahead of sequential streams, into the controller's memory.
//!
//! A read that begins where an earlier one ended continues its stream. The drive then reads the pages that follow, on
//! whichever dies they lie, so that small sequential reads wait for few of them.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

/// Streams that are told apart; the one least recently used goes first.
const STREAMS: usize = 16;

/// The command of a page read that is ahead of all commands.
pub(super) const AHEAD: u32 = u32::MAX;

/// A page that is read ahead.
#[derive(Debug, Clone)]
enum Page {
    /// It is in memory.
    Here,
    /// It is being read; commands wait for bytes of it.
    Coming(Vec<(u32, u32)>),
    /// The same, and its stream is gone.
    Forsaken(Vec<(u32, u32)>),
}

/// A sequential stream of reads.
#[derive(Debug, Clone)]
struct Stream {
    number: u64,
    /// The first unit that has not been read ahead.
    ahead: u32,
    /// Pages that were read ahead, each with the last of the stream's units in it.
    pages: VecDeque<(u32, u32)>,
}

/// The streams, and what was read ahead of them.
#[derive(Debug, Clone)]
pub(super) struct ReadAhead {
    /// Units that are read ahead; 0 for none.
    units: u32,
    /// A ring in order of use. Those that have not begun are of no unit.
    streams: Vec<Stream>,
    /// The unit that the next read of each of them begins with: every read looks through these.
    next: [u32; STREAMS],
    /// The place of the least recently used one.
    oldest: usize,
    pages: BTreeMap<u32, Page>,
    begun: u64,
}

impl ReadAhead {
    /// Reading ahead by so many units.
    pub fn new(units: u32) -> Self {
        let stream = Stream {
            number: 0,
            ahead: 0,
            pages: VecDeque::new(),
        };
        Self {
            units,
            streams: vec![stream; STREAMS],
            next: [u32::MAX; STREAMS],
            oldest: 0,
            pages: BTreeMap::new(),
            begun: 0,
        }
    }

    /// Take note of a read; returns the stream that it continues.
    pub fn note(&mut self, units: Range<u32>) -> Option<u64> {
        if self.units == 0 || units.is_empty() {
            return None;
        }
        // Most reads of a random load continue none, which is found faster without a branch for each stream.
        let continues = |next: &u32| *next == units.start;
        if !self
            .next
            .iter()
            .fold(false, |any, next| any | continues(next))
        {
            self.begin(units.end);
            return None;
        }
        let by_age = |age: usize| (self.oldest + age) % STREAMS;
        let age = (0..STREAMS).find(|&age| continues(&self.next[by_age(age)]))?;
        for place in (age..STREAMS - 1).map(by_age) {
            self.next.swap(place, (place + 1) % STREAMS);
            self.streams.swap(place, (place + 1) % STREAMS);
        }
        let newest = by_age(STREAMS - 1);
        self.next[newest] = units.end;
        Some(self.streams[newest].number)
    }

    /// Begin a stream, in the place of the least recently used one.
    fn begin(&mut self, next: u32) {
        let place = self.oldest;
        self.oldest = (place + 1) % STREAMS;
        while let Some((_, page)) = self.streams[place].pages.pop_front() {
            self.forsake(page);
        }
        self.begun += 1;
        self.next[place] = next;
        let stream = &mut self.streams[place];
        (stream.number, stream.ahead) = (self.begun, next);
    }

    /// Forget everything, as when power is cut.
    pub fn clear(&mut self) {
        *self = Self::new(self.units);
    }

    /// Serve a command that needs bytes of a page, if the page is or will be in memory.
    pub fn serves(&mut self, page: u32, command: u32, bytes: u32) -> Served {
        match self.pages.get_mut(&page) {
            None => Served::No,
            Some(Page::Here) => Served::FromMemory,
            Some(Page::Coming(waiting) | Page::Forsaken(waiting)) => {
                waiting.push((command, bytes));
                Served::Later
            }
        }
    }

    /// A page has come; returns the commands that waited for it, with their bytes.
    pub fn come(&mut self, page: u32) -> Vec<(u32, u32)> {
        match self.pages.remove(&page) {
            Some(Page::Coming(waiting)) => {
                self.pages.insert(page, Page::Here);
                waiting
            }
            Some(Page::Forsaken(waiting)) => waiting,
            Some(Page::Here) | None => Vec::new(),
        }
    }

    fn forsake(&mut self, page: u32) {
        // Two streams may have had it: those who wait for it wait on.
        if let Some(Page::Coming(waiting) | Page::Forsaken(waiting)) = self.pages.remove(&page) {
            self.pages.insert(page, Page::Forsaken(waiting));
        }
    }

    /// The units to read ahead for a read of `units` that continues a stream. What lies behind the read is forgotten.
    pub fn wanted(&mut self, number: u64, units: &Range<u32>, drive_units: u32) -> Range<u32> {
        let Some(stream) = self
            .streams
            .iter_mut()
            .find(|stream| stream.number == number)
        else {
            return 0..0;
        };
        let mut behind = Vec::new();
        while let Some(&(last, page)) = stream.pages.front() {
            if last >= units.start {
                break;
            }
            stream.pages.pop_front();
            behind.push(page);
        }
        let begin = stream.ahead.max(units.end);
        let end = (units.end + self.units).min(drive_units);
        // In halves, so that pages are not asked for unit by unit.
        let wanted = if begin + self.units / 2 <= end {
            stream.ahead = end;
            begin..end
        } else {
            0..0
        };
        for page in behind {
            self.forsake(page);
        }
        wanted
    }

    /// Expect the page of a unit of a stream; returns whether it has to be read.
    pub fn expect(&mut self, number: u64, unit: u32, page: u32) -> bool {
        let stream = self
            .streams
            .iter_mut()
            .find(|stream| stream.number == number);
        let Some(stream) = stream else {
            return false;
        };
        match stream.pages.back_mut() {
            Some((last, known)) if *known == page => *last = unit,
            _ => stream.pages.push_back((unit, page)),
        }
        if self.pages.contains_key(&page) {
            return false;
        }
        self.pages.insert(page, Page::Coming(Vec::new()));
        true
    }
}

/// The answer to a command that needs a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Served {
    /// It has to be read.
    No,
    /// It is in memory.
    FromMemory,
    /// It is being read already.
    Later,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_two_streams_forsake_still_comes_to_those_who_wait() {
        let mut ahead = ReadAhead::new(64);
        let mut streams = Vec::new();
        for first in [0, 1000] {
            assert_eq!(ahead.note(first..first + 1), None);
            let number = ahead.note(first + 1..first + 2).unwrap();
            assert!(!ahead
                .wanted(number, &(first + 1..first + 2), 4096)
                .is_empty());
            streams.push(number);
        }
        assert!(ahead.expect(streams[0], 4, 7));
        assert!(!ahead.expect(streams[1], 1004, 7));
        assert_eq!(ahead.serves(7, 3, 4096), Served::Later);
        for (number, first) in streams.into_iter().zip([0, 1000]) {
            ahead.wanted(number, &(first + 40..first + 41), 4096);
        }
        assert_eq!(ahead.come(7), [(3, 4096)]);
        assert_eq!(ahead.serves(7, 4, 4096), Served::No);
    }
}
