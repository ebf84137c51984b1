//! The requests of a tenant, one after the other.

use racksim::Io;
use schedulers::Priority;

use crate::blocks::Blocks;
use crate::tenant_load::{Requests, TenantLoad};
use crate::tenant_mix::MixBlocks;
use crate::tenant_trace::TraceBlocks;

/// The generator of a tenant's requests.
pub enum TenantBlocks<'a> {
    /// Requests of one size.
    Blocks(Box<Blocks>, Priority),
    /// Requests of several sizes or operations.
    Mix(Box<MixBlocks>),
    /// The requests of a trace.
    Trace(TraceBlocks<'a>, Priority),
}

impl<'a> TenantBlocks<'a> {
    /// The requests of `load` on a drive of `bytes`.
    pub fn new(load: &'a TenantLoad, bytes: u64, seed: u64) -> Self {
        match load.requests(bytes) {
            Requests::Blocks(blocks) => {
                Self::Blocks(Box::new(Blocks::new(&blocks, bytes, seed)), load.priority)
            }
            Requests::Mix(mix) => Self::Mix(Box::new(MixBlocks::new(mix, seed))),
            Requests::Trace(replay, region) => {
                Self::Trace(TraceBlocks::new(replay, region), load.priority)
            }
        }
    }

    /// The next request and its tag; `None` where a trace is over.
    // Inlined, so that a request is made where it goes: read right after it was written in parts, it would be waited for.
    #[inline(always)]
    pub fn next(&mut self) -> Option<(Io, Priority)> {
        match self {
            Self::Blocks(blocks, priority) => Some((blocks.next(), *priority)),
            Self::Mix(mix) => Some(mix.next()),
            Self::Trace(trace, priority) => trace.next().map(|io| (io, *priority)),
        }
    }

    /// The recorded time of the next request since the first one; `None` where a trace is over, and for other loads.
    pub fn next_at_ns(&self) -> Option<f64> {
        match self {
            Self::Trace(trace, _) => trace.next_at_ns(),
            _ => None,
        }
    }
}
