//! rackd, the simulated rack: NBD exports over simulated drives, a control socket and a truth log.
//! `docs/reference/rackd.md` specifies what clients rely on.

mod args;
mod backing;
mod config;
mod config_error;
mod control;
mod drive;
mod drive_config;
mod exports;
mod flusher;
mod io_path;
mod line_writer;
mod listen;
mod memory;
mod ops;
mod panic;
mod recording;
mod request;
mod running_rack;
mod saved;
mod timer;
mod transmission;
mod truth;

pub use args::{Args, Invocation, HELP};
pub use config::Config;
pub use config_error::ConfigError;
pub use listen::Sockets;
pub use panic::abort_on_panic;
pub use running_rack::RunningRack;
