//! The track buffer of reads.

/// The track buffer: a few segments, each the end of a sequential stream; the one least recently used goes first.
#[derive(Debug, Clone)]
pub(super) struct TrackBuffer {
    segments: Vec<Segment>,
    most: usize,
    longest: u64,
    uses: u64,
}

#[derive(Debug, Clone, Copy)]
struct Segment {
    start: u64,
    end: u64,
    used: u64,
}

impl TrackBuffer {
    /// A buffer of `most` segments of up to `longest` bytes.
    pub(super) fn new(most: usize, longest: u64) -> Self {
        Self {
            segments: Vec::with_capacity(most),
            most,
            longest,
            uses: 0,
        }
    }

    /// Whether the buffer holds all of these bytes.
    pub(super) fn holds(&mut self, start: u64, end: u64) -> bool {
        self.uses += 1;
        let uses = self.uses;
        self.segments
            .iter_mut()
            .find(|segment| segment.start <= start && end <= segment.end)
            .map(|segment| segment.used = uses)
            .is_some()
    }

    /// Whether a read from here continues a sequential stream.
    pub(super) fn continues(&self, start: u64) -> bool {
        self.segments
            .iter()
            .any(|segment| segment.start < start && start <= segment.end)
    }

    /// Whether the segment that ends at `end` holds the byte at `start`, or would with the next byte read.
    pub(super) fn reaches(&self, start: u64, end: u64) -> bool {
        self.segments
            .iter()
            .any(|segment| segment.end == end && (segment.start..=end).contains(&start))
    }

    /// Add bytes that were read; a stream that continues where a segment ends stays in it.
    pub(super) fn record(&mut self, start: u64, end: u64) {
        self.uses += 1;
        let found = self
            .segments
            .iter()
            .position(|segment| (segment.start..=segment.end).contains(&start));
        let at = found.unwrap_or_else(|| self.vacate(start));
        let segment = &mut self.segments[at];
        segment.end = segment.end.max(end);
        segment.start = segment.start.max(segment.end.saturating_sub(self.longest));
        segment.used = self.uses;
    }

    fn vacate(&mut self, start: u64) -> usize {
        let empty = Segment {
            start,
            end: start,
            used: self.uses,
        };
        if self.segments.len() < self.most {
            self.segments.push(empty);
            return self.segments.len() - 1;
        }
        let oldest = (0..self.most)
            .min_by_key(|&at| self.segments[at].used)
            .unwrap_or(0);
        self.segments[oldest] = empty;
        oldest
    }

    /// Invalidate bytes that are written or trimmed, and those that follow them in a segment.
    pub(super) fn forget(&mut self, start: u64, end: u64) {
        for segment in &mut self.segments {
            if start < segment.end && segment.start < end {
                segment.end = segment.start.max(start);
            }
        }
        self.segments.retain(|segment| segment.start < segment.end);
    }

    /// Invalidate all.
    pub(super) fn clear(&mut self) {
        self.segments.clear();
    }
}
