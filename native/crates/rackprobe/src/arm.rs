//! The prober of one target, which polls one sector until the expected drive answers.

use blockdev::Buffer;
use nbd::Patience;
use sector::{judge, Expected, Verdict, SECTOR_BYTES};
use serde_json::{json, Value};

use crate::by_path;
use crate::clock::{instant, now_ns, sleep_until, Waits};
use crate::failure::Failure;
use crate::io::{Access, Done, Request};
use crate::lines::emit;
use crate::mounted;
use crate::tally::Tally;
use crate::target::Target;
use crate::uevent::{Arrivals, Device};

/// A look that takes longer than the pace is followed by a rest of so many times its length: several ports that are looked
/// at without a pause leave no time, on a slow processor, for the kernel and udev, which bring the drive.
const RESTS: u64 = 9;
const LONGEST_REST_NS: u64 = 50_000_000;

/// A command to wait for a drive.
#[derive(Debug)]
pub struct Arm {
    /// Echoed in every event.
    pub id: u64,
    /// The expected content of the sector.
    pub expected: Expected,
    /// The time of the command.
    pub armed_ns: u64,
    /// The deadline.
    pub until_ns: u64,
}

/// The state of an armed prober.
#[derive(Debug, Default)]
struct Seen {
    reads: u64,
    tally: Tally,
    errors: u64,
    last_error: Option<String>,
    first_try_submit_ns: Option<u64>,
    last_old_ns: Option<u64>,
    /// Completion time of the last read, whatever its result.
    last_back_ns: Option<u64>,
    /// The thread's wait for a core during its last read.
    waited_ns: Option<u64>,
}

/// The prober of one sector of one target. A broken target is reopened at every poll.
pub struct Prober {
    name: String,
    lba: u64,
    poll_ns: u64,
    spins: bool,
    device: Option<Device>,
    arrivals: Arrivals,
    /// The type of the file system that is mounted once the drive has answered.
    file_system: Option<String>,
    target: Option<Target>,
}

impl Prober {
    pub fn new(
        name: &str,
        lba: u64,
        poll_us: u64,
        spins: bool,
        device: Option<Device>,
        arrivals: Arrivals,
        file_system: Option<String>,
    ) -> Self {
        Self {
            name: name.to_owned(),
            lba,
            poll_ns: poll_us.saturating_mul(1000),
            spins,
            device,
            arrivals,
            file_system,
            target: None,
        }
    }

    /// Open the target before the first arm. A missing device is not a failure, a missing export is.
    pub fn open_first(&mut self) -> Result<(), Failure> {
        let is_path = !nbd::uri::NbdUri::is_meant(&self.name);
        if is_path && !std::path::Path::new(&*by_path::present(&self.name)).exists() {
            return Ok(());
        }
        self.target = Some(Target::open(&self.name, Access::Read, 1)?);
        Ok(())
    }

    /// Poll until the expected drive answers or the deadline passes; returns the event of the outcome.
    pub fn run(&mut self, arm: &Arm) -> Value {
        emit(&json!({"event": "armed", "id": arm.id, "t_ns": arm.armed_ns}));
        let patience = Patience {
            until: Some(instant(arm.until_ns)),
            spin: self.spins,
        };
        let waits = Waits::of_this_thread();
        let mut seen = Seen::default();
        loop {
            let begin_ns = now_ns();
            if begin_ns >= arm.until_ns {
                return gave_up(arm, &seen);
            }
            let waited_ns = waits.so_far_ns();
            let read = self.read(&mut seen, patience);
            let waited_by_now_ns = waits.so_far_ns();
            seen.waited_ns = waited_by_now_ns
                .zip(waited_ns)
                .map(|(now, before)| now - before);
            match read {
                Ok(None) => {
                    self.leave_held_read();
                    return gave_up(arm, &seen);
                }
                Ok(Some(done)) => {
                    if self.is_right(arm, &mut seen, &done) {
                        return self.verified(arm, &seen, &done);
                    }
                    seen.last_back_ns = Some(done.complete_ns);
                }
                Err(message) => {
                    self.target = None;
                    seen.errors += 1;
                    seen.last_error = Some(message);
                    seen.last_back_ns = Some(now_ns());
                }
            }
            let next_ns = self.next_look_ns(begin_ns, now_ns());
            sleep_until(next_ns.min(arm.until_ns), self.spins);
        }
    }

