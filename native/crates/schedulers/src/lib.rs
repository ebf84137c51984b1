//! Schedulers that share one drive among tenants, as pure state machines: none, ReFlex, Parda, FlashFQ and Gimbal.
//!
//! Requests arrive with a tenant and a priority beside them, the scheduler decides the next one to give to the drive, and
//! is told of its completion. Time is an argument (monotonic nanoseconds); nothing here reads a clock, starts a thread or
//! performs I/O, so the same code runs in virtual time and behind a socket. After the first requests nothing is allocated.
//!
//! ```
//! use schedulers::{Decision, Operation, Outcome, Parameters, Priority, Request, Tenant};
//!
//! let parameters: Parameters = serde_json::from_str(r#"{"kind": "gimbal", "virtual_slots": 8}"#).unwrap();
//! let mut scheduler = parameters.start();
//! let tenant = scheduler.join(&Tenant::named("a"), 0).unwrap();
//! let request = Request { ticket: 7, operation: Operation::Read, bytes: 4096 };
//! scheduler.arrive(tenant, Priority::default(), request, 0).unwrap();
//! let Decision::Dispatch(dispatch) = scheduler.next(0) else { panic!("the drive is idle") };
//! assert_eq!(dispatch.request.ticket, 7);
//! let completion = scheduler.complete(dispatch.id, Outcome::Succeeded, 80_000).unwrap();
//! assert_eq!(completion.latency_ns, 80_000);
//! ```

mod document;
mod flashfq;
mod gimbal;
mod ledger;
mod machine;
mod none;
mod parameters;
mod parda;
mod policy;
mod reflex;
mod refusal;
mod request;
mod scheduler;
mod snapshot;
mod tenant;
#[cfg(test)]
mod testing;

pub use document::unknown;
pub use flashfq::{FlashFqParameters, LinearCost};
pub use gimbal::{Congestion, GimbalParameters};
pub use parameters::Parameters;
pub use parda::PardaParameters;
pub use reflex::{CurvePoint, ReflexParameters};
pub use refusal::Refusal;
pub use request::{
    Completion, Decision, Dispatch, Operation, Outcome, Priority, Request, RequestId,
};
pub use scheduler::Scheduler;
pub use snapshot::{SchedulerState, Snapshot, TenantSnapshot, TenantState, View};
pub use tenant::{Slo, Tenant, TenantId};
