//! Mixes of requests of several sizes or operations.

use racksim::{Io, Kind};
use rand_chacha::rand_core::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::weighted::WeightedAliasIndex;
use rand_distr::{Distribution, Uniform};
use schedulers::Priority;

use crate::load_document::{Pattern, Region};

/// One kind of request in a mix.
#[derive(Debug, Clone, Copy)]
pub struct Choice {
    /// Read or write.
    pub kind: Kind,
    /// Size of the request.
    pub bytes: u64,
    /// Its place.
    pub pattern: Pattern,
    /// Sequential requests of one stream continue one another.
    pub stream: usize,
    /// The tag that the scheduler is told.
    pub priority: Priority,
    /// Its share of all requests, relative to the others'.
    pub weight: f64,
}

/// Kinds of requests on a region.
#[derive(Debug)]
pub struct Mix {
    /// The region.
    pub region: Region,
    /// The kinds.
    pub choices: Vec<Choice>,
}

/// The generator of a mix's requests.
pub struct MixBlocks {
    region: Region,
    choices: Vec<Choice>,
    shares: WeightedAliasIndex<f64>,
    places: Vec<Uniform<u64>>,
    /// The next byte of each stream, from the region's start.
    next: Vec<u64>,
    rng: ChaCha8Rng,
}

impl MixBlocks {
    /// The requests of `mix`, which fit into its region.
    pub fn new(mix: Mix, seed: u64) -> Self {
        let Mix { region, choices } = mix;
        let weights = choices.iter().map(|choice| choice.weight).collect();
        let places = choices.iter().map(|choice| {
            Uniform::new(0, region.length / choice.bytes).expect("the document's check: it fits")
        });
        let streams = choices.iter().map(|choice| choice.stream + 1).max();
        let streams = streams.unwrap_or(0);
        // Streams begin in parts of the region of their own, at a multiple of the largest request.
        let largest = choices.iter().map(|choice| choice.bytes).max().unwrap_or(1);
        let part = region.length / (streams.max(1) as u64) / largest * largest;
        Self {
            places: places.collect(),
            next: (0..streams as u64).map(|stream| stream * part).collect(),
            shares: WeightedAliasIndex::new(weights).expect("the document's check: weights"),
            rng: ChaCha8Rng::seed_from_u64(seed),
            region,
            choices,
        }
    }

    /// The next request.
    pub fn next(&mut self) -> (Io, Priority) {
        let number = self.shares.sample(&mut self.rng);
        let choice = self.choices[number];
        let place = match choice.pattern {
            Pattern::Random => self.places[number].sample(&mut self.rng) * choice.bytes,
            Pattern::Sequential => {
                let next = &mut self.next[choice.stream];
                if *next + choice.bytes > self.region.length {
                    *next = 0;
                }
                let place = *next;
                *next += choice.bytes;
                place
            }
        };
        let io = Io {
            kind: choice.kind,
            offset: self.region.offset + place,
            length: choice.bytes,
        };
        (io, choice.priority)
    }
}
