//! Products with GFNI and AVX-512, four planes into up to six at a time.
//!
//! The coefficients stay in registers while four planes are read from start to end at memory
//! bandwidth, and the outputs stay in the first-level cache. ISA-L's kernels read 64 bytes of every plane in turn
//! instead, hundreds of places at once, or add one plane at a time (`ec_encode_data_update`).
//!
//! Assembly, since the toolchains of the oldest supported version have no intrinsics for AVX-512.

use crate::field::MATRICES;
use crate::plan::{list, Matrix};

/// Planes that are read together.
const SOURCES: usize = 4;
/// Maximum number of planes written together: their coefficients take 24 of 32 registers.
const OUTPUTS: usize = 6;
/// Bytes per instruction.
const LINE: usize = 64;
/// Prefetch distance into the second-level cache: the processor's own prefetcher stops at the end of
/// each page. Saves up to an eighth of the time.
const AHEAD: usize = 16 << 10;

/// Whether this processor supports the kernels.
pub fn is_available() -> bool {
    #[cfg(target_arch = "x86_64")]
    let found = is_x86_feature_detected!("gfni")
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw");
    #[cfg(not(target_arch = "x86_64"))]
    let found = false;
    found
}

/// Multiply, or with `adds` multiply and add.
///
/// # Safety
/// As [`crate::work::Kernel::multiply`], on a processor where [`is_available`] holds.
pub unsafe fn multiply(
    matrix: &Matrix,
    length: usize,
    sources: &[*const u8],
    outputs: &[*mut u8],
    adds: bool,
) {
    if !adds {
        for output in outputs {
            // SAFETY: an output has this length.
            unsafe { output.write_bytes(0, length) };
        }
    }
    // SAFETY: as the caller vouches.
    let coefficients = unsafe { list(matrix.coefficients, matrix.rows) };
    let passes = outputs.len().div_ceil(OUTPUTS).max(1);
    let together = outputs.len().div_ceil(passes).max(1);
    let mut matrices = [0; SOURCES * OUTPUTS];
    let fours = sources.chunks_exact(SOURCES);
    let rest = fours.remainder();
    for (four, these) in fours.enumerate() {
        let from: &[_; SOURCES] = these.try_into().expect("four of them");
        // Prefetches only data that is read later, and once.
        let later = sources.get(four * SOURCES + AHEAD / length.max(1));
        let mut looks_ahead = later == Some(&from[0].wrapping_add(AHEAD));
        let mut first = 0;
        while first < outputs.len() {
            let last = outputs.len().min(first + together);
            for (to, row) in matrices
                .chunks_exact_mut(SOURCES)
                .zip(&coefficients[first..last])
            {
                // SAFETY: a row has a coefficient for every source.
                let elements = unsafe { row.add(four * SOURCES).cast::<[u8; SOURCES]>().read() };
                for (matrix, element) in to.iter_mut().zip(elements) {
                    *matrix = MATRICES[usize::from(element)];
                }
            }
            // SAFETY: planes of this length, and a processor that can.
            unsafe { add_all(from, &outputs[first..last], &matrices, length, looks_ahead) };
            looks_ahead = false;
            first = last;
        }
    }
    if rest.is_empty() {
        return;
    }
    // If fewer than four are left, the first replaces the others, times 0.
    let begin = sources.len() - rest.len();
    let mut from = [rest[0]; SOURCES];
    from[..rest.len()].copy_from_slice(rest);
    for (outputs, rows) in outputs.chunks(together).zip(coefficients.chunks(together)) {
        matrices.fill(0);
        for (to, row) in matrices.chunks_exact_mut(SOURCES).zip(rows) {
            for (column, matrix) in to[..rest.len()].iter_mut().enumerate() {
                // SAFETY: as above.
                let element = unsafe { *row.add(begin + column) };
                *matrix = MATRICES[usize::from(element)];
            }
        }
        // SAFETY: as above.
        unsafe { add_all(&from, outputs, &matrices, length, false) };
    }
}

/// Add to each output the sources times its matrices.
///
/// # Safety
/// As [`add_products`], but the length may be any.
unsafe fn add_all(
    sources: &[*const u8; SOURCES],
    outputs: &[*mut u8],
    matrices: &[u64; SOURCES * OUTPUTS],
    length: usize,
    looks_ahead: bool,
) {
    let whole = length / LINE * LINE;
    // SAFETY: as the caller vouches.
    unsafe { add_products(sources, outputs, matrices, whole, looks_ahead) };
    if whole < length {
        // SAFETY: the same, for what is left of them behind the last whole line.
        unsafe { add_last(sources, outputs, matrices, whole, length - whole) };
    }
}

