//! The truth log: one thread writes records to the file and to subscribers.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{channel, sync_channel, Sender, SyncSender};
use std::sync::Arc;
use std::thread;

use daemon::LineWriter;
use parking_lot::{Condvar, Mutex};
use racksim::{Record, What};
use realtime::now_ns;

/// Maximum lag of a subscriber in records, beyond which it is disconnected.
const SUBSCRIBER_LAG: usize = 100_000;

/// Bytes that are read at once in search of the last whole record.
const PIECE_BYTES: usize = 4096;

enum Message {
    Record(Record),
    /// A subscriber, and the answer to its request.
    Subscribe(Subscriber, Arc<[u8]>),
    /// Answered once everything before it is in the file.
    Settle(Sender<()>),
}

/// A client that is sent the records of some events, or of all.
struct Subscriber {
    lines: SyncSender<Arc<[u8]>>,
    events: Option<Vec<String>>,
}

impl Subscriber {
    fn wants(&self, what: &What) -> bool {
        let named = |events: &Vec<String>| events.iter().any(|name| name == what.name());
        self.events.as_ref().is_none_or(named)
    }
}

/// The writing thread's queue.
#[derive(Default)]
struct Inbox {
    messages: Mutex<Vec<Message>>,
    came: Condvar,
}

impl Inbox {
    fn put(&self, messages: impl IntoIterator<Item = Message>) -> WakesWriter<'_> {
        self.messages.lock().extend(messages);
        WakesWriter(&self.came)
    }

    /// Wait for messages and take all there are.
    fn take(&self) -> Vec<Message> {
        let mut messages = self.messages.lock();
        while messages.is_empty() {
            self.came.wait(&mut messages);
        }
        std::mem::take(&mut messages)
    }
}

/// Wakes the writing thread when it is dropped.
#[must_use]
pub struct WakesWriter<'a>(&'a Condvar);

impl Drop for WakesWriter<'_> {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

/// A handle to the log; records keep the order in which they were given to it.
#[derive(Clone)]
pub struct TruthLog {
    inbox: Arc<Inbox>,
    /// Records missing from the file because it could not be written.
    lost: Arc<AtomicU64>,
}

impl TruthLog {
    /// Start the thread that writes to `file`.
    pub fn start(file: File) -> Self {
        let inbox = Arc::<Inbox>::default();
        let log = Self {
            inbox: inbox.clone(),
            lost: Arc::default(),
        };
        let counted = log.lost.clone();
        thread::spawn(move || {
            // A file without a size is not regular and cannot be truncated either.
            let bytes = file.metadata().map_or(0, |metadata| metadata.len());
            let lost = &counted;
            write_all(&inbox, Log { file, bytes, lost });
        });
        log
    }

    /// Queue records. Never blocks. Waking the writing thread costs microseconds, so that it is woken only when the
    /// returned guard is dropped.
    pub fn put(&self, records: Vec<Record>) -> WakesWriter<'_> {
        self.inbox.put(records.into_iter().map(Message::Record))
    }

    /// Queue a record. Never blocks.
    pub fn write(&self, record: Record) {
        self.send(Message::Record(record));
    }

    /// Queue the record of an event of this moment.
    pub fn write_now(&self, what: What) {
        let t_ns = now_ns();
        self.write(Record { t_ns, what });
    }

    /// Send all further records to `writer` too, or those of `events`, after the line `answer`; a client that falls
    /// far behind is disconnected.
    pub fn subscribe(
        &self,
        writer: Arc<LineWriter>,
        socket: UnixStream,
        answer: Vec<u8>,
        events: Option<Vec<String>>,
    ) -> io::Result<()> {
        let (lines, receiver) = sync_channel::<Arc<[u8]>>(SUBSCRIBER_LAG);
        thread::Builder::new().spawn(move || {
            for line in receiver {
                if writer.write(&line).is_err() {
                    break;
                }
            }
            // It fails only if the peer is gone already.
            let _ = socket.shutdown(std::net::Shutdown::Both);
        })?;
        self.send(Message::Subscribe(
            Subscriber { lines, events },
            answer.into(),
        ));
        Ok(())
    }

    /// Return once every record written before is in the file.
    pub fn settle(&self) {
        let (sender, receiver) = channel();
        self.send(Message::Settle(sender));
        // The writing thread lives as long as the process.
        let _ = receiver.recv();
    }

    /// Number of records missing from the file because it could not be written.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    fn send(&self, message: Message) {
        drop(self.inbox.put([message]));
    }
}

