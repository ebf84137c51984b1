//! Operations of the control socket.

use std::sync::atomic::Ordering;
use std::sync::Arc;

use daemon::control::Fields;
use racksim::{Command, Counters, FaultName, Port, Rack, Refusal, SanitizeMethod};
use realtime::now_ns;
use serde_json::{json, Value};

use crate::drive::Drive;
use crate::request::{
    power_target, read, ClearFields, DriveFields, DropFields, FaultFields, IdentifyFields, Key,
    MapFields, MiswireFields, Nothing, OpError, OpenFields, PortsFields, PowerFields, RecordFields,
    RecordedFields, SanitizeFields, StickFields, TrainingFields,
};
use crate::running_rack::RunningRack;

/// A drop lasts no longer than eleven days, a flap than thirty years: nanoseconds have room for more.
const MOST_DROPPED_MS: f64 = 1e9;
const MOST_FLAPPED_MS: f64 = 1e12;

/// The time of execution, and the fields of the answer.
pub type Answer = Result<(u64, Fields), OpError>;

/// Run one operation.
pub fn run(running: &RunningRack, op: &str, fields: Fields) -> Answer {
    match op {
        "hello" => {
            let Nothing {} = read(fields)?;
            let (ports, generation) = running.rack(|rack| (rack.ports(), rack.generation()));
            let (version, pid) = (env!("CARGO_PKG_VERSION"), std::process::id());
            now(json!({"version": version, "pid": pid, "ports": ports, "generation": generation}))
        }
        "map" => {
            let MapFields {
                pairs,
                full,
                generation,
                asked_ns,
            } = read(fields)?;
            change_map(
                running,
                &Command::Map {
                    pairs,
                    full,
                    generation,
                },
                asked_ns,
            )
        }
        "open" => {
            let OpenFields {
                ports,
                generation,
                asked_ns,
            } = read(fields)?;
            let ports = ports.some()?;
            change_map(running, &Command::Open { ports, generation }, asked_ns)
        }
        "get_map" => {
            let Nothing {} = read(fields)?;
            let (generation, pairs) = running.rack(|rack| (rack.generation(), rack.map().pairs()));
            now(json!({"generation": generation, "pairs": pairs}))
        }
        "states" => by_port(running, read(fields)?, "states", |rack, port| {
            rack.state(port).map(Value::from)
        }),
        "phy_counts" => by_port(running, read(fields)?, "counts", |rack, port| {
            rack.drops(port).map(Value::from)
        }),
        "save_map" => {
            let Nothing {} = read(fields)?;
            Ok((running.save_map()?.t_ns, Fields::new()))
        }
        "saved_map" => {
            let Nothing {} = read(fields)?;
            now(json!({"pairs": running.rack(|rack| rack.saved().pairs())}))
        }
        "phy_drop" | "phy_flap" => {
            let is_flap = op == "phy_flap";
            if let Some(missing) = ["up_ms", "count"]
                .iter()
                .find(|&&name| fields.contains_key(name) != is_flap)
            {
                let verb = if is_flap { "needs" } else { "takes no" };
                return Err(OpError::bad_request(format!("{op} {verb} {missing}")));
            }
            drop_ports(running, read(fields)?)
        }
        "stick" => {
            let StickFields { port, stuck } = read(fields)?;
            done(running, &Command::Stick { port, stuck })
        }
        "miswire" => {
            let MiswireFields { ports } = read(fields)?;
            if ports[0] == ports[1] {
                return Err(OpError::bad_request("miswire swaps two different ports"));
            }
            done(running, &Command::Miswire { ports })
        }
        "power" => {
            let PowerFields { target, on } = read(fields)?;
            let target = power_target(&target)?;
            match on {
                Some(on) => done(running, &Command::Power { target, on }),
                None => now(json!({"on": running.rack(|rack| rack.is_on(&target))?})),
            }
        }
        "announce" => {
            let PortsFields { ports } = read(fields)?;
            let ports = running.rack(|rack| ports.list(rack))?;
            done(running, &Command::Announce { ports })
        }
        "fault" => {
            let FaultFields { drive, key, fault } = read(fields)?;
            let key = key.as_ref().map(|Key(key)| key.as_str());
            now(json!({"fault_id": running.add_fault(running.drive(&drive)?, key, &fault)?}))
        }
        "clear_fault" => clear_fault(running, read(fields)?),
        "faults" => faults(running, read(fields)?),
        "training" => slow_training(running, read(fields)?),
        "disturbances" => disturbances(running, read(fields)?),
        "identify" => identify(running, read(fields)?),
        "drive_stats" => drive_stats(running, read(fields)?),
        "stats" => stats(running, read(fields)?),
        "sanitize" => sanitize(running, read(fields)?),
        "record_io" => {
            let RecordFields { drive, on } = read(fields)?;
            running.drives()[running.drive(&drive)?]
                .recording
                .switch(on);
            now(json!({}))
        }
        "recorded_io" => {
            let RecordedFields { drive, from } = read(fields)?;
            now(running.drives()[running.drive(&drive)?]
                .recording
                .page(from))
        }
        "settle" => {
            let Nothing {} = read(fields)?;
            running.settle();
            now(json!({"lost": running.shared().truth.lost()}))
        }
        _ => Err(OpError::new(
            "unknown_op",
            format!("there is no operation {op:?}"),
        )),
    }
}

