//! The choice of a scheduler, and its parameters.

use serde::{Deserialize, Serialize};
use serde_json::{json, Value};

use crate::document;
use crate::flashfq::{FlashFq, FlashFqParameters};
use crate::gimbal::{Gimbal, GimbalParameters};
use crate::machine::Machine;
use crate::none::Fifo;
use crate::parda::{Parda, PardaParameters};
use crate::reflex::{Reflex, ReflexParameters};
use crate::scheduler::Scheduler;

/// A scheduler and its parameters in a document, such as `{"kind": "flashfq", "depth": 32}`. Parameters that are not
/// given have their defaults; unknown names are refused with the name that was probably meant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[serde(try_from = "Value")]
pub enum Parameters {
    /// Every request goes to the drive at once, in order of arrival.
    None,
    /// Tokens, admission by objectives, best effort.
    Reflex(ReflexParameters),
    /// A window for each client.
    Parda(PardaParameters),
    /// Start-time fair queueing with throttled dispatch and anticipation.
    Flashfq(FlashFqParameters),
    /// Congestion control, write cost, virtual slots, credits.
    Gimbal(GimbalParameters),
}

impl Parameters {
    /// The names of all schedulers.
    pub const KINDS: [&'static str; 5] = ["none", "reflex", "parda", "flashfq", "gimbal"];

    /// A scheduler with its default parameters; the error names those that exist.
    pub fn of(kind: &str) -> Result<Self, String> {
        Ok(match kind {
            "none" => Self::None,
            "reflex" => Self::Reflex(ReflexParameters::default()),
            "parda" => Self::Parda(PardaParameters::default()),
            "flashfq" => Self::Flashfq(FlashFqParameters::default()),
            "gimbal" => Self::Gimbal(GimbalParameters::default()),
            _ => {
                let known = Self::KINDS.iter().copied();
                return Err(document::unknown("kind", kind, known, "scheduler"));
            }
        })
    }

    /// The name of the scheduler.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Reflex(_) => "reflex",
            Self::Parda(_) => "parda",
            Self::Flashfq(_) => "flashfq",
            Self::Gimbal(_) => "gimbal",
        }
    }

    /// Check the parameters; the error names the wrong one and its range.
    pub fn check(&self) -> Result<(), String> {
        match self {
            Self::None => Ok(()),
            Self::Reflex(parameters) => parameters.check(),
            Self::Parda(parameters) => parameters.check(),
            Self::Flashfq(parameters) => parameters.check(),
            Self::Gimbal(parameters) => parameters.check(),
        }
        .map_err(|what| format!("scheduler {}: {what}", self.kind()))
    }

    /// A scheduler without tenants. The parameters have been checked.
    #[must_use]
    pub fn start(&self) -> Box<dyn Scheduler> {
        match self {
            Self::None => Box::new(Machine::new(Fifo::default())),
            Self::Reflex(parameters) => Box::new(Machine::new(Reflex::new(parameters))),
            Self::Parda(parameters) => Box::new(Machine::new(Parda::new(parameters))),
            Self::Flashfq(parameters) => Box::new(Machine::new(FlashFq::new(parameters))),
            Self::Gimbal(parameters) => Box::new(Machine::new(Gimbal::new(parameters))),
        }
    }
}

impl TryFrom<Value> for Parameters {
    type Error = String;

    fn try_from(mut value: Value) -> Result<Self, String> {
        let kind = value
            .as_object_mut()
            .and_then(|fields| fields.remove("kind"))
            .ok_or("a scheduler needs a kind, as in {\"kind\": \"gimbal\"}")?;
        let kind = kind
            .as_str()
            .ok_or_else(|| format!("kind {kind} of scheduler is not a name"))?;
        let defaults = Self::of(kind)?;
        let mut known = json!(defaults);
        known.as_object_mut().expect("a tagged enum").remove("kind");
        let of = format!("scheduler {kind}");
        document::check_names(&value, &known, &of)?;
        let in_kind = |error: serde_json::Error| format!("{of}: {error}");
        let parameters = match defaults {
            Self::None => Self::None,
            Self::Reflex(_) => Self::Reflex(serde_json::from_value(value).map_err(in_kind)?),
            Self::Parda(_) => Self::Parda(serde_json::from_value(value).map_err(in_kind)?),
            Self::Flashfq(_) => Self::Flashfq(serde_json::from_value(value).map_err(in_kind)?),
            Self::Gimbal(_) => Self::Gimbal(serde_json::from_value(value).map_err(in_kind)?),
        };
        parameters.check()?;
        Ok(parameters)
    }
}
