//! Drive-managed shingled recording: bands that are written from their beginning, and a media cache
//! for all other writes.

use std::collections::{BTreeMap, VecDeque};

use super::SmrParameters;

const SMALLEST_CACHE: u64 = 8 << 20;
const FEWEST_EXTENTS: u128 = 16;

/// Minimum length of a write at a band's beginning that counts as the start of a sequential stream.
const STREAM: u64 = 256 << 10;

/// Maximum number of stale entries in the arrival queue.
const MOST_STALE: usize = 1024;

/// One transfer: logical bytes and where they lie on the media.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) logical: u64,
    pub(super) media: u64,
    pub(super) length: u64,
    pub(super) writes: bool,
}

/// The state of the bands and of the media cache, which lies on the outermost tracks, before the bands. Bands and
/// logical bytes belong together for good (static mapping, as found by Aghayev and Desnoyers, "Skylight", FAST 2015).
#[derive(Debug, Clone)]
pub(super) struct Shingles {
    bytes: u64,
    band_bytes: u64,
    cache_bytes: u64,
    most_extents: usize,
    open_bands: usize,
    /// Bytes written without a gap from the beginning of each band.
    written: Vec<u64>,
    /// Bands being rewritten from their beginning, and the end of their previous data.
    open: VecDeque<(u64, u64)>,
    /// Logical start of each cached range.
    cached: BTreeMap<u64, Cached>,
    cached_bytes: u64,
    /// Starts and places of cached ranges in order of arrival, stale ones included.
    arrivals: VecDeque<(u64, u64)>,
    next_at: u64,
    rewritten: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cached {
    end: u64,
    at: u64,
}

/// The destination of a part of a write within one band.
#[derive(Debug, PartialEq, Eq)]
enum WriteRoute {
    /// Appended to the band.
    Append,
    /// From the band's beginning, over its previous data.
    Restart,
    /// Read-modify-write of the band.
    Rewrite,
    /// Into the media cache.
    Cache,
}

impl Shingles {
    pub(super) fn new(parameters: &SmrParameters, bytes: u64) -> Self {
        let band_bytes = u64::from(parameters.band_kib) << 10;
        let share = (bytes as f64 * parameters.media_cache_percent / 100.0) as u64;
        let extents =
            (u128::from(parameters.media_cache_extents_per_gib) * u128::from(bytes)) >> 30;
        Self {
            bytes,
            band_bytes,
            cache_bytes: (share.max(SMALLEST_CACHE) >> 12) << 12,
            most_extents: extents.max(FEWEST_EXTENTS) as usize,
            open_bands: parameters.open_bands as usize,
            written: vec![0; bytes.div_ceil(band_bytes) as usize],
            open: VecDeque::new(),
            cached: BTreeMap::new(),
            cached_bytes: 0,
            arrivals: VecDeque::new(),
            next_at: 0,
            rewritten: 0,
        }
    }

    /// Size of the media cache, which precedes the bands.
    pub(super) fn cache_bytes(&self) -> u64 {
        self.cache_bytes
    }

    /// Bands that were read and written again.
    pub(super) fn rewritten(&self) -> u64 {
        self.rewritten
    }

    /// The media offset of logical bytes in their bands.
    fn home(&self, logical: u64) -> u64 {
        self.cache_bytes + logical
    }

    /// Whether no cached write is left to merge into a band.
    pub(super) fn is_clean(&self) -> bool {
        self.cached.is_empty()
    }

    /// The next logical byte that is in the cache.
    pub(super) fn next_cached(&self, start: u64) -> Option<u64> {
        self.cached.range(start..).next().map(|(&start, _)| start)
    }

