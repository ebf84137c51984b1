//! Execution of works on one core or several.

use std::cell::RefCell;
use std::collections::TryReserveError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::plan::{list, Matrix, Plan, Work};
use crate::recovery::Loss;
use crate::scratch::{Planes, Scratch};
use crate::{gfni, isal};

/// The kernel that multiplies.
#[derive(Clone, Copy)]
pub enum Kernel {
    /// The kernels of this library.
    Gfni,
    /// ISA-L's `ec_encode_data`.
    Isal(isal::Multiply),
}

impl Kernel {
    /// # Safety
    /// `sources` are as many planes of `length` bytes as the matrix has columns, `outputs` as it has rows, none of which
    /// overlaps a source or another output. The processor can do what the kernel needs.
    unsafe fn multiply(
        self,
        matrix: &Matrix,
        length: usize,
        sources: &[*const u8],
        outputs: &[*mut u8],
        adds: bool,
        products: (&mut Planes, &mut Vec<*mut u8>),
    ) -> Result<(), TryReserveError> {
        match self {
            Self::Gfni => {
                // SAFETY: as the caller vouches.
                unsafe { gfni::multiply(matrix, length, sources, outputs, adds) };
                Ok(())
            }
            // SAFETY: as the caller vouches.
            Self::Isal(multiply) => unsafe {
                let (planes, at) = products;
                isal::multiply(multiply, matrix, length, sources, outputs, adds, planes, at)
            },
        }
    }
}

/// Execute all works, each once, on at most `workers` threads, including the calling one; on fewer if the system has
/// no more.
///
/// # Safety
/// What the works point to is valid and stays so until this returns; planes have the length, and lists the elements,
/// that they say. What is written overlaps nothing that any of them reads or writes.
pub unsafe fn run(works: &[Work], workers: usize, kernel: Kernel) -> Result<(), TryReserveError> {
    // SAFETY: as the caller vouches; each is given out once.
    share(works, workers, |work, scratch| unsafe {
        one(work, kernel, scratch)
    })
}

/// Recover all losses, as [`run`] executes works.
///
/// # Safety
/// As [`run`], for losses.
pub unsafe fn recover(
    losses: &[Loss],
    workers: usize,
    kernel: Kernel,
) -> Result<(), TryReserveError> {
    share(losses, workers, |loss, scratch| {
        let mut patterns = std::mem::take(&mut scratch.patterns);
        // SAFETY: as the caller vouches; each is given out once, and its plan used before another is made.
        let done = unsafe {
            patterns.plan(loss).and_then(|plan| {
                let work = Work {
                    plan: &plan,
                    sources: loss.sources,
                    source_base: loss.source_base,
                    outputs: loss.outputs,
                    output_base: loss.output_base,
                };
                one(&work, kernel, scratch)
            })
        };
        scratch.patterns = patterns;
        done
    })
}

fn share<T: Sync>(
    items: &[T],
    workers: usize,
    each: impl Fn(&T, &mut Scratch) -> Result<(), TryReserveError> + Sync,
) -> Result<(), TryReserveError> {
    let next = AtomicUsize::new(0);
    let work = || {
        SCRATCH.with_borrow_mut(|scratch| {
            while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                each(item, scratch)?;
            }
            scratch.give_back();
            Ok(())
        })
    };
    let others = workers.min(items.len()).saturating_sub(1);
    if others == 0 {
        return work();
    }
    thread::scope(|scope| {
        let started: Vec<_> = (0..others)
            .map_while(|_| thread::Builder::new().spawn_scoped(scope, work).ok())
            .collect();
        let mut done = work();
        for thread in started {
            let joined = thread.join();
            done = done.and(joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        done
    })
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// # Safety
/// As [`run`].
unsafe fn one(work: &Work, kernel: Kernel, scratch: &mut Scratch) -> Result<(), TryReserveError> {
    // SAFETY: the caller vouches for it.
    let plan: &Plan = unsafe { &*work.plan };
    let (product, solution, length) = (&plan.product, &plan.solution, plan.length);
    let solves = solution.rows > 0;
    let written = if solves { solution.rows } else { product.rows };
    // SAFETY: there are as many offsets as planes.
    let (sources, outputs, lost, left) = unsafe {
        (
            list(work.sources, product.columns),
            list(work.outputs, written),
            list(plan.lost, plan.lost_count),
            list(plan.left, plan.left_count),
        )
    };
    let source = |offset: usize| work.source_base.wrapping_add(offset) as *const u8;
    scratch.sources.clear();
    scratch
        .sources
        .try_reserve(product.columns.max(solution.columns))?;
    scratch
        .sources
        .extend(sources.iter().map(|offset| source(*offset)));
    scratch.outputs.clear();
    scratch.outputs.try_reserve(written)?;
    let bases = outputs
        .iter()
        .map(|offset| work.output_base.wrapping_add(*offset) as *mut u8);
    scratch.outputs.extend(bases);
    if !solves {
        let products = (&mut scratch.products, &mut scratch.products_at);
        // SAFETY: the planes are those of the work.
        return unsafe {
            kernel.multiply(
                product,
                length,
                &scratch.sources,
                &scratch.outputs,
                plan.adds != 0,
                products,
            )
        };
    }
    scratch.zeros.take(1, length, &mut scratch.computed_at)?;
    for sector in lost {
        let planes = &mut scratch.sources[sector * plan.parts..(sector + 1) * plan.parts];
        planes.fill(scratch.computed_at[0].cast_const());
    }
    scratch
        .computed
        .take(product.rows, length, &mut scratch.computed_at)?;
    let products = (&mut scratch.products, &mut scratch.products_at);
    // SAFETY: the planes are those of the work and of this thread's scratch memory.
    unsafe {
        kernel.multiply(
            product,
            length,
            &scratch.sources,
            &scratch.computed_at,
            false,
            products,
        )?
    };
    scratch.sources.clear();
    scratch
        .sources
        .extend(scratch.computed_at.iter().map(|plane| plane.cast_const()));
    for sector in left {
        for part in 0..plan.parts {
            // SAFETY: with a solution there is an offset for every plane of the codeword.
            let offset = unsafe { *work.sources.add(sector * plan.parts + part) };
            scratch.sources.push(source(offset));
        }
    }
    let products = (&mut scratch.products, &mut scratch.products_at);
    // SAFETY: what was computed, and the redundancy sectors that are left.
    unsafe {
        kernel.multiply(
            solution,
            length,
            &scratch.sources,
            &scratch.outputs,
            false,
            products,
        )
    }
}
