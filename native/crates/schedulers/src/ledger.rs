//! The requests and tenants in a scheduler, in slabs that are reused: queues are linked through the requests.

use crate::refusal::Refusal;
use crate::request::{Priority, Request, RequestId};
use crate::tenant::{Tenant, TenantId};

/// The end of a list.
pub const NONE: u32 = u32::MAX;

/// A request's place in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Not in use.
    Free,
    /// Waits in the scheduler.
    Queued,
    /// Was given to the drive.
    AtDrive,
}

/// A request in the scheduler.
#[derive(Debug, Clone)]
pub struct Entry {
    pub request: Request,
    pub tenant: u32,
    pub priority: Priority,
    pub place: Place,
    generation: u32,
    next: u32,
    pub arrived_ns: u64,
    /// The time it reached the drive.
    pub dispatched_ns: u64,
    /// The time it left the scheduler.
    pub sent_ns: u64,
    /// The scheduler's own note: a tag, a slot.
    pub mark: u64,
}

/// Requests in order.
#[derive(Debug, Clone, Copy)]
pub struct Queue {
    head: u32,
    tail: u32,
    length: u32,
}

impl Default for Queue {
    fn default() -> Self {
        Self {
            head: NONE,
            tail: NONE,
            length: 0,
        }
    }
}

impl Queue {
    pub fn is_empty(&self) -> bool {
        self.head == NONE
    }

    pub fn head(&self) -> Option<u32> {
        (self.head != NONE).then_some(self.head)
    }

    pub fn push(&mut self, entries: &mut [Entry], index: u32) {
        entries[index as usize].next = NONE;
        if self.tail == NONE {
            self.head = index;
        } else {
            entries[self.tail as usize].next = index;
        }
        self.tail = index;
        self.length += 1;
    }

    pub fn pop(&mut self, entries: &[Entry]) -> Option<u32> {
        let index = self.head()?;
        self.head = entries[index as usize].next;
        if self.head == NONE {
            self.tail = NONE;
        }
        self.length -= 1;
        Some(index)
    }

    /// Take the requests of a tenant out.
    pub fn forget(&mut self, entries: &mut [Entry], tenant: u32) {
        let mut all = std::mem::take(self);
        while let Some(index) = all.pop(entries) {
            if entries[index as usize].tenant != tenant {
                self.push(entries, index);
            }
        }
    }
}

/// Counts of a tenant's requests so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    pub arrived: u64,
    pub completed: u64,
    pub failed: u64,
    pub read_bytes: u64,
    pub written_bytes: u64,
}

/// A tenant that has joined, with the scheduler's state of it.
#[derive(Debug)]
pub struct Member<T> {
    pub tenant: Tenant,
    pub is_leaving: bool,
    pub queued: u32,
    pub at_drive: u32,
    pub counters: Counters,
    pub state: T,
}

impl<T> Member<T> {
    pub fn is_active(&self) -> bool {
        self.queued + self.at_drive > 0
    }

    /// Whether it may still send requests to the drive.
    pub fn is_served(&self) -> bool {
        !self.is_leaving || self.queued > 0
    }
}

#[derive(Debug)]
struct Seat<T> {
    generation: u32,
    member: Option<Member<T>>,
}

/// All requests and tenants.
#[derive(Debug)]
pub struct Ledger<T> {
    entries: Vec<Entry>,
    free: Vec<u32>,
    seats: Vec<Seat<T>>,
    pub queued: u32,
    pub at_drive: u32,
    /// Tenants with a request in the scheduler or at the drive.
    pub active: u32,
}

impl<T> Ledger<T> {
    pub fn new() -> Self {
        Self {
            entries: Vec::new(),
            free: Vec::new(),
            seats: Vec::new(),
            queued: 0,
            at_drive: 0,
            active: 0,
        }
    }

    pub fn seat(&mut self, tenant: &Tenant, state: T) -> TenantId {
        let free = self.seats.iter().position(|seat| seat.member.is_none());
        let index = free.unwrap_or_else(|| {
            self.seats.push(Seat {
                generation: 0,
                member: None,
            });
            self.seats.len() - 1
        });
        let seat = &mut self.seats[index];
        seat.generation += 1;
        seat.member = Some(Member {
            tenant: tenant.clone(),
            is_leaving: false,
            queued: 0,
            at_drive: 0,
            counters: Counters::default(),
            state,
        });
        TenantId {
            index: index as u32,
            generation: seat.generation,
        }
    }

    pub fn unseat(&mut self, index: u32) {
        self.seats[index as usize].member = None;
    }

    /// The index of a tenant that has not left.
    pub fn present(&self, id: TenantId) -> Result<u32, Refusal> {
        match self.seats.get(id.index as usize) {
            Some(Seat {
                generation,
                member: Some(member),
            }) if *generation == id.generation && !member.is_leaving => Ok(id.index),
            _ => Err(Refusal::NoSuchTenant),
        }
    }

    pub fn tenant_id(&self, index: u32) -> TenantId {
        TenantId {
            index,
            generation: self.seats[index as usize].generation,
        }
    }

