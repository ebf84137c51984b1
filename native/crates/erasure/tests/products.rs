//! Results of the loops with either kernel, compared with the definition.

use std::ffi::c_int;
use std::ptr::null;
use std::slice::{from_raw_parts, from_raw_parts_mut};
use std::sync::Barrier;

use rackloop_erasure::{
    rackloop_erasure_has_gfni, rackloop_erasure_run, run, Block, Kernel, Matrix, Plan, Work,
};

fn product(a: u8, b: u8) -> u8 {
    let (mut a, mut found) = (u16::from(a), 0);
    for bit in 0..8 {
        if b >> bit & 1 == 1 {
            found ^= a;
        }
        a = if a & 0x80 == 0 {
            a << 1
        } else {
            a << 1 ^ 0x11D
        };
    }
    found as u8
}

/// `ec_encode_data` the slow way; its tables are the coefficients.
unsafe extern "C" fn multiply(
    length: c_int,
    columns: c_int,
    rows: c_int,
    tables: *const u8,
    sources: *const *const u8,
    outputs: *const *mut u8,
) {
    let (length, columns, rows) = (length as usize, columns as usize, rows as usize);
    for row in 0..rows {
        // SAFETY: the loops pass as many planes of this length as they say, and the tables that the test made.
        unsafe {
            let output = from_raw_parts_mut(*outputs.add(row), length);
            output.fill(0);
            for column in 0..columns {
                let source = from_raw_parts(*sources.add(column), length);
                let coefficient = *tables.add(row * columns + column);
                for (to, from) in output.iter_mut().zip(source) {
                    *to ^= product(coefficient, *from);
                }
            }
        }
    }
}

fn kernels() -> Vec<Kernel> {
    let own = (rackloop_erasure_has_gfni() == 1).then_some(Kernel::Gfni);
    own.into_iter().chain([Kernel::Isal(multiply)]).collect()
}

fn bytes(count: usize, seed: u64) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as u8
    };
    (0..count).map(|_| next()).collect()
}

/// A matrix and all that it points to.
struct Made {
    coefficients: Vec<u8>,
    rows: Vec<*const u8>,
    blocks: Vec<Block>,
    _tables: Vec<Vec<u8>>,
    ones: usize,
}

impl Made {
    /// A matrix of `rows` and `columns`, the first `ones` rows as exclusive ors, in blocks of `step` columns.
    fn new(rows: usize, columns: usize, ones: usize, step: usize) -> Self {
        let mut coefficients = bytes(rows * columns, 7);
        for row in 0..ones {
            for column in 0..columns {
                coefficients[row * columns + column] = u8::from(column % ones == row);
            }
        }
        let at = |row: usize, column: usize| coefficients[row * columns + column];
        let begins = (0..columns).step_by(step);
        let ends = begins.clone().map(|begin| (begin + step).min(columns));
        let tables: Vec<Vec<u8>> = begins
            .zip(ends)
            .map(|(begin, end)| {
                let rows = ones..rows;
                rows.flat_map(|row| (begin..end).map(move |column| at(row, column)))
                    .collect()
            })
            .collect();
        let blocks = tables.iter().enumerate().map(|(block, table)| Block {
            columns: step.min(columns - block * step),
            tables: table.as_ptr(),
        });
        Self {
            rows: coefficients.chunks(columns).map(<[u8]>::as_ptr).collect(),
            blocks: blocks.collect(),
            _tables: tables,
            coefficients,
            ones,
        }
    }

    fn matrix(&self) -> Matrix {
        Matrix {
            rows: self.rows.len(),
            columns: self.coefficients.len() / self.rows.len(),
            coefficients: self.rows.as_ptr(),
            ones: self.ones,
            blocks: self.blocks.as_ptr(),
            block_count: self.blocks.len(),
        }
    }

    fn times(&self, sources: &[&[u8]], row: usize) -> Vec<u8> {
        let columns = sources.len();
        let mut sum = vec![0; sources[0].len()];
        for (column, source) in sources.iter().enumerate() {
            for (to, from) in sum.iter_mut().zip(*source) {
                *to ^= product(self.coefficients[row * columns + column], *from);
            }
        }
        sum
    }
}

fn nothing() -> Matrix {
    Matrix {
        rows: 0,
        columns: 0,
        coefficients: null(),
        ones: 0,
        blocks: null(),
        block_count: 0,
    }
}

fn plan(length: usize, parts: usize, adds: bool, product: Matrix) -> Plan {
    Plan {
        length,
        parts,
        adds: usize::from(adds),
        product,
        lost: null(),
        lost_count: 0,
        left: null(),
        left_count: 0,
        solution: nothing(),
    }
}

fn offsets(count: usize, length: usize) -> Vec<usize> {
    (0..count).map(|plane| plane * length).collect()
}

