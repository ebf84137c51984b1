//! The pseudo-random payload of a sector, different for every write.

const LANES: usize = 8;

/// Spread every bit of `value` over all 64 (the finisher of splitmix64).
pub(crate) fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// Fill the sector from `key`: eight xorshift64 generators side by side, so that the compiler can use vectors.
pub(crate) fn fill(sector: &mut [u8], key: u64) {
    let mut lanes = [0; LANES];
    for (lane, state) in (0..).zip(&mut lanes) {
        *state = mix(key ^ lane) | 1;
    }
    for row in sector.chunks_exact_mut(LANES * 8) {
        for state in &mut lanes {
            *state ^= *state << 13;
            *state ^= *state >> 7;
            *state ^= *state << 17;
        }
        for (word, state) in row.chunks_exact_mut(8).zip(&lanes) {
            word.copy_from_slice(&state.to_le_bytes());
        }
    }
}