/// The rest of the planes, shorter than a line, through temporary lines.
///
/// # Safety
/// As [`add_products`], for `count` bytes from `at` on.
unsafe fn add_last(
    sources: &[*const u8; SOURCES],
    outputs: &[*mut u8],
    matrices: &[u64; SOURCES * OUTPUTS],
    at: usize,
    count: usize,
) {
    let mut lines = [[0u8; LINE]; SOURCES];
    let mut sums = [[0u8; LINE]; OUTPUTS];
    for (line, source) in lines.iter_mut().zip(sources) {
        // SAFETY: a source has so many bytes there.
        unsafe {
            line.as_mut_ptr()
                .copy_from_nonoverlapping(source.add(at), count)
        };
    }
    for (sum, output) in sums.iter_mut().zip(outputs) {
        // SAFETY: and so has an output.
        unsafe {
            sum.as_mut_ptr()
                .copy_from_nonoverlapping(output.add(at), count)
        };
    }
    let from = lines.each_ref().map(|line| line.as_ptr());
    let to = sums.each_mut().map(|sum| sum.as_mut_ptr());
    // SAFETY: all of them are whole lines.
    unsafe { add_products(&from, &to[..outputs.len()], matrices, LINE, false) };
    for (sum, output) in sums.iter().zip(outputs) {
        // SAFETY: as above.
        unsafe { output.add(at).copy_from_nonoverlapping(sum.as_ptr(), count) };
    }
}

/// Add to each output the sources times its matrices.
///
/// # Safety
/// All planes have `length` bytes, a multiple of a line; no output overlaps a source or another output; there are at
/// most [`OUTPUTS`] of them; and [`is_available`] holds.
unsafe fn add_products(
    sources: &[*const u8; SOURCES],
    outputs: &[*mut u8],
    matrices: &[u64; SOURCES * OUTPUTS],
    length: usize,
    looks_ahead: bool,
) {
    if length == 0 {
        return;
    }
    let kernels = if looks_ahead {
        &kernels::LOOKING_AHEAD
    } else {
        &kernels::PLAIN
    };
    // SAFETY: as the caller vouches; the kernel is that for so many outputs.
    unsafe { kernels[outputs.len() - 1](sources, matrices, length, outputs) }
}

/// The kernels for 1, 2, ... outputs.
///
/// # Safety
/// As [`add_products`], for exactly that many, and at least a line.
type AddProducts = unsafe fn(&[*const u8; SOURCES], &[u64; SOURCES * OUTPUTS], usize, &[*mut u8]);

#[cfg(target_arch = "x86_64")]
mod kernels {
    use std::arch::asm;

    use super::{AddProducts, OUTPUTS, SOURCES};

    /// An output's coefficients into four registers.
    macro_rules! load {
        ($at:literal, $m0:literal, $m1:literal, $m2:literal, $m3:literal) => {
            concat!(
                "vpbroadcastq zmm",
                $m0,
                ", [rax + 32 * ",
                $at,
                "]\n",
                "vpbroadcastq zmm",
                $m1,
                ", [rax + 32 * ",
                $at,
                " + 8]\n",
                "vpbroadcastq zmm",
                $m2,
                ", [rax + 32 * ",
                $at,
                " + 16]\n",
                "vpbroadcastq zmm",
                $m3,
                ", [rax + 32 * ",
                $at,
                " + 24]",
            )
        };
    }

    /// Add four products to a line of an output.
    macro_rules! add {
        ($output:literal, $m0:literal, $m1:literal, $m2:literal, $m3:literal) => {
            concat!(
                "vmovdqu64 zmm4, [{",
                $output,
                "} + rax]\n",
                "vgf2p8affineqb zmm5, zmm0, zmm",
                $m0,
                ", 0\n",
                "vgf2p8affineqb zmm6, zmm1, zmm",
                $m1,
                ", 0\n",
                "vpternlogq zmm4, zmm5, zmm6, 0x96\n",
                "vgf2p8affineqb zmm5, zmm2, zmm",
                $m2,
                ", 0\n",
                "vgf2p8affineqb zmm6, zmm3, zmm",
                $m3,
                ", 0\n",
                "vpternlogq zmm4, zmm5, zmm6, 0x96\n",
                "vmovdqu64 [{",
                $output,
                "} + rax], zmm4",
            )
        };
    }

