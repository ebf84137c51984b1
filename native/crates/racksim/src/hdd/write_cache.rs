//! The write cache: data that is not on the media yet.

use std::collections::BTreeMap;

/// Maximum length of one write to the media, so that requests are not delayed for long.
const AT_ONCE: u64 = 1 << 20;

/// Number of ranges considered as the next write to the media.
const CONSIDERED: usize = 16;

/// Dirty ranges by their start; those that touch are one.
#[derive(Debug, Clone)]
pub(super) struct WriteCache {
    dirty: BTreeMap<u64, u64>,
    /// The range being written to the media.
    leaving: Option<(u64, u64)>,
    bytes: u64,
    room: u64,
    most: usize,
}

impl WriteCache {
    /// A cache of `room` bytes in at most `most` ranges.
    pub(super) fn new(room: u64, most: usize) -> Self {
        Self {
            dirty: BTreeMap::new(),
            leaving: None,
            bytes: 0,
            room,
            most,
        }
    }

    /// Whether `length` bytes could ever fit.
    pub(super) fn takes(&self, length: u64) -> bool {
        length <= self.room
    }

    /// Whether these bytes fit now.
    pub(super) fn fits(&self, start: u64, end: u64) -> bool {
        let leaving = self.leaving.map_or(0, |(start, end)| end - start);
        let grows = || {
            self.dirty
                .range(..=start)
                .next_back()
                .is_some_and(|(_, &dirty_end)| dirty_end >= start)
        };
        self.bytes + leaving + (end - start) <= self.room
            && (self.dirty.len() < self.most || grows())
    }

    pub(super) fn insert(&mut self, mut start: u64, mut end: u64) {
        self.remove(start, end);
        self.bytes += end - start;
        if let Some((&before, &before_end)) = self.dirty.range(..start).next_back() {
            if before_end == start {
                start = before;
            }
        }
        if let Some(after_end) = self.dirty.remove(&end) {
            end = after_end;
        }
        self.dirty.insert(start, end);
    }

    /// Drop dirty bytes that are overwritten or trimmed.
    pub(super) fn remove(&mut self, start: u64, end: u64) {
        while let Some((&dirty_start, &dirty_end)) = self
            .dirty
            .range(..end)
            .next_back()
            .filter(|(_, &dirty_end)| dirty_end > start)
        {
            self.dirty.remove(&dirty_start);
            self.bytes -= dirty_end.min(end) - dirty_start.max(start);
            if dirty_end > end {
                self.dirty.insert(end, dirty_end);
            }
            if dirty_start < start {
                self.dirty.insert(dirty_start, start);
            }
        }
    }

    /// Whether the cache holds all of these bytes.
    pub(super) fn holds(&self, start: u64, end: u64) -> bool {
        let covers =
            |(dirty_start, dirty_end): (u64, u64)| dirty_start <= start && end <= dirty_end;
        self.leaving.is_some_and(covers)
            || self
                .dirty
                .range(..=start)
                .next_back()
                .is_some_and(|(&start, &end)| covers((start, end)))
    }

    /// Candidates for the next write to the media: those that follow this byte, then from the first one again.
    pub(super) fn candidates(&self, byte: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.dirty
            .range(byte..)
            .chain(self.dirty.range(..byte))
            .take(CONSIDERED)
            .map(|(&start, &end)| (start, end.min(start + AT_ONCE)))
    }

    /// Begin to write one of the candidates to the media.
    pub(super) fn leave(&mut self, start: u64, end: u64) {
        self.remove(start, end);
        self.leaving = Some((start, end));
    }

    /// The range being written is on the media.
    pub(super) fn left(&mut self) {
        self.leaving = None;
    }

    /// Whether no range waits to be written to the media.
    pub(super) fn is_clean(&self) -> bool {
        self.dirty.is_empty()
    }

    /// Whether everything written is on the media.
    pub(super) fn is_empty(&self) -> bool {
        self.is_clean() && self.leaving.is_none()
    }

    /// Drop all data.
    pub(super) fn clear(&mut self) {
        self.dirty.clear();
        self.leaving = None;
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use rand_chacha::rand_core::SeedableRng;
    use rand_chacha::ChaCha8Rng;
    use rand_distr::{Distribution, Uniform};

    use super::*;

    const BYTES: u64 = 200;

    /// Compares with a model of one flag per byte.
    #[test]
    fn ranges_are_what_was_written_less_what_was_removed_or_left() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let mut below = |n: u64| Uniform::new(0, n).unwrap().sample(&mut rng);
        let mut cache = WriteCache::new(BYTES, 1000);
        let mut flags = [false; BYTES as usize];
        for _ in 0..5000 {
            let start = below(BYTES - 1);
            let end = start + 1 + below((BYTES - start).min(30));
            match below(4) {
                0 => {
                    cache.remove(start, end);
                    flags[start as usize..end as usize].fill(false);
                }
                1 => {
                    cache.left();
                    let first = cache.candidates(start).next();
                    if let Some((start, end)) = first {
                        cache.leave(start, end);
                        assert!(cache.holds(start, end), "on its way, it is still there");
                        flags[start as usize..end as usize].fill(false);
                        cache.left();
                    }
                }
                _ => {
                    cache.insert(start, end);
                    flags[start as usize..end as usize].fill(true);
                    assert!(cache.holds(start, end));
                }
            }
            assert_eq!(
                cache.bytes,
                flags.iter().filter(|&&flag| flag).count() as u64
            );
            let starts = (0..BYTES as usize)
                .filter(|&at| flags[at] && (at == 0 || !flags[at - 1]))
                .count();
            assert_eq!(cache.dirty.len(), starts, "ranges that touch are one");
            assert_eq!(
                cache.holds(start, end),
                flags[start as usize..end as usize].iter().all(|&flag| flag)
            );
        }
    }

    #[test]
    fn bytes_and_ranges_are_bounded() {
        let mut cache = WriteCache::new(100, 2);
        assert!(cache.takes(100) && !cache.takes(101));
        cache.insert(0, 10);
        cache.insert(20, 30);
        assert!(cache.fits(30, 40), "a range grows");
        assert!(!cache.fits(50, 60), "a third range");
        assert!(!cache.fits(30, 111), "too many bytes");
        cache.leave(0, 10);
        assert!(!cache.fits(30, 111), "what leaves needs its room");
        cache.left();
        assert!(cache.fits(30, 111) && cache.fits(50, 60));
    }
}
