//! A drive behind another NBD server: connections with many requests in flight.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use nbd::client::{Client, Command, Receiver, Sender};
use nbd::proto::errno;
use nbd::uri::NbdUri;
use nbd::{Error, Export, Patience};
use nbdserver::Body;
use parking_lot::{Condvar, Mutex};
use realtime::now_ns;

use crate::device::Device;
use crate::front::{spawn, Front, Hands};
use crate::job::{Done, Kind, Work};

/// Answers that are handed on together.
const TOGETHER: usize = 64;

/// Time between two attempts to connect again while other connections serve.
const AGAIN: Duration = Duration::from_millis(200);

/// Connections to an export, with a thread for each direction, and the requests that wait for one with room.
pub struct Pipes {
    uri: NbdUri,
    export: Export,
    /// The most requests in flight on a connection.
    depth: usize,
    /// Connections made at the start, until the threads take them.
    connected: Mutex<Vec<Client<Body>>>,
    live: AtomicUsize,
    waiting: Mutex<VecDeque<Work>>,
    /// Signalled when a request waits: only who can take it hears, so that one that is woken does.
    came: Condvar,
    /// Signalled when a connection has room again or broke.
    freed: Condvar,
}

/// The requests in flight on a connection, with the times they were sent; `None` once it broke.
struct Line(Mutex<Option<HashMap<u64, (Work, u64)>>>);

impl Line {
    fn new() -> Self {
        Self(Mutex::new(Some(HashMap::new())))
    }

    /// Note a request that is about to be sent; it comes back if the connection broke.
    fn enter(&self, cookie: u64, work: Work) -> Result<(), Work> {
        match &mut *self.0.lock() {
            Some(in_flight) => {
                in_flight.insert(cookie, (work, now_ns()));
                Ok(())
            }
            None => Err(work),
        }
    }

    /// The request that was answered, with the time it was sent.
    fn leave(&self, cookie: u64) -> Option<(Work, u64)> {
        self.0.lock().as_mut()?.remove(&cookie)
    }

    /// Note that it broke; returns what was in flight.
    fn end(&self) -> Vec<(Work, u64)> {
        let in_flight = self.0.lock().take().unwrap_or_default();
        in_flight.into_values().collect()
    }

    /// The number of requests in flight, `None` if it broke.
    fn load(&self) -> Option<usize> {
        self.0.lock().as_ref().map(HashMap::len)
    }
}

impl Pipes {
    /// Connect to an export, so many times where the server promises that all connections see the same bytes, else once.
    pub fn connect(uri: NbdUri, connections: usize, depth: usize) -> Result<Self, Error> {
        let first = Client::connect(&uri)?;
        let export = first.export();
        let several = nbd::proto::flag::CAN_MULTI_CONN | nbd::proto::flag::READ_ONLY;
        let mut connected = vec![first];
        while connected.len() < connections && export.has(several) {
            connected.push(Client::connect(&uri)?);
        }
        Ok(Self {
            uri,
            export,
            depth,
            live: AtomicUsize::new(connected.len()),
            connected: Mutex::new(connected),
            waiting: Mutex::default(),
            came: Condvar::new(),
            freed: Condvar::new(),
        })
    }

    /// The server's description of the export.
    pub fn export(&self) -> Export {
        self.export
    }

    /// Send requests by one connection, which is made anew when a request comes after it broke, for ever.
    fn work(self: &Arc<Self>, shard: &Arc<dyn Front>, first: Client<Body>) {
        let mut first = Some(first);
        loop {
            let client = match first.take() {
                Some(client) => client,
                None => match self.reconnect() {
                    Ok(client) => client,
                    Err(failed) => {
                        let mut hands = Hands::default();
                        let now_ns = now_ns();
                        let failed = failed.into_iter();
                        let failed = failed.map(|work| work.failed(errno::ESHUTDOWN, now_ns));
                        hands.done.extend(failed);
                        shard.finish(&mut hands);
                        continue;
                    }
                },
            };
            let (sender, receiver) = client.split();
            let line = Arc::new(Line::new());
            let (pipes, of_receiver) = (self.clone(), line.clone());
            spawn(shard, move |shard| {
                pipes.receive(&*shard, receiver, &of_receiver)
            });
            self.send(&**shard, &line, sender);
        }
    }