    /// A line of each source that will be read later.
    macro_rules! foresee {
        (ahead) => {
            concat!(
                "prefetcht1 [{s0} + rax + 16384]\n",
                "prefetcht1 [{s1} + rax + 16384]\n",
                "prefetcht1 [{s2} + rax + 16384]\n",
                "prefetcht1 [{s3} + rax + 16384]",
            )
        };
        (plain) => {
            ""
        };
    }

    macro_rules! kernel {
        ($how:ident, $(($at:tt, $output:ident, $text:literal, $m0:literal, $m1:literal, $m2:literal, $m3:literal)),+) => {{
            /// # Safety
            /// As [`super::AddProducts`].
            unsafe fn add(
                sources: &[*const u8; SOURCES],
                matrices: &[u64; SOURCES * OUTPUTS],
                length: usize,
                outputs: &[*mut u8],
            ) {
                // SAFETY: reads and writes the planes, which the caller vouches for, and reads the coefficients, of
                // which there are enough. The registers that it changes are named, the stack is left alone, and
                // a prefetch beyond the planes has no effect.
                unsafe {
                    asm!(
                        $(load!($at, $m0, $m1, $m2, $m3),)+
                        "xor eax, eax",
                        ".p2align 6",
                        "2:",
                        "vmovdqu64 zmm0, [{s0} + rax]",
                        "vmovdqu64 zmm1, [{s1} + rax]",
                        "vmovdqu64 zmm2, [{s2} + rax]",
                        "vmovdqu64 zmm3, [{s3} + rax]",
                        foresee!($how),
                        $(add!($text, $m0, $m1, $m2, $m3),)+
                        "add rax, 64",
                        "cmp rax, {length}",
                        "jb 2b",
                        "vzeroupper",
                        inout("rax") matrices.as_ptr() => _,
                        length = in(reg) length,
                        s0 = in(reg) sources[0],
                        s1 = in(reg) sources[1],
                        s2 = in(reg) sources[2],
                        s3 = in(reg) sources[3],
                        $($output = in(reg) outputs[$at],)+
                        clobber_abi("sysv64"),
                        options(nostack),
                    );
                }
            }
            add
        }};
    }

    macro_rules! kernels {
        ($how:ident) => {
            [
                kernel!($how, (0, o0, "o0", 8, 9, 10, 11)),
                kernel!(
                    $how,
                    (0, o0, "o0", 8, 9, 10, 11),
                    (1, o1, "o1", 12, 13, 14, 15)
                ),
                kernel!(
                    $how,
                    (0, o0, "o0", 8, 9, 10, 11),
                    (1, o1, "o1", 12, 13, 14, 15),
                    (2, o2, "o2", 16, 17, 18, 19)
                ),
                kernel!(
                    $how,
                    (0, o0, "o0", 8, 9, 10, 11),
                    (1, o1, "o1", 12, 13, 14, 15),
                    (2, o2, "o2", 16, 17, 18, 19),
                    (3, o3, "o3", 20, 21, 22, 23)
                ),
                kernel!(
                    $how,
                    (0, o0, "o0", 8, 9, 10, 11),
                    (1, o1, "o1", 12, 13, 14, 15),
                    (2, o2, "o2", 16, 17, 18, 19),
                    (3, o3, "o3", 20, 21, 22, 23),
                    (4, o4, "o4", 24, 25, 26, 27)
                ),
                kernel!(
                    $how,
                    (0, o0, "o0", 8, 9, 10, 11),
                    (1, o1, "o1", 12, 13, 14, 15),
                    (2, o2, "o2", 16, 17, 18, 19),
                    (3, o3, "o3", 20, 21, 22, 23),
                    (4, o4, "o4", 24, 25, 26, 27),
                    (5, o5, "o5", 28, 29, 30, 31)
                ),
            ]
        };
    }

    pub static PLAIN: [AddProducts; OUTPUTS] = kernels!(plain);
    /// Kernels that prefetch [`super::AHEAD`] bytes on, for sources whose data is read next there.
    pub static LOOKING_AHEAD: [AddProducts; OUTPUTS] = kernels!(ahead);
}

#[cfg(not(target_arch = "x86_64"))]
mod kernels {
    use super::{AddProducts, OUTPUTS, SOURCES};

    /// # Safety
    /// Nowhere to be called: [`super::is_available`] is false.
    unsafe fn add(
        _sources: &[*const u8; SOURCES],
        _matrices: &[u64; SOURCES * OUTPUTS],
        _length: usize,
        _outputs: &[*mut u8],
    ) {
        unreachable!("not on this architecture")
    }

    pub static PLAIN: [AddProducts; OUTPUTS] = [add; OUTPUTS];
    pub static LOOKING_AHEAD: [AddProducts; OUTPUTS] = PLAIN;
}
