//! Plans for erasure patterns. The small system of equations is solved for each codeword, as patterns rarely repeat.

use std::collections::TryReserveError;
use std::ptr::null;

use crate::plan::{list, Matrix, Plan};

/// The parameters of a code for codewords of one size.
///
/// The generator matrix is that of `_cauchy.py`: the element of redundancy sector `i` and user sector `j` is
/// `(x_0 + y_j) / (x_i + y_j)`, with the points `x_i = last - i` and `y_j = j`.
#[repr(C)]
pub struct Recovery {
    /// Bytes of a plane.
    pub length: usize,
    /// Planes of a sector.
    pub parts: usize,
    /// User sectors of a codeword.
    pub data: usize,
    /// Redundancy sectors.
    pub m: usize,
    /// The generator matrix over bytes, a row for each plane of redundancy.
    pub coefficients: *const u8,
    /// Bytes of a row of it.
    pub stride: usize,
    /// Powers of a generator of the field, repeated once.
    pub exp: *const i64,
    /// Logarithms; that of 0 is undefined.
    pub log: *const i64,
    /// The largest element, which is also the number of nonzero elements.
    pub last: usize,
    /// Products of bytes with the constant of the field's polynomial, for fields of two parts.
    pub deltas: *const u8,
}

/// A codeword with erased sectors.
///
/// A plane is at the base plus its offset, as unsigned numbers that wrap around.
#[repr(C)]
pub struct Loss {
    /// The code.
    pub recovery: *const Recovery,
    /// Offsets of the planes of all sectors. Those of erased ones are ignored.
    pub sources: *const usize,
    /// The base to add to them.
    pub source_base: usize,
    /// Offsets of the planes of the wanted sectors, in their order.
    pub outputs: *const usize,
    /// The base to add to them.
    pub output_base: usize,
    /// Positions of the erased sectors, ascending, at most as many as the code has redundancy sectors.
    pub erased: *const usize,
    /// Count.
    pub erased_count: usize,
    /// Positions of the erased sectors to compute.
    pub wanted: *const usize,
    /// Count.
    pub wanted_count: usize,
}

// SAFETY: a loss is only read here, as is all it points to but the outputs; and those are, as the caller vouches, for
// one loss alone. Which thread does it makes no difference.
unsafe impl Sync for Loss {}

struct Field<'a> {
    exp: &'a [i64],
    log: &'a [i64],
    last: usize,
}

impl Field<'_> {
    /// The logarithm of a nonzero element.
    fn logarithm(&self, element: usize) -> i64 {
        self.log[element]
    }

    fn power(&self, exponent: i64) -> usize {
        self.exp[exponent.rem_euclid(self.last as i64) as usize] as usize
    }

    fn product(&self, a: usize, b: usize) -> usize {
        if a == 0 || b == 0 {
            return 0;
        }
        self.exp[(self.log[a] + self.log[b]) as usize] as usize
    }

    /// The logarithm of the product of the differences of a point from all others.
    fn differences(&self, point: usize, points: impl Iterator<Item = usize>) -> i64 {
        let others = points.filter(|other| *other != point);
        others.map(|other| self.logarithm(point ^ other)).sum()
    }

    /// The inverse of the part of the generator matrix at these rows and columns, by Cauchy's formula: a row for each
    /// column of that.
    fn inverse(&self, rows: &[usize], columns: &[usize], into: &mut Vec<usize>) {
        let last = self.last;
        let x = || rows.iter().map(|row| last - row);
        let of_row = |at: usize| -> i64 {
            let sums = columns.iter().map(|column| self.logarithm(at ^ column));
            sums.sum::<i64>() - self.differences(at, x())
        };
        let of_rows: Vec<i64> = x().map(of_row).collect();
        for column in columns {
            let sums: i64 = x().map(|at| self.logarithm(at ^ column)).sum();
            let differences = self.differences(*column, columns.iter().copied());
            let of_column = sums - differences - self.logarithm(last ^ column);
            let logarithms = x()
                .zip(&of_rows)
                .map(|(at, of_row)| of_column + of_row - self.logarithm(at ^ column));
            into.extend(logarithms.map(|logarithm| self.power(logarithm)));
        }
    }
}

/// Reusable memory for plans.
#[derive(Default)]
pub struct Patterns {
    lost: Vec<usize>,
    left: Vec<usize>,
    rows: Vec<usize>,
    solved: Vec<usize>,
    elements: Vec<usize>,
    product: Vec<*const u8>,
    solution: Vec<u8>,
    solution_rows: Vec<*const u8>,
}

