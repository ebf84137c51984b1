//! The server side: negotiation, the buffer of what a client sends, checks of its requests, and replies.

mod handshake;
mod inbox;
mod reply;
mod request;

pub use handshake::{negotiate, Exports, Offer};
pub use inbox::Inbox;
pub use reply::Style;
pub use request::refusal;
