//! Scratch memory of a thread, kept between calls.

use std::collections::TryReserveError;

use crate::recovery::Patterns;

/// A cache line, with the size and alignment of a vector register.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct Line([u8; LINE]);

const LINE: usize = size_of::<[u8; 64]>();
/// Maximum size that is kept between calls.
const KEPT_BYTES: usize = 4 << 20;

/// Planes of one length, each aligned to a line.
#[derive(Default)]
pub struct Planes {
    lines: Vec<Line>,
}

impl Planes {
    /// Pointers to `count` planes of `length` bytes, put into `pointers`. Their previous content stays.
    pub fn take(
        &mut self,
        count: usize,
        length: usize,
        pointers: &mut Vec<*mut u8>,
    ) -> Result<(), TryReserveError> {
        let lines = length.div_ceil(LINE);
        let needed = lines * count;
        if self.lines.len() < needed {
            self.lines.try_reserve_exact(needed - self.lines.len())?;
            self.lines.resize(needed, Line([0; LINE]));
        }
        pointers.clear();
        pointers.try_reserve(count)?;
        let planes = self.lines[..needed].chunks_exact_mut(lines.max(1));
        pointers.extend(planes.map(|plane| plane.as_mut_ptr().cast::<u8>()));
        Ok(())
    }

    fn give_back(&mut self) {
        if self.lines.len() * LINE > KEPT_BYTES {
            self.lines = Vec::new();
        }
    }
}

/// All scratch memory of a thread.
#[derive(Default)]
pub struct Scratch {
    pub patterns: Patterns,
    pub sources: Vec<*const u8>,
    pub outputs: Vec<*mut u8>,
    pub zeros: Planes,
    pub computed: Planes,
    pub computed_at: Vec<*mut u8>,
    pub products: Planes,
    pub products_at: Vec<*mut u8>,
}

impl Scratch {
    /// Free buffers that are too large to keep.
    pub fn give_back(&mut self) {
        self.zeros.give_back();
        self.computed.give_back();
        self.products.give_back();
    }
}
