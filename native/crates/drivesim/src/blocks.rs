//! The sequence of blocks and operations of a load.

use racksim::{Io, Kind};
use rand_chacha::rand_core::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Bernoulli, Distribution, Uniform};

use crate::load_document::{Load, Pattern, Region};

/// The generator of a load's requests.
pub struct Blocks {
    pattern: Pattern,
    region: Region,
    block_bytes: u64,
    next: u64,
    places: Uniform<u64>,
    is_read: Bernoulli,
    rng: ChaCha8Rng,
}

impl Blocks {
    /// Those of `load` on a drive of `bytes`.
    pub fn new(load: &Load, bytes: u64, seed: u64) -> Self {
        let region = load.region_in(bytes);
        let count = region.length / load.block_bytes;
        Self {
            pattern: load.pattern,
            region,
            block_bytes: load.block_bytes,
            next: 0,
            places: Uniform::new(0, count).expect("the document's check found a block"),
            is_read: Bernoulli::new(load.read_percent / 100.0).expect("the document's check"),
            rng: ChaCha8Rng::seed_from_u64(seed),
        }
    }

    /// Number of blocks in the load's region.
    pub fn count(&self) -> u64 {
        self.region.length / self.block_bytes
    }

    /// The next request.
    // Inlined, so that a request is made where it goes: read right after it was written in parts, it would be waited for.
    #[inline(always)]
    pub fn next(&mut self) -> Io {
        let place = match self.pattern {
            Pattern::Random => self.places.sample(&mut self.rng),
            Pattern::Sequential => {
                let place = self.next;
                self.next = (place + 1) % self.count();
                place
            }
        };
        Io {
            kind: if self.is_read.sample(&mut self.rng) {
                Kind::Read
            } else {
                Kind::Write
            },
            offset: self.region.offset + place * self.block_bytes,
            length: self.block_bytes,
        }
    }
}
