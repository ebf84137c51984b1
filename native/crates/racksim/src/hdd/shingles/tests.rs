//! Tests of shingled bands.

use rand_chacha::rand_core::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Uniform};

use super::*;

const MIB: u64 = 1 << 20;
const BYTES: u64 = 100 * MIB;

fn shingles() -> Shingles {
    let parameters = SmrParameters {
        band_kib: 4096,
        media_cache_percent: 0.0,
        media_cache_extents_per_gib: 1000,
        open_bands: 2,
        clean_after_ms: 0.0,
    };
    Shingles::new(&parameters, BYTES)
}

fn written(shingles: &mut Shingles, start: u64, length: u64) -> Vec<Piece> {
    let mut pieces = Vec::new();
    assert!(shingles.has_room(start, start + length));
    shingles.write(start, start + length, &mut pieces);
    pieces
}

fn read(shingles: &Shingles, start: u64, end: u64) -> Vec<Piece> {
    let mut pieces = Vec::new();
    shingles.read(start, end, &mut pieces);
    pieces
}

#[test]
fn whatever_was_written_every_byte_is_read_once_from_where_it_was_written_last() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let mut below = |n: u64| Uniform::new(0, n).unwrap().sample(&mut rng);
    let mut shingles = shingles();
    for _ in 0..3000 {
        let start = below(BYTES / 4096) * 4096;
        let longest = if below(20) == 0 { 6 * MIB } else { 64 << 10 };
        let end = (start + (1 + below(longest / 4096)) * 4096).min(BYTES);
        if below(30) == 0 {
            shingles.trim(start, end);
        } else {
            while !shingles.has_room(start, end) {
                let mut steps = VecDeque::new();
                shingles.clean(&mut steps);
                assert!(steps.back().unwrap().writes, "a band is read, then written");
            }
            let mut pieces = Vec::new();
            shingles.write(start, end, &mut pieces);
            let is_written = |block: u64| {
                let holds =
                    |piece: &Piece| (piece.logical..piece.logical + piece.length).contains(&block);
                pieces.iter().any(|piece| piece.writes && holds(piece))
            };
            assert!((start..end).step_by(4096).all(is_written), "{pieces:?}");
        }
        let cached: u64 = shingles
            .cached
            .iter()
            .map(|(start, cached)| cached.end - start)
            .sum();
        assert_eq!(shingles.cached_bytes, cached);
        assert!(shingles.open.len() <= 2 && cached <= shingles.cache_bytes);
        let mut at = start;
        for piece in read(&shingles, start, end) {
            assert_eq!(
                (piece.logical, piece.writes),
                (at, false),
                "in order, without gaps"
            );
            let in_cache = piece.media + piece.length <= shingles.cache_bytes;
            assert!(in_cache || piece.media == shingles.home(at));
            at += piece.length;
        }
        assert_eq!(at, end);
    }
    assert!(shingles.rewritten > 10);
}

#[test]
fn a_stream_goes_to_its_band_and_a_small_write_to_the_cache() {
    let mut shingles = shingles();
    for at in 0..8 {
        let pieces = written(&mut shingles, at * MIB, MIB);
        assert_eq!(
            pieces,
            [shingles.piece(at * MIB, shingles.home(at * MIB), MIB, true)]
        );
    }
    let pieces = written(&mut shingles, 2 * MIB, 4096);
    assert_eq!(pieces, [shingles.piece(2 * MIB, 0, 4096, true)]);
    assert_eq!(read(&shingles, 2 * MIB, 3 * MIB).len(), 2);
    assert_eq!(shingles.next_cached(0), Some(2 * MIB));
    let mut steps = VecDeque::new();
    shingles.clean(&mut steps);
    let band = shingles.piece(0, shingles.home(0), 4 * MIB, false);
    let fragment = shingles.piece(2 * MIB, 0, 4096, false);
    assert_eq!(
        steps,
        [
            band,
            fragment,
            Piece {
                writes: true,
                ..band
            }
        ]
    );
    assert!(shingles.is_clean());
}

#[test]
fn a_stream_over_old_data_that_stops_costs_what_follows_it_in_its_band() {
    let mut shingles = shingles();
    written(&mut shingles, 0, 16 * MIB);
    for band in 0..2 {
        assert_eq!(written(&mut shingles, band * 4 * MIB, MIB).len(), 1);
    }
    let pieces = written(&mut shingles, 8 * MIB, MIB);
    let tail = shingles.piece(MIB, shingles.home(MIB), 3 * MIB, false);
    assert_eq!(
        pieces[..2],
        [
            tail,
            Piece {
                writes: true,
                ..tail
            }
        ]
    );
    assert_eq!(pieces.len(), 3);
}
