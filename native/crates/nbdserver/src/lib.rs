//! The server half of NBD: negotiation, the requests of a client, their limits, and replies from several threads.
//!
//! A server implements [`Exports`] for what it offers and [`Service`] for what it does with requests;
//! [`serve_client`] does the rest for one connection. [`negotiate`] and [`Requests`] are for servers whose clients come
//! by another way than a socket.

mod accept;
mod batch;
mod bytes;
mod connection;
mod handshake;
mod inbox;
mod pending;
mod refusal;
mod reply;
mod requests;
mod room;
mod service;
mod session;

pub use accept::{accept, bind, SocketFiles};
pub use bytes::Bytes;
pub use connection::Connection;
pub use handshake::{negotiate, Exports, Offer};
pub use inbox::Inbox;
pub use pending::{Body, Gathering, Pending, Place};
pub use refusal::refusal;
pub use reply::Style;
pub use requests::{Came, Intake, Requests};
pub use room::Room;
pub use service::Service;
pub use session::serve_client;