#[test]
fn every_count_of_rows_and_columns_and_every_tail_is_multiplied() {
    // The last shape is one whose sectors are foreseen.
    for kernel in kernels() {
        for rows in [1, 2, 3, 4, 5, 6, 7, 13] {
            for (columns, length) in [(1, 64), (2, 1), (4, 130), (5, 63), (9, 65), (9, 4096)] {
                for adds in [false, true] {
                    let made = Made::new(rows, columns, 0, 4);
                    let sources = bytes(columns * length, 3);
                    let before = bytes(rows * length + 1, 5);
                    let mut after = before.clone();
                    let (from, to) = (offsets(columns, length), offsets(rows, length));
                    let plan = plan(length, 1, adds, made.matrix());
                    let work = Work {
                        plan: &plan,
                        sources: from.as_ptr(),
                        source_base: sources.as_ptr() as usize,
                        outputs: to.as_ptr(),
                        output_base: after.as_mut_ptr() as usize,
                    };
                    // SAFETY: all of it lives here.
                    unsafe { run(&[work], 1, kernel) }.expect("memory");
                    let planes: Vec<&[u8]> = sources.chunks(length).collect();
                    for row in 0..rows {
                        let mut expected = made.times(&planes, row);
                        let place = row * length..(row + 1) * length;
                        if adds {
                            for (to, from) in expected.iter_mut().zip(&before[place.clone()]) {
                                *to ^= from;
                            }
                        }
                        assert_eq!(
                            after[place], expected,
                            "{rows} x {columns} of {length}, adds {adds}"
                        );
                    }
                    assert_eq!(after.last(), before.last(), "written behind the end");
                }
            }
        }
    }
}

#[test]
fn rows_of_ones_are_added_up_part_by_part() {
    for (rows, columns, parts, length) in [
        (2, 22, 2, 33),
        (4, 12, 2, 64),
        (1, 9, 1, 100),
        (3, 9, 1, 64),
    ] {
        let made = Made::new(rows, columns, parts, 4 * parts);
        let sources = bytes(columns * length, 3);
        let mut after = vec![9; rows * length];
        let (from, to) = (offsets(columns, length), offsets(rows, length));
        let plan = plan(length, parts, false, made.matrix());
        let work = Work {
            plan: &plan,
            sources: from.as_ptr(),
            source_base: sources.as_ptr() as usize,
            outputs: to.as_ptr(),
            output_base: after.as_mut_ptr() as usize,
        };
        // SAFETY: all of it lives here.
        unsafe { run(&[work], 1, Kernel::Isal(multiply)) }.expect("memory");
        let planes: Vec<&[u8]> = sources.chunks(length).collect();
        for row in 0..rows {
            assert_eq!(
                after[row * length..(row + 1) * length],
                made.times(&planes, row),
                "row {row} of {rows}"
            );
        }
    }
}

/// Lost sectors count as zeros, whatever their offset, and the solution takes the sectors left after the computed ones.
#[test]
fn a_solution_takes_what_was_computed_and_what_is_left() {
    const LENGTH: usize = 70;
    for kernel in kernels() {
        for parts in [1, 2] {
            let (data, rows) = (5 * parts, parts);
            let (made, solution) = (
                Made::new(rows, data, 0, 4),
                Made::new(parts, 2 * parts, 0, 4),
            );
            let codeword = bytes(7 * parts * LENGTH, 3);
            let mut out = vec![0; parts * LENGTH];
            let mut from = offsets(7 * parts, LENGTH);
            let base = codeword.as_ptr() as usize;
            from[2 * parts..3 * parts].fill(base.wrapping_neg());
            let to = offsets(parts, LENGTH);
            let plan = Plan {
                lost: [2].as_ptr(),
                lost_count: 1,
                left: [6].as_ptr(),
                left_count: 1,
                solution: solution.matrix(),
                ..plan(LENGTH, parts, false, made.matrix())
            };
            let work = Work {
                plan: &plan,
                sources: from.as_ptr(),
                source_base: base,
                outputs: to.as_ptr(),
                output_base: out.as_mut_ptr() as usize,
            };
            // SAFETY: all of it lives here, and what is lost, at null, is not read.
            unsafe { run(&[work], 1, kernel) }.expect("memory");
            let zeros = [0; LENGTH];
            let planes: Vec<&[u8]> = codeword.chunks(LENGTH).collect();
            let mut known = planes[..data].to_vec();
            known[2 * parts..3 * parts].fill(&zeros);
            let computed: Vec<Vec<u8>> = (0..rows).map(|row| made.times(&known, row)).collect();
            let mut taken: Vec<&[u8]> = computed.iter().map(Vec::as_slice).collect();
            taken.extend(&planes[6 * parts..7 * parts]);
            for row in 0..parts {
                assert_eq!(
                    out[row * LENGTH..(row + 1) * LENGTH],
                    solution.times(&taken, row)
                );
            }
        }
    }
}

static TOGETHER: Barrier = Barrier::new(2);

unsafe extern "C" fn meet(
    _: c_int,
    _: c_int,
    _: c_int,
    _: *const u8,
    _: *const *const u8,
    _: *const *mut u8,
) {
    TOGETHER.wait();
}

#[test]
fn two_workers_work_at_the_same_time() {
    let made = Made::new(2, 4, 0, 4);
    let (sources, mut out) = (bytes(4, 3), [0; 4]);
    let (from, to) = (offsets(4, 1), offsets(2, 1));
    let plan = plan(1, 1, false, made.matrix());
    let works = [0, 2].map(|at| Work {
        plan: &plan,
        sources: from.as_ptr(),
        source_base: sources.as_ptr() as usize,
        outputs: to.as_ptr(),
        output_base: out.as_mut_ptr() as usize + at,
    });
    // SAFETY: all of it lives here. With one worker this would never end.
    let status = unsafe { rackloop_erasure_run(works.as_ptr(), 2, 2, Some(meet)) };
    assert_eq!(status, 0);
}

#[test]
fn nothing_to_do_is_done() {
    // SAFETY: there is nothing.
    let status = unsafe { rackloop_erasure_run(null(), 0, 1, Some(multiply)) };
    assert_eq!(status, 0);
}
