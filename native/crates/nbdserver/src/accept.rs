//! Listening sockets, and a thread for each client.

use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// The files of bound sockets, removed when this is dropped.
#[derive(Debug, Default)]
pub struct SocketFiles(Vec<PathBuf>);

impl SocketFiles {
    /// Bind a Unix socket.
    ///
    /// # Errors
    /// One line that names the path, as of [`bind`].
    pub fn bind(&mut self, path: PathBuf) -> Result<UnixListener, String> {
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

/// Bind a Unix socket in place of one that no process answers at any more.
///
/// # Errors
/// One line that names the path: it exists and is no socket, another process answers there, or it cannot be bound.
pub fn bind(path: &Path) -> Result<UnixListener, String> {
    let wrong = |error: &dyn std::fmt::Display| format!("socket {}: {error}", path.display());
    match fs::symlink_metadata(path) {
        Ok(metadata) if !metadata.file_type().is_socket() => {
            return Err(wrong(&"exists and is no socket"))
        }
        Ok(_) => match UnixStream::connect(path) {
            Ok(_) => return Err(wrong(&"another process answers there")),
            // No other error says that nothing answers: a socket of datagrams gives one too.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                fs::remove_file(path).map_err(|error| wrong(&error))?;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(wrong(&format!("it may be in use: {error}"))),
        },
        Err(_) => {}
    }
    UnixListener::bind(path).map_err(|error| wrong(&error))
}

/// Serve each client that `next` gives in a thread of its own, until the process ends. Clients that cannot be served are
/// told of on standard error, by the name of the `program`.
pub fn accept<C: Send + 'static>(
    program: &str,
    next: impl Fn() -> io::Result<C>,
    serve: impl Fn(C) + Clone + Send + 'static,
) -> ! {
    let mut failed: u64 = 0;
    loop {
        let accepted = next().and_then(|client| {
            let serve = serve.clone();
            thread::Builder::new()
                .spawn(move || serve(client))
                .map(drop)
        });
        if let Err(error) = accepted {
            // Usually out of descriptors or threads, sometimes a client that has disconnected already.
            failed += 1;
            if 10_u64.pow(failed.ilog10()) == failed {
                eprintln!("{program}: {failed} clients could not be served, the last: {error}");
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixDatagram;

    use super::*;

    fn path(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("{name}-{}.sock", std::process::id()))
    }

    #[test]
    fn a_socket_that_no_process_answers_at_is_replaced() {
        let path = path("left");
        drop(bind(&path).unwrap());
        let mut files = SocketFiles::default();
        let again = files.bind(path.clone()).unwrap();
        let taken = bind(&path).unwrap_err();
        assert!(taken.ends_with("another process answers there"), "{taken}");
        drop(again);
        drop(files);
        assert!(!path.exists());
    }

    #[test]
    fn a_socket_of_another_kind_is_left_alone() {
        let path = path("datagrams");
        let others = UnixDatagram::bind(&path).unwrap();
        let said = bind(&path).unwrap_err();
        assert!(said.contains("it may be in use"), "{said}");
        let own = UnixDatagram::unbound().unwrap();
        own.send_to(b"still there", &path).unwrap();
        fs::remove_file(&path).unwrap();
        drop(others);
    }
}
