//! Parameters of a hard disk.

use std::fmt::Display;

use serde::Deserialize;

use super::seek::SeekCurve;

/// Some thirty times what is sold. Beyond it, angles summed over all tracks come near the end of their range.
const LARGEST_BYTES: u64 = 1 << 50;

/// The parameters of an [`Hdd`](super::Hdd). MB/s are 10^6 bytes a second, KiB and MiB powers of two.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HddParameters {
    /// Revolutions of the platters a minute.
    pub rpm: u32,
    /// Surfaces, each with its head.
    pub heads: u32,
    /// Zones of equal width; the tracks of a zone hold equally many bytes.
    pub zones: u32,
    /// Sustained sequential rate in the outermost zone, track and cylinder switches included.
    pub outer_mb_s: f64,
    /// The same in the innermost zone; zones between them follow linearly.
    pub inner_mb_s: f64,
    /// Seek to the next cylinder, and the time a sequential transfer loses there.
    pub track_to_track_ms: f64,
    /// Mean over all possible seeks, for reading.
    pub average_seek_ms: f64,
    /// Seek from the first to the last cylinder, for reading.
    pub full_stroke_ms: f64,
    /// Additional settle time before a write, after a seek of more than one cylinder.
    pub write_settle_ms: f64,
    /// Switch to another head on the same cylinder.
    pub head_switch_ms: f64,
    /// Controller time for each command, one after the other.
    pub command_overhead_us: f64,
    /// Rate of the link to the host.
    pub interface_mb_s: f64,
    /// Commands the drive accepts at once; others wait outside.
    pub queue_depth: u32,
    /// A request that has waited this long goes before any new one, however near.
    pub longest_wait_ms: f64,
    /// Physical sector size; a smaller write needs a read-modify-write, one more revolution.
    pub physical_sector_bytes: u32,
    /// Segments of the track buffer, one for each sequential stream.
    pub read_segments: u32,
    /// Size of a segment.
    pub segment_kib: u32,
    /// Maximum read-ahead beyond the host's request.
    pub read_ahead_kib: u32,
    /// Read-ahead of a sequential stream that goes before anything else: the minimum prefetch of SCSI's caching page.
    pub least_read_ahead_kib: u32,
    /// Room for written data; 0 where every write waits for the media.
    pub write_cache_kib: u32,
    /// Maximum number of separate ranges in the write cache.
    pub write_cache_extents: u32,
    /// Idle time after which the drive writes its cache to the media.
    pub destage_after_ms: f64,
    /// The probability that a read of 4 KiB from the media fails at the first attempt.
    pub read_error_probability: f64,
    /// Bounds of the retry time until they are read; a whole number of revolutions is drawn.
    pub retry_ms: [f64; 2],
    /// Shingled recording, managed by the drive.
    #[serde(default)]
    pub smr: Option<SmrParameters>,
}

/// The parameters of drive-managed shingled recording.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SmrParameters {
    /// Size of a band of overlapping tracks, which is written from its beginning.
    pub band_kib: u32,
    /// Size of the media cache, for writes that continue no band, in percent of the capacity; at least 8 MiB.
    pub media_cache_percent: f64,
    /// Maximum number of separate ranges in it, per GiB of the drive.
    pub media_cache_extents_per_gib: u32,
    /// Bands that are being written from their beginning at a time; one more costs a read-modify-write.
    pub open_bands: u32,
    /// Idle time after which the drive merges cached writes into their bands.
    pub clean_after_ms: f64,
}

impl HddParameters {
    /// Check the parameters for a drive of `bytes`; the error names the wrong one and its range.
    pub fn check(&self, bytes: u64) -> Result<(), String> {
        if bytes > LARGEST_BYTES {
            return Err(format!(
                "a hard disk of {bytes} bytes is too large to simulate; give it at most 1 PiB"
            ));
        }
        within("rpm", self.rpm, 1_000, 30_000)?;
        within("heads", self.heads, 1, 64)?;
        within("zones", self.zones, 1, 64)?;
        within("outer_mb_s", self.outer_mb_s, 1.0, 2_000.0)?;
        within("inner_mb_s", self.inner_mb_s, 1.0, self.outer_mb_s)?;
        within("full_stroke_ms", self.full_stroke_ms, 0.1, 100.0)?;
        within(
            "track_to_track_ms",
            self.track_to_track_ms,
            0.01,
            0.9 * self.full_stroke_ms,
        )?;
        let least_ms = SeekCurve::least_average_ms(self.track_to_track_ms, self.full_stroke_ms);
        within(
            "average_seek_ms",
            self.average_seek_ms,
            least_ms,
            0.9 * self.full_stroke_ms,
        )?;
        within("write_settle_ms", self.write_settle_ms, 0.0, 10.0)?;
        within("head_switch_ms", self.head_switch_ms, 0.0, 10.0)?;
        within(
            "command_overhead_us",
            self.command_overhead_us,
            0.0,
            10_000.0,
        )?;
        within("interface_mb_s", self.interface_mb_s, 1.0, 10_000.0)?;
        within("queue_depth", self.queue_depth, 1, 1_024)?;
        within("longest_wait_ms", self.longest_wait_ms, 1.0, 60_000.0)?;
        if ![512, 4096].contains(&self.physical_sector_bytes) {
            return Err(format!(
                "physical_sector_bytes is {}: give 512 or 4096",
                self.physical_sector_bytes
            ));
        }
        within("read_segments", self.read_segments, 1, 256)?;
        within("segment_kib", self.segment_kib, 64, 1 << 20)?;
        within("read_ahead_kib", self.read_ahead_kib, 0, self.segment_kib)?;
        within(
            "least_read_ahead_kib",
            self.least_read_ahead_kib,
            0,
            self.read_ahead_kib,
        )?;
        within("write_cache_kib", self.write_cache_kib, 0, 1 << 20)?;
        within("write_cache_extents", self.write_cache_extents, 1, 1 << 20)?;
        within("destage_after_ms", self.destage_after_ms, 0.0, 60_000.0)?;
        within(
            "read_error_probability",
            self.read_error_probability,
            0.0,
            1.0,
        )?;
        within("retry_ms[0]", self.retry_ms[0], 0.0, 10_000.0)?;
        within("retry_ms[1]", self.retry_ms[1], self.retry_ms[0], 10_000.0)?;
        self.smr.as_ref().map_or(Ok(()), SmrParameters::check)
    }
}

impl SmrParameters {
    fn check(&self) -> Result<(), String> {
        within("smr.band_kib", self.band_kib, 1_024, 1 << 20)?;
        within(
            "smr.media_cache_percent",
            self.media_cache_percent,
            0.0,
            50.0,
        )?;
        within(
            "smr.media_cache_extents_per_gib",
            self.media_cache_extents_per_gib,
            1,
            1 << 20,
        )?;
        within("smr.open_bands", self.open_bands, 1, 1_024)?;
        within("smr.clean_after_ms", self.clean_after_ms, 0.0, 3_600_000.0)
    }
}

fn within<T: Copy + PartialOrd + Display>(
    name: &str,
    value: T,
    low: T,
    high: T,
) -> Result<(), String> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    Err(format!("{name} is {value}: give {low} to {high}"))
}
