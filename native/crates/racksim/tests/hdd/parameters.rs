//! Configurations that are accepted or refused.

use racksim::{HddParameters, Kind, SeekCurve, Timing};

use crate::disk::{self, Disk, GIB, KIB};

const CONFIGURATION: &str = r#"{"kind": "hdd", "rpm": 7200, "heads": 10, "zones": 16, "outer_mb_s": 175,
    "inner_mb_s": 83, "track_to_track_ms": 1, "average_seek_ms": 8.5, "full_stroke_ms": 16, "write_settle_ms": 1,
    "head_switch_ms": 0.8, "command_overhead_us": 50, "interface_mb_s": 600, "queue_depth": 32,
    "longest_wait_ms": 1000, "physical_sector_bytes": 512, "read_segments": 16, "segment_kib": 2048,
    "read_ahead_kib": 1024, "least_read_ahead_kib": 512, "write_cache_kib": 65536, "write_cache_extents": 256, "destage_after_ms": 20,
    "read_error_probability": 0, "retry_ms": [20, 40], "smr": {"band_kib": 30720, "media_cache_percent": 0.25,
    "media_cache_extents_per_gib": 32, "open_bands": 8, "clean_after_ms": 500}}"#;

#[test]
fn a_configuration_names_every_parameter() {
    let timing: Timing = serde_json::from_str(CONFIGURATION).unwrap();
    assert_eq!(timing, Timing::Hdd(disk::shingled()));
    assert_eq!(timing.check(8 << 30), Ok(()));
    for (known, unknown) in [("rpm", "rmp"), ("open_bands", "bands_open")] {
        let wrong = CONFIGURATION.replace(known, unknown);
        let error = serde_json::from_str::<Timing>(&wrong)
            .unwrap_err()
            .to_string();
        assert!(error.contains(unknown), "{error}");
    }
}

#[test]
fn the_largest_disk_is_simulated_to_its_end_and_a_larger_one_refused() {
    const PIB: u64 = 1 << 50;
    let slow = HddParameters {
        heads: 1,
        outer_mb_s: 1.0,
        inner_mb_s: 1.0,
        ..disk::parameters()
    };
    let mut shingled = disk::shingled();
    if let Some(smr) = &mut shingled.smr {
        (smr.band_kib, smr.media_cache_extents_per_gib) = (1 << 20, 1 << 20);
    }
    for parameters in [slow, shingled] {
        let timing = Timing::Hdd(parameters.clone());
        assert_eq!(timing.check(PIB), Ok(()));
        let error = timing.check(PIB + 4096).unwrap_err();
        assert!(error.contains("give it at most 1 PiB"), "{error}");
        let mut disk = Disk::new(parameters, PIB);
        disk.latency_ns(Kind::Read, PIB - 4 * KIB, 4 * KIB);
        disk.latency_ns(Kind::Write, PIB - 4 * KIB, 4 * KIB);
        disk.latency_ns(Kind::Flush, 0, 0);
    }
}

#[test]
fn an_impossible_parameter_is_named_with_its_range() {
    let refused = |change: fn(&mut HddParameters)| {
        let mut parameters = disk::shingled();
        change(&mut parameters);
        parameters.check(GIB).unwrap_err()
    };
    assert_eq!(refused(|p| p.rpm = 0), "rpm is 0: give 1000 to 30000");
    assert_eq!(
        refused(|p| p.inner_mb_s = 200.0),
        "inner_mb_s is 200: give 1 to 175"
    );
    assert_eq!(
        refused(|p| p.outer_mb_s = f64::NAN),
        "outer_mb_s is NaN: give 1 to 2000"
    );
    assert_eq!(
        refused(|p| p.physical_sector_bytes = 520),
        "physical_sector_bytes is 520: give 512 or 4096"
    );
    assert_eq!(
        refused(|p| p.retry_ms = [40.0, 20.0]),
        "retry_ms[1] is 20: give 40 to 10000"
    );
    assert_eq!(
        refused(|p| p.average_seek_ms = 5.5),
        "average_seek_ms is 5.5: give 6.001 to 14.4"
    );
    assert_eq!(
        refused(|p| p.least_read_ahead_kib = 2000),
        "least_read_ahead_kib is 2000: give 0 to 1024"
    );
    let smr = refused(|p| p.smr.as_mut().unwrap().open_bands = 0);
    assert_eq!(smr, "smr.open_bands is 0: give 1 to 1024");
}

#[test]
fn the_seek_curve_goes_through_the_published_figures() {
    // The averages at 1/3, between, and beyond what the square root alone can have.
    let drive = disk::parameters();
    for (average_ms, shortest_ms) in [(6.1, 1.0), (8.5, 1.0), (8.99, 1.0), (12.0, 7.429)] {
        let curve = SeekCurve::new(drive.track_to_track_ms, average_ms, drive.full_stroke_ms);
        assert_eq!((curve.ns(0.0) + 500) / 1000, (shortest_ms * 1e3) as u64);
        assert_eq!(curve.ns(1.0), 16_000_000);
        let steps = 4000;
        let mean_ns: f64 = (0..steps)
            .map(|step| (f64::from(step) + 0.5) / f64::from(steps))
            .map(|distance| 2.0 * (1.0 - distance) * curve.ns(distance) as f64 / f64::from(steps))
            .sum();
        assert!((mean_ns / average_ms / 1e6 - 1.0).abs() < 1e-3, "{mean_ns}");
        let times: Vec<_> = (0..=steps)
            .map(|step| curve.ns(f64::from(step) / f64::from(steps)))
            .collect();
        assert!(
            times.is_sorted_by(|near, far| near < far),
            "further takes longer"
        );
    }
}
