//! One client's session: requests are read one after the other, executed by several threads, and answered as they end.

use std::io::{self, Read, Write};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use blockdev::{Buffer, Medium};
use nbd::proto::{cmd, errno, flag, Request};
use nbdserver::{negotiate, refusal, Exports, Inbox, Intake, Offer, Requests, Style};
use rustix::io::Errno;

/// Requests that are executed at once.
const THREADS: usize = 32;
/// Limits of what was read and not answered yet; a single request may have more bytes.
const REQUESTS_AT_ONCE: usize = 1024;
const BYTES_AT_ONCE: usize = 32 << 20;
/// Room for a reply's header in front of its data, which begins on a page.
const PAGE: usize = 4096;
/// Time that the end gives to what is being executed: a client that left wants no answer, and a drive may never give one.
const FAREWELL: Duration = Duration::from_secs(1);

/// Negotiate and serve `medium` as the export `name`, until the client leaves.
///
/// # Errors
/// `InvalidData` where it broke the protocol, and as the connection has them. What came before is executed, a request
/// that did not come whole is not.
pub fn serve(
    mut from: impl Read,
    mut to: impl Write + Send + 'static,
    medium: Box<dyn Medium>,
    name: &str,
) -> io::Result<()> {
    let only = Only {
        name,
        offer: medium.offer(),
    };
    let mut inbox = Inbox::default();
    let Some(((), style)) = negotiate(&mut from, &mut to, &mut inbox, &only)? else {
        return Ok(());
    };
    let work = Arc::new(Work {
        medium,
        style,
        to: Mutex::new(to),
        load: Mutex::default(),
        less: Condvar::new(),
    });
    let queue = work.start();
    let ended = read_requests(Requests::new(from, inbox), only.offer, &work, &queue);
    work.settle();
    ended
}

/// The only export.
struct Only<'a> {
    name: &'a str,
    offer: Offer,
}

impl Exports for Only<'_> {
    type Export = ();

    fn names(&self) -> Vec<String> {
        vec![self.name.to_owned()]
    }

    fn find(&self, name: &str) -> Option<()> {
        // The empty name is the default export.
        (name == self.name || name.is_empty()).then_some(())
    }

    fn offer(&self, _export: &()) -> Offer {
        self.offer
    }
}

/// A request, and a buffer for its data behind a page for the header of its answer.
struct Job {
    request: Request,
    buffer: Buffer,
}

impl Job {
    fn data_bytes(&self) -> usize {
        self.buffer.as_ref().len() - PAGE
    }
}

/// Requests that were read and not answered.
#[derive(Default)]
struct Load {
    requests: usize,
    bytes: usize,
    is_client_gone: bool,
}

impl Load {
    fn has_room_for(&self, bytes: usize) -> bool {
        self.requests < REQUESTS_AT_ONCE && (self.bytes == 0 || self.bytes + bytes <= BYTES_AT_ONCE)
    }
}

struct Work<W> {
    medium: Box<dyn Medium>,
    style: Style,
    to: Mutex<W>,
    load: Mutex<Load>,
    less: Condvar,
}

fn read_requests<W: Write + Send + 'static>(
    mut requests: Requests<impl Read>,
    offer: Offer,
    work: &Work<W>,
    queue: &Sender<Job>,
) -> io::Result<()> {
    let mut intake = Offered(offer);
    loop {
        let Some(came) = requests.next(&mut intake)? else {
            return Ok(());
        };
        let request = came.request;
        if let Err(code) = came.checked {
            work.say(&without_data(work.style, &request, code));
            continue;
        }
        let data_bytes = match request.command {
            cmd::READ | cmd::WRITE => request.length as usize,
            _ => 0,
        };
        if !work.admit(data_bytes) {
            return Ok(());
        }
        let mut buffer = Buffer::new(PAGE + data_bytes);
        buffer.as_mut()[PAGE..PAGE + came.payload.len()].copy_from_slice(&came.payload);
        if queue.send(Job { request, buffer }).is_err() {
            return Err(io::Error::other("its threads ended"));
        }
    }
}

/// The requests that the export takes.
struct Offered(Offer);

impl Intake for Offered {
    type Checked = ();

    fn check(&mut self, request: &Request) -> Result<(), u32> {
        let refused = refusal(request, self.0.bytes).or_else(|| denial(request, &self.0));
        refused.map_or(Ok(()), Err)
    }
}