    /// Append the pieces that a read takes.
    pub(super) fn read(&self, start: u64, end: u64, pieces: &mut Vec<Piece>) {
        let mut at = start;
        for (cached_start, cached) in self.overlapping(start, end) {
            if at < cached_start {
                pieces.push(self.piece(at, self.home(at), cached_start - at, false));
                at = cached_start;
            }
            let until = cached.end.min(end);
            pieces.push(self.piece(at, cached.at + (at - cached_start), until - at, false));
            at = until;
        }
        if at < end {
            pieces.push(self.piece(at, self.home(at), end - at, false));
        }
    }

    fn piece(&self, logical: u64, media: u64, length: u64, writes: bool) -> Piece {
        Piece {
            logical,
            media,
            length,
            writes,
        }
    }

    fn overlapping(&self, start: u64, end: u64) -> impl Iterator<Item = (u64, Cached)> + '_ {
        let first = self
            .cached
            .range(..=start)
            .next_back()
            .filter(|(_, cached)| cached.end > start)
            .map_or(start, |(&first, _)| first);
        self.cached
            .range(first..end)
            .map(|(&start, &cached)| (start, cached))
    }

    /// Whether a write can go ahead without cleaning.
    pub(super) fn has_room(&self, start: u64, end: u64) -> bool {
        let needed: u64 = self
            .parts(start, end)
            .filter(|&(start, end)| self.route(start, end) == WriteRoute::Cache)
            .map(|(start, end)| end - start)
            .sum();
        needed == 0
            || self.cached_bytes + needed <= self.cache_bytes
                && self.cached.len() < self.most_extents
    }

    /// The parts of a range, split at band boundaries.
    fn parts(&self, start: u64, end: u64) -> impl Iterator<Item = (u64, u64)> {
        let band_bytes = self.band_bytes;
        (start / band_bytes..end.div_ceil(band_bytes)).map(move |band| {
            (
                start.max(band * band_bytes),
                end.min((band + 1) * band_bytes),
            )
        })
    }

    fn route(&self, start: u64, end: u64) -> WriteRoute {
        let along = start % self.band_bytes;
        let written = self.written[(start / self.band_bytes) as usize];
        let length = end - start;
        match along {
            _ if along == written => WriteRoute::Append,
            0 if length >= STREAM => WriteRoute::Restart,
            _ if length >= self.band_bytes / 4 || length > self.cache_bytes / 4 => {
                WriteRoute::Rewrite
            }
            _ => WriteRoute::Cache,
        }
    }

    /// Write bytes; appends the pieces that this takes.
    pub(super) fn write(&mut self, start: u64, end: u64, pieces: &mut Vec<Piece>) {
        for (start, end) in self.parts(start, end) {
            let route = self.route(start, end);
            self.forget(start, end);
            let band = start / self.band_bytes;
            let reached = end - band * self.band_bytes;
            match route {
                WriteRoute::Append => self.advance(band, reached),
                WriteRoute::Restart => self.restart(band, reached, pieces),
                WriteRoute::Rewrite => {
                    self.rewrite(band, reached, |piece| pieces.push(piece));
                    continue;
                }
                WriteRoute::Cache => {
                    let at = self.cache(start, end);
                    pieces.push(self.piece(start, at, end - start, true));
                    continue;
                }
            }
            pieces.push(self.piece(start, self.home(start), end - start, true));
        }
    }

    fn advance(&mut self, band: u64, reached: u64) {
        self.written[band as usize] = reached;
        self.open
            .retain(|&(open, held)| open != band || reached < held);
    }

    fn restart(&mut self, band: u64, reached: u64, pieces: &mut Vec<Piece>) {
        let held = self.close(band).max(reached);
        if reached < held {
            if self.open.len() >= self.open_bands {
                if let Some((oldest, held)) = self.open.pop_front() {
                    // Data that the stream has not reached must be read before its tracks are overwritten.
                    let start = oldest * self.band_bytes + self.written[oldest as usize];
                    let length = held - self.written[oldest as usize];
                    for writes in [false, true] {
                        pieces.push(self.piece(start, self.home(start), length, writes));
                    }
                    self.written[oldest as usize] = held;
                }
            }
            self.open.push_back((band, held));
        }
        self.written[band as usize] = reached;
    }

