//! The truth log: one thread writes what happened to the file and to those who subscribed.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{channel, sync_channel, Sender, SyncSender};
use std::sync::Arc;
use std::thread;

use device::Record;
use parking_lot::{Condvar, Mutex};

use crate::control::LineWriter;
use crate::floor::DiesWithThread;

/// Records a subscriber may be behind before it is disconnected.
const SUBSCRIBER_LAG: usize = 100_000;

enum Message {
    Record(Record),
    /// A subscriber, and the line that tells it that it is one.
    Subscribe(SyncSender<Arc<[u8]>>, Arc<[u8]>),
    /// Answered once everything before it is in the file.
    Settle(Sender<()>),
}

/// What the writing thread has yet to do, in order.
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
}

impl TruthLog {
    /// Start the thread that writes to `file`.
    pub fn start(file: File) -> Self {
        let inbox = Arc::<Inbox>::default();
        let log = Self {
            inbox: inbox.clone(),
        };
        thread::spawn(move || {
            let _alive = DiesWithThread("truth log");
            write_all(&inbox, BufWriter::new(file));
        });
        log
    }

    /// Have records written. Never waits. Waking the thread that does it costs microseconds: whoever has more urgent
    /// things to do does them before what this returns is dropped.
    pub fn put(&self, records: Vec<Record>) -> WakesWriter<'_> {
        self.inbox.put(records.into_iter().map(Message::Record))
    }

    /// Have a record written. Never waits.
    pub fn write(&self, record: Record) {
        self.send(Message::Record(record));
    }

    /// From now on records also go to `writer`, after the line `answer`; a client that falls far behind is
    /// disconnected.
    pub fn subscribe(&self, writer: Arc<LineWriter>, socket: UnixStream, answer: Vec<u8>) {
        let (sender, receiver) = sync_channel::<Arc<[u8]>>(SUBSCRIBER_LAG);
        thread::spawn(move || {
            for line in receiver {
                if writer.write(&line).is_err() {
                    break;
                }
            }
            // The peer is gone already where this fails.
            let _ = socket.shutdown(std::net::Shutdown::Both);
        });
        self.send(Message::Subscribe(sender, answer.into()));
    }

    /// Return once every record written before is in the file.
    pub fn settle(&self) {
        let (sender, receiver) = channel();
        self.send(Message::Settle(sender));
        // The writing thread lives as long as the process.
        let _ = receiver.recv();
    }

    fn send(&self, message: Message) {
        drop(self.inbox.put([message]));
    }
}

fn write_all(inbox: &Inbox, mut file: BufWriter<File>) -> ! {
    let mut subscribers: Vec<SyncSender<Arc<[u8]>>> = Vec::new();
    let mut complained = false;
    loop {
        let mut settled = Vec::new();
        for message in inbox.take() {
            match message {
                Message::Record(record) => {
                    let mut line = serde_json::to_vec(&record).expect("a record is JSON");
                    line.push(b'\n');
                    if let Err(error) = file.write_all(&line) {
                        complain(&mut complained, &error);
                    }
                    let line: Arc<[u8]> = line.into();
                    subscribers.retain(|subscriber| subscriber.try_send(line.clone()).is_ok());
                }
                Message::Subscribe(subscriber, answer) => {
                    if subscriber.try_send(answer).is_ok() {
                        subscribers.push(subscriber);
                    }
                }
                Message::Settle(done) => settled.push(done),
            }
        }
        if let Err(error) = file.flush() {
            complain(&mut complained, &error);
        }
        for done in settled {
            // Whoever asked may be gone.
            let _ = done.send(());
        }
    }
}

fn complain(complained: &mut bool, error: &std::io::Error) {
    if !std::mem::replace(complained, true) {
        eprintln!("rackd: the truth log cannot be written: {error}; records are being lost");
    }
}

#[cfg(test)]
mod tests {
    use device::What;

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
