//! Where a byte lies on the platters, and when it passes under its head.

use super::HddParameters;
use crate::ms_to_ns;

/// Track lengths are whole physical sectors.
const SECTOR: u64 = 4096;

/// The layout of a drive. A small drive has the tracks of the large one it stands for, only fewer of them: bytes go
/// along a track, through the cylinder head by head, then to the next cylinder inwards.
#[derive(Debug, Clone)]
pub(super) struct Geometry {
    pub(super) revolution_ns: u64,
    pub(super) cylinders: u64,
    pub(super) bytes: u64,
    head_switch_ns: u64,
    cylinder_switch_ns: u64,
    heads: u64,
    zones: Vec<Zone>,
}

#[derive(Debug, Clone, Copy)]
struct Zone {
    first_byte: u64,
    first_cylinder: u64,
    track_bytes: u64,
}

/// Where a byte lies.
///
/// `sweep_ns` is when a transfer that began at byte 0 and never waited would have it under its head; as tracks are
/// skewed by what it takes to switch to them, the difference between two bytes is the time a sequential transfer
/// takes from one to the other, and its remainder by a revolution is the angle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) track: (u64, u64),
    pub(super) sweep_ns: u64,
}

impl Geometry {
    /// Room for `bytes`.
    pub(super) fn new(parameters: &HddParameters, bytes: u64) -> Self {
        let heads = u64::from(parameters.heads);
        let revolution_ns = (60e9 / f64::from(parameters.rpm)).round() as u64;
        let mut geometry = Self {
            revolution_ns,
            cylinders: 0,
            bytes,
            head_switch_ns: ms_to_ns(parameters.head_switch_ms),
            cylinder_switch_ns: ms_to_ns(parameters.track_to_track_ms),
            heads,
            zones: Vec::new(),
        };
        let last_zone = f64::from(parameters.zones.max(2) - 1);
        let track_bytes: Vec<u64> = (0..parameters.zones)
            .map(|zone| {
                let inwards = f64::from(zone) / last_zone;
                let mb_s = parameters.outer_mb_s
                    + (parameters.inner_mb_s - parameters.outer_mb_s) * inwards;
                geometry.track_bytes(mb_s)
            })
            .collect();
        let mean = track_bytes.iter().sum::<u64>() / track_bytes.len() as u64;
        // The mean is nearly right; rounding at zone borders can cost a few cylinders more.
        geometry.cylinders = (bytes / (mean * heads))
            .saturating_sub(track_bytes.len() as u64)
            .max(1);
        while geometry.divide(&track_bytes) < bytes {
            geometry.cylinders += 1;
        }
        geometry
    }

    /// What a track holds where cylinders are transferred at this rate.
    fn track_bytes(&self, mb_s: f64) -> u64 {
        let bytes = mb_s / 1e3 * self.cylinder_ns() as f64 / self.heads as f64;
        ((bytes / SECTOR as f64).round() as u64).max(1) * SECTOR
    }

    /// Divide the cylinders into zones of equal width; the bytes they hold.
    fn divide(&mut self, track_bytes: &[u64]) -> u64 {
        let zones = track_bytes.len() as u64;
        self.zones.clear();
        let mut first_byte = 0;
        for (zone, &track_bytes) in (0u64..).zip(track_bytes) {
            let first_cylinder = (zone * self.cylinders).div_ceil(zones);
            let end_cylinder = ((zone + 1) * self.cylinders).div_ceil(zones);
            if end_cylinder > first_cylinder {
                self.zones.push(Zone {
                    first_byte,
                    first_cylinder,
                    track_bytes,
                });
                first_byte += (end_cylinder - first_cylinder) * self.heads * track_bytes;
            }
        }
        first_byte
    }

    fn cylinder_ns(&self) -> u64 {
        self.heads * self.revolution_ns
            + (self.heads - 1) * self.head_switch_ns
            + self.cylinder_switch_ns
    }

    fn zone_of(&self, cylinder: u64) -> &Zone {
        &self.zones[self
            .zones
            .partition_point(|zone| zone.first_cylinder <= cylinder)
            - 1]
    }

    /// The first byte of a track.
    pub(super) fn first_byte(&self, (cylinder, head): (u64, u64)) -> u64 {
        let zone = self.zone_of(cylinder);
        let track = (cylinder - zone.first_cylinder) * self.heads + head;
        (zone.first_byte + track * zone.track_bytes).min(self.bytes)
    }

    /// Where a byte begins.
    pub(super) fn start(&self, byte: u64) -> Place {
        self.place(byte, 0)
    }

    /// Where the byte before this one ends.
    pub(super) fn end(&self, byte: u64) -> Place {
        self.place(byte - 1, 1)
    }

    fn place(&self, byte: u64, after: u64) -> Place {
        let zone = &self.zones[self.zones.partition_point(|zone| zone.first_byte <= byte) - 1];
        let track = (byte - zone.first_byte) / zone.track_bytes;
        let along = (byte - zone.first_byte) % zone.track_bytes + after;
        let cylinder = zone.first_cylinder + track / self.heads;
        let head = track % self.heads;
        let sweep_ns = cylinder * self.cylinder_ns()
            + head * (self.revolution_ns + self.head_switch_ns)
            + along * self.revolution_ns / zone.track_bytes;
        Place {
            track: (cylinder, head),
            sweep_ns,
        }
    }

    /// The first byte that a sequential transfer has not passed entirely at this point of its sweep.
    pub(super) fn byte_at(&self, sweep_ns: u64) -> u64 {
        let cylinder = sweep_ns / self.cylinder_ns();
        if cylinder >= self.cylinders {
            return self.bytes;
        }
        let within = sweep_ns % self.cylinder_ns();
        let head = (within / (self.revolution_ns + self.head_switch_ns)).min(self.heads - 1);
        let along_ns =
            (within - head * (self.revolution_ns + self.head_switch_ns)).min(self.revolution_ns);
        let zone = self.zone_of(cylinder);
        let along = along_ns * zone.track_bytes / self.revolution_ns;
        (self.first_byte((cylinder, head)) + along).min(self.bytes)
    }
}
