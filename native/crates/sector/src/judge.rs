//! Verdicts on sectors that were read.

use crate::layout::{self, Drive, Header, Identity, SECTOR_BYTES, STAMPS};

/// The verdict on a sector that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// The expected write of this sector.
    Right,
    /// This sector of this drive, of an older generation.
    Stale,
    /// This sector of this drive, of a newer generation.
    Newer,
    /// This sector of this drive, written with another seed, so by another run.
    OtherSeed,
    /// Parts of two writes in one sector, or a partial write.
    Torn,
    /// A whole sector of the right drive that belongs to another address.
    Misplaced,
    /// A whole sector that belongs to another drive.
    WrongDrive,
    /// An identified sector whose CRC is wrong.
    Corrupt,
    /// Data that was never an identified sector.
    Foreign,
    /// Nothing but zeros.
    Blank,
}

impl Verdict {
    /// Every verdict, in the order in which they are counted.
    pub const ALL: [Self; 10] = [
        Self::Right,
        Self::Stale,
        Self::Newer,
        Self::OtherSeed,
        Self::Torn,
        Self::Misplaced,
        Self::WrongDrive,
        Self::Corrupt,
        Self::Foreign,
        Self::Blank,
    ];

    /// The name in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Right => "right",
            Self::Stale => "stale",
            Self::Newer => "newer",
            Self::OtherSeed => "other_seed",
            Self::Torn => "torn",
            Self::Misplaced => "misplaced",
            Self::WrongDrive => "wrong_drive",
            Self::Corrupt => "corrupt",
            Self::Foreign => "foreign",
            Self::Blank => "blank",
        }
    }
}

/// The expected content of a sector. Without a seed, any seed is right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    /// The drive.
    pub drive: Drive,
    /// The generation written last.
    pub generation: u64,
    /// The seed it was written with, if it matters.
    pub seed: Option<u64>,
}

/// The verdict on one sector and what was found in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The verdict.
    pub verdict: Verdict,
    /// The identity in the sector, if the verdict is not right and the header is intact.
    pub found: Option<Identity>,
    /// Generations of the writes that a torn sector mixes, ascending; a part never written counts as none.
    pub torn_generations: Vec<u64>,
}

impl Finding {
    fn new(verdict: Verdict, found: Option<Identity>) -> Self {
        Self {
            verdict,
            found,
            torn_generations: Vec::new(),
        }
    }
}

/// Judge the sector that was read at `lba`.
///
/// # Panics
/// When `sector` is not [`SECTOR_BYTES`] long.
#[must_use]
pub fn judge(sector: &[u8], lba: u64, expected: &Expected) -> Finding {
    let sector: &[u8; SECTOR_BYTES] = sector.try_into().expect("one sector");
    if sector[0] == 0 && sector.iter().all(|&byte| byte == 0) {
        return Finding::new(Verdict::Blank, None);
    }
    if !layout::crc_is_right(sector) {
        return judge_damaged(sector);
    }
    let Some(found) = Header::of(sector) else {
        return Finding::new(Verdict::Foreign, None);
    };
    let verdict = if found.serial != expected.drive.serial() {
        Verdict::WrongDrive
    } else if found.lba != lba {
        Verdict::Misplaced
    } else if expected.seed.is_some_and(|seed| seed != found.seed) {
        Verdict::OtherSeed
    } else if found.generation < expected.generation {
        Verdict::Stale
    } else if found.generation > expected.generation {
        Verdict::Newer
    } else {
        return Finding::new(Verdict::Right, None);
    };
    Finding::new(verdict, Some(found.into()))
}

