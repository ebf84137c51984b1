//! reed-solomon-simd for `bench_erasure.py`: it asks on standard input, one line an answer.
//!
//! `prepare encode|decode K M SECTOR_BYTES GROUPS ERASED` is answered by `ready`, `run` by the nanoseconds of processor
//! time that a codeword took. The encoder and the decoder are made once, as their documentation advises.

use std::io::{self, BufRead, Write};

use reed_solomon_simd::{encode, ReedSolomonDecoder, ReedSolomonEncoder};

struct Work {
    encodes: bool,
    k: usize,
    m: usize,
    sector_bytes: usize,
    groups: usize,
    erased: usize,
    data: Vec<u8>,
    redundancy: Vec<Vec<u8>>,
    encoder: ReedSolomonEncoder,
    decoder: ReedSolomonDecoder,
}

impl Work {
    fn new(encodes: bool, numbers: &[usize]) -> Self {
        let [k, m, sector_bytes, groups, erased] = numbers else {
            panic!("expected five numbers")
        };
        let (k, m, sector_bytes, groups, erased) = (*k, *m, *sector_bytes, *groups, *erased);
        let data: Vec<u8> = (0..k * sector_bytes * groups)
            .map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8)
            .collect();
        let redundancy = encode(k, m, data.chunks(sector_bytes).take(k)).expect("a code");
        let encoder = ReedSolomonEncoder::new(k, m, sector_bytes).expect("a code");
        let decoder = ReedSolomonDecoder::new(k, m, sector_bytes).expect("a code");
        Self {
            encodes,
            k,
            m,
            sector_bytes,
            groups,
            erased,
            data,
            redundancy,
            encoder,
            decoder,
        }
    }

    /// Results are copied out, as they are for the others: they end where the caller wants them.
    fn one(&mut self, group: usize, out: &mut [u8]) {
        let from = group * self.k * self.sector_bytes;
        let sectors = self.data[from..from + self.k * self.sector_bytes].chunks(self.sector_bytes);
        if self.encodes {
            for sector in sectors {
                self.encoder
                    .add_original_shard(sector)
                    .expect("room for it");
            }
            let result = self.encoder.encode().expect("all sectors");
            for (sector, to) in result
                .recovery_iter()
                .zip(out.chunks_mut(self.sector_bytes))
            {
                to.copy_from_slice(sector);
            }
        } else {
            let step = self.k / self.erased;
            for (place, sector) in sectors.enumerate() {
                if place % step != 0 || place / step >= self.erased {
                    self.decoder
                        .add_original_shard(place, sector)
                        .expect("room for it");
                }
            }
            for (place, sector) in self.redundancy.iter().take(self.erased).enumerate() {
                self.decoder
                    .add_recovery_shard(place, sector)
                    .expect("room for it");
            }
            let result = self.decoder.decode().expect("enough sectors");
            for ((_, sector), to) in result
                .restored_original_iter()
                .zip(out.chunks_mut(self.sector_bytes))
            {
                to.copy_from_slice(sector);
            }
        }
    }
}

fn now_ns() -> f64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    now.tv_sec as f64 * 1e9 + now.tv_nsec as f64
}

fn main() {
    let mut work: Option<Work> = None;
    let mut out = Vec::new();
    for line in io::stdin().lock().lines() {
        let line = line.expect("a line");
        let words: Vec<&str> = line.split_whitespace().collect();
        let answer = match words.as_slice() {
            ["prepare", what, numbers @ ..] => {
                let numbers: Vec<usize> = numbers
                    .iter()
                    .map(|number| number.parse().expect("a number"))
                    .collect();
                let made = Work::new(*what == "encode", &numbers);
                out = vec![0; made.m * made.sector_bytes];
                work = Some(made);
                "ready".to_owned()
            }
            _ => {
                let work = work.as_mut().expect("prepare first");
                let began = now_ns();
                for group in 0..work.groups {
                    work.one(group, &mut out);
                }
                format!("{:.0}", (now_ns() - began) / work.groups as f64)
            }
        };
        println!("{answer}");
        io::stdout().flush().expect("a reader");
    }
}
