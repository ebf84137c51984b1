//! A drive through io_uring: requests are submitted by the thread that dispatches them, and reaped by one thread.
//!
//! Data moves beside the page cache where the file takes that; requests that are no multiples of its blocks go through
//! another descriptor of the same file. Two writes to one page, each by another of these ways, are never under way at
//! once: the kernel cannot drop a page of its cache that is written to meanwhile, and fails later flushes of the file.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;

use blockdev::Buffer;
use io_uring::{opcode, types, IoUring};
use nbd::proto::errno;
use nbdserver::Bytes;
use parking_lot::Mutex;
use realtime::now_ns;
use rustix::io::Errno;

use crate::device::{Device, Lanes};
use crate::front::{spawn, Front, Hands};
use crate::job::{Done, Job, Kind, Work};
use crate::store::Store;

/// `RWF_DSYNC` (linux/fs.h): a write is complete once it is on stable media.
const DSYNC: i32 = 2;

/// `IORING_ENTER_GETEVENTS` (linux/io_uring.h).
const GET_EVENTS: u32 = 1;

/// Buffers up to this size are kept for the next request.
const KEEP_BYTES: usize = 1 << 20;

/// The pages of the kernel's cache.
const PAGE_BYTES: u64 = 4096;

/// The descriptors of a drive's I/O.
pub struct Files {
    /// Beside the page cache, for requests that are multiples of `block`.
    pub direct: Option<File>,
    pub block: u32,
    /// Through the page cache, for all others; without one there are no others.
    pub cached: Option<File>,
}

impl Files {
    fn of(&self, job: &Job) -> Option<&File> {
        let direct = self.direct.as_ref().filter(|_| self.is_whole(job));
        direct.or(self.cached.as_ref())
    }

    fn is_whole(&self, job: &Job) -> bool {
        let block = u64::from(self.block);
        job.offset % block == 0 && u64::from(job.length) % block == 0
    }

    /// Whether a job goes through the page cache while others go beside it.
    fn is_exception(&self, job: &Job) -> bool {
        self.direct.is_some() && self.cached.is_some() && !self.is_whole(job)
    }

    /// Whether two jobs write to one page by different ways.
    fn collide(&self, one: &Job, other: &Job) -> bool {
        let writes = |job: &Job| job.kind == Kind::Write;
        let pages = |job: &Job| {
            let end = job.offset + u64::from(job.length);
            job.offset / PAGE_BYTES..end.div_ceil(PAGE_BYTES)
        };
        let (ones, others) = (pages(one), pages(other));
        writes(one)
            && writes(other)
            && self.is_exception(one) != self.is_exception(other)
            && ones.start < others.end
            && others.start < ones.end
    }
}

/// A ring, its requests in flight, and those that wait for room.
pub struct Ring {
    ring: IoUring,
    files: Files,
    /// The meaning of a failed request: see [`Store`].
    store: Arc<dyn Store>,
    /// The threads of what passes the scheduler by.
    aside: Arc<Lanes>,
    state: Mutex<State>,
}

struct State {
    slots: Vec<Slot>,
    free: Vec<usize>,
    waiting: VecDeque<Work>,
    /// Requests in flight through the page cache while others go beside it.
    exceptions: usize,
}

/// A place for a request in flight. Its buffer stays where it is until the kernel has completed the request.
#[derive(Default)]
struct Slot {
    work: Option<Work>,
    buffer: Option<Buffer>,
    since_ns: u64,
    /// Bytes that have moved, where the kernel moved less than was asked for.
    moved: usize,
}

impl Ring {
    /// A ring of `depth` requests.
    ///
    /// # Errors
    /// As the kernel has them, such as where io_uring is turned off.
    pub fn new(files: Files, store: Arc<dyn Store>, depth: usize) -> io::Result<Self> {
        let entries = u32::try_from(depth).unwrap_or(u32::MAX);
        Ok(Self {
            ring: IoUring::builder()
                .setup_clamp()
                .build(entries.next_power_of_two())?,
            files,
            aside: Arc::new(Lanes::new(store.clone(), 1)),
            store,
            state: Mutex::new(State {
                slots: (0..depth).map(|_| Slot::default()).collect(),
                free: (0..depth).rev().collect(),
                waiting: VecDeque::new(),
                exceptions: 0,
            }),
        })
    }

