//! The byte stream of a client, and the patience to wait on it.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{poll, PollFd, PollFlags, Timespec};

use crate::uri::Endpoint;

/// Time-out within a message.
const STALL: Duration = Duration::from_secs(30);
/// Interval of yields while spinning: often enough not to starve other threads, not so often that a thread that
/// wakes with the answer runs first.
const SPINS_PER_YIELD: u64 = 64;

/// The reason why a connection cannot be used further.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nothing listens, or the connection broke.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The server refuses the export.
    #[error("the server refused the export: {0}")]
    Refused(String),
    /// The server broke the protocol.
    #[error("the server broke the NBD protocol: {0}")]
    Protocol(String),
}

/// The wait of [`Client::receive`](crate::client::Client::receive) for the next answer to begin: its end and manner.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// Give up at this moment, or never.
    pub until: Option<Instant>,
    /// Spin instead of sleeping: saves a wake-up, occupies a core.
    pub spin: bool,
}

#[derive(Debug)]
pub(crate) enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Stream {
    pub(crate) fn connect(endpoint: &Endpoint) -> io::Result<Self> {
        let stream = match endpoint {
            Endpoint::Unix(path) => Self::Unix(UnixStream::connect(path)?),
            Endpoint::Tcp(host, port) => {
                let mut failure =
                    io::Error::new(io::ErrorKind::NotFound, "the host has no address");
                let mut connected = None;
                for address in (host.as_str(), *port).to_socket_addrs()? {
                    match TcpStream::connect_timeout(&address, STALL) {
                        Ok(stream) => {
                            connected = Some(stream);
                            break;
                        }
                        Err(error) => failure = error,
                    }
                }
                let stream = connected.ok_or(failure)?;
                stream.set_nodelay(true)?;
                Self::Tcp(stream)
            }
        };
        match &stream {
            Self::Unix(unix) => unix.set_read_timeout(Some(STALL))?,
            Self::Tcp(tcp) => tcp.set_read_timeout(Some(STALL))?,
        }
        Ok(stream)
    }

    pub(crate) fn read_exact(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        let result = match self {
            Self::Unix(unix) => unix.read_exact(buffer),
            Self::Tcp(tcp) => tcp.read_exact(buffer),
        };
        result.map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                io::Error::new(error.kind(), "the server closed the connection")
            }
            io::ErrorKind::WouldBlock => {
                io::Error::new(io::ErrorKind::TimedOut, "the server stopped in mid-message")
            }
            _ => error,
        })
    }

    pub(crate) fn read_array<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut raw = [0; N];
        self.read_exact(&mut raw)?;
        Ok(raw)
    }

    pub(crate) fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Unix(unix) => unix.write_all(bytes),
            Self::Tcp(tcp) => tcp.write_all(bytes),
        }
    }

    fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(unix) => unix.as_fd(),
            Self::Tcp(tcp) => tcp.as_fd(),
        }
    }

    /// Wait until the socket is readable; returns whether it was before patience ran out.
    pub(crate) fn wait(&self, patience: Patience) -> io::Result<bool> {
        let mut fds = [PollFd::from_borrowed_fd(self.fd(), PollFlags::IN)];
        for spins in 1u64.. {
            let left = patience
                .until
                .map(|until| until.saturating_duration_since(Instant::now()));
            let timeout = if patience.spin {
                Some(Duration::ZERO)
            } else {
                left
            };
            let timeout = timeout.map(|timeout| Timespec {
                tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: timeout.subsec_nanos().into(),
            });
            match poll(&mut fds, timeout.as_ref()) {
                Ok(0) if left == Some(Duration::ZERO) => return Ok(false),
                Ok(0) if spins % SPINS_PER_YIELD == 0 => rustix::thread::sched_yield(),
                Ok(0) | Err(rustix::io::Errno::INTR) => (),
                Ok(_) => return Ok(true),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(false)
    }
}
