//! The operations of a workload, one after the other, from a seed.

use rand_chacha::rand_core::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::weighted::WeightedIndex;
use rand_distr::{Distribution, Uniform, Zipf};

use crate::lsm::Query;
use crate::refusal::Refusal;
use crate::workload::mix::{Mix, RequestDistribution};

/// The exponent of popularity: `ZIPFIAN_CONSTANT` of YCSB's `ZipfianGenerator`.
pub const ZIPF_CONSTANT: f64 = 0.99;
/// The longest scan: `maxscanlength` of YCSB's workload E.
const LONGEST_SCAN: usize = 100;

/// The key of a record, by its number: FNV-1a of 64 bits, by which YCSB scatters keys (`insertorder=hashed`).
#[must_use]
pub fn key_of(record: u64) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in record.to_le_bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash
}

/// The operations of one client.
#[derive(Debug)]
pub struct Workload {
    kinds: WeightedIndex<f64>,
    distribution: RequestDistribution,
    popularity: Zipf<f64>,
    scans: Uniform<usize>,
    /// Records at the start.
    loaded: u64,
    /// Records now.
    records: u64,
    rng: ChaCha8Rng,
}

impl Workload {
    /// The operations of a mix on so many records, which are numbered from 0.
    ///
    /// # Errors
    /// [`Refusal::Invalid`] for a mix whose shares do not add up, or without records.
    pub fn new(mix: &Mix, records: u64, seed: u64) -> Result<Self, Refusal> {
        mix.check()?;
        if records == 0 {
            return Err(Refusal::Invalid("records is 0; give at least 1".to_owned()));
        }
        let valid = "checked above";
        Ok(Self {
            kinds: WeightedIndex::new(mix.shares()).expect(valid),
            distribution: mix.distribution,
            popularity: Zipf::new(records as f64, ZIPF_CONSTANT).expect(valid),
            scans: Uniform::new_inclusive(1, LONGEST_SCAN).expect(valid),
            loaded: records,
            records,
            rng: ChaCha8Rng::seed_from_u64(seed),
        })
    }

    /// The next operation. An insert counts as made from then on.
    pub fn draw(&mut self) -> Query {
        match self.kinds.sample(&mut self.rng) {
            0 => Query::Get(self.key()),
            1 => Query::Put(self.key()),
            2 => {
                self.records += 1;
                Query::Put(key_of(self.records - 1))
            }
            3 => {
                let count = self.scans.sample(&mut self.rng);
                Query::Scan(self.key(), count)
            }
            _ => Query::ReadModifyWrite(self.key()),
        }
    }

    fn key(&mut self) -> u64 {
        let rank = |popularity: &Zipf<f64>, rng: &mut ChaCha8Rng| popularity.sample(rng) as u64 - 1;
        let record = match self.distribution {
            RequestDistribution::Zipfian => {
                let rank = rank(&self.popularity, &mut self.rng);
                // Hashed twice, as by YCSB: once to scatter what is popular, once for the key.
                key_of(rank) % self.loaded
            }
            RequestDistribution::Latest => {
                let rank = rank(&self.popularity, &mut self.rng);
                self.records - 1 - rank
            }
            RequestDistribution::Uniform => {
                let all = Uniform::new(0, self.records).expect("there are records");
                all.sample(&mut self.rng)
            }
        };
        key_of(record)
    }
}
