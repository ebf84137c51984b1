//! Gimbal's virtual slots: groups of requests of equal weight.

/// A virtual slot.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    weighted: u64,
    requests: u32,
    completed: u32,
    is_full: bool,
}

/// The virtual slots of a tenant.
///
/// Invariants, of Gimbal's section 3.5:
/// - a slot takes requests until their weighted bytes reach its size; the one that crosses still goes in;
/// - a full slot is free again when all of its requests have completed, and only then;
/// - at most one slot is not full.
#[derive(Debug)]
pub struct Slots {
    slots: Vec<Slot>,
    /// The slot that takes requests.
    open: Option<u32>,
    in_use: u32,
    last_requests: u32,
}

impl Slots {
    pub fn new(count: u32, initial_requests: u32) -> Self {
        Self {
            slots: vec![Slot::default(); count as usize],
            open: None,
            in_use: 0,
            last_requests: initial_requests,
        }
    }

    /// The slots that are full or take requests.
    pub fn in_use(&self) -> u32 {
        self.in_use
    }

    /// The requests of the last slot that completed.
    pub fn last_requests(&self) -> u32 {
        self.last_requests
    }

    /// Whether a request may go in, of `limit` slots.
    pub fn has_room(&self, limit: u32) -> bool {
        self.open.is_some() || self.in_use < limit
    }

    /// Put a request in; there is room. Returns the number of the slot.
    pub fn enter(&mut self, weighted: u64, slot_bytes: u64) -> u32 {
        let number = self.open.unwrap_or_else(|| {
            let free = self.slots.iter().position(|slot| slot.requests == 0);
            self.in_use += 1;
            free.expect("fewer slots than the limit are in use") as u32
        });
        let slot = &mut self.slots[number as usize];
        slot.weighted += weighted;
        slot.requests += 1;
        slot.is_full = slot.weighted >= slot_bytes;
        self.open = (!slot.is_full).then_some(number);
        number
    }

    /// Take a completed request out; returns whether its slot is free now.
    pub fn complete(&mut self, number: u32) -> bool {
        let slot = &mut self.slots[number as usize];
        slot.completed += 1;
        if !slot.is_full || slot.completed < slot.requests {
            return false;
        }
        self.last_requests = slot.requests;
        *slot = Slot::default();
        self.in_use -= 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::cases;
    use proptest::prelude::*;

    const KIB: u64 = 1024;

    #[test]
    fn a_slot_takes_the_request_that_crosses_its_size() {
        let mut slots = Slots::new(8, 32);
        for _ in 0..31 {
            assert_eq!(slots.enter(4 * KIB, 128 * KIB), 0);
        }
        // 124 KiB are in; 36 KiB, a write of 4 KiB in the worst case, cross it.
        assert_eq!(slots.enter(36 * KIB, 128 * KIB), 0);
        assert_eq!(slots.enter(4 * KIB, 128 * KIB), 1);
        assert_eq!(slots.in_use(), 2);
    }

    #[test]
    fn a_slot_is_free_when_it_was_full_and_all_has_completed() {
        let mut slots = Slots::new(1, 32);
        slots.enter(64 * KIB, 128 * KIB);
        assert!(!slots.complete(0), "it is not full yet");
        assert!(slots.has_room(1));
        slots.enter(64 * KIB, 128 * KIB);
        assert!(!slots.has_room(1));
        assert_eq!(slots.last_requests(), 32);
        assert!(slots.complete(0));
        assert_eq!((slots.in_use(), slots.last_requests()), (0, 2));
    }

    proptest! {
        #![proptest_config(cases(256))]

        #[test]
        fn slots_in_use_hold_what_has_not_completed(
            steps in prop::collection::vec((0_u64..400, any::<prop::sample::Index>()), 1..300),
            limit in 1_u32..8,
        ) {
            let mut slots = Slots::new(8, 32);
            let mut inside: Vec<u32> = Vec::new();
            for (kib, which) in steps {
                if slots.has_room(limit) && kib > 0 {
                    inside.push(slots.enter(kib * KIB, 128 * KIB));
                } else if !inside.is_empty() {
                    let number = inside.swap_remove(which.index(inside.len()));
                    let is_free = slots.complete(number);
                    prop_assert_eq!(is_free, !inside.contains(&number) && slots.open != Some(number));
                }
                prop_assert!(slots.in_use() <= limit);
                let full = slots.slots.iter().filter(|slot| slot.is_full).count();
                prop_assert_eq!(slots.in_use() as usize, full + usize::from(slots.open.is_some()));
            }
        }
    }
}
