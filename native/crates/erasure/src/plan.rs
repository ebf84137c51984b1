//! What is to be done, as the other side of the border writes it down.

/// A matrix over GF(2^8), and where it says so in ISA-L's own form.
#[repr(C)]
pub struct Matrix {
    /// Planes that come out.
    pub rows: usize,
    /// Planes that go in.
    pub columns: usize,
    /// For each row, its coefficients.
    pub coefficients: *const *const u8,
    /// Rows at the beginning that are the exclusive or of every `ones`-th plane, from their own number on. ISA-L's
    /// tables leave them out.
    pub ones: usize,
    /// The columns in blocks, in their order, for one call of ISA-L each. Not looked at by the kernels of this library.
    pub blocks: *const Block,
    /// How many blocks.
    pub block_count: usize,
}

/// Columns that follow each other, as ISA-L wants them.
#[repr(C)]
pub struct Block {
    /// How many.
    pub columns: usize,
    /// What `ec_init_tables` made of them, for all rows but the first `ones`.
    pub tables: *const u8,
}

/// What is done to a codeword, and may be done to many.
#[repr(C)]
pub struct Plan {
    /// Bytes of a plane.
    pub length: usize,
    /// Planes of a sector.
    pub parts: usize,
    /// Whether outputs are added to, instead of written. Not with a solution.
    pub adds: usize,
    /// From the sources to the outputs; or, with a solution, to what it takes.
    pub product: Matrix,
    /// Sectors among the sources that are taken as zeros; they may be nowhere.
    pub lost: *const usize,
    /// How many.
    pub lost_count: usize,
    /// Sectors of the codeword that the solution takes behind what the product gives.
    pub left: *const usize,
    /// How many.
    pub left_count: usize,
    /// From these to the outputs; without rows, the product is the result.
    pub solution: Matrix,
}

/// A codeword, and what is to be done to it.
///
/// A plane is at the base plus its offset, as unsigned numbers that wrap around.
#[repr(C)]
pub struct Work {
    /// What is done.
    pub plan: *const Plan,
    /// Offsets of the planes of the user sectors, and with a solution of the redundancy sectors after them.
    pub sources: *const usize,
    /// To be added to them.
    pub source_base: usize,
    /// Offsets of the planes that are written.
    pub outputs: *const usize,
    /// To be added to them.
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
