//! Requests of the control socket, and the reasons to refuse one.

use daemon::control::Fields;
use racksim::{Fault, FaultError, Port, PowerTarget, Rack, Refusal, SanitizeMethod, What};
use serde::de::DeserializeOwned;
use serde::Deserialize;
use serde_json::Value;

use crate::running_rack::{SanitizeError, SaveError};

/// The error of a refused operation.
#[derive(Debug)]
pub struct OpError {
    pub code: &'static str,
    pub message: String,
}

impl OpError {
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new("bad_request", message)
    }

    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { code, message }
    }
}

impl From<Refusal> for OpError {
    fn from(refusal: Refusal) -> Self {
        let code = match refusal {
            Refusal::UnknownPort(_) => "unknown_port",
            Refusal::UnknownServer(_) => "unknown_server",
            Refusal::UnknownDrive(_) => "unknown_drive",
            Refusal::BadMap(_) => "bad_map",
            Refusal::StaleGeneration { .. } => "stale_generation",
            Refusal::SwitchOff => "busy",
        };
        Self::new(code, refusal.to_string())
    }
}

impl From<SaveError> for OpError {
    fn from(error: SaveError) -> Self {
        match error {
            SaveError::Refused(refusal) => refusal.into(),
            SaveError::Disk(error) => Self::new("io_error", format!("saved_map: {error}")),
        }
    }
}

impl From<SanitizeError> for OpError {
    fn from(error: SanitizeError) -> Self {
        match error {
            SanitizeError::NoPower => Self::new("busy", "the drive has no power"),
            SanitizeError::NoAnswer => {
                Self::new("busy", "the drive hangs, is dead or erases itself already")
            }
            SanitizeError::Storage => {
                Self::new("io_error", "the drive's storage could not be erased")
            }
        }
    }
}

impl From<FaultError> for OpError {
    fn from(error: FaultError) -> Self {
        match error {
            FaultError::OutOfRange(message) => Self::new("out_of_range", message),
            FaultError::Malformed(message) => Self::bad_request(message),
        }
    }
}

/// Some ports by number, or all of them.
#[derive(Deserialize)]
#[serde(untagged)]
pub enum Ports {
    Some(Vec<Port>),
    Word(String),
}

impl Ports {
    /// `None` for all.
    pub fn some(self) -> Result<Option<Vec<Port>>, OpError> {
        match self {
            Self::Some(ports) => Ok(Some(ports)),
            Self::Word(word) if word == "all" => Ok(None),
            Self::Word(word) => Err(OpError::bad_request(format!(
                "ports are a list or \"all\", not {word:?}"
            ))),
        }
    }

    pub fn list(self, rack: &Rack) -> Result<Vec<Port>, OpError> {
        Ok(self.some()?.unwrap_or_else(|| (1..=rack.ports()).collect()))
    }
}

/// The client's key for a fault.
#[derive(Deserialize)]
#[serde(try_from = "String")]
pub struct Key(pub String);

const MAX_KEY: usize = 128;

impl TryFrom<String> for Key {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || "_./:-".contains(c);
        if (1..=MAX_KEY).contains(&text.len()) && text.chars().all(is_allowed) {
            return Ok(Self(text));
        }
        Err(format!(
            "key must be 1 to {MAX_KEY} letters, digits, '_', '.', '/', ':' and '-', not {text:?}"
        ))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MapFields {
    pub pairs: Vec<(Port, Port)>,
    #[serde(default)]
    pub full: bool,
    #[serde(default)]
    pub generation: Option<u64>,
    #[serde(default)]
    pub asked_ns: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenFields {
    pub ports: Ports,
    #[serde(default)]
    pub generation: Option<u64>,
    #[serde(default)]
    pub asked_ns: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortsFields {
    pub ports: Ports,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DropFields {
    pub ports: Ports,
    pub down_ms: f64,
    #[serde(default)]
    pub up_ms: f64,
    #[serde(default = "once")]
    pub count: u32,
}

fn once() -> u32 {
    1
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainingFields {
    pub ports: Ports,
    pub factor: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StickFields {
    pub port: Port,
    pub stuck: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MiswireFields {
    pub ports: [Port; 2],
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PowerFields {
    pub target: String,
    /// Nothing is switched without it.
    #[serde(default)]
    pub on: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultFields {
    pub drive: String,
    #[serde(default)]
    pub key: Option<Key>,
    pub fault: Fault,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClearFields {
    #[serde(default)]
    pub drive: Option<String>,
    #[serde(default)]
    pub fault_id: Option<u64>,
    #[serde(default)]
    pub key: Option<Key>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IdentifyFields {
    #[serde(default)]
    pub drive: Option<String>,
    #[serde(default)]
    pub server: Option<String>,
    #[serde(default)]
    pub port: Option<String>,
    #[serde(default)]
    pub slot: Option<u16>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DriveFields {
    pub drive: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SanitizeFields {
    pub drive: String,
    pub method: SanitizeMethod,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordFields {
    pub drive: String,
    pub on: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedFields {
    pub drive: String,
    #[serde(default)]
    pub from: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubscribeFields {
    /// The names of the events that are wanted; all where it is left out.
    #[serde(default)]
    pub events: Option<Vec<String>>,
}

impl SubscribeFields {
    /// Refused where an event of that name does not exist.
    pub fn known(self) -> Result<Option<Vec<String>>, OpError> {
        let mut asked = self.events.iter().flatten();
        match asked.find(|name| !What::NAMES.contains(&name.as_str())) {
            Some(name) => Err(OpError::bad_request(format!(
                "there is no event {name:?}; there are {}",
                What::NAMES.join(", ")
            ))),
            None => Ok(self.events),
        }
    }
}

/// The fields of an operation.
pub fn read<T: DeserializeOwned>(fields: Fields) -> Result<T, OpError> {
    serde_json::from_value(Value::Object(fields))
        .map_err(|error| OpError::bad_request(error.to_string()))
}

/// Parse `switch`, `server:NAME` or `drive:ID`.
pub fn power_target(target: &str) -> Result<PowerTarget, OpError> {
    match target.split_once(':') {
        None if target == "switch" => Ok(PowerTarget::Switch),
        Some(("server", name)) => Ok(PowerTarget::Server(name.to_owned())),
        Some(("drive", id)) => Ok(PowerTarget::Drive(id.to_owned())),
        _ => Err(OpError::bad_request(format!(
            "target is switch, server:NAME or drive:ID, not {target:?}"
        ))),
    }
}
