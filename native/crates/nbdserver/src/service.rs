//! The interface of what a server does with requests.

use std::sync::Arc;

use nbd::proto::Request;

use crate::bytes::Bytes;
use crate::connection::Connection;
use crate::pending::Pending;
use crate::room::Room;

/// The server's work on the requests of one client. Error numbers are those of [`nbd::proto::errno`].
pub trait Service {
    /// A request in the server's own terms.
    type Job;

    /// The room that what waits of the client takes; its own, unless several connections share one.
    fn room(&self) -> Arc<Room> {
        Arc::default()
    }

    /// The job of a request, or the error number of an invalid one.
    fn job(&self, request: &Request) -> Result<Self::Job, u32>;

    /// Whether [`Service::attempt`] may carry out such a job. Where it may not, it is not asked, and the job has its
    /// place in the [room](Service::room) before its data is read.
    fn may_attempt(&self, _job: &Self::Job) -> bool {
        true
    }

    /// Carry out a job that came at `came_ns`, if that can be done at once.
    fn attempt(
        &mut self,
        job: &Self::Job,
        bytes: Bytes<'_>,
        came_ns: u64,
    ) -> Option<Result<(), u32>>;

    /// Take a job that could not be carried out at once, to answer it later.
    fn submit(&mut self, pending: Pending<Self::Job>);

    /// The client is about to be waited for: jobs that were kept back for others to join them go on now.
    fn before_wait(&mut self) {}

    /// Drop what is pending of a client that is gone.
    fn forget(&mut self, connection: &Arc<Connection>);
}
