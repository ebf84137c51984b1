//! The byte stream of a client, and the patience to wait on it.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{poll, PollFd, PollFlags, Timespec};

use crate::uri::Endpoint;

/// Bytes that are read at once, where so many have come.
const READ_BYTES: usize = 64 << 10;

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

impl Patience {
    /// Sleep until the next answer, however long it takes.
    pub const WITHOUT_END: Self = Self {
        until: None,
        spin: false,
    };
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

    /// The same connection for another thread.
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        match self {
            Self::Unix(unix) => unix.try_clone().map(Self::Unix),
            Self::Tcp(tcp) => tcp.try_clone().map(Self::Tcp),
        }
    }

    /// End the connection, so that threads which wait on it wake up.
    pub(crate) fn shutdown(&self) {
        // It fails only where the connection has ended already.
        let _ = match self {
            Self::Unix(unix) => unix.shutdown(Shutdown::Both),
            Self::Tcp(tcp) => tcp.shutdown(Shutdown::Both),
        };
    }

    pub(crate) fn read_exact(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        let result = match self {
            Self::Unix(unix) => unix.read_exact(buffer),
            Self::Tcp(tcp) => tcp.read_exact(buffer),
        };
        result.map_err(explained)
    }

    /// Read what has come, at least one byte.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let result = match self {
                Self::Unix(unix) => unix.read(buffer),
                Self::Tcp(tcp) => tcp.read(buffer),
            };
            match result {
                Ok(0) => return Err(explained(io::ErrorKind::UnexpectedEof.into())),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => return other.map_err(explained),
            }
        }
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

fn explained(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            io::Error::new(error.kind(), "the server closed the connection")
        }
        io::ErrorKind::WouldBlock => {
            io::Error::new(io::ErrorKind::TimedOut, "the server stopped in mid-message")
        }
        _ => error,
    }
}

/// The answers' direction of a stream, read many at a time.
#[derive(Debug)]
pub(crate) struct Reader {
    stream: Stream,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
}

impl Reader {
    pub(crate) fn new(stream: Stream) -> Self {
        Self {
            stream,
            buffer: vec![0; READ_BYTES].into_boxed_slice(),
            start: 0,
            end: 0,
        }
    }

    pub(crate) fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Whether bytes have been read that were not taken.
    pub(crate) fn has_some(&self) -> bool {
        self.start < self.end
    }

    /// Wait until there is something to read; returns whether there was before patience ran out.
    pub(crate) fn wait(&self, patience: Patience) -> io::Result<bool> {
        if self.has_some() {
            return Ok(true);
        }
        self.stream.wait(patience)
    }

    pub(crate) fn read_exact(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        let mut filled = 0;
        while filled < buffer.len() {
            let left = buffer.len() - filled;
            if !self.has_some() {
                if left >= self.buffer.len() {
                    return self.stream.read_exact(&mut buffer[filled..]);
                }
                (self.start, self.end) = (0, self.stream.read(&mut self.buffer)?);
            }
            let part = left.min(self.end - self.start);
            buffer[filled..filled + part].copy_from_slice(&self.buffer[self.start..][..part]);
            self.start += part;
            filled += part;
        }
        Ok(())
    }

    pub(crate) fn read_array<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut raw = [0; N];
        self.read_exact(&mut raw)?;
        Ok(raw)
    }
}
