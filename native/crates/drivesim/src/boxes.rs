//! Box experiments: many loads on several drives behind cores and a link.

use crate::box_result::{BoxResult, BoxTenant, CoreResult, DriveResult, LinkResult, PathResult};
use crate::drive::Drive;
use crate::failure::Failure;
use crate::figures::Figures;
use crate::load_document::ns;
use crate::play::Play;
use crate::server::Path;
use crate::storage_box::StorageBox;
use crate::target::Target;
use crate::tenants_document::Tenants;
use crate::tenants_result::StateAt;

/// The time for which each part was busy, and the bytes it was given, until a time.
struct Work {
    cores_ns: Vec<u64>,
    /// To the box, from the box, and between drives and memory.
    paths: Vec<(u64, u64)>,
}

/// Run the tenants; nothing of them is in flight afterwards. The drives are at the same time then.
pub fn run<'a>(
    experiment: &'a Tenants,
    drives: &mut [Drive],
    seed: u64,
) -> Result<BoxResult<'a>, Failure> {
    let hardware = experiment.hardware.as_ref();
    let hardware = hardware.expect("the document's check: a box has hardware");
    let begin_ns = level(drives)?;
    let start_ns = begin_ns + ns(experiment.warm_up_s);
    let end_ns = start_ns + ns(experiment.seconds);
    let count = drives.len();
    let target = StorageBox::new(hardware, &experiment.scheduler, drives);
    let mut play = Play::new(experiment, target, count, seed);
    play.until(start_ns)?;
    play.measure();
    play.target.measure();
    let before = Work::of(&play.target);
    let observed = play.intervals(end_ns, |target| {
        let snapshots = target.snapshots();
        snapshots.map(|one| one.state).collect::<Vec<_>>()
    })?;
    let work = Work::of(&play.target).since(&before, experiment.seconds);
    let states = |drive: usize| {
        let found = observed.as_ref()?.iter();
        let found = found.map(|(at_s, states)| (*at_s, states[drive]));
        Some(StateAt::of_all(found.collect()))
    };
    let snapshots = play.target.snapshots().enumerate();
    let drive_results = snapshots
        .map(|(drive, snapshot)| DriveResult {
            states: states(drive),
            snapshot,
        })
        .collect();
    let results = play.results(end_ns);
    let total = Figures::of_all(results.iter().map(|result| &result.measured));
    let tenants = results.into_iter().enumerate().map(|(number, tenant)| {
        let [reads, writes] = play.target.phases(number);
        BoxTenant {
            drive: experiment.drive_of(number, count),
            tenant,
            read_phases_ns: reads.times(),
            write_phases_ns: writes.times(),
        }
    });
    let tenants = tenants.collect();
    play.drain()?;
    drop(play);
    level(drives)?;
    let (cores, mut paths) = work;
    let [to_box, from_box] = [paths.remove(0), paths.remove(0)];
    Ok(BoxResult {
        name: &experiment.name,
        kind: "box",
        scheduler: experiment.scheduler.kind(),
        start_s: start_ns as f64 / 1e9,
        seconds: experiment.seconds,
        total,
        tenants,
        drives: drive_results,
        cores,
        link: LinkResult { to_box, from_box },
        memory: paths.pop(),
    })
}

/// Let all drives rest until the latest of their times; returns it.
pub fn level(drives: &mut [Drive]) -> Result<u64, Failure> {
    let at_ns = drives.iter().map(Drive::now_ns).max().unwrap_or(0);
    for drive in drives {
        drive.rest_until(at_ns)?;
    }
    Ok(at_ns)
}

impl Work {
    fn of(target: &StorageBox) -> Self {
        let now_ns = target.now_ns();
        let cores = target.cores.iter().map(|core| core.busy_ns(now_ns));
        let paths = [
            Some(&target.to_box),
            Some(&target.from_box),
            target.memory.as_ref(),
        ];
        let paths = paths.into_iter().flatten();
        Self {
            cores_ns: cores.collect(),
            paths: paths
                .map(|path: &Path| (path.busy_ns(now_ns), path.bytes()))
                .collect(),
        }
    }

    fn since(&self, before: &Self, seconds: f64) -> (Vec<CoreResult>, Vec<PathResult>) {
        let share = |now_ns: u64, before_ns: u64| (now_ns - before_ns) as f64 / (seconds * 1e9);
        let cores = self.cores_ns.iter().zip(&before.cores_ns);
        let paths = self.paths.iter().zip(&before.paths);
        let cores = cores.map(|(&now_ns, &before_ns)| CoreResult {
            utilisation: share(now_ns, before_ns),
        });
        let paths = paths.map(|(now, before)| PathResult {
            utilisation: share(now.0, before.0),
            bytes_per_s: (now.1 - before.1) as f64 / seconds,
        });
        (cores.collect(), paths.collect())
    }
}

#[cfg(test)]
#[path = "boxes_tests.rs"]
mod tests;
