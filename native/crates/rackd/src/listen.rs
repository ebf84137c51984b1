//! The listening sockets.

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use nbd::server::{negotiate, Inbox};
use socket2::Socket;

use crate::config::Config;
use crate::config_error::ConfigError;
use crate::control;
use crate::running_rack::RunningRack;
use crate::transmission::serve;

/// The largest socket buffer that needs no privilege.
const SOCKET_BUFFER_BYTES: usize = 4 << 20;

/// The files of bound sockets, removed when this is dropped.
#[derive(Default)]
pub struct SocketFiles(Vec<PathBuf>);

impl SocketFiles {
    fn bind(&mut self, path: PathBuf) -> Result<UnixListener, ConfigError> {
        let listener = bind(&path)?;
        self.0.push(path);
        Ok(listener)
    }
}

impl Drop for SocketFiles {
    fn drop(&mut self) {
        for path in &self.0 {
            // The file may have been removed already.
            let _ = fs::remove_file(path);
        }
    }
}

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
            nbd: files.bind(config.nbd_path())?,
            control: files.bind(config.control_path())?,
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
            accept(
                || nbd.accept().map(|(socket, _)| Socket::from(socket)),
                &of_unix,
                serve_nbd,
            )
        });
        if let Some(tcp) = self.nbd_tcp {
            let of_tcp = running.clone();
            thread::spawn(move || {
                let next = || {
                    let socket = Socket::from(tcp.accept()?.0);
                    socket.set_tcp_nodelay(true)?;
                    Ok(socket)
                };
                accept(next, &of_tcp, serve_nbd);
            });
        }
        let control = self.control;
        let of_control = running.clone();
        thread::spawn(move || {
            accept(
                || control.accept().map(|(stream, _)| stream),
                &of_control,
                control::serve,
            )
        });
        self.files
    }
}

fn bind(path: &Path) -> Result<UnixListener, ConfigError> {
    let wrong =
        |error: &dyn std::fmt::Display| ConfigError(format!("socket {}: {error}", path.display()));
    match fs::symlink_metadata(path) {
        Ok(metadata) if !metadata.file_type().is_socket() => {
            return Err(wrong(&"exists and is no socket"))
        }
        Ok(_) if UnixStream::connect(path).is_ok() => {
            return Err(wrong(&"another process answers there"))
        }
        Ok(_) => fs::remove_file(path).map_err(|error| wrong(&error))?,
        Err(_) => {}
    }
    UnixListener::bind(path).map_err(|error| wrong(&error))
}

fn accept<S: Send + 'static>(
    next: impl Fn() -> io::Result<S>,
    running: &Arc<RunningRack>,
    serve: fn(S, &Arc<RunningRack>),
) {
    let mut failed: u64 = 0;
    loop {
        let accepted = next().and_then(|socket| {
            let running = running.clone();
            thread::Builder::new()
                .spawn(move || serve(socket, &running))
                .map(drop)
        });
        if let Err(error) = accepted {
            // Usually out of descriptors or threads, sometimes a client that has disconnected already.
            failed += 1;
            if 10_u64.pow(failed.ilog10()) == failed {
                eprintln!("rackd: {failed} clients could not be served, the last: {error}");
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}

fn serve_nbd(socket: Socket, running: &Arc<RunningRack>) {
    // Smaller buffers are only slower.
    let _ = socket.set_send_buffer_size(SOCKET_BUFFER_BYTES);
    let mut inbox = Inbox::default();
    // An error means that the client disconnected or broke the protocol: only its connection ends.
    let chosen = negotiate(&socket, &socket, &mut inbox, running.as_ref());
    let _ = chosen.and_then(|chosen| match chosen {
        Some((chosen, style)) => {
            let path = &running.paths()[chosen.export];
            serve(&socket, inbox, chosen, style, path)
        }
        None => Ok(()),
    });
}
