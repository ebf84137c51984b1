//! The listening sockets.

use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::thread;

use nbdserver::{accept, serve_client, SocketFiles};
use socket2::Socket;

use crate::config::{Config, PROGRAM};
use crate::control;
use crate::session::Session;
use crate::switch::Switch;

/// Bound sockets.
pub struct Sockets {
    nbd: UnixListener,
    control: UnixListener,
    nbd_tcp: Option<TcpListener>,
    files: SocketFiles,
}

impl Sockets {
    /// Bind everything the configuration names.
    pub fn bind(config: &Config) -> Result<Self, String> {
        let nbd_tcp = config.nbd_tcp.map(|address| {
            TcpListener::bind(address).map_err(|error| format!("nbd_tcp {address}: {error}"))
        });
        let mut files = SocketFiles::default();
        Ok(Self {
            nbd_tcp: nbd_tcp.transpose()?,
            nbd: files.bind(config.nbd.clone())?,
            control: files.bind(config.control.clone())?,
            files,
        })
    }

    /// The address of the TCP listener.
    pub fn tcp_address(&self) -> Option<SocketAddr> {
        self.nbd_tcp.as_ref()?.local_addr().ok()
    }

    /// Serve each client in a thread of its own until the process ends.
    pub fn serve(self, switch: &Arc<Switch>) -> SocketFiles {
        let nbd = self.nbd;
        let of_unix = switch.clone();
        thread::spawn(move || {
            let next = || nbd.accept().map(|(socket, _)| Socket::from(socket));
            accept(PROGRAM, next, move |socket| serve_nbd(&socket, &of_unix))
        });
        if let Some(tcp) = self.nbd_tcp {
            let of_tcp = switch.clone();
            thread::spawn(move || {
                let next = || {
                    let socket = Socket::from(tcp.accept()?.0);
                    socket.set_tcp_nodelay(true)?;
                    Ok(socket)
                };
                accept(PROGRAM, next, move |socket| serve_nbd(&socket, &of_tcp));
            });
        }
        let control = self.control;
        let of_control = switch.clone();
        thread::spawn(move || {
            let next = || control.accept().map(|(stream, _)| stream);
            accept(PROGRAM, next, move |stream| {
                control::serve(&stream, &of_control)
            })
        });
        self.files
    }
}

fn serve_nbd(socket: &Socket, switch: &Arc<Switch>) {
    // An error means that the client disconnected, broke the protocol or was refused: only its connection ends.
    let _ = serve_client(socket, switch.as_ref(), Session::start);
}