    /// Submit what waits, as far as there is room.
    fn pump(&self, state: &mut State, done: &mut Vec<Done>) {
        let mut count = 0;
        while let Some(index) = state.free.pop() {
            let next = match state.waiting.front() {
                Some(next) if !self.collides(state, &next.pending.job) => state.waiting.pop_front(),
                _ => None,
            };
            let Some(work) = next else {
                state.free.push(index);
                break;
            };
            if work.pending.is_orphaned() {
                done.push(work.failed(errno::ESHUTDOWN, now_ns()));
                state.free.push(index);
                continue;
            }
            let is_exception = self.files.is_exception(&work.pending.job);
            let slot = &mut state.slots[index];
            slot.take(work);
            if self.push(slot, index) {
                count += 1;
                state.exceptions += usize::from(is_exception);
            } else {
                let work = slot.work.take().expect("it was just put there");
                done.push(work.failed(errno::EINVAL, now_ns()));
                state.free.push(index);
            }
        }
        if count > 0 {
            self.submit_pushed();
        }
    }

    /// Whether a request has to wait for one in flight, whose completion pumps again.
    fn collides(&self, state: &State, job: &Job) -> bool {
        // Without any through the page cache there is nothing to look for.
        if state.exceptions == 0 && !self.files.is_exception(job) {
            return false;
        }
        let in_flight = state.slots.iter().filter_map(|slot| slot.work.as_ref());
        let mut jobs = in_flight.map(|work| &work.pending.job);
        jobs.any(|other| self.files.collide(job, other))
    }

    /// Put a request, or what is left of it, into the submission queue; `false` if no descriptor takes it. The caller holds
    /// the lock of the state.
    fn push(&self, slot: &mut Slot, index: usize) -> bool {
        let work = slot.work.as_ref().expect("the slot is in use");
        let job = work.pending.job;
        let Some(file) = self.files.of(&job) else {
            return false;
        };
        let offset = job.offset + slot.moved as u64;
        let buffer = slot.buffer.as_mut().expect("the slot is in use");
        let rest = &mut buffer.as_mut()[slot.moved..];
        let (start, length) = (rest.as_mut_ptr(), rest.len() as u32);
        let fd = types::Fd(file.as_raw_fd());
        let entry = match job.kind {
            Kind::Read => opcode::Read::new(fd, start, length).offset(offset).build(),
            _ => opcode::Write::new(fd, start, length)
                .offset(offset)
                .rw_flags(if job.fua { DSYNC } else { 0 })
                .build(),
        };
        let entry = entry.user_data(index as u64);
        // SAFETY: the lock of the state makes this the only thread at the submission queue.
        let mut queue = unsafe { self.ring.submission_shared() };
        // SAFETY: the descriptor lives as long as the ring; the buffer stays in its slot, whose heap memory does not move,
        // until the completion with this index has been reaped.
        unsafe { queue.push(&entry) }.expect("the queue has room for as many as there are slots");
        true
    }

    /// Have the kernel take what was pushed. The caller holds the lock of the state.
    fn submit_pushed(&self) {
        loop {
            match self.ring.submit() {
                Ok(_) => {
                    // SAFETY: the lock of the state makes this the only thread at the submission queue.
                    if unsafe { self.ring.submission_shared() }.is_empty() {
                        return;
                    }
                }
                Err(error) if is_passing(&error) => std::thread::yield_now(),
                Err(error) => panic!("io_uring: {error}"),
            }
        }
    }

    /// Reap completions, for ever.
    fn reap(&self, shard: &dyn Front) {
        let mut hands = Hands::default();
        let mut reaped = Vec::new();
        loop {
            // SAFETY: no signal mask is passed; waiting touches nothing of this program.
            let waited = unsafe { self.ring.submitter().enter::<()>(0, 1, GET_EVENTS, None) };
            match waited {
                Ok(_) => {}
                Err(error) if is_passing(&error) => continue,
                Err(error) => panic!("io_uring: {error}"),
            }
            let at_ns = now_ns();
            // SAFETY: this thread alone takes completions.
            let queue = unsafe { self.ring.completion_shared() };
            reaped.extend(queue.map(|entry| (entry.user_data() as usize, entry.result())));
            let mut state = self.state.lock();
            let mut is_short = false;
            for (index, result) in reaped.drain(..) {
                let slot = &mut state.slots[index];
                if slot.goes_on(result) {
                    is_short |= self.push(slot, index);
                    continue;
                }
                let (work, result) = slot.finish(result);
                let since_ns = slot.since_ns;
                state.exceptions -= usize::from(self.files.is_exception(&work.pending.job));
                let result = result.map_err(|error| self.store.code(&error));
                hands.done.push(work.done(result, since_ns, at_ns));
                state.free.push(index);
            }
            if is_short {
                self.submit_pushed();
            }
            self.pump(&mut state, &mut hands.done);
            drop(state);
            shard.finish(&mut hands);
        }
    }
}

