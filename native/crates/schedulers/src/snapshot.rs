//! The observable state of a scheduler.

use serde::Serialize;

use crate::gimbal::Congestion;

/// The state of a scheduler and of its tenants at the time of its last call.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Snapshot {
    /// The name of the scheduler.
    pub scheduler: &'static str,
    /// The time of its last call.
    pub at_ns: u64,
    /// Requests that wait in it.
    pub queued: u32,
    /// Requests at the drive.
    pub at_drive: u32,
    /// Tenants with a request in either place.
    pub active: u32,
    /// The scheduler's own state.
    pub state: SchedulerState,
    /// Its tenants.
    pub tenants: Vec<TenantSnapshot>,
}

/// The state of a tenant.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TenantSnapshot {
    /// Its name.
    pub name: String,
    /// Whether it leaves as soon as its requests have completed.
    pub is_leaving: bool,
    /// Its requests that wait in the scheduler.
    pub queued: u32,
    /// Its requests at the drive.
    pub at_drive: u32,
    /// Its requests so far.
    pub arrived: u64,
    /// Those that have completed, without errors.
    pub completed: u64,
    /// Those that the drive failed.
    pub failed: u64,
    /// Bytes of its completed reads.
    pub read_bytes: u64,
    /// Bytes of its completed writes.
    pub written_bytes: u64,
    /// The scheduler's own state of the tenant.
    pub state: TenantState,
}

/// A scheduler's own state.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(untagged)]
pub enum SchedulerState {
    /// No state beside the queue.
    None {},
    /// ReFlex.
    Reflex {
        /// Tokens a second that the drive can give under the strictest objective.
        tokens_per_s: f64,
        /// Those that are reserved by objectives.
        reserved_per_s: f64,
        /// Whether no tenant writes.
        is_read_only: bool,
        /// Tokens that were donated, and not taken yet.
        donated_tokens: f64,
    },
    /// Parda, all of whose state is of tenants.
    Parda {},
    /// FlashFQ.
    FlashFq {
        /// Virtual time.
        virtual_ns: u64,
    },
    /// Gimbal.
    Gimbal {
        /// The target rate, in bytes a second.
        target_rate: f64,
        /// The completion rate over the last 16 MiB, once there was one.
        completion_rate: Option<f64>,
        /// Cost of a written byte in read bytes.
        write_cost: f64,
        /// Tokens for reads, in bytes.
        read_tokens: f64,
        /// Tokens for writes, in bytes.
        write_tokens: f64,
        /// Congestion of reads.
        read: Congestion,
        /// Congestion of writes.
        write: Congestion,
        /// The average latency of reads.
        read_latency_ns: f64,
        /// The average latency of writes.
        write_latency_ns: f64,
        /// The present threshold of the latency of reads.
        read_threshold_ns: f64,
        /// The present threshold of the latency of writes.
        write_threshold_ns: f64,
        /// Virtual slots that each tenant may use.
        slots_per_tenant: u32,
    },
}

/// A scheduler's own state of a tenant.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(untagged)]
pub enum TenantState {
    /// No state beside the queue.
    None {},
    /// ReFlex.
    Reflex {
        /// Tokens it has; negative for bursts that are paid later.
        tokens: f64,
        /// Tokens a second that it is given.
        tokens_per_s: f64,
        /// Whether it has an objective.
        is_latency_critical: bool,
        /// The thread that serves it.
        thread: u32,
    },
    /// Parda.
    Parda {
        /// Its window of outstanding requests.
        window: f64,
        /// The smoothed latency, once there was one.
        latency_ns: Option<f64>,
    },
    /// FlashFQ.
    FlashFq {
        /// The start tag of its oldest request that has not completed; the finish tag of the last one if all have.
        progress_ns: u64,
        /// The finish tag of its last request.
        finish_ns: u64,
    },
    /// Gimbal.
    Gimbal {
        /// Virtual slots in use.
        slots: u32,
        /// Requests of the last slot that completed.
        last_slot_requests: u32,
        /// Weighted bytes it may still dispatch in this round.
        deficit: u64,
        /// Whether it waits for a slot.
        is_deferred: bool,
        /// Requests that it should have outstanding at most.
        credit: u32,
    },
}

/// The virtual view: what a tenant is told of its share of the drive.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct View {
    /// Requests that it should have outstanding at most.
    pub credit: u32,
    /// Its share of the target rate, in bytes a second.
    pub target_rate: f64,
    /// Congestion of reads.
    pub read: Congestion,
    /// Congestion of writes.
    pub write: Congestion,
    /// Cost of a written byte in read bytes.
    pub write_cost: f64,
}