/// An answer as of now. `fields` is an object.
fn now(fields: Value) -> Answer {
    match fields {
        Value::Object(fields) => Ok((now_ns(), fields)),
        _ => Ok((now_ns(), Fields::new())),
    }
}

fn done(running: &RunningRack, command: &Command) -> Answer {
    Ok((running.execute(command, None)?.t_ns, Fields::new()))
}

fn change_map(running: &RunningRack, command: &Command, asked_ns: Option<u64>) -> Answer {
    let executed = running.execute(command, asked_ns)?;
    let fields = Fields::from_iter([("generation".to_owned(), executed.generation.into())]);
    Ok((executed.t_ns, fields))
}

fn by_port(
    running: &RunningRack,
    PortsFields { ports }: PortsFields,
    name: &str,
    look: impl Fn(&Rack, Port) -> Result<Value, Refusal>,
) -> Answer {
    let by_port = running.rack(|rack| -> Result<Fields, OpError> {
        let ports = ports.list(rack)?.into_iter();
        Ok(ports
            .map(|port| Ok((port.to_string(), look(rack, port)?)))
            .collect::<Result<_, Refusal>>()?)
    })?;
    now(json!({name: by_port}))
}

fn drop_ports(running: &RunningRack, fields: DropFields) -> Answer {
    let DropFields {
        ports,
        down_ms,
        up_ms,
        count,
    } = fields;
    let is_time = |ms: f64| (0.001..=MOST_DROPPED_MS).contains(&ms);
    if !is_time(down_ms) || !(is_time(up_ms) || count == 1 && up_ms == 0.0) {
        return Err(OpError::new(
            "out_of_range",
            "down_ms and up_ms must be between 0.001 and 1e9",
        ));
    }
    if !(1..=10_000).contains(&count) {
        return Err(OpError::new(
            "out_of_range",
            "count must be between 1 and 10000",
        ));
    }
    if f64::from(count) * (down_ms + up_ms) > MOST_FLAPPED_MS {
        return Err(OpError::new(
            "out_of_range",
            "count times down_ms and up_ms must be 1e12 at most",
        ));
    }
    let ports = running.rack(|rack| ports.list(rack))?;
    done(
        running,
        &Command::Drop {
            ports,
            down_ms,
            up_ms,
            count,
        },
    )
}

fn slow_training(
    running: &RunningRack,
    TrainingFields { ports, factor }: TrainingFields,
) -> Answer {
    if !(1.0..=1e6).contains(&factor) {
        return Err(OpError::new(
            "out_of_range",
            "factor must be between 1 and 1e6",
        ));
    }
    let ports = running.rack(|rack| ports.list(rack))?;
    done(running, &Command::Training { ports, factor })
}

fn disturbances(running: &RunningRack, Nothing {}: Nothing) -> Answer {
    now(running.rack(|rack| {
        json!({
            "stuck": rack.stuck().collect::<Vec<_>>(),
            "miswired": rack.miswired(),
            "training": rack.training(),
            "dropped": rack.dropped().collect::<Vec<_>>(),
        })
    }))
}

fn clear_fault(running: &RunningRack, fields: ClearFields) -> Answer {
    let name = match (&fields.drive, fields.fault_id, &fields.key) {
        (Some(_), None, None) => FaultName::All,
        (None, Some(fault_id), None) => FaultName::Id(fault_id),
        (_, None, Some(Key(key))) => FaultName::Key(key),
        _ => {
            return Err(OpError::bad_request(
                "clear_fault needs drive, key, both of them, or fault_id",
            ))
        }
    };
    let drives = match &fields.drive {
        Some(drive) => {
            let index = running.drive(drive)?;
            index..index + 1
        }
        None => 0..running.drives().len(),
    };
    let cleared: Vec<u64> = drives
        .flat_map(|drive| running.clear_faults(drive, name))
        .collect();
    now(json!({"cleared": cleared}))
}