/// Open the file at `path`, to be written on. The part of a record at its end, as a rackd that was killed leaves it, is
/// cut off: the next record would follow it in the same line.
///
/// # Errors
/// As the file system has them.
pub fn open(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .append(true)
        .create(true)
        .read(true)
        .open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Ok(file);
    }
    let bytes = metadata.len();
    let mut piece = [0; PIECE_BYTES];
    let mut whole = bytes;
    while whole > 0 {
        let start = whole.saturating_sub(PIECE_BYTES as u64);
        let piece = &mut piece[..(whole - start) as usize];
        file.read_exact_at(piece, start)?;
        let last = piece.iter().rposition(|&byte| byte == b'\n');
        whole = start + last.map_or(0, |at| at as u64 + 1);
        if last.is_some() {
            break;
        }
    }
    if whole < bytes {
        file.set_len(whole)?;
    }
    Ok(file)
}

/// The file, truncated after a failed write so that it holds only whole records.
struct Log<'a> {
    file: File,
    bytes: u64,
    /// Records that could not be written.
    lost: &'a AtomicU64,
}

impl Log<'_> {
    fn append(&mut self, records: &[u8], count: u64) {
        match self.file.write_all(records) {
            Ok(()) => self.bytes += records.len() as u64,
            Err(error) => {
                if self.lost.fetch_add(count, Ordering::Relaxed) == 0 {
                    eprintln!("rackd: the truth log cannot be written: {error}; records are lost");
                }
                // Remove the partial record; if even that fails, the next record follows a partial one.
                let _ = self.file.set_len(self.bytes);
            }
        }
    }
}

fn write_all(inbox: &Inbox, mut log: Log<'_>) -> ! {
    let mut subscribers: Vec<Subscriber> = Vec::new();
    loop {
        let mut settled = Vec::new();
        let (mut lines, mut count) = (Vec::new(), 0);
        for message in inbox.take() {
            match message {
                Message::Record(record) => {
                    let start = lines.len();
                    serde_json::to_writer(&mut lines, &record).expect("a record is JSON");
                    lines.push(b'\n');
                    count += 1;
                    let wanted = |subscriber: &Subscriber| subscriber.wants(&record.what);
                    if subscribers.iter().any(wanted) {
                        let line: Arc<[u8]> = lines[start..].into();
                        subscribers.retain(|subscriber| {
                            !wanted(subscriber) || subscriber.lines.try_send(line.clone()).is_ok()
                        });
                    }
                }
                Message::Subscribe(subscriber, answer) => {
                    if subscriber.lines.try_send(answer).is_ok() {
                        subscribers.push(subscriber);
                    }
                }
                Message::Settle(done) => settled.push(done),
            }
        }
        if count > 0 {
            log.append(&lines, count);
        }
        for done in settled {
            // The caller may be gone.
            let _ = done.send(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(t_ns: u64) -> Message {
        let ports = Vec::new();
        Message::Record(Record {
            t_ns,
            what: What::Announce { ports },
        })
    }

    fn stamps(messages: &[Message]) -> Vec<u64> {
        let stamp = |message: &Message| match message {
            Message::Record(record) => Some(record.t_ns),
            _ => None,
        };
        messages.iter().filter_map(stamp).collect()
    }

    #[test]
    fn what_was_put_first_is_written_first_whoever_wakes_the_writer() {
        let inbox = Inbox::default();
        let urgent = inbox.put([record(1), record(2)]);
        drop(inbox.put([record(3)]));
        drop(urgent);
        assert_eq!(stamps(&inbox.take()), [1, 2, 3]);
    }

    #[test]
    fn the_writer_waits_until_there_is_something() {
        let inbox = Arc::<Inbox>::default();
        let writers = inbox.clone();
        let writer = thread::spawn(move || stamps(&writers.take()));
        drop(inbox.put([record(1)]));
        assert_eq!(writer.join().unwrap(), [1]);
    }
}
