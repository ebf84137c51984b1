//! Blobstore experiments: key-value stores of many clients on the drives of some boxes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use blobstore::{key_of, Database, DriveId, GlobalAllocator, Io, Workload};
use racksim::Kind;
use schedulers::{Operation, Outcome};

use crate::blob_client::Client;
use crate::blob_document::BlobStore;
use crate::blob_result::{BlobStoreResult, DriveResult};
use crate::boxes::level;
use crate::drive::Drive;
use crate::failure::Failure;
use crate::load_document::ns;
use crate::storage_box::StorageBox;
use crate::target::{Arrival, Ending, Target};

/// Run the clients; nothing of them is in flight afterwards. The drives are at the same time then.
pub fn run<'a>(
    experiment: &'a BlobStore,
    drives: &mut [Drive],
    seed: u64,
) -> Result<BlobStoreResult<'a>, Failure> {
    let begin_ns = level(drives)?;
    let pool = experiment.pool(drives[0].bytes(), drives.len());
    let mut run = Run::new(experiment, drives, begin_ns, seed)?;
    run.load()?;
    let loaded_ns = run.now_ns;
    run.begin();
    let start_ns = loaded_ns + ns(experiment.warm_up_s);
    run.until(start_ns)?;
    for client in &mut run.clients {
        client.measure();
    }
    run.until(start_ns + ns(experiment.seconds))?;
    let results = run.clients.iter_mut();
    let clients = results
        .map(|client| client.result(experiment.seconds))
        .collect();
    let snapshots = run.boxes.iter().flat_map(StorageBox::snapshots);
    let drive_results = snapshots
        .zip(&pool)
        .map(|(snapshot, drive)| DriveResult {
            in_box: drive.in_box as usize,
            snapshot,
        })
        .collect();
    run.drain()?;
    drop(run);
    level(drives)?;
    Ok(BlobStoreResult {
        name: &experiment.name,
        kind: "blobstore",
        scheduler: experiment.scheduler.kind(),
        load_s: (loaded_ns - begin_ns) as f64 / 1e9,
        start_s: start_ns as f64 / 1e9,
        seconds: experiment.seconds,
        clients,
        drives: drive_results,
    })
}

/// A request on its way, by the ticket of its box.
#[derive(Clone, Copy)]
struct InFlight {
    client: usize,
    id: usize,
}

/// The tickets of a box.
#[derive(Default)]
struct Tickets {
    in_flight: Vec<InFlight>,
    free: Vec<usize>,
}

struct Run<'a, 'd> {
    experiment: &'a BlobStore,
    boxes: Vec<StorageBox<'d>>,
    tickets: Vec<Tickets>,
    drives_per_box: usize,
    global: GlobalAllocator,
    clients: Vec<Client<'a>>,
    /// Operations to start: the time, the client and the token.
    ready: BinaryHeap<Reverse<(u64, usize, u64)>>,
    now_ns: u64,
}

impl<'a, 'd> Run<'a, 'd> {
    fn new(
        experiment: &'a BlobStore,
        drives: &'d mut [Drive],
        now_ns: u64,
        seed: u64,
    ) -> Result<Self, Failure> {
        let drives_per_box = drives.len() / experiment.boxes;
        let pool = experiment.pool(drives[0].bytes(), drives.len());
        let valid = "the document's check";
        let global = GlobalAllocator::new(experiment.layout, &pool).expect(valid);
        let boxes = drives
            .chunks_mut(drives_per_box)
            .map(|part| StorageBox::new(&experiment.hardware, &experiment.scheduler, part));
        let mut run = Self {
            experiment,
            boxes: boxes.collect(),
            tickets: (0..experiment.boxes).map(|_| Tickets::default()).collect(),
            drives_per_box,
            global,
            clients: Vec::new(),
            ready: BinaryHeap::new(),
            now_ns,
        };
        for (document, number) in experiment.clients.iter().zip(0..) {
            let client = blobstore::Client::new(experiment.options, pool.len());
            let database = Database::new(experiment.tree, client, &run.global).expect(valid);
            // Each client has its own chance: one more or less does not change the others.
            let seed = seed ^ (number as u64) << 32;
            let workload = Workload::new(&document.mix, document.records, seed).expect(valid);
            run.clients.push(Client::new(document, database, workload));
            for drive in 0..pool.len() {
                run.join(number, drive)?;
            }
        }
        Ok(run)
    }

    /// The number of a client as a tenant of a drive, in the drive's box.
    fn tenant(&self, client: usize, drive: usize) -> usize {
        client * self.drives_per_box + drive % self.drives_per_box
    }

    fn join(&mut self, client: usize, drive: usize) -> Result<(), Failure> {
        let number = self.tenant(client, drive);
        let target = &mut self.boxes[drive / self.drives_per_box];
        let tenant = &self.experiment.clients[client].tenant;
        let joined = target.join(tenant, number, drive % self.drives_per_box);
        joined.map_err(|refusal| {
            Failure::BadInput(format!("experiment {:?}: {refusal}", self.experiment.name))
        })?;
        if let Some(credit) = target.credit(number) {
            let database = &mut self.clients[client].database;
            database.set_credit(DriveId(drive as u32), credit);
        }
        Ok(())
    }