/// The error number of a request that this export does not take: a write where it is read-only, what it did not offer,
/// and a range that does not lie on blocks.
fn denial(request: &Request, offer: &Offer) -> Option<u32> {
    let offers = |wanted: u16| offer.flags & wanted != 0;
    let writes = matches!(request.command, cmd::WRITE | cmd::TRIM | cmd::WRITE_ZEROES);
    if writes && offers(flag::READ_ONLY) {
        return Some(errno::EPERM);
    }
    let block = u64::from(offer.minimum_block);
    let lies_on_blocks = request.command == cmd::FLUSH
        || (request.offset % block == 0 && u64::from(request.length) % block == 0);
    let is_offered = request.command != cmd::TRIM || offers(flag::SEND_TRIM);
    (!lies_on_blocks || !is_offered).then_some(errno::EINVAL)
}

impl<W: Write + Send + 'static> Work<W> {
    /// Start the threads; they end with the queue.
    fn start(self: &Arc<Self>) -> Sender<Job> {
        let (queue, jobs) = channel();
        let jobs = Arc::new(Mutex::new(jobs));
        for _ in 0..THREADS {
            let (work, jobs) = (Arc::clone(self), Arc::clone(&jobs));
            thread::spawn(move || work.execute_all(&jobs));
        }
        queue
    }

    fn execute_all(&self, jobs: &Mutex<Receiver<Job>>) {
        loop {
            let next = unpoisoned(jobs).recv();
            let Ok(mut job) = next else {
                return;
            };
            let result = self.execute(&mut job);
            self.answer(&mut job, result);
            let mut load = unpoisoned(&self.load);
            load.requests -= 1;
            load.bytes -= job.data_bytes();
            drop(load);
            self.less.notify_all();
        }
    }

    fn execute(&self, job: &mut Job) -> io::Result<()> {
        let (medium, request) = (&self.medium, job.request);
        let (offset, length) = (request.offset, u64::from(request.length));
        let data = &mut job.buffer.as_mut()[PAGE..];
        match request.command {
            cmd::READ => medium.read(offset, data),
            cmd::WRITE => medium.write(offset, data),
            cmd::TRIM => medium.trim(offset, length),
            cmd::WRITE_ZEROES => {
                let keeps_place = request.flags & cmd::FLAG_NO_HOLE != 0;
                medium.zero(offset, length, keeps_place)
            }
            _ => medium.flush(),
        }?;
        let is_durable = request.flags & cmd::FLAG_FUA != 0 && request.command != cmd::READ;
        if is_durable {
            medium.flush()?;
        }
        Ok(())
    }

    fn answer(&self, job: &mut Job, result: io::Result<()>) {
        let code = result.err().map_or(0, |error| self.code_of(&error));
        if job.request.command != cmd::READ || code != 0 || job.request.length == 0 {
            return self.say(&without_data(self.style, &job.request, code));
        }
        let begin = PAGE - self.style.read_header_len();
        let reply = &mut job.buffer.as_mut()[begin..];
        let (header, _) = reply.split_at_mut(self.style.read_header_len());
        let (cookie, offset) = (job.request.cookie, job.request.offset);
        self.style
            .read_header(cookie, offset, job.request.length, header);
        self.say(reply);
    }

    /// The number that the protocol has for an error. EIO is about the data alone.
    fn code_of(&self, error: &io::Error) -> u32 {
        match Errno::from_io_error(error) {
            Some(Errno::IO | Errno::REMOTEIO | Errno::NODATA | Errno::ILSEQ)
                if !self.medium.is_gone() =>
            {
                errno::EIO
            }
            Some(Errno::PERM | Errno::ACCESS | Errno::ROFS) => errno::EPERM,
            Some(Errno::INVAL) => errno::EINVAL,
            Some(Errno::NOSPC) => errno::ENOSPC,
            _ => errno::ESHUTDOWN,
        }
    }

    /// Send a whole reply.
    fn say(&self, reply: &[u8]) {
        let mut to = unpoisoned(&self.to);
        if to.write_all(reply).and_then(|()| to.flush()).is_err() {
            drop(to);
            unpoisoned(&self.load).is_client_gone = true;
            self.less.notify_all();
        }
    }

    /// Wait until another request may be executed; `false` where the client is gone.
    fn admit(&self, bytes: usize) -> bool {
        let mut load = unpoisoned(&self.load);
        while !load.has_room_for(bytes) && !load.is_client_gone {
            load = self.less.wait(load).unwrap_or_else(PoisonError::into_inner);
        }
        load.requests += 1;
        load.bytes += bytes;
        !load.is_client_gone
    }

    /// Wait, though not for ever, until everything that was read is answered.
    fn settle(&self) {
        let load = unpoisoned(&self.load);
        let is_busy = |load: &mut Load| load.requests > 0 && !load.is_client_gone;
        drop(self.less.wait_timeout_while(load, FAREWELL, is_busy));
    }
}

fn without_data(style: Style, request: &Request, code: u32) -> Vec<u8> {
    style.without_data(request.command == cmd::READ, request.cookie, code)
}

fn unpoisoned<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