    /// Wait for a request and connect for it; where that fails and no other connection serves, the requests that fail.
    fn reconnect(&self) -> Result<Client<Body>, Vec<Work>> {
        loop {
            let mut waiting = self.waiting.lock();
            while waiting.is_empty() {
                self.came.wait(&mut waiting);
            }
            drop(waiting);
            // It may have been the only one to be woken: a connection that works need not wait for this one.
            self.came.notify_all();
            let client = Client::connect(&self.uri).ok();
            // Another export in its place is not the drive.
            let client = client.filter(|client| client.export() == self.export);
            if let Some(client) = client {
                self.live.fetch_add(1, Ordering::Relaxed);
                return Ok(client);
            }
            let mut waiting = self.waiting.lock();
            if self.live.load(Ordering::Relaxed) == 0 {
                return Err(waiting.drain(..).collect());
            }
            drop(waiting);
            thread::sleep(AGAIN);
        }
    }

    /// Send requests until the connection breaks.
    fn send(&self, shard: &dyn Front, line: &Line, mut sender: Sender<Body>) {
        let mut hands = Hands::default();
        while let Some(mut work) = self.next(line) {
            if work.pending.is_orphaned() {
                hands.done.push(work.failed(errno::ESHUTDOWN, now_ns()));
                shard.finish(&mut hands);
                continue;
            }
            let command = command(&mut work);
            if let Err(work) = line.enter(sender.next_cookie(), work) {
                hands.done.push(work.failed(errno::ESHUTDOWN, now_ns()));
                shard.finish(&mut hands);
                break;
            }
            if sender.submit(command).is_err() {
                break;
            }
        }
        // What is in flight is failed by the receiver.
        sender.hang_up();
        self.live.fetch_sub(1, Ordering::Relaxed);
    }

    /// Wait for a request, and for room for it on a connection; `None` once that broke.
    fn next(&self, line: &Line) -> Option<Work> {
        let mut waiting = self.waiting.lock();
        loop {
            if line.load()? >= self.depth {
                self.freed.wait(&mut waiting);
                continue;
            }
            if let Some(work) = waiting.pop_front() {
                return Some(work);
            }
            self.came.wait(&mut waiting);
        }
    }

    /// Receive answers until the connection breaks, and fail what is in flight then.
    fn receive(&self, shard: &dyn Front, mut receiver: Receiver<Body>, line: &Line) {
        let mut hands = Hands::default();
        while let Ok(Some(completion)) = receiver.receive(Patience::WITHOUT_END) {
            let at_ns = now_ns();
            let Some((mut work, since_ns)) = line.leave(completion.cookie) else {
                break;
            };
            if let Some(body) = completion.buffer {
                work.pending.take_back(body);
            }
            hands
                .done
                .push(work.done(completion.result, since_ns, at_ns));
            if hands.done.len() >= TOGETHER || !receiver.has_more() {
                self.wake_senders();
                shard.finish(&mut hands);
            }
        }
        receiver.hang_up();
        let at_ns = now_ns();
        let broken = line.end().into_iter();
        let broken =
            broken.map(|(work, since_ns)| work.done(Err(errno::ESHUTDOWN), since_ns, at_ns));
        hands.done.extend(broken);
        self.wake_senders();
        shard.finish(&mut hands);
    }

    /// Have senders look again whether there is room.
    fn wake_senders(&self) {
        // The lock orders this after a sender's last look.
        drop(self.waiting.lock());
        self.freed.notify_all();
        // The sender of a connection that broke may have had room.
        self.came.notify_all();
    }
}

impl Device for Pipes {
    fn access(&self) -> &'static str {
        "nbd"
    }

    fn submit(&self, work: &mut Vec<Work>, _done: &mut Vec<Done>) {
        let count = work.len();
        self.waiting.lock().extend(work.drain(..));
        match count {
            1 => drop(self.came.notify_one()),
            _ => drop(self.came.notify_all()),
        }
    }

    fn waiting(&self) -> usize {
        self.waiting.lock().len()
    }

    fn start(self: Arc<Self>, shard: &Arc<dyn Front>) {
        for client in self.connected.lock().drain(..) {
            let pipes = self.clone();
            spawn(shard, move |shard| pipes.work(&shard, client));
        }
    }
}

/// The request in the terms of the client. What the server does not offer is never asked for: see the flags of the drive.
fn command(work: &mut Work) -> Command<Body> {
    let job = work.pending.job;
    let offset = job.offset;
    match job.kind {
        Kind::Read => Command::Read {
            offset,
            buffer: work.pending.lend(),
        },
        Kind::Write => Command::Write {
            offset,
            buffer: work.pending.lend(),
            fua: job.fua,
        },
        Kind::Flush | Kind::Trim | Kind::Zero { .. } => Command::Flush,
    }
}
