//! Disk geometry: the place of a byte on the platters, and the angle at which it passes under its head.

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

/// The place of a byte.
///
/// `sweep_ns` is when a transfer that began at byte 0 and never waited would have it under its head; as tracks are
/// skewed by the time of a switch to them, the difference between two bytes is the time a sequential transfer
/// takes from one to the other, and its remainder by a revolution is the angle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) track: (u64, u64),
    pub(super) sweep_ns: u64,
}

impl Geometry {
    /// A layout with at least `bytes`.
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

    /// The bytes of a track whose sequential rate is this.
    fn track_bytes(&self, mb_s: f64) -> u64 {
        let bytes = mb_s / 1e3 * self.cylinder_ns() as f64 / self.heads as f64;
        ((bytes / SECTOR as f64).round() as u64).max(1) * SECTOR
    }

    /// Divide the cylinders into zones of equal width; returns their capacity.
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

    /// The place at which a byte begins.
    pub(super) fn start(&self, byte: u64) -> Place {
        self.place(byte, 0)
    }

    /// The place at which the byte before this one ends.
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

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: [u64; 5] = [4096, 1 << 20, 100_000_000, 8 << 30, 4_000_787_030_016];

    fn geometries() -> impl Iterator<Item = Geometry> {
        let parameters: HddParameters = serde_json::from_str(
            r#"{"rpm": 7200, "heads": 10, "zones": 16, "outer_mb_s": 175, "inner_mb_s": 83, "track_to_track_ms": 1,
                "average_seek_ms": 8.5, "full_stroke_ms": 16, "write_settle_ms": 1, "head_switch_ms": 0.8,
                "command_overhead_us": 50, "interface_mb_s": 600, "queue_depth": 32, "longest_wait_ms": 1000,
                "physical_sector_bytes": 512, "read_segments": 16, "segment_kib": 2048, "read_ahead_kib": 1024, "least_read_ahead_kib": 512,
                "write_cache_kib": 65536, "write_cache_extents": 256, "destage_after_ms": 20,
                "read_error_probability": 0, "retry_ms": [20, 40]}"#,
        )
        .unwrap();
        SIZES
            .map(|bytes| Geometry::new(&parameters, bytes))
            .into_iter()
    }

    #[test]
    fn every_byte_lies_on_exactly_one_track_and_the_drive_on_no_more_than_it_needs() {
        for geometry in geometries() {
            let tracks = geometry.cylinders * geometry.heads;
            let step = (tracks / 5000).max(1);
            for track in (0..tracks).step_by(step as usize) {
                let at = (track / geometry.heads, track % geometry.heads);
                let next = ((track + 1) / geometry.heads, (track + 1) % geometry.heads);
                let first = geometry.first_byte(at);
                let end = if track + 1 < tracks {
                    geometry.first_byte(next)
                } else {
                    geometry.bytes
                };
                if first == end {
                    continue;
                }
                assert_eq!(geometry.start(first).track, at);
                assert_eq!(geometry.end(end).track, at);
                assert_eq!(geometry.start(end - 1).track, at);
            }
            // With few cylinders, one more moves zone borders inwards and can leave the last one empty.
            let last = geometry.start(geometry.bytes - 1).track.0;
            assert!(
                last + 2 >= geometry.cylinders,
                "{last} of {}",
                geometry.cylinders
            );
        }
    }

    #[test]
    fn the_angle_goes_on_from_byte_to_byte_and_over_a_switch_to_the_next_track() {
        for geometry in geometries() {
            let tracks = geometry.cylinders * geometry.heads;
            for track in (1..tracks).step_by((tracks / 5000).max(1) as usize) {
                let first = geometry.first_byte((track / geometry.heads, track % geometry.heads));
                if first == geometry.bytes {
                    continue;
                }
                let switch_ns = geometry.start(first).sweep_ns - geometry.end(first).sweep_ns;
                let is_next_cylinder = track % geometry.heads == 0;
                assert_eq!(
                    switch_ns,
                    if is_next_cylinder { 1_000_000 } else { 800_000 }
                );
                let middle = (first + 300_000).min(geometry.bytes);
                assert_eq!(
                    geometry.end(middle).sweep_ns,
                    geometry.place(middle - 1, 1).sweep_ns
                );
            }
            for byte in (1..geometry.bytes).step_by((geometry.bytes / 5000).max(1) as usize) {
                let (end_ns, start_ns) =
                    (geometry.end(byte).sweep_ns, geometry.start(byte).sweep_ns);
                assert!(
                    end_ns == start_ns || geometry.start(byte).track != geometry.end(byte).track
                );
                assert!(geometry.start(byte - 1).sweep_ns <= end_ns);
            }
        }
    }

    #[test]
    fn a_sweep_leads_back_to_its_byte() {
        for geometry in geometries() {
            for byte in (0..geometry.bytes).step_by((geometry.bytes / 5000).max(1) as usize) {
                let found = geometry.byte_at(geometry.start(byte).sweep_ns);
                assert!(
                    found <= byte && byte <= found + 1,
                    "{byte} is found at {found}"
                );
            }
            let end_ns = geometry.end(geometry.bytes).sweep_ns;
            assert_eq!(geometry.byte_at(end_ns + 1_000_000_000), geometry.bytes);
        }
    }

    #[test]
    fn a_cylinder_is_transferred_at_the_rate_of_its_zone() {
        let geometry = geometries().nth(3).unwrap();
        for (cylinder, mb_s) in [(0, 175.0), (geometry.cylinders - 3, 83.0)] {
            let (first, next) = (
                geometry.first_byte((cylinder, 0)),
                geometry.first_byte((cylinder + 1, 0)),
            );
            let taken_ns = geometry.start(next).sweep_ns - geometry.start(first).sweep_ns;
            let ratio = (next - first) as f64 * 1e3 / taken_ns as f64 / mb_s;
            assert!((ratio - 1.0).abs() < 4e-3, "{ratio}");
        }
    }
}