    /// Store the records of all clients, through the schedulers as all else.
    fn load(&mut self) -> Result<(), Failure> {
        for number in 0..self.clients.len() {
            let records = self.experiment.clients[number].records;
            let database = &mut self.clients[number].database;
            let loaded = database.load((0..records).map(key_of), &mut self.global, self.now_ns);
            loaded.map_err(|refusal| self.refused(number, &refusal.to_string()))?;
            self.send(number);
        }
        while self.clients.iter().any(|one| one.database.is_at_work()) {
            self.step(None)?;
        }
        for (number, client) in self.clients.iter().enumerate() {
            if let Some(failure) = client.database.failure() {
                return Err(self.refused(number, failure));
            }
        }
        Ok(())
    }

    fn refused(&self, client: usize, what: &str) -> Failure {
        Failure::BadInput(format!(
            "experiment {:?}: client {:?}: {what}",
            self.experiment.name, self.experiment.clients[client].tenant.name
        ))
    }

    /// Let all clients begin to ask.
    fn begin(&mut self) {
        for (number, document) in self.experiment.clients.iter().enumerate() {
            let tokens = 0..document.depth as u64;
            self.ready
                .extend(tokens.map(|token| Reverse((self.now_ns, number, token))));
        }
    }

    fn until(&mut self, end_ns: u64) -> Result<(), Failure> {
        while self.now_ns < end_ns {
            self.step(Some(end_ns))?;
        }
        Ok(())
    }

    /// Do what can be done now, then advance all boxes to the next event, or to `limit_ns` if that is earlier.
    fn step(&mut self, limit_ns: Option<u64>) -> Result<(), Failure> {
        self.start_ready();
        for target in &mut self.boxes {
            target.dispatch();
        }
        let due = self.boxes.iter().filter_map(Target::due_ns);
        let ready_ns = self.ready.peek().map(|Reverse((at_ns, ..))| *at_ns);
        let next_ns = due.chain(ready_ns).chain(limit_ns).min();
        for target in &mut self.boxes {
            target.advance(next_ns)?;
        }
        self.now_ns = self.now_ns.max(next_ns.unwrap_or(0));
        for place in 0..self.boxes.len() {
            self.settle(place);
        }
        Ok(())
    }

    fn start_ready(&mut self) {
        while let Some(&Reverse((at_ns, number, token))) = self.ready.peek() {
            if at_ns > self.now_ns {
                break;
            }
            self.ready.pop();
            self.clients[number].start(token, &mut self.global, self.now_ns);
            self.send(number);
        }
    }

    /// Hand the completions of a box to the clients.
    fn settle(&mut self, place: usize) {
        while let Some(done) = self.boxes[place].next_done() {
            let tickets = &mut self.tickets[place];
            let InFlight { client, id, .. } = tickets.in_flight[done.ticket as usize];
            tickets.free.push(done.ticket as usize);
            let outcome = match done.ending {
                Ending::Succeeded => Outcome::Succeeded,
                Ending::Failed | Ending::Dropped => Outcome::Failed,
            };
            let database = &mut self.clients[client].database;
            database.complete(id, outcome, done.credit, &mut self.global, self.now_ns);
            self.send(client);
        }
    }

    /// Send everything of a client that may go now, and plan the operations that follow on those that have ended.
    fn send(&mut self, number: usize) {
        while let Some(io) = self.clients[number].database.next_io() {
            self.submit(number, &io);
        }
        let mut tokens = Vec::new();
        self.clients[number].settle(&mut tokens);
        let own_ns = (self.experiment.clients[number].operation_us * 1e3).round() as u64;
        let at_ns = self.now_ns + own_ns;
        self.ready.extend(
            tokens
                .into_iter()
                .map(|token| Reverse((at_ns, number, token))),
        );
    }

    fn submit(&mut self, client: usize, io: &Io) {
        let place = io.drive.index() / self.drives_per_box;
        let number = self.tenant(client, io.drive.index());
        let one = InFlight { client, id: io.id };
        let tickets = &mut self.tickets[place];
        let ticket = tickets.free.pop().unwrap_or_else(|| {
            tickets.in_flight.push(one);
            tickets.in_flight.len() - 1
        });
        tickets.in_flight[ticket] = one;
        let arrival = Arrival {
            ticket: ticket as u64,
            io: racksim::Io {
                kind: match io.operation {
                    Operation::Read => Kind::Read,
                    Operation::Write => Kind::Write,
                },
                offset: io.offset,
                length: u64::from(io.bytes),
            },
            priority: io.priority,
        };
        self.boxes[place].arrive(number, arrival);
    }

    /// Let all clients go, and the drives finish.
    fn drain(&mut self) -> Result<(), Failure> {
        for client in 0..self.clients.len() {
            for drive in 0..self.boxes.len() * self.drives_per_box {
                let number = self.tenant(client, drive);
                let place = drive / self.drives_per_box;
                let dropped = self.boxes[place].disconnect(number);
                let dropped = dropped.iter().map(|&ticket| ticket as usize);
                self.tickets[place].free.extend(dropped);
            }
        }
        for (target, tickets) in self.boxes.iter_mut().zip(&mut self.tickets) {
            while tickets.free.len() < tickets.in_flight.len() {
                target.dispatch();
                target.advance(None)?;
                while let Some(done) = target.next_done() {
                    tickets.free.push(done.ticket as usize);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "blob_store_tests.rs"]
mod tests;
