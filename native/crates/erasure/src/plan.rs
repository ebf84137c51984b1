//! Plans and works, as Python passes them.

/// A matrix over GF(2^8), optionally also as ISA-L tables.
#[repr(C)]
pub struct Matrix {
    /// Output planes.
    pub rows: usize,
    /// Input planes.
    pub columns: usize,
    /// For each row, its coefficients.
    pub coefficients: *const *const u8,
    /// Rows at the beginning that are the exclusive or of every `ones`-th plane, from their own number on. ISA-L's
    /// tables leave them out.
    pub ones: usize,
    /// The columns in blocks, in their order, for one call of ISA-L each. Not looked at by the kernels of this library.
    pub blocks: *const Block,
    /// Number of blocks.
    pub block_count: usize,
}

/// A block of consecutive columns with ISA-L's tables.
#[repr(C)]
pub struct Block {
    /// Count.
    pub columns: usize,
    /// Their tables from `ec_init_tables`, for all rows but the first `ones`.
    pub tables: *const u8,
}

/// The computation on a codeword, shared by many.
#[repr(C)]
pub struct Plan {
    /// Bytes of a plane.
    pub length: usize,
    /// Planes of a sector.
    pub parts: usize,
    /// Nonzero to add to the outputs instead of overwriting them. Not with a solution.
    pub adds: usize,
    /// The matrix from the sources to the outputs or, with a solution, to its first inputs.
    pub product: Matrix,
    /// Sectors among the sources that are taken as zeros; their offsets may be invalid.
    pub lost: *const usize,
    /// Count.
    pub lost_count: usize,
    /// Sectors of the codeword that are the solution's inputs behind the product's results.
    pub left: *const usize,
    /// Count.
    pub left_count: usize,
    /// The matrix from these inputs to the outputs; without rows, the product is the result.
    pub solution: Matrix,
}

/// A codeword and its plan.
///
/// A plane is at the base plus its offset, as unsigned numbers that wrap around.
#[repr(C)]
pub struct Work {
    /// The plan.
    pub plan: *const Plan,
    /// Offsets of the planes of the user sectors, and with a solution of the redundancy sectors after them.
    pub sources: *const usize,
    /// The base to add to them.
    pub source_base: usize,
    /// Offsets of the planes that are written.
    pub outputs: *const usize,
    /// The base to add to them.
    pub output_base: usize,
}

// SAFETY: a work is only read here, as is all it points to but the outputs; and those are, as the caller vouches, for
// one work alone. Which thread does it makes no difference.
unsafe impl Sync for Work {}

/// The list at `first`, which may be null when it is empty.
///
/// # Safety
/// There are `count` valid elements at `first`, for as long as the result is used.
pub unsafe fn list<'a, T>(first: *const T, count: usize) -> &'a [T] {
    if count == 0 {
        return &[];
    }
    // SAFETY: the caller vouches for the elements.
    unsafe { std::slice::from_raw_parts(first, count) }
}
