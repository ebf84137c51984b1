//! The listening sockets.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::thread;

use nbdserver::{accept, serve_client, SocketFiles};
use socket2::Socket;

use crate::config::Config;
use crate::config_error::ConfigError;
use crate::control;
use crate::running_rack::RunningRack;
use crate::transmission::Session;

/// Bound sockets.
pub struct Sockets {
    nbd: UnixListener,
    control: UnixListener,
    nbd_tcp: Option<TcpListener>,
    files: SocketFiles,
}

impl Sockets {
    /// Bind everything the configuration names.
    pub fn bind(config: &Config) -> Result<Self, ConfigError> {
        fs::create_dir_all(&config.state_dir).map_err(|error| {
            ConfigError(format!("state_dir {}: {error}", config.state_dir.display()))
        })?;
        let nbd_tcp = config.nbd_tcp.map(|address| {
            TcpListener::bind(address)
                .map_err(|error| ConfigError(format!("nbd_tcp {address}: {error}")))
        });
        let mut files = SocketFiles::default();
        Ok(Self {
            nbd_tcp: nbd_tcp.transpose()?,
            nbd: files.bind(config.nbd_path()).map_err(ConfigError)?,
            control: files.bind(config.control_path()).map_err(ConfigError)?,
            files,
        })
    }

    /// The address of the TCP listener.
    pub fn tcp_address(&self) -> Option<SocketAddr> {
        self.nbd_tcp.as_ref()?.local_addr().ok()
    }

    /// Serve each client in a thread of its own until the process ends.
    pub fn serve(self, running: &Arc<RunningRack>) -> SocketFiles {
        let nbd = self.nbd;
        let of_unix = running.clone();
        thread::spawn(move || {
            let next = || nbd.accept().map(|(socket, _)| Socket::from(socket));
            accept("rackd", next, move |socket| serve_nbd(&socket, &of_unix))
        });
        if let Some(tcp) = self.nbd_tcp {
            let of_tcp = running.clone();
            thread::spawn(move || {
                let next = || {
                    let socket = Socket::from(tcp.accept()?.0);
                    socket.set_tcp_nodelay(true)?;
                    Ok(socket)
                };
                accept("rackd", next, move |socket| serve_nbd(&socket, &of_tcp));
            });
        }
        let control = self.control;
        let of_control = running.clone();
        thread::spawn(move || {
            let next = || control.accept().map(|(stream, _)| stream);
            accept("rackd", next, move |stream| {
                control::serve(&stream, &of_control)
            })
        });
        self.files
    }
}

fn serve_nbd(socket: &Socket, running: &Arc<RunningRack>) {
    // An error means that the client disconnected or broke the protocol: only its connection ends.
    let _ = serve_client(socket, running.as_ref(), |chosen| {
        let path = running.paths()[chosen.export].clone();
        Ok(Session { path, chosen })
    });
}