/// Judge a sector whose CRC is wrong: a mix of two writes, or a damaged one.
fn judge_damaged(sector: &[u8; SECTOR_BYTES]) -> Finding {
    let found = Header::of(sector).filter(|_| layout::header_check_is_right(sector));
    let header = found.as_ref().and_then(Header::stamp);
    let found = found.map(Identity::from);
    let stamps: Vec<_> = (1..=STAMPS)
        .filter_map(|stripe| layout::stamp(sector, stripe))
        .collect();
    let writes = || header.iter().chain(&stamps);
    let Some(first) = writes().next() else {
        let verdict = if layout::has_magic(sector) {
            Verdict::Corrupt
        } else {
            Verdict::Foreign
        };
        return Finding::new(verdict, None);
    };
    let mixed = writes().any(|stamp| stamp != first);
    let part_blank = (1..=STAMPS).any(|stripe| layout::stripe_is_blank(sector, stripe));
    let start_blank = sector[..512].iter().all(|&byte| byte == 0);
    if !mixed && !part_blank && !start_blank {
        return Finding::new(Verdict::Corrupt, found);
    }
    let mut generations: Vec<_> = writes().map(|stamp| stamp.generation).collect();
    generations.sort_unstable();
    generations.dedup();
    Finding {
        verdict: Verdict::Torn,
        found,
        torn_generations: generations,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fill;

    const LBA: u64 = 77;

    fn drive(serial: &str) -> Drive {
        Drive::new(serial).expect("a good serial")
    }

    fn sector(serial: &str, lba: u64, generation: u64, seed: u64) -> Vec<u8> {
        let mut sector = vec![0; SECTOR_BYTES];
        fill(&mut sector, &drive(serial), lba, generation, seed);
        sector
    }

    fn expected(generation: u64) -> Expected {
        Expected {
            drive: drive("RL000001"),
            generation,
            seed: Some(5),
        }
    }

    fn verdict(sector: &[u8]) -> Verdict {
        judge(sector, LBA, &expected(3)).verdict
    }

    #[test]
    fn every_whole_sector_is_named() {
        for (serial, lba, generation, seed, verdict) in [
            ("RL000001", LBA, 3, 5, Verdict::Right),
            ("RL000001", LBA, 2, 5, Verdict::Stale),
            ("RL000001", LBA, 4, 5, Verdict::Newer),
            ("RL000001", LBA, 3, 6, Verdict::OtherSeed),
            ("RL000001", LBA + 1, 3, 5, Verdict::Misplaced),
            ("RL000002", LBA, 3, 5, Verdict::WrongDrive),
        ] {
            let finding = judge(&sector(serial, lba, generation, seed), LBA, &expected(3));
            assert_eq!(finding.verdict, verdict);
            let named = Identity {
                serial: serial.to_owned(),
                lba,
                generation,
                seed,
            };
            assert_eq!(finding.found, (verdict != Verdict::Right).then_some(named));
        }
    }

    #[test]
    fn zeros_are_blank_and_other_data_is_foreign() {
        assert_eq!(verdict(&[0; SECTOR_BYTES]), Verdict::Blank);
        assert_eq!(verdict(&[0x55; SECTOR_BYTES]), Verdict::Foreign);
    }

    #[test]
    fn a_tear_anywhere_after_the_header_is_torn() {
        let old = sector("RL000001", LBA, 2, 5);
        let new = sector("RL000001", LBA, 3, 5);
        for tear in (88..4076).step_by(4) {
            let mut torn = new.clone();
            torn[tear..].copy_from_slice(&old[tear..]);
            let finding = judge(&torn, LBA, &expected(3));
            assert_eq!(finding.verdict, Verdict::Torn, "tear at {tear}");
            assert_eq!(finding.torn_generations, [2, 3], "tear at {tear}");
        }
    }

    #[test]
    fn a_stripe_in_the_middle_of_another_write_is_torn() {
        let mut torn = sector("RL000001", LBA, 3, 5);
        torn[1024..1536].copy_from_slice(&sector("RL000001", LBA, 2, 5)[1024..1536]);
        assert_eq!(verdict(&torn), Verdict::Torn);
    }

    #[test]
    fn a_first_write_that_stopped_half_way_is_torn() {
        let whole = sector("RL000001", LBA, 3, 5);
        let (mut begun, mut ended) = (whole.clone(), whole);
        begun[2048..].fill(0);
        ended[..2048].fill(0);
        for torn in [begun, ended] {
            let finding = judge(&torn, LBA, &expected(3));
            assert_eq!(
                (finding.verdict, finding.torn_generations),
                (Verdict::Torn, vec![3])
            );
        }
    }

    #[test]
    fn any_flipped_bit_is_corrupt_and_never_right() {
        let whole = sector("RL000001", LBA, 3, 5);
        for bit in (0..SECTOR_BYTES * 8).step_by(7) {
            let mut flipped = whole.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(verdict(&flipped), Verdict::Corrupt, "bit {bit}");
        }
    }

    #[test]
    fn without_a_seed_any_seed_is_right() {
        let any = Expected {
            seed: None,
            ..expected(3)
        };
        assert_eq!(
            judge(&sector("RL000001", LBA, 3, 99), LBA, &any).verdict,
            Verdict::Right
        );
    }

    #[test]
    fn serials_that_cannot_be_stamped_are_refused() {
        for serial in ["", "tab\there", "é", &"x".repeat(45)] {
            assert!(Drive::new(serial).is_err(), "{serial:?}");
        }
        assert!(Drive::new(&"x".repeat(44)).is_ok());
    }
}
