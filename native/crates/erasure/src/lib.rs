//! Products of planes of bytes by matrices over GF(2^8), for many codewords in one call from Python.
//!
//! `rackloop_models.erasure` loads this by ctypes and passes [`Plan`]s and [`Work`]s. Only
//! this file is the C ABI: change [`ABI`] with anything that crosses it, and `_native.py` with it.

mod field;
mod gfni;
mod isal;
mod plan;
mod recovery;
mod scratch;
mod work;

use std::collections::TryReserveError;
use std::panic::{catch_unwind, AssertUnwindSafe};

use plan::list;

pub use isal::Multiply;
pub use plan::{Block, Matrix, Plan, Work};
pub use recovery::{Loss, Recovery};
pub use work::{recover, run, Kernel};

/// The version of the ABI. Python refuses to load any other.
pub const ABI: u32 = 1;

const DONE: i32 = 0;
const NO_MEMORY: i32 = 1;
const NO_KERNEL: i32 = 2;
const FAULT: i32 = 3;

/// The version of the ABI.
#[no_mangle]
pub extern "C" fn rackloop_erasure_abi() -> u32 {
    ABI
}

/// 1 where the processor has what the kernels of this library need (GFNI with AVX-512), else 0.
#[no_mangle]
pub extern "C" fn rackloop_erasure_has_gfni() -> u32 {
    u32::from(gfni::is_available())
}

/// Do `count` works on at most `workers` cores, the calling thread's among them, with ISA-L's `ec_encode_data` where
/// `multiply` is given and with the kernels of this library where it is null.
///
/// Returns 0 when all is done, 1 for too little memory, 2 where the processor lacks what the kernels need, 3 for a
/// fault of this library. After anything but 0, what was to be written is undefined.
///
/// # Safety
/// `works` points to `count` of them, each as [`Work`] demands. What is written by one is not touched by another.
#[no_mangle]
pub unsafe extern "C" fn rackloop_erasure_run(
    works: *const Work,
    count: usize,
    workers: usize,
    multiply: Option<Multiply>,
) -> i32 {
    let kernel = match multiply {
        Some(multiply) => Kernel::Isal(multiply),
        None if gfni::is_available() => Kernel::Gfni,
        None => return NO_KERNEL,
    };
    // SAFETY: the caller vouches for the works.
    status(|| unsafe { run(list(works, count), workers, kernel) })
}

/// Compute the sectors that `count` codewords lack, as [`rackloop_erasure_run`] does works, with the kernels of this
/// library, and with what it returns.
///
/// # Safety
/// `losses` points to `count` of them, each as [`Loss`] demands. What is written for one is not touched by another.
#[no_mangle]
pub unsafe extern "C" fn rackloop_erasure_recover(
    losses: *const Loss,
    count: usize,
    workers: usize,
) -> i32 {
    if !gfni::is_available() {
        return NO_KERNEL;
    }
    // SAFETY: the caller vouches for the losses.
    status(|| unsafe { recover(list(losses, count), workers, Kernel::Gfni) })
}

/// A panic must not cross into C. Nothing that is seen afterwards is left half changed: scratch memory is written anew.
fn status(work: impl FnOnce() -> Result<(), TryReserveError>) -> i32 {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => DONE,
        Ok(Err(_)) => NO_MEMORY,
        Err(_) => FAULT,
    }
}
