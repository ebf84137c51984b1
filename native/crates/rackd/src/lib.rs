//! rackd, the simulated rack: NBD exports over simulated drives, a control socket and a truth log.
//! `docs/reference/rackd.md` specifies what clients rely on.

mod config;
mod config_error;
mod control;
mod drive;
mod drive_config;
mod exports;
mod flusher;
mod help;
mod io_path;
mod listen;
mod ops;
mod recording;
mod request;
mod running_rack;
mod saved;
mod transmission;
mod truth;

pub use config::Config;
pub use config_error::ConfigError;
pub use help::HELP;
pub use listen::Sockets;
pub use running_rack::RunningRack;