/// Whether a call is to be made again.
fn is_passing(error: &io::Error) -> bool {
    let passing = [Errno::INTR, Errno::AGAIN, Errno::BUSY];
    passing
        .map(|one| Some(one.raw_os_error()))
        .contains(&error.raw_os_error())
}

impl Slot {
    /// Begin with a request.
    fn take(&mut self, mut work: Work) {
        let length = work.pending.job.length as usize;
        let fits = self.buffer.as_mut().is_some_and(|one| one.resize(length));
        let buffer = match &mut self.buffer {
            Some(buffer) if fits => buffer,
            other => other.insert(Buffer::new(length)),
        };
        if let Bytes::Store(data) = work.pending.bytes() {
            buffer.as_mut().copy_from_slice(data);
        }
        self.work = Some(work);
        self.moved = 0;
        self.since_ns = now_ns();
    }

    /// Whether the kernel moved a part only, and no error or end of the file kept it from the rest.
    fn goes_on(&mut self, result: i32) -> bool {
        let length = self.buffer.as_ref().map_or(0, |one| one.as_ref().len());
        match usize::try_from(result) {
            Ok(count) if count > 0 && self.moved + count < length => {
                self.moved += count;
                true
            }
            _ => false,
        }
    }

    /// End with a request.
    fn finish(&mut self, result: i32) -> (Work, io::Result<()>) {
        let mut work = self.work.take().expect("a completion is of a request");
        let buffer = self.buffer.as_ref().expect("the slot is in use");
        let length = buffer.as_ref().len();
        let result = match usize::try_from(result) {
            Ok(count) if self.moved + count == length => Ok(()),
            Ok(_) => Err(io::ErrorKind::UnexpectedEof.into()),
            Err(_) => Err(io::Error::from_raw_os_error(-result)),
        };
        if let (Ok(()), Bytes::Fill(data)) = (&result, work.pending.bytes()) {
            data.copy_from_slice(buffer.as_ref());
        }
        if length > KEEP_BYTES {
            self.buffer = None;
        }
        (work, result)
    }
}

impl Device for Ring {
    fn access(&self) -> &'static str {
        "ring"
    }

    fn submit(&self, work: &mut Vec<Work>, done: &mut Vec<Done>) {
        if let [one] = &work[..] {
            if one.id.is_none() {
                return self.aside.submit(work, done);
            }
        }
        let mut state = self.state.lock();
        state.waiting.extend(work.drain(..));
        self.pump(&mut state, done);
    }

    fn waiting(&self) -> usize {
        self.state.lock().waiting.len() + self.aside.waiting()
    }

    fn start(self: Arc<Self>, shard: &Arc<dyn Front>) {
        self.aside.clone().start(shard);
        let ring = self.clone();
        spawn(shard, move |shard| ring.reap(&*shard));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIRECT: (u64, u32) = (4096, 8192);

    fn files() -> Files {
        let null = || File::open("/dev/null").unwrap();
        Files {
            direct: Some(null()),
            block: 4096,
            cached: Some(null()),
        }
    }

    fn job(kind: Kind, (offset, length): (u64, u32)) -> Job {
        Job {
            tenant: 0,
            kind,
            offset,
            length,
            fua: false,
        }
    }

    fn collide(files: &Files, one: (u64, u32), other: (u64, u32)) -> bool {
        files.collide(&job(Kind::Write, one), &job(Kind::Write, other))
    }

    #[test]
    fn writes_to_one_page_through_the_cache_and_beside_it_collide() {
        let files = files();
        for exception in [(4095, 2), (12_287, 1), (8192, 512), (0, 20_000)] {
            assert!(collide(&files, DIRECT, exception), "{exception:?}");
            assert!(collide(&files, exception, DIRECT), "{exception:?}");
        }
        for apart in [(4000, 96), (12_288, 512), DIRECT, (8192, 4096)] {
            assert!(!collide(&files, DIRECT, apart), "{apart:?}");
        }
        assert!(!collide(&files, (8192, 512), (8704, 512)));
        let read = job(Kind::Read, (8192, 512));
        assert!(!files.collide(&read, &job(Kind::Write, DIRECT)));
    }

    #[test]
    fn nothing_collides_where_there_is_one_way() {
        let whole = files();
        let cached = Files {
            direct: None,
            ..whole
        };
        assert!(!collide(&cached, DIRECT, (8192, 512)));
        let direct = Files {
            cached: None,
            ..files()
        };
        assert!(!collide(&direct, DIRECT, (8192, 512)));
    }
}