    pub fn member(&self, index: u32) -> &Member<T> {
        let member = self.seats[index as usize].member.as_ref();
        member.expect("lists hold tenants that are there")
    }

    pub fn member_mut(&mut self, index: u32) -> &mut Member<T> {
        let member = self.seats[index as usize].member.as_mut();
        member.expect("lists hold tenants that are there")
    }

    /// A tenant, and the requests through which its queues are linked.
    pub fn member_and_entries(&mut self, index: u32) -> (&mut Member<T>, &mut [Entry]) {
        let member = self.seats[index as usize].member.as_mut();
        let member = member.expect("lists hold tenants that are there");
        (member, &mut self.entries)
    }

    pub fn members(&self) -> impl Iterator<Item = (u32, &Member<T>)> {
        let numbered = (0..).zip(&self.seats);
        numbered.filter_map(|(index, seat)| Some((index, seat.member.as_ref()?)))
    }

    /// A bound on the indices of tenants.
    pub fn seats(&self) -> u32 {
        self.seats.len() as u32
    }

    pub fn try_member_mut(&mut self, index: u32) -> Option<&mut Member<T>> {
        self.seats[index as usize].member.as_mut()
    }

    pub fn entries(&mut self) -> &mut [Entry] {
        &mut self.entries
    }

    pub fn entry(&self, index: u32) -> &Entry {
        &self.entries[index as usize]
    }

    /// Enter an arrival.
    #[inline]
    pub fn enter(&mut self, tenant: u32, priority: Priority, request: Request, now_ns: u64) -> u32 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.entries.push(Entry {
                request,
                tenant,
                priority,
                place: Place::Free,
                generation: 0,
                next: NONE,
                arrived_ns: 0,
                dispatched_ns: 0,
                sent_ns: 0,
                mark: 0,
            });
            (self.entries.len() - 1) as u32
        });
        let entry = &mut self.entries[index as usize];
        entry.request = request;
        entry.tenant = tenant;
        entry.priority = priority;
        entry.place = Place::Queued;
        entry.generation = entry.generation.wrapping_add(1);
        entry.arrived_ns = now_ns;
        self.queued += 1;
        let member = self.member_mut(tenant);
        let was_active = member.is_active();
        member.queued += 1;
        member.counters.arrived += 1;
        self.active += u32::from(!was_active);
        index
    }

    /// Note that a queued request goes to the drive.
    #[inline]
    pub fn dispatch(&mut self, index: u32, now_ns: u64) -> RequestId {
        let entry = &mut self.entries[index as usize];
        entry.place = Place::AtDrive;
        (entry.dispatched_ns, entry.sent_ns) = (now_ns, now_ns);
        let (tenant, generation) = (entry.tenant, entry.generation);
        self.queued -= 1;
        self.at_drive += 1;
        let member = self.member_mut(tenant);
        member.queued -= 1;
        member.at_drive += 1;
        RequestId::new(index, generation)
    }

    /// Note that a dispatched request reached the drive only at `at_ns`.
    pub fn submitted(&mut self, index: u32, at_ns: u64) {
        let entry = &mut self.entries[index as usize];
        entry.dispatched_ns = at_ns.max(entry.dispatched_ns);
    }

    pub fn id(&self, index: u32) -> RequestId {
        RequestId::new(index, self.entries[index as usize].generation)
    }

    /// The index of a request at the drive.
    pub fn at_drive(&self, id: RequestId) -> Result<u32, Refusal> {
        match self.entries.get(id.index() as usize) {
            Some(entry) if entry.place == Place::AtDrive && entry.generation == id.generation() => {
                Ok(id.index())
            }
            _ => Err(Refusal::NotAtDrive),
        }
    }

    /// Note that a request is no longer at the drive. Its entry can be read until the next arrival.
    #[inline]
    pub fn leave_drive(&mut self, index: u32) {
        self.at_drive -= 1;
        let member = self.member_mut(self.entries[index as usize].tenant);
        member.at_drive -= 1;
        let is_active = member.is_active();
        self.active -= u32::from(!is_active);
        self.release(index);
    }

    /// Drop the queued requests of a tenant; returns their tickets in order of arrival.
    pub fn withdraw(&mut self, tenant: u32) -> Vec<u64> {
        let mut found: Vec<u32> = (0..self.entries.len() as u32)
            .filter(|&index| {
                let entry = &self.entries[index as usize];
                entry.place == Place::Queued && entry.tenant == tenant
            })
            .collect();
        found.sort_by_key(|&index| self.entries[index as usize].arrived_ns);
        for &index in &found {
            self.release(index);
        }
        self.queued -= found.len() as u32;
        let member = self.member_mut(tenant);
        let was_active = member.is_active();
        member.queued = 0;
        let is_active = member.is_active();
        self.active -= u32::from(was_active && !is_active);
        let ticket = |&index: &u32| self.entries[index as usize].request.ticket;
        found.iter().map(ticket).collect()
    }

    fn release(&mut self, index: u32) {
        self.entries[index as usize].place = Place::Free;
        self.free.push(index);
    }
}
