//! The transmission phase: requests are read in batches, and each batch is answered with one send.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use nbd::proto::{cmd, Request};
use realtime::now_ns;
use socket2::Socket;

use crate::batch::Batch;
use crate::bytes::Bytes;
use crate::connection::Connection;
use crate::handshake::{negotiate, Exports};
use crate::inbox::Inbox;
use crate::pending::Place;
use crate::reply::Style;
use crate::requests::{Intake, Requests};
use crate::service::Service;

/// Size at which a batch of replies is sent.
const BATCH_BYTES: usize = 256 << 10;
/// Time that a client which says goodbye gives its requests at most: its drive may never answer them.
const FAREWELL: Duration = Duration::from_secs(30);
/// The largest socket buffer that needs no privilege.
const SOCKET_BUFFER_BYTES: usize = 4 << 20;

/// Negotiate with a client, then serve it by what `start` makes of the export that it chooses, until it disconnects or
/// breaks the protocol. What it has asked for before it says `NBD_CMD_DISC` is answered first, though not for longer than
/// 30 s; of one that just goes, what waits is dropped.
///
/// # Errors
/// As the connection has them; `InvalidData` where the client broke the protocol. Only its connection has ended then.
pub fn serve_client<E: Exports, S: Service>(
    socket: &Socket,
    exports: &E,
    start: impl FnOnce(E::Export) -> io::Result<S>,
) -> io::Result<()> {
    // Smaller buffers are only slower.
    let _ = socket.set_send_buffer_size(SOCKET_BUFFER_BYTES);
    let mut inbox = Inbox::default();
    let Some((export, style)) = negotiate(socket, socket, &mut inbox, exports)? else {
        return Ok(());
    };
    // Before the service begins: what fails behind that has to end it as well.
    let answering = socket.try_clone()?;
    serve((socket, answering), inbox, style, start(export)?, FAREWELL)
}

/// Serve requests until the client disconnects or breaks the protocol: of a socket, for requests and for answers. What it
/// has asked for before a goodbye is answered within the time of the `farewell`.
fn serve<S: Service>(
    (socket, answering): (&Socket, Socket),
    inbox: Inbox,
    style: Style,
    service: S,
    farewell: Duration,
) -> io::Result<()> {
    let connection = Arc::new(Connection::new(answering, style, service.room()));
    let mut session = Session {
        service,
        connection: &connection,
        batch: Batch::default(),
    };
    let mut requests = Requests::new(socket, inbox);
    let ended = session.run(&mut requests);
    // Answer the requests completed before the client disconnected.
    session.service.before_wait();
    let sent = session.send();
    if requests.has_said_goodbye() {
        connection.settle(farewell);
    }
    connection.close();
    session.service.forget(&connection);
    ended.and(sent)
}

struct Session<'a, S> {
    service: S,
    connection: &'a Arc<Connection>,
    batch: Batch,
}

impl<S: Service> Intake for Session<'_, S> {
    /// The job, and its place where it cannot be attempted.
    type Checked = (S::Job, Option<Place>);

    fn check(&mut self, request: &Request) -> Result<Self::Checked, u32> {
        let job = self.service.job(request)?;
        let is_deferred = !self.service.may_attempt(&job);
        Ok((job, is_deferred.then(|| self.enter(request))))
    }

    fn before_wait(&mut self) -> io::Result<()> {
        self.service.before_wait();
        self.send()
    }
}

