//! GF(2^8) with ISA-L's polynomial, for instructions that multiply bytes by bit matrices.

/// x^8 + x^4 + x^3 + x^2 + 1.
const POLYNOMIAL: u16 = 0x11D;

/// Each element's multiplication as a bit matrix in the format of `gf2p8affineqb`: byte `7 - i` of the number has the
/// bits whose sum is bit `i` of the product.
pub static MATRICES: [u64; 256] = {
    let mut all = [0; 256];
    let mut element = 0;
    while element < 256 {
        all[element] = matrix(element as u16);
        element += 1;
    }
    all
};

const fn matrix(element: u16) -> u64 {
    let (mut found, mut power, mut column) = (0, element, 0);
    while column < 8 {
        let mut row = 0;
        while row < 8 {
            found |= ((power >> row & 1) as u64) << ((7 - row) * 8 + column);
            row += 1;
        }
        power <<= 1;
        if power > 0xFF {
            power ^= POLYNOMIAL;
        }
        column += 1;
    }
    found
}