impl Patterns {
    /// The plan for a codeword's erased sectors, valid until the next is made.
    ///
    /// Let r be the surviving redundancy sectors, S their values if the lost user sectors were zeros, and G the part of
    /// the matrix for their rows and the lost columns: the lost sectors are `inverse(G) (S + r)`. An erased redundancy
    /// sector is its value if the lost sectors were zeros, plus its own part of the matrix times the lost sectors.
    ///
    /// # Safety
    /// The loss is as [`Loss`] demands.
    pub unsafe fn plan(&mut self, loss: &Loss) -> Result<Plan, TryReserveError> {
        // SAFETY: the caller vouches for all of it.
        let (code, erased, wanted, field) = unsafe {
            let code = &*loss.recovery;
            let field = Field {
                exp: list(code.exp, 2 * code.last),
                log: list(code.log, code.last + 1),
                last: code.last,
            };
            let (erased, wanted) = (
                list(loss.erased, loss.erased_count),
                list(loss.wanted, loss.wanted_count),
            );
            (code, erased, wanted, field)
        };
        let (data, parts) = (code.data, code.parts);
        let known = erased.partition_point(|position| *position < data);
        let (lost, gone) = erased.split_at(known);
        self.lost.clear();
        self.lost.extend(lost);
        self.rows.clear();
        let there = (0..code.m).filter(|row| !gone.contains(&(data + row)));
        self.rows.extend(there.take(lost.len()));
        self.left.clear();
        self.left.extend(self.rows.iter().map(|row| data + row));
        let also = wanted.iter().filter(|position| **position >= data);
        self.rows.extend(also.map(|position| position - data));
        let (left, also) = self.rows.split_at(lost.len());
        self.solved.clear();
        field.inverse(left, lost, &mut self.solved);

        let columns = 2 * left.len() + also.len();
        self.elements.clear();
        self.elements.try_reserve(wanted.len() * columns)?;
        for position in wanted {
            let begin = self.elements.len();
            if let Ok(place) = lost.binary_search(position) {
                self.elements
                    .extend(&self.solved[place * left.len()..(place + 1) * left.len()]);
            } else {
                let point = field.last - (position - data);
                self.elements.resize(begin + left.len(), 0);
                for (place, column) in lost.iter().enumerate() {
                    let logarithm =
                        field.logarithm(field.last ^ column) - field.logarithm(point ^ column);
                    let own = field.power(logarithm);
                    for row in 0..left.len() {
                        self.elements[begin + row] ^=
                            field.product(own, self.solved[place * left.len() + row]);
                    }
                }
            }
            let units = also.iter().map(|row| usize::from(data + row == *position));
            self.elements.extend(units);
            self.elements.extend_from_within(begin..begin + left.len());
        }
        self.expand(code, columns)?;

        self.product.clear();
        for row in &self.rows {
            for part in 0..parts {
                self.product.push(
                    code.coefficients
                        .wrapping_add((row * parts + part) * code.stride),
                );
            }
        }
        self.solution_rows.clear();
        self.solution_rows
            .extend(self.solution.chunks(columns * parts).map(<[u8]>::as_ptr));
        let matrix = |rows: &[*const u8], columns: usize| Matrix {
            rows: rows.len(),
            columns,
            coefficients: rows.as_ptr(),
            ones: 0,
            blocks: null(),
            block_count: 0,
        };
        // If no user sector is lost, the wanted sectors are encoded.
        let solved = if lost.is_empty() {
            &[][..]
        } else {
            &self.solution_rows[..]
        };
        Ok(Plan {
            length: code.length,
            parts,
            adds: 0,
            product: matrix(&self.product, data * parts),
            lost: self.lost.as_ptr(),
            lost_count: self.lost.len(),
            left: self.left.as_ptr(),
            left_count: self.left.len(),
            solution: matrix(solved, columns * parts),
        })
    }

    /// The matrix over bytes, for planes, of a matrix of field elements, for sectors.
    fn expand(&mut self, code: &Recovery, columns: usize) -> Result<(), TryReserveError> {
        self.solution.clear();
        self.solution
            .try_reserve(self.elements.len() * code.parts * code.parts)?;
        if code.parts == 1 {
            self.solution
                .extend(self.elements.iter().map(|element| *element as u8));
            return Ok(());
        }
        // SAFETY: a field of two parts has all of these products.
        let deltas = unsafe { list(code.deltas, 256) };
        for row in self.elements.chunks(columns) {
            let bytes = row
                .iter()
                .map(|element| (*element as u8, (element >> 8) as u8));
            for (low, high) in bytes.clone() {
                self.solution.extend([low, deltas[usize::from(high)]]);
            }
            for (low, high) in bytes {
                self.solution.extend([high, low ^ high]);
            }
        }
        Ok(())
    }
}