impl<S: Service> Session<'_, S> {
    fn run(&mut self, requests: &mut Requests<&Socket>) -> io::Result<()> {
        let mut batch_ns = now_ns();
        loop {
            let Some(came) = requests.next(self)? else {
                return Ok(());
            };
            if came.waited {
                batch_ns = now_ns();
            }
            match came.checked {
                Ok(checked) => self.carry_out(&came.request, checked, came.payload, batch_ns)?,
                Err(code) => self.answer(&came.request, code),
            }
            if self.batch.len() >= BATCH_BYTES {
                self.send()?;
            }
        }
    }

    fn carry_out(
        &mut self,
        request: &Request,
        (job, place): (S::Job, Option<Place>),
        payload: Cow<'_, [u8]>,
        came_ns: u64,
    ) -> io::Result<()> {
        if let Some(place) = place {
            self.send()?;
            let pending = place.defer(job, payload.into_owned(), came_ns);
            self.service.submit(pending);
            return Ok(());
        }
        let style = self.connection.style;
        let header = style.read_header_len();
        let reply_len = header + request.length as usize;
        let bytes = match request.command {
            cmd::READ => Bytes::Fill(&mut self.batch.room(reply_len)[header..]),
            cmd::WRITE => Bytes::Store(&payload),
            _ => Bytes::None,
        };
        match self.service.attempt(&job, bytes, came_ns) {
            Some(Ok(())) if request.command == cmd::READ && request.length > 0 => {
                let room = self.batch.room(header);
                style.read_header(request.cookie, request.offset, request.length, room);
                self.batch.keep(reply_len);
            }
            Some(result) => self.answer(request, result.err().unwrap_or(0)),
            None => {
                // The client may have to read these answers before this request can be deferred.
                self.send()?;
                let place = self.enter(request);
                let pending = place.defer(job, payload.into_owned(), came_ns);
                self.service.submit(pending);
            }
        }
        Ok(())
    }

    /// Give a request its place, which waits for others to leave theirs.
    fn enter(&mut self, request: &Request) -> Place {
        if !self.connection.has_room_for(request) {
            // The client may have to read its answers first. An error closes the connection, and ends the wait.
            let _ = self.before_wait();
        }
        self.connection.enter(request)
    }

    fn answer(&mut self, request: &Request, errno: u32) {
        let is_read = request.command == cmd::READ;
        let style = self.connection.style;
        let reply = style.without_data(is_read, request.cookie, errno);
        self.batch.push(&reply);
    }

    fn send(&mut self) -> io::Result<()> {
        self.batch.send(|replies| self.connection.send(replies))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::Shutdown;
    use std::os::unix::net::UnixStream;
    use std::sync::mpsc::{channel, Receiver, Sender};
    use std::thread;

    use super::*;
    use crate::connection::tests::pair;
    use crate::pending::Pending;

    const BYTES: u32 = 64 << 20;
    const HOUR: Duration = Duration::from_secs(3600);

    /// Keeps every request for a drive, and cannot carry out any at once.
    struct Kept(Sender<Pending<()>>);

    impl Service for Kept {
        type Job = ();

        fn job(&self, _request: &Request) -> Result<(), u32> {
            Ok(())
        }

        fn may_attempt(&self, (): &()) -> bool {
            false
        }

        fn attempt(&mut self, (): &(), _: Bytes<'_>, _: u64) -> Option<Result<(), u32>> {
            panic!("it may not be asked");
        }

        fn submit(&mut self, pending: Pending<()>) {
            self.0.send(pending).unwrap();
        }

        fn forget(&mut self, connection: &Arc<Connection>) {
            assert!(connection.is_closed());
        }
    }

    fn request(command: u16, length: u32) -> Request {
        Request {
            flags: 0,
            command,
            cookie: 1,
            offset: 0,
            length,
        }
    }

    /// The answers to a client that sends these commands and then goes; `drive` plays the drive.
    fn served(commands: &[u16], farewell: Duration, drive: fn(Receiver<Pending<()>>)) -> Vec<u8> {
        let (server, mut client) = UnixStream::pair().unwrap();
        for &command in commands {
            client.write_all(&request(command, 0).encode()).unwrap();
        }
        client.shutdown(Shutdown::Write).unwrap();
        let (to_drive, from_clients) = channel();
        let drive = thread::spawn(move || drive(from_clients));
        let server = Socket::from(server);
        let answering = server.try_clone().unwrap();
        let sockets = (&server, answering);
        let ended = serve(
            sockets,
            Inbox::default(),
            Style::Simple,
            Kept(to_drive),
            farewell,
        );
        ended.unwrap();
        drive.join().unwrap();
        let mut answers = Vec::new();
        client.read_to_end(&mut answers).unwrap();
        answers
    }

    /// Answers in order of arrival.
    fn answering(requests: Receiver<Pending<()>>) {
        for pending in requests {
            pending.answer(Ok(()));
        }
    }

    /// Answers nothing as long as there are clients.
    fn hanging(requests: Receiver<Pending<()>>) {
        let all: Vec<_> = requests.iter().collect();
        assert!(all.iter().all(Pending::is_orphaned));
    }

    #[test]
    fn what_was_asked_before_a_goodbye_is_answered() {
        // The drive needs not be the slower one in each round.
        for _ in 0..100 {
            let answers = served(&[cmd::FLUSH, cmd::FLUSH, cmd::DISC], HOUR, answering);
            assert_eq!(answers.len(), 2 * 16);
        }
    }

    #[test]
    fn a_goodbye_does_not_wait_for_ever() {
        let commands = [cmd::FLUSH, cmd::DISC];
        assert_eq!(served(&commands, Duration::ZERO, hanging), []);
    }

    #[test]
    fn a_client_that_goes_is_not_waited_for() {
        assert_eq!(served(&[cmd::FLUSH], HOUR, hanging), []);
    }

    #[test]
    fn a_request_that_cannot_be_attempted_takes_memory_within_its_room() {
        let (connection, _client) = pair();
        let (to_drive, drive) = channel();
        let mut session = Session {
            service: Kept(to_drive),
            connection: &connection,
            batch: Batch::default(),
        };
        let write = session.check(&request(cmd::WRITE, BYTES)).unwrap();
        assert_eq!(connection.room.counts(), (1, BYTES as usize, 0));
        drop(write);
        let read = request(cmd::READ, BYTES);
        let checked = session.check(&read).unwrap();
        session
            .carry_out(&read, checked, Cow::default(), 0)
            .unwrap();
        assert_eq!(connection.room.counts(), (1, BYTES as usize, 0));
        assert_eq!(drive.try_iter().count(), 1);
    }
}