    /// The time of the next look after one without success. A busy export holds the answer itself, and needs no rest.
    fn next_look_ns(&self, begin_ns: u64, end_ns: u64) -> u64 {
        let took_ns = end_ns - begin_ns;
        let paced_ns = begin_ns.saturating_add(self.poll_ns);
        if took_ns <= self.poll_ns || nbd::uri::NbdUri::is_meant(&self.name) {
            return paced_ns;
        }
        paced_ns.max(end_ns + (RESTS * took_ns).min(LONGEST_REST_NS))
    }

    /// One read. `None` if the deadline passed while it was held; its result is ignored.
    fn read(&mut self, seen: &mut Seen, patience: Patience) -> Result<Option<Done>, String> {
        let target = match &mut self.target {
            Some(target) => target,
            closed => {
                let opened = Target::open(&self.name, Access::Read, 1)
                    .map_err(|failure| failure.to_string())?;
                closed.insert(opened)
            }
        };
        seen.first_try_submit_ns.get_or_insert_with(now_ns);
        let request = Request::Read(
            self.lba.saturating_mul(SECTOR_BYTES as u64),
            Buffer::new(SECTOR_BYTES),
        );
        let id = target.submit(request).map_err(|error| error.to_string())?;
        seen.reads += 1;
        loop {
            match target
                .receive(patience)
                .map_err(|error| error.to_string())?
            {
                Some(done) if done.id != id => (),
                done => return Ok(done),
            }
        }
    }

    /// Have the next arm open a device anew whose last read is still held: its reads would wait behind that one, which
    /// may be a drive's that is gone. An export holds reads by itself, for whichever drive comes.
    fn leave_held_read(&mut self) {
        if !nbd::uri::NbdUri::is_meant(&self.name) {
            self.target = None;
        }
    }

    fn is_right(&mut self, arm: &Arm, seen: &mut Seen, done: &Done) -> bool {
        let buffer = match (&done.result, &done.buffer) {
            (Ok(()), Some(buffer)) => buffer,
            (result, _) => {
                seen.errors += 1;
                seen.last_error = result.as_ref().err().cloned();
                if !nbd::uri::NbdUri::is_meant(&self.name) {
                    self.target = None;
                }
                return false;
            }
        };
        let finding = judge(buffer.as_ref(), self.lba, &arm.expected);
        let verdict = seen.tally.count(self.lba, &finding);
        if verdict == Verdict::WrongDrive {
            seen.last_old_ns = Some(done.complete_ns);
            // Opened by a link that was not up to date, another port's drive would be read until the deadline.
            if self.target.as_ref().is_some_and(Target::has_moved) {
                self.target = None;
            }
        }
        verdict == Verdict::Right
    }

    fn verified(&self, arm: &Arm, seen: &Seen, done: &Done) -> Value {
        let online_ns = self
            .device
            .as_ref()
            .and_then(|device| self.arrivals.since(device, arm.armed_ns));
        let mut event = json!({
            "event": "verified",
            "id": arm.id,
            "armed_ns": arm.armed_ns,
            "t_ns": done.complete_ns,
            "first_try_submit_ns": seen.first_try_submit_ns,
            "submit_ns": done.submit_ns,
            "reads": seen.reads,
            "wrong_drive": seen.tally.of(Verdict::WrongDrive),
            "errors": seen.errors,
            "verdicts": seen.tally.verdicts(),
            "last_old_ns": seen.last_old_ns,
            "gap_ns": seen.last_old_ns.map(|last_old_ns| done.complete_ns - last_old_ns),
            "online_ns": online_ns,
            "waited_ns": seen.waited_ns,
            "idle_ns": seen.last_back_ns.map(|back_ns| done.submit_ns.saturating_sub(back_ns)),
        });
        let mounted = match &self.file_system {
            Some(kind) => {
                let opened = self.target.as_ref().and_then(Target::path);
                let device = opened.as_deref().unwrap_or(&self.name);
                mounted::first_file(&self.name, device, kind, &arm.expected)
            }
            None => mounted::nothing(),
        };
        merge(&mut event, mounted);
        event
    }
}

