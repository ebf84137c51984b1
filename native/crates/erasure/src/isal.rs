//! ISA-L's `ec_encode_data`, called for blocks of columns that fit the processor's caches.

use std::collections::TryReserveError;
use std::ffi::c_int;
use std::slice::{from_raw_parts, from_raw_parts_mut};

use crate::plan::{list, Matrix};
use crate::scratch::Planes;

/// `ec_encode_data`: bytes of a plane, columns, rows, tables, sources, outputs.
pub type Multiply =
    unsafe extern "C" fn(c_int, c_int, c_int, *const u8, *const *const u8, *const *mut u8);

/// Multiply, or with `adds` multiply and add.
///
/// # Safety
/// As [`crate::work::Kernel::multiply`]; `multiply` is ISA-L's and the tables of the blocks are its own. No number
/// exceeds a `c_int`.
#[allow(clippy::too_many_arguments)]
pub unsafe fn multiply(
    multiply: Multiply,
    matrix: &Matrix,
    length: usize,
    sources: &[*const u8],
    outputs: &[*mut u8],
    adds: bool,
    products: &mut Planes,
    products_at: &mut Vec<*mut u8>,
) -> Result<(), TryReserveError> {
    let (summed, multiplied) = outputs.split_at(matrix.ones);
    products.take(multiplied.len(), length, products_at)?;
    let mut sources = sources;
    let mut adds = adds;
    // SAFETY: as the caller vouches.
    for block in unsafe { list(matrix.blocks, matrix.block_count) } {
        let (these, rest) = sources.split_at(block.columns);
        sources = rest;
        // The sums come first: they read sectors one behind the other, as fast as memory gives them, and leave them in
        // the caches for ISA-L, which reads a few bytes of each in turn.
        for (part, output) in summed.iter().enumerate() {
            let own = these.iter().skip(part).step_by(matrix.ones);
            // SAFETY: all planes have this length, and none of the sources is an output.
            unsafe { sum(own.copied(), *output, length, adds) };
        }
        if !multiplied.is_empty() {
            let to = if adds { &products_at[..] } else { multiplied };
            let (length, columns, rows) =
                (length as c_int, block.columns as c_int, to.len() as c_int);
            // SAFETY: the tables are of so many columns and rows, and there are as many planes of this length.
            unsafe {
                multiply(
                    length,
                    columns,
                    rows,
                    block.tables,
                    these.as_ptr(),
                    to.as_ptr(),
                )
            };
        }
        if adds {
            for (from, to) in products_at.iter().zip(multiplied) {
                // SAFETY: both are planes of this length, one of this thread's scratch memory and one of the caller's.
                unsafe { add([from.cast_const()], *to, length) };
            }
        }
        adds = true;
    }
    Ok(())
}

/// The exclusive or of `sources`, four at a time.
///
/// # Safety
/// They and `output` have `length` bytes each; `output` overlaps none of them.
unsafe fn sum(
    sources: impl Iterator<Item = *const u8>,
    output: *mut u8,
    length: usize,
    adds: bool,
) {
    if !adds {
        // SAFETY: as the caller vouches.
        unsafe { output.write_bytes(0, length) };
    }
    let mut waiting = [std::ptr::null::<u8>(); 4];
    let mut count = 0;
    for source in sources {
        waiting[count] = source;
        count += 1;
        if count == waiting.len() {
            // SAFETY: as the caller vouches.
            unsafe { add(waiting, output, length) };
            count = 0;
        }
    }
    for source in &waiting[..count] {
        // SAFETY: as the caller vouches.
        unsafe { add([*source], output, length) };
    }
}

/// Add `sources` to `output`.
///
/// # Safety
/// They and `output` have `length` bytes each; `output` overlaps none of them.
unsafe fn add<const N: usize>(sources: [*const u8; N], output: *mut u8, length: usize) {
    // SAFETY: as the caller vouches; nothing else touches the output meanwhile.
    let output = unsafe { from_raw_parts_mut(output, length) };
    // SAFETY: as the caller vouches.
    let sources = sources.map(|source| unsafe { from_raw_parts(source, length) });
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has been asked.
        return unsafe { add_by_avx2(sources, output) };
    }
    add_bytes(sources, output);
}

/// The same, compiled for 32 bytes at once.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn add_by_avx2<const N: usize>(sources: [&[u8]; N], output: &mut [u8]) {
    add_bytes(sources, output);
}

#[inline(always)]
fn add_bytes<const N: usize>(sources: [&[u8]; N], output: &mut [u8]) {
    let length = output.len();
    let sources = sources.map(|source| &source[..length]);
    for (at, byte) in output.iter_mut().enumerate() {
        for source in sources {
            *byte ^= source[at];
        }
    }
}