    /// End a band's rewrite; returns how far it holds data.
    fn close(&mut self, band: u64) -> u64 {
        let held = self
            .open
            .iter()
            .find(|&&(open, _)| open == band)
            .map_or(0, |&(_, held)| held);
        self.open.retain(|&(open, _)| open != band);
        held.max(self.written[band as usize])
    }

    /// Read a band with its cached data and write it again, at least up to `reached`.
    fn rewrite(&mut self, band: u64, reached: u64, mut push: impl FnMut(Piece)) {
        let start = band * self.band_bytes;
        let end = (start + self.band_bytes).min(self.bytes);
        let held = self.close(band);
        if held > 0 {
            push(self.piece(start, self.home(start), held, false));
        }
        let mut last = reached.max(held);
        for (cached_start, cached) in self.overlapping(start, end) {
            push(self.piece(cached_start, cached.at, cached.end - cached_start, false));
            last = last.max(cached.end - start);
        }
        self.forget(start, end);
        self.rewritten += 1;
        self.written[band as usize] = last;
        push(self.piece(start, self.home(start), last, true));
    }

    fn cache(&mut self, start: u64, end: u64) -> u64 {
        if self.next_at + (end - start) > self.cache_bytes {
            self.next_at = 0;
        }
        let at = self.next_at;
        self.next_at += end - start;
        self.cached.insert(start, Cached { end, at });
        self.cached_bytes += end - start;
        if self.arrivals.len() > 2 * self.cached.len() + MOST_STALE {
            let cached = &self.cached;
            self.arrivals
                .retain(|(start, at)| cached.get(start).is_some_and(|cached| cached.at == *at));
        }
        self.arrivals.push_back((start, at));
        at
    }

    /// Remove cached bytes that are overwritten, merged or trimmed.
    fn forget(&mut self, start: u64, end: u64) {
        loop {
            let first = self.overlapping(start, end).next();
            let Some((cached_start, cached)) = first else {
                return;
            };
            self.cached.remove(&cached_start);
            self.cached_bytes -= cached.end.min(end) - cached_start.max(start);
            if cached_start < start {
                self.cached.insert(
                    cached_start,
                    Cached {
                        end: start,
                        at: cached.at,
                    },
                );
            }
            if cached.end > end {
                let at = cached.at + (end - cached_start);
                self.cached.insert(
                    end,
                    Cached {
                        end: cached.end,
                        at,
                    },
                );
            }
        }
    }

    /// Merge the oldest cached range, and all others of its band, into the band; appends the pieces that this takes.
    pub(super) fn clean(&mut self, steps: &mut VecDeque<Piece>) {
        let oldest = loop {
            let Some((start, at)) = self.arrivals.pop_front() else {
                break self.cached.keys().next().copied();
            };
            if self
                .cached
                .get(&start)
                .is_some_and(|cached| cached.at == at)
            {
                break Some(start);
            }
        };
        // A cached range lies within one band, as each part of a write does.
        if let Some(start) = oldest {
            self.rewrite(start / self.band_bytes, 0, |piece| steps.push_back(piece));
        }
    }

    /// Trim bytes.
    pub(super) fn trim(&mut self, start: u64, end: u64) {
        self.forget(start, end);
        for (part_start, part_end) in self.parts(start, end) {
            let band = part_start / self.band_bytes;
            if part_start == band * self.band_bytes && part_end - part_start == self.band_bytes {
                self.close(band);
                self.written[band as usize] = 0;
            }
        }
    }

    /// Reset to the state as delivered.
    pub(super) fn reset(&mut self) {
        self.written.fill(0);
        self.open.clear();
        self.cached.clear();
        self.cached_bytes = 0;
        self.arrivals.clear();
        self.next_at = 0;
    }
}

#[cfg(test)]
mod tests;