fn merge(event: &mut Value, more: Value) {
    if let (Value::Object(event), Value::Object(more)) = (event, more) {
        event.extend(more);
    }
}

fn gave_up(arm: &Arm, seen: &Seen) -> Value {
    let reason = match &seen.last_error {
        Some(error) => format!("no read verified in time; the last error: {error}"),
        None => "no read verified in time".to_owned(),
    };
    json!({
        "event": "gave_up",
        "id": arm.id,
        "armed_ns": arm.armed_ns,
        "t_ns": now_ns(),
        "reason": reason,
        "reads": seen.reads,
        "errors": seen.errors,
        "verdicts": seen.tally.verdicts(),
        "offenders": seen.tally.offenders(),
        "last_old_ns": seen.last_old_ns,
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use sector::Drive;

    use super::*;

    /// A file that holds the sector of a drive with this serial.
    fn drive_in(folder: &std::path::Path, serial: &str) -> Drive {
        let drive = Drive::new(serial).expect("a good serial");
        let mut sector = vec![0; SECTOR_BYTES];
        sector::fill(&mut sector, &drive, 0, 1, 0);
        std::fs::write(folder.join(serial), sector).expect("a drive");
        drive
    }

    #[test]
    fn a_slow_look_at_a_port_is_followed_by_a_rest() {
        let prober = |name| Prober::new(name, 0, 200, false, None, Arrivals::default(), None);
        let port = prober("/dev/disk/by-path/pci-0000:01:00.0");
        assert_eq!(port.next_look_ns(1_000, 151_000), 201_000);
        assert_eq!(port.next_look_ns(0, 3_000_000), 30_000_000);
        assert_eq!(port.next_look_ns(0, 5_000_000_000), 5_050_000_000);
        let export = prober("nbd+unix:///d01?socket=/run/rackd");
        assert_eq!(export.next_look_ns(0, 3_000_000), 200_000);
    }

    #[test]
    fn a_device_whose_read_is_held_at_the_deadline_is_opened_anew() {
        let folder = std::env::temp_dir().join(format!("rackprobe-held-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        drive_in(&folder, "D1");
        let name = folder.join("D1");
        let name = name.to_str().expect("text");
        let mut prober = Prober::new(name, 0, 200, false, None, Arrivals::default(), None);
        prober.open_first().expect("it is there");

        // No read completes in the past.
        let until = Some(std::time::Instant::now() - std::time::Duration::from_secs(1));
        let patience = Patience { until, spin: false };
        let mut seen = Seen::default();
        while prober
            .read(&mut seen, patience)
            .expect("it is open")
            .is_some()
        {}
        prober.leave_held_read();

        std::fs::remove_dir_all(&folder).expect("it is there");
        assert!(prober.target.is_none());
    }

    #[test]
    fn a_name_that_led_to_another_drive_is_opened_anew() {
        let folder = std::env::temp_dir().join(format!("rackprobe-arm-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        drive_in(&folder, "D1");
        let drive = drive_in(&folder, "D2");
        let link = folder.join("port");
        symlink("D1", &link).expect("a link");
        let name = link.to_str().expect("text");
        let mut prober = Prober::new(name, 0, 200, false, None, Arrivals::default(), None);
        prober.open_first().expect("it is there");

        std::fs::remove_file(&link).expect("it is there");
        symlink("D2", &link).expect("a link");
        let armed_ns = now_ns();
        let event = prober.run(&Arm {
            id: 1,
            expected: Expected {
                drive,
                generation: 1,
                seed: None,
            },
            armed_ns,
            until_ns: armed_ns + 5_000_000_000,
        });

        std::fs::remove_dir_all(&folder).expect("it is there");
        assert_eq!(event["event"], "verified", "{event}");
        assert_eq!(event["wrong_drive"], 1);
    }
}
