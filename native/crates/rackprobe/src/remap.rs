//! Remap latencies: many targets, each polled while armed, until a read returns
//! a sector of the expected drive.

use std::collections::HashMap;
use std::io::{self, BufRead};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::Arc;

use sector::{Drive, Expected};
use serde::Deserialize;
use serde_json::json;

use crate::arm::{Arm, Prober};
use crate::cli::RemapArgs;
use crate::clock::now_ns;
use crate::failure::Failure;
use crate::identity::identified;
use crate::lines::{commands, emit};
use crate::relate;
use crate::uevent::{self, Arrivals, Device};

fn default_poll_us() -> u64 {
    200
}

fn default_spin() -> bool {
    true
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    targets: Vec<TargetConfig>,
    #[serde(default = "default_poll_us")]
    poll_us: u64,
    #[serde(default = "default_spin")]
    spin: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TargetConfig {
    name: String,
    target: String,
    #[serde(default)]
    lba: u64,
    devname: Option<String>,
    devpath: Option<String>,
    file_system: Option<String>,
}

impl TargetConfig {
    fn device(&self) -> Option<Device> {
        let by_path = self.devpath.clone().map(Device::Path);
        by_path.or_else(|| self.devname.clone().map(Device::Name))
    }
}

/// The expected content of a read, as JSON.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    serial: String,
    generation: u64,
    seed: Option<u64>,
}

impl TryFrom<Expect> for Expected {
    type Error = String;

    fn try_from(expect: Expect) -> Result<Self, String> {
        Ok(Self {
            drive: Drive::new(&expect.serial).map_err(|error| error.to_string())?,
            generation: expect.generation,
            seed: expect.seed,
        })
    }
}

#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
enum RemapCommand {
    Arm {
        id: u64,
        target: String,
        expect: Expect,
        timeout_ms: u64,
    },
    Clock {
        id: u64,
    },
    ShowClock {
        port: u16,
        key: String,
    },
    Quit {},
}

/// A target's thread, which handles one arm at a time.
struct Worker {
    arms: Sender<Arm>,
    is_armed: Arc<AtomicBool>,
}

/// `rackprobe remap`. Returns at `quit` or at the end of standard input; active arms are dropped.
pub fn run(args: &RemapArgs) -> Result<(), Failure> {
    let config = read_config(args)?;
    let arrivals = match args.uevents {
        true => uevent::listen(
            config
                .targets
                .iter()
                .filter_map(TargetConfig::device)
                .collect(),
        )?,
        false => Arrivals::default(),
    };
    let workers = start(&config, &arrivals)?;
    for command in commands::<RemapCommand>() {
        let (id, refused) = match command {
            Err(message) => (None, Err(message)),
            Ok(RemapCommand::Quit {}) => break,
            Ok(RemapCommand::Clock { id }) => {
                relate::answer(id);
                continue;
            }
            Ok(RemapCommand::ShowClock { port, key }) => {
                relate::show(port, &key);
                continue;
            }
            Ok(RemapCommand::Arm {
                id,
                target,
                expect,
                timeout_ms,
            }) => (Some(id), arm(&workers, id, &target, expect, timeout_ms)),
        };
        if let Err(message) = refused {
            emit(&json!({"event": "error", "id": id, "message": message}));
        }
    }
    Ok(())
}

fn read_config(args: &RemapArgs) -> Result<Config, Failure> {
    let mut text = String::new();
    let (read, origin) = match &args.config {
        Some(file) => (
            std::fs::read_to_string(file).map(|read| text = read),
            file.display().to_string(),
        ),
        None => (
            io::stdin().lock().read_line(&mut text).map(drop),
            "the first line of standard input".to_owned(),
        ),
    };
    read.map_err(|error| Failure::BadInput(format!("{origin}: {error}")))?;
    let config: Config = serde_json::from_str(&text).map_err(|error| {
        Failure::BadInput(format!("{origin} is no remap configuration: {error}"))
    })?;
    let mut names: Vec<_> = config.targets.iter().map(|target| &target.name).collect();
    names.sort_unstable();
    if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(Failure::BadInput(format!(
            "{origin}: two targets are named {}",
            twice[0]
        )));
    }
    Ok(config)
}

/// Open every target, then start its thread, so that no arm ever waits for a connection.
fn start(config: &Config, arrivals: &Arrivals) -> Result<HashMap<String, Worker>, Failure> {
    // Several spinning threads would take the cores from each other, and from the server they wait for.
    let spins = config.spin && config.targets.len() == 1;
    let mut probers = Vec::new();
    for target in &config.targets {
        let device = target.device();
        let mut prober = Prober::new(
            &target.target,
            target.lba,
            config.poll_us,
            spins,
            device,
            arrivals.clone(),
            target.file_system.clone(),
        );
        prober.open_first()?;
        probers.push((target.name.clone(), prober));
    }
    let mut workers = HashMap::new();
    for (name, prober) in probers {
        let (arms, incoming) = channel();
        let is_armed = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&is_armed);
        std::thread::spawn(move || work(prober, &incoming, &flag));
        workers.insert(name, Worker { arms, is_armed });
    }
    let names: Vec<_> = config.targets.iter().map(|target| &target.name).collect();
    let ready = json!({"event": "ready", "t_ns": now_ns(), "targets": names});
    emit(&identified(ready));
    Ok(workers)
}

fn work(mut prober: Prober, arms: &Receiver<Arm>, is_armed: &AtomicBool) {
    while let Ok(arm) = arms.recv() {
        let outcome = prober.run(&arm);
        is_armed.store(false, Ordering::Release);
        emit(&outcome);
    }
}

fn arm(
    workers: &HashMap<String, Worker>,
    id: u64,
    target: &str,
    expect: Expect,
    timeout_ms: u64,
) -> Result<(), String> {
    let worker = workers
        .get(target)
        .ok_or_else(|| format!("there is no target {target:?}"))?;
    let expected = expect.try_into()?;
    if worker.is_armed.swap(true, Ordering::Acquire) {
        return Err(format!(
            "target {target} is armed already: wait for its event"
        ));
    }
    let armed_ns = now_ns();
    let arm = Arm {
        id,
        expected,
        armed_ns,
        until_ns: armed_ns.saturating_add(timeout_ms.saturating_mul(1_000_000)),
    };
    worker
        .arms
        .send(arm)
        .map_err(|_| format!("the thread of target {target} ended"))
}