fn faults(running: &RunningRack, Nothing {}: Nothing) -> Answer {
    let of_drive = |drive: &Arc<Drive>| {
        let id = drive.identity.id.clone();
        drive.faults().into_iter().map(move |fault| {
            let mut row = json!(fault);
            row["drive"] = json!(id);
            row
        })
    };
    let faults: Vec<Value> = running.drives().iter().flat_map(of_drive).collect();
    now(json!({"faults": faults}))
}

fn sanitize(running: &RunningRack, SanitizeFields { drive, method }: SanitizeFields) -> Answer {
    let index = running.drive(&drive)?;
    let offered = SanitizeMethod::offered(running.drives()[index].identity.rotational);
    if !offered.contains(&method) {
        let (method, offered) = (json!(method), json!(offered));
        return Err(OpError::bad_request(format!(
            "{drive} offers {offered}, not {method}"
        )));
    }
    Ok((running.sanitize(index, method)?, Fields::new()))
}

fn identify(running: &RunningRack, fields: IdentifyFields) -> Answer {
    let drive = match fields {
        IdentifyFields {
            drive: Some(drive),
            server: None,
            port: None,
            slot: None,
        } => Some(running.drive(&drive)?),
        IdentifyFields {
            drive: None,
            server: Some(server),
            port: Some(port),
            slot,
        } => drive_seen(running, &server, &port, slot)?,
        _ => {
            return Err(OpError::bad_request(
                "identify needs drive, or server and port (and slot)",
            ))
        }
    };
    let Some(index) = drive else {
        let names = [
            "drive",
            "model",
            "serial",
            "firmware",
            "protocol",
            "wwn",
            "eui64",
            "bytes",
            "sector_bytes",
            "sanitize_methods",
        ];
        let mut absent: Fields = names
            .map(|name| (name.to_owned(), Value::Null))
            .into_iter()
            .collect();
        absent.insert("online".into(), false.into());
        return now(Value::Object(absent));
    };
    let identity = &running.drives()[index].identity;
    now(json!({
        "drive": identity.id, "model": identity.model, "serial": identity.serial, "firmware": identity.firmware,
        "protocol": identity.protocol, "wwn": identity.wwn, "eui64": identity.eui64, "bytes": identity.bytes,
        "sector_bytes": identity.sector_bytes, "rotational": identity.rotational,
        "online": running.rack(|rack| rack.is_online(index)),
        "sanitize_methods": SanitizeMethod::offered(identity.rotational),
    }))
}

/// The drive that a server sees on one of its ports.
fn drive_seen(
    running: &RunningRack,
    server: &str,
    port: &str,
    slot: Option<u16>,
) -> Result<Option<usize>, OpError> {
    let slot = slot.map(|slot| format!(".s{slot}")).unwrap_or_default();
    let Some(export) = running.export(&format!("{server}.{port}{slot}")) else {
        let prefix = format!("{server}.");
        if server == "drive"
            || !running
                .paths()
                .iter()
                .any(|line| line.name.starts_with(&prefix))
        {
            return Err(Refusal::UnknownServer(server.to_owned()).into());
        }
        return Err(OpError::new(
            "unknown_port",
            format!("server {server} has no port {port}{slot}"),
        ));
    };
    Ok(running.rack(|rack| rack.drive_at(export)))
}

fn drive_stats(running: &RunningRack, DriveFields { drive }: DriveFields) -> Answer {
    let index = running.drive(&drive)?;
    let (power_cycles, power_on_ns, phy_resets) =
        running.rack(|rack| rack.drive_life(index, now_ns()));
    let drive = &running.drives()[index];
    let mut fields = json!(drive.counters());
    fields["power_cycles"] = power_cycles.into();
    fields["power_on_ns"] = power_on_ns.into();
    fields["phy_resets"] = phy_resets.into();
    for (name, value) in drive.health() {
        fields[name] = value.into();
    }
    now(fields)
}

fn stats(running: &RunningRack, Nothing {}: Nothing) -> Answer {
    let mut sum = Counters::default();
    for drive in running.drives() {
        sum += drive.counters();
    }
    let shared = running.shared();
    let mut fields = json!(sum);
    fields["held"] = shared.held.now.load(Ordering::Relaxed).into();
    fields["held_total"] = shared.held.total.load(Ordering::Relaxed).into();
    fields["held_timeouts"] = shared.held.timeouts.load(Ordering::Relaxed).into();
    fields["truth_lost"] = shared.truth.lost().into();
    fields["lateness"] = shared.timer.lateness();
    now(fields)
}
